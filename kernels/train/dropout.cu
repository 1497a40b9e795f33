/* dropout.cu - dropout with the mask that every back end draws. Host version: dropout.c.
 *
 * A thread draws one counter, which decides on eight elements at a distance of eight (dropout.h): for each
 * of them, eight adjacent threads access eight adjacent elements. */
#include "kernels/train/device.cuh"
#include "kernels/train/dropout.h"

template <class T> static __device__ __forceinline__ void dropout(const stk_train_dropout &a)
{
    const uint64_t step = a.step + (a.state == nullptr ? 0 : a.state->tried);
    const uint64_t key = stk_dropout_key(a.seed, step);
    const uint64_t groups = (a.elements + STK_DROPOUT_GROUP - 1) / STK_DROPOUT_GROUP;
    const uint64_t counters = groups * STK_DROPOUT_LANES; /* per sample */
    for (uint64_t i = first_element(); i < counters * a.samples; i += element_stride()) {
        const uint64_t sample = i / counters;
        const uint64_t counter = i % counters;
        const struct stk_random random =
            stk_philox(key, stk_dropout_counter_high(a.layer, a.first_sample + sample), counter);
        const uint64_t first =
            counter / STK_DROPOUT_LANES * STK_DROPOUT_GROUP + counter % STK_DROPOUT_LANES;
#pragma unroll
        for (uint32_t half = 0; half < 8; half++) {
            const uint64_t element = first + half * STK_DROPOUT_LANES;
            if (element >= a.elements)
                break;
            const uint64_t at = sample * a.elements + element;
            const bool dropped = stk_dropout_bits(&random, half) < a.dropped_below;
            store((T *)a.y, at, dropped ? 0 : load((const T *)a.x, at) * a.scale);
        }
    }
}

STK_KERNEL(stk_train_dropout, stk_train_dropout, dropout)
