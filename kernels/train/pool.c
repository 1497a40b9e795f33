/* pool.c - the host version of pool.cu, one image position after the other. */
#include "kernels/train/elements.h"
#include "kernels/train/host_kernels.h"

struct position {
    uint32_t n, h, w, c;
};

static struct position position_of(uint32_t i, uint32_t h, uint32_t w, uint32_t c)
{
    return (struct position){ .n = i / c / w / h, .h = i / c / w % h, .w = i / c % w, .c = i % c };
}

static uint32_t input_at(const struct stk_train_window *w, const struct position *p, uint32_t r,
                         uint32_t s)
{
    const uint32_t h = p->h * w->stride[0] + r - w->padding[0];
    const uint32_t column = p->w * w->stride[1] + s - w->padding[1];
    return ((p->n * w->in_h + h) * w->in_w + column) * w->c + p->c;
}

static uint32_t output_at(const struct stk_train_window *w, const struct position *p, uint32_t oh,
                          uint32_t ow)
{
    return ((p->n * w->out_h + oh) * w->out_w + ow) * w->c + p->c;
}

/* Positions of the window at output p inside the image, or outputs whose windows cover input p. */
struct area {
    struct stk_train_range rows, columns;
};

static struct area inside(const struct stk_train_window *w, const struct position *p)
{
    return (
        struct area){ stk_train_inside(p->h, w->kernel[0], w->stride[0], w->padding[0], w->in_h),
                      stk_train_inside(p->w, w->kernel[1], w->stride[1], w->padding[1], w->in_w) };
}

static struct area covering(const struct stk_train_window *w, const struct position *p)
{
    return (struct area){
        stk_train_covering(p->h, w->kernel[0], w->stride[0], w->padding[0], w->out_h),
        stk_train_covering(p->w, w->kernel[1], w->stride[1], w->padding[1], w->out_w)
    };
}

static uint32_t inputs_of(const struct stk_train_window *w)
{
    return w->n * w->in_h * w->in_w * w->c;
}

static uint32_t outputs_of(const struct stk_train_window *w)
{
    return w->n * w->out_h * w->out_w * w->c;
}

static void keep_place(const struct stk_train_max_pool *a, uint32_t output, uint32_t place)
{
    if (a->places != NULL && stk_train_is_wide(&a->window))
        ((uint16_t *)a->places)[output] = (uint16_t)place;
    else if (a->places != NULL)
        ((uint8_t *)a->places)[output] = (uint8_t)place;
}

static void max_pool_forward(const struct stk_train_max_pool *a, enum stk_train_storage storage)
{
    const struct stk_train_window *const w = &a->window;
    for (uint32_t i = 0; i < outputs_of(w); i++) {
        const struct position p = position_of(i, w->out_h, w->out_w, w->c);
        const struct area at = inside(w, &p);
        float best = -INFINITY;
        uint32_t place = at.rows.first * w->kernel[1] + at.columns.first;
        for (uint32_t r = at.rows.first; r < at.rows.end; r++)
            for (uint32_t s = at.columns.first; s < at.columns.end; s++) {
                const float value = stk_train_load(a->x, input_at(w, &p, r, s), storage);
                if (value > best || (isnan(value) && !isnan(best))) {
                    best = value;
                    place = r * w->kernel[1] + s;
                }
            }
        stk_train_store(a->y, i, a->relu != 0 && best < 0 ? 0 : best, storage);
        keep_place(a, i, place);
    }
}

static uint32_t place_at(const struct stk_train_max_pool_backward *a, uint32_t output)
{
    return stk_train_is_wide(&a->window) ? ((const uint16_t *)a->places)[output]
                                         : ((const uint8_t *)a->places)[output];
}

static void max_pool_backward(const struct stk_train_max_pool_backward *a,
                              enum stk_train_storage storage)
{
    const struct stk_train_window *const w = &a->window;
    for (uint32_t i = 0; i < inputs_of(w); i++) {
        const struct position p = position_of(i, w->in_h, w->in_w, w->c);
        const struct area at = covering(w, &p);
        float sum = 0;
        for (uint32_t oh = at.rows.first; oh < at.rows.end; oh++)
            for (uint32_t ow = at.columns.first; ow < at.columns.end; ow++) {
                const uint32_t o = output_at(w, &p, oh, ow);
                const uint32_t here = (p.h + w->padding[0] - oh * w->stride[0]) * w->kernel[1] +
                                      (p.w + w->padding[1] - ow * w->stride[1]);
                if (place_at(a, o) == here &&
                    (a->y == NULL || stk_train_load(a->y, o, storage) > 0))
                    sum += stk_train_load(a->dy, o, storage);
            }
        stk_train_store(a->dx, i, sum, storage);
    }
}

static float window_places(const struct stk_train_window *w)
{
    return (float)(w->kernel[0] * w->kernel[1]);
}

static void avg_pool_forward(const struct stk_train_avg_pool *a, enum stk_train_storage storage)
{
    const struct stk_train_window *const w = &a->window;
    for (uint32_t i = 0; i < outputs_of(w); i++) {
        const struct position p = position_of(i, w->out_h, w->out_w, w->c);
        const struct area at = inside(w, &p);
        float sum = 0;
        for (uint32_t r = at.rows.first; r < at.rows.end; r++)
            for (uint32_t s = at.columns.first; s < at.columns.end; s++)
                sum += stk_train_load(a->x, input_at(w, &p, r, s), storage);
        stk_train_store(a->y, i, sum / window_places(w), storage);
    }
}

static void avg_pool_backward(const struct stk_train_avg_pool *a, enum stk_train_storage storage)
{
    const struct stk_train_window *const w = &a->window;
    for (uint32_t i = 0; i < inputs_of(w); i++) {
        const struct position p = position_of(i, w->in_h, w->in_w, w->c);
        const struct area at = covering(w, &p);
        float sum = 0;
        for (uint32_t oh = at.rows.first; oh < at.rows.end; oh++)
            for (uint32_t ow = at.columns.first; ow < at.columns.end; ow++)
                sum += stk_train_load(a->x, output_at(w, &p, oh, ow), storage) / window_places(w);
        stk_train_store(a->y, i, sum, storage);
    }
}

STK_TRAIN_HOST_KERNEL(stk_train_max_pool_forward, stk_train_max_pool, max_pool_forward)
STK_TRAIN_HOST_KERNEL(stk_train_max_pool_backward, stk_train_max_pool_backward, max_pool_backward)
STK_TRAIN_HOST_KERNEL(stk_train_avg_pool_forward, stk_train_avg_pool, avg_pool_forward)
STK_TRAIN_HOST_KERNEL(stk_train_avg_pool_backward, stk_train_avg_pool, avg_pool_backward)
