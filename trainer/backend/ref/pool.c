/* pool.c - maximum and average over windows, and their gradients. */
#include "trainer/backend/ref/operations.h"

#include <math.h>
#include <string.h>

static struct stk_window rows_of(const struct stk_layer *layer, uint32_t oh)
{
    return stk_window_at(oh, layer->kernel[0], layer->stride[0], layer->padding[0], layer->in.h);
}

static struct stk_window columns_of(const struct stk_layer *layer, uint32_t ow)
{
    return stk_window_at(ow, layer->kernel[1], layer->stride[1], layer->padding[1], layer->in.w);
}

/* The input of window position (r, s), in floats from the start of the sample. */
static uint64_t read_at(const struct stk_layer *layer, const struct stk_window *rows, uint32_t r,
                        const struct stk_window *columns, uint32_t s, uint32_t c)
{
    const uint64_t h = (uint64_t)(rows->start + r);
    const uint64_t w = (uint64_t)(columns->start + s);
    return (h * layer->in.w + w) * layer->in.c + c;
}

static uint32_t maximum_place(const struct stk_operands *o, uint64_t output)
{
    return stk_pool_is_wide(o->layer) ? ((const uint16_t *)o->aux)[output]
                                      : ((const uint8_t *)o->aux)[output];
}

static void keep_place(const struct stk_operands *o, uint64_t output, uint32_t place)
{
    if (o->aux == NULL)
        return;
    if (stk_pool_is_wide(o->layer))
        ((uint16_t *)o->aux)[output] = (uint16_t)place;
    else
        ((uint8_t *)o->aux)[output] = (uint8_t)place;
}

/* Called for each output, by its index; `x_at`: offset of its sample, in floats. */
typedef void at_output(const struct stk_operands *o, uint64_t output, uint64_t x_at,
                       const struct stk_window *rows, const struct stk_window *columns, uint32_t c);

static void for_each_output(const struct stk_operands *o, at_output *visit)
{
    const struct stk_shape out = o->layer->out;
    const uint64_t in_floats = stk_shape_elements(o->layer->in);
    uint64_t output = 0;
    for (uint32_t n = 0; n < o->count; n++)
        for (uint32_t oh = 0; oh < out.h; oh++)
            for (uint32_t ow = 0; ow < out.w; ow++) {
                const struct stk_window rows = rows_of(o->layer, oh);
                const struct stk_window columns = columns_of(o->layer, ow);
                for (uint32_t c = 0; c < out.c; c++)
                    visit(o, output++, n * in_floats, &rows, &columns, c);
            }
}

static void find_maximum(const struct stk_operands *o, uint64_t output, uint64_t x_at,
                         const struct stk_window *rows, const struct stk_window *columns,
                         uint32_t c)
{
    float best = -INFINITY;
    uint32_t place = rows->begin * o->layer->kernel[1] + columns->begin;
    for (uint32_t r = rows->begin; r < rows->end; r++)
        for (uint32_t s = columns->begin; s < columns->end; s++) {
            const float value = o->x[x_at + read_at(o->layer, rows, r, columns, s, c)];
            if (value > best || (isnan(value) && !isnan(best))) {
                best = value;
                place = r * o->layer->kernel[1] + s;
            }
        }
    o->y[output] = o->op->relu && best < 0 ? 0 : best; /* NaN stays NaN */
    keep_place(o, output, place);
}

void stk_ref_max_pool_forward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    for_each_output(o, find_maximum);
}

static void return_to_maximum(const struct stk_operands *o, uint64_t output, uint64_t x_at,
                              const struct stk_window *rows, const struct stk_window *columns,
                              uint32_t c)
{
    if (o->op->relu && !(o->y[output] > 0))
        return;
    const uint32_t place = maximum_place(o, output);
    const uint32_t r = place / o->layer->kernel[1];
    const uint32_t s = place % o->layer->kernel[1];
    o->dx[x_at + read_at(o->layer, rows, r, columns, s, c)] += o->dy[output];
}

static void clear_input_gradient(const struct stk_operands *o)
{
    memset(o->dx, 0, o->count * stk_shape_elements(o->layer->in) * sizeof(float));
}

void stk_ref_max_pool_backward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    clear_input_gradient(o);
    for_each_output(o, return_to_maximum);
}

/* Padding counts as zeros: divide by the size of the whole window. */
static double window_places(const struct stk_layer *layer)
{
    return (double)layer->kernel[0] * layer->kernel[1];
}

static void find_average(const struct stk_operands *o, uint64_t output, uint64_t x_at,
                         const struct stk_window *rows, const struct stk_window *columns,
                         uint32_t c)
{
    double sum = 0;
    for (uint32_t r = rows->begin; r < rows->end; r++)
        for (uint32_t s = columns->begin; s < columns->end; s++)
            sum += (double)o->x[x_at + read_at(o->layer, rows, r, columns, s, c)];
    o->y[output] = (float)(sum / window_places(o->layer));
}

void stk_ref_avg_pool_forward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    for_each_output(o, find_average);
}

static void return_to_all(const struct stk_operands *o, uint64_t output, uint64_t x_at,
                          const struct stk_window *rows, const struct stk_window *columns,
                          uint32_t c)
{
    const float share = (float)((double)o->dy[output] / window_places(o->layer));
    for (uint32_t r = rows->begin; r < rows->end; r++)
        for (uint32_t s = columns->begin; s < columns->end; s++)
            o->dx[x_at + read_at(o->layer, rows, r, columns, s, c)] += share;
}

void stk_ref_avg_pool_backward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    clear_input_gradient(o);
    for_each_output(o, return_to_all);
}
