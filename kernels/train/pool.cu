/* pool.cu - maximum and average over windows, forward and backward. Host version: pool.c.
 *
 * Adjacent threads take adjacent channels and so read adjacent bytes. Backward, each input gathers from the
 * windows that cover it: no atomics, and a fixed order of additions. */
#include "kernels/train/device.cuh"

/* The position of element i in a batch of h x w x c images. */
struct position {
    uint32_t n, h, w, c;
};

static __device__ __forceinline__ position position_of(uint32_t i, uint32_t h, uint32_t w,
                                                       uint32_t c)
{
    position p;
    p.c = i % c;
    i /= c;
    p.w = i % w;
    i /= w;
    p.h = i % h;
    p.n = i / h;
    return p;
}

static __device__ __forceinline__ uint32_t input_at(const stk_train_window &w, const position &p,
                                                    uint32_t r, uint32_t s)
{
    const uint32_t h = p.h * w.stride[0] + r - w.padding[0];
    const uint32_t column = p.w * w.stride[1] + s - w.padding[1];
    return ((p.n * w.in_h + h) * w.in_w + column) * w.c + p.c;
}

static __device__ __forceinline__ uint32_t output_at(const stk_train_window &w, const position &p,
                                                     uint32_t oh, uint32_t ow)
{
    return ((p.n * w.out_h + oh) * w.out_w + ow) * w.c + p.c;
}

static __device__ __forceinline__ uint32_t inputs_of(const stk_train_window &w)
{
    return w.n * w.in_h * w.in_w * w.c;
}

static __device__ __forceinline__ uint32_t outputs_of(const stk_train_window &w)
{
    return w.n * w.out_h * w.out_w * w.c;
}

struct area {
    stk_train_range rows, columns;
};

/* Positions of the window at output p inside the image. */
static __device__ __forceinline__ area inside(const stk_train_window &w, const position &p)
{
    return { stk_train_inside(p.h, w.kernel[0], w.stride[0], w.padding[0], w.in_h),
             stk_train_inside(p.w, w.kernel[1], w.stride[1], w.padding[1], w.in_w) };
}

/* Outputs whose windows cover input p. */
static __device__ __forceinline__ area covering(const stk_train_window &w, const position &p)
{
    return { stk_train_covering(p.h, w.kernel[0], w.stride[0], w.padding[0], w.out_h),
             stk_train_covering(p.w, w.kernel[1], w.stride[1], w.padding[1], w.out_w) };
}

template <class T>
static __device__ __forceinline__ void max_pool_forward(const stk_train_max_pool &a)
{
    const stk_train_window &w = a.window;
    const bool wide = stk_train_is_wide(&w);
    for (uint32_t i = first_element_32(); i < outputs_of(w); i += element_stride_32()) {
        const position p = position_of(i, w.out_h, w.out_w, w.c);
        const area at = inside(w, p);
        float best = -INFINITY;
        uint32_t place = at.rows.first * w.kernel[1] + at.columns.first;
        for (uint32_t r = at.rows.first; r < at.rows.end; r++)
            for (uint32_t s = at.columns.first; s < at.columns.end; s++) {
                const float value = load((const T *)a.x, input_at(w, p, r, s));
                if (value > best || (isnan(value) && !isnan(best))) {
                    best = value;
                    place = r * w.kernel[1] + s;
                }
            }
        store((T *)a.y, i, a.relu != 0 && best < 0 ? 0 : best);
        if (a.places != nullptr && wide)
            ((uint16_t *)a.places)[i] = (uint16_t)place;
        else if (a.places != nullptr)
            ((uint8_t *)a.places)[i] = (uint8_t)place;
    }
}

template <class T>
static __device__ __forceinline__ void max_pool_backward(const stk_train_max_pool_backward &a)
{
    const stk_train_window &w = a.window;
    const bool wide = stk_train_is_wide(&w);
    for (uint32_t i = first_element_32(); i < inputs_of(w); i += element_stride_32()) {
        const position p = position_of(i, w.in_h, w.in_w, w.c);
        const area at = covering(w, p);
        float sum = 0;
        for (uint32_t oh = at.rows.first; oh < at.rows.end; oh++)
            for (uint32_t ow = at.columns.first; ow < at.columns.end; ow++) {
                const uint32_t o = output_at(w, p, oh, ow);
                const uint32_t here = (p.h + w.padding[0] - oh * w.stride[0]) * w.kernel[1] +
                                      (p.w + w.padding[1] - ow * w.stride[1]);
                const uint32_t place =
                    wide ? ((const uint16_t *)a.places)[o] : ((const uint8_t *)a.places)[o];
                if (place == here && (a.y == nullptr || load((const T *)a.y, o) > 0))
                    sum += load((const T *)a.dy, o);
            }
        store((T *)a.dx, i, sum);
    }
}

static __device__ __forceinline__ float window_places(const stk_train_window &w)
{
    return (float)(w.kernel[0] * w.kernel[1]);
}

template <class T>
static __device__ __forceinline__ void avg_pool_forward(const stk_train_avg_pool &a)
{
    const stk_train_window &w = a.window;
    for (uint32_t i = first_element_32(); i < outputs_of(w); i += element_stride_32()) {
        const position p = position_of(i, w.out_h, w.out_w, w.c);
        const area at = inside(w, p);
        float sum = 0;
        for (uint32_t r = at.rows.first; r < at.rows.end; r++)
            for (uint32_t s = at.columns.first; s < at.columns.end; s++)
                sum += load((const T *)a.x, input_at(w, p, r, s));
        store((T *)a.y, i, sum / window_places(w));
    }
}

template <class T>
static __device__ __forceinline__ void avg_pool_backward(const stk_train_avg_pool &a)
{
    const stk_train_window &w = a.window;
    for (uint32_t i = first_element_32(); i < inputs_of(w); i += element_stride_32()) {
        const position p = position_of(i, w.in_h, w.in_w, w.c);
        const area at = covering(w, p);
        float sum = 0;
        for (uint32_t oh = at.rows.first; oh < at.rows.end; oh++)
            for (uint32_t ow = at.columns.first; ow < at.columns.end; ow++)
                sum += load((const T *)a.x, output_at(w, p, oh, ow)) / window_places(w);
        store((T *)a.y, i, sum);
    }
}

STK_KERNEL(stk_train_max_pool_forward, stk_train_max_pool, max_pool_forward)
STK_KERNEL(stk_train_max_pool_backward, stk_train_max_pool_backward, max_pool_backward)
STK_KERNEL(stk_train_avg_pool_forward, stk_train_avg_pool, avg_pool_forward)
STK_KERNEL(stk_train_avg_pool_backward, stk_train_avg_pool, avg_pool_backward)
