/* conv.c - convolution and its gradients, channels-last.
 *
 *   y[n][oh][ow][k] = bias[k] + sum over r, s, c of
 *                                 x[n][oh * stride - pad + r][...][c] * w[k][r][s][c]
 *
 * All three visit the same (output pixel, kernel position) pairs; positions in the padding are
 * skipped. Channels are processed in blocks, with sums in double. */
#include "trainer/backend/ref/operations.h"

enum { BLOCK = 64 };

/* Sizes of one convolution, and of one of its groups. */
struct sizes {
    uint32_t group_in, group_out;
    uint64_t filter; /* floats of one filter */
    uint64_t x, y;   /* floats of one sample */
};

static struct sizes sizes_of(const struct stk_layer *layer)
{
    const uint32_t group_in = layer->in.c / layer->groups;
    return (struct sizes){ .group_in = group_in,
                           .group_out = layer->out.c / layer->groups,
                           .filter = (uint64_t)layer->kernel[0] * layer->kernel[1] * group_in,
                           .x = stk_shape_elements(layer->in),
                           .y = stk_shape_elements(layer->out) };
}

static struct stk_window rows_of(const struct stk_layer *layer, uint32_t oh)
{
    return stk_window_at(oh, layer->kernel[0], layer->stride[0], layer->padding[0], layer->in.h);
}

static struct stk_window columns_of(const struct stk_layer *layer, uint32_t ow)
{
    return stk_window_at(ow, layer->kernel[1], layer->stride[1], layer->padding[1], layer->in.w);
}

static uint64_t pixel(struct stk_shape shape, int64_t h, int64_t w)
{
    return ((uint64_t)h * shape.w + (uint64_t)w) * shape.c;
}

static double output(const struct stk_operands *o, const float *x, uint32_t oh, uint32_t ow,
                     uint32_t k)
{
    const struct stk_layer *layer = o->layer;
    const struct sizes size = sizes_of(layer);
    const struct stk_window rows = rows_of(layer, oh);
    const struct stk_window columns = columns_of(layer, ow);
    const float *filter = o->weight + k * size.filter;
    x += k / size.group_out * size.group_in;

    double sum = o->bias != NULL ? (double)o->bias[k] : 0;
    for (uint32_t r = rows.begin; r < rows.end; r++)
        for (uint32_t s = columns.begin; s < columns.end; s++) {
            const float *from = x + pixel(layer->in, rows.start + r, columns.start + s);
            const float *w = filter + ((uint64_t)r * layer->kernel[1] + s) * size.group_in;
            for (uint32_t c = 0; c < size.group_in; c++)
                sum += (double)from[c] * (double)w[c];
        }
    return sum;
}

void stk_ref_conv_forward(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    const struct stk_shape out = o->layer->out;
    const struct sizes size = sizes_of(o->layer);
    for (uint32_t n = 0; n < o->count; n++)
        for (uint32_t oh = 0; oh < out.h; oh++)
            for (uint32_t ow = 0; ow < out.w; ow++)
                for (uint32_t k = 0; k < out.c; k++) {
                    const double sum = output(o, o->x + n * size.x, oh, ow, k);
                    o->y[n * size.y + pixel(out, oh, ow) + k] =
                        (float)(o->op->relu && sum < 0 ? 0 : sum);
                }
}

/* Find the output that reads input `at` through kernel position k; false if there is none. */
static bool output_reading(uint32_t at, uint32_t k, uint32_t stride, uint32_t padding,
                           uint32_t extent, uint32_t *out)
{
    const int64_t from = (int64_t)at + padding - k;
    if (from < 0 || from % stride != 0 || from / stride >= extent)
        return false;
    *out = (uint32_t)(from / stride);
    return true;
}

/* Add the gradients of the group's filters at one kernel position, for `count` channels. */
static void send_back(const struct stk_layer *layer, const float *weight, const float *dy,
                      uint64_t place, uint32_t group, uint32_t count, double *sums)
{
    const struct sizes size = sizes_of(layer);
    for (uint32_t k = group * size.group_out; k < (group + 1) * size.group_out; k++) {
        const float *w = weight + k * size.filter + place * size.group_in;
        for (uint32_t c = 0; c < count; c++)
            sums[c] += (double)dy[k] * (double)w[c];
    }
}

/* Channels [first, first + count) of a group, at one input pixel. */
static void input_gradient(const struct stk_operands *o, const float *dy, uint32_t ih, uint32_t iw,
                           uint32_t group, uint32_t first, uint32_t count, float *dx)
{
    const struct stk_layer *layer = o->layer;
    double sums[BLOCK] = { 0 };
    uint32_t oh, ow;
    for (uint32_t r = 0; r < layer->kernel[0]; r++) {
        if (!output_reading(ih, r, layer->stride[0], layer->padding[0], layer->out.h, &oh))
            continue;
        for (uint32_t s = 0; s < layer->kernel[1]; s++)
            if (output_reading(iw, s, layer->stride[1], layer->padding[1], layer->out.w, &ow))
                send_back(layer, o->weight + first, dy + pixel(layer->out, oh, ow),
                          (uint64_t)r * layer->kernel[1] + s, group, count, sums);
    }
    for (uint32_t c = 0; c < count; c++)
        dx[c] = (float)sums[c];
}

void stk_ref_conv_backward_data(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    const struct stk_layer *layer = o->layer;
    const struct sizes size = sizes_of(layer);
    for (uint32_t n = 0; n < o->count; n++)
        for (uint32_t ih = 0; ih < layer->in.h; ih++)
            for (uint32_t iw = 0; iw < layer->in.w; iw++)
                for (uint32_t c = 0; c < layer->in.c;) {
                    const uint32_t group = c / size.group_in;
                    const uint32_t first = c % size.group_in;
                    const uint32_t left = size.group_in - first;
                    const uint32_t count = left < BLOCK ? left : BLOCK;
                    input_gradient(o, o->dy + n * size.y, ih, iw, group, first, count,
                                   o->dx + n * size.x + pixel(layer->in, ih, iw) + c);
                    c += count;
                }
}

/* Channels [first, first + count) of filter k at kernel position (r, s). */
static void weight_gradient(const struct stk_operands *o, uint32_t k, uint32_t r, uint32_t s,
                            uint32_t first, uint32_t count, float *gradient)
{
    const struct stk_layer *layer = o->layer;
    const struct sizes size = sizes_of(layer);
    const uint32_t channel = k / size.group_out * size.group_in + first;
    double sums[BLOCK] = { 0 };
    for (uint32_t n = 0; n < o->count; n++)
        for (uint32_t oh = 0; oh < layer->out.h; oh++) {
            const struct stk_window rows = rows_of(layer, oh);
            if (r < rows.begin || r >= rows.end)
                continue;
            for (uint32_t ow = 0; ow < layer->out.w; ow++) {
                const struct stk_window columns = columns_of(layer, ow);
                if (s < columns.begin || s >= columns.end)
                    continue;
                const double dy = (double)o->dy[n * size.y + pixel(layer->out, oh, ow) + k];
                const float *x = o->x + n * size.x + channel +
                                 pixel(layer->in, rows.start + r, columns.start + s);
                for (uint32_t c = 0; c < count; c++)
                    sums[c] += dy * (double)x[c];
            }
        }
    for (uint32_t c = 0; c < count; c++)
        gradient[c] += (float)sums[c];
}

static double bias_gradient(const struct stk_operands *o, uint32_t k)
{
    const uint64_t pixels = o->count * stk_plane(o->layer->out);
    double sum = 0;
    for (uint64_t i = 0; i < pixels; i++)
        sum += (double)o->dy[i * o->layer->out.c + k];
    return sum;
}

void stk_ref_conv_backward_weights(const struct stk_operands *o, struct stk_loss *loss)
{
    (void)loss;
    const struct stk_layer *layer = o->layer;
    const struct sizes size = sizes_of(layer);
    for (uint32_t k = 0; k < layer->out.c; k++) {
        float *gradient = o->weight_grad + k * size.filter;
        for (uint32_t r = 0; r < layer->kernel[0]; r++)
            for (uint32_t s = 0; s < layer->kernel[1]; s++)
                for (uint32_t c = 0; c < size.group_in; c += BLOCK) {
                    const uint32_t left = size.group_in - c;
                    const uint32_t count = left < BLOCK ? left : BLOCK;
                    weight_gradient(o, k, r, s, c, count, gradient);
                    gradient += count;
                }
        if (o->bias_grad != NULL)
            o->bias_grad[k] += (float)bias_gradient(o, k);
    }
}
