/* dropout.cu - dropout with the mask that every back end draws.
 *
 * A thread takes eight adjacent elements, and draws the counter of as many at a distance of eight
 * (dropout.h). So eight adjacent threads draw what they need together, and exchange it:
 *
 *              half 0 1 2 ... 7                       element 0 1 2 ... 7
 *   counter 0       a b c     h      exchange_bits   pack 0   a i q
 *   counter 1       i j k     p     ──────────────▶  pack 1   b j r
 *   counter 2       q r s     x                      pack 2   c k s */
#include "kernels/train/dropout.h"
#include "kernels/train/packs.cuh"

/* Bit h of lane l of eight adjacent lanes becomes bit l of lane h. All lanes of the warp take
 * part. */
static __device__ __forceinline__ uint32_t exchange_bits(uint32_t bits)
{
    uint32_t kept = 0x0F; /* by the lower lane of a pair; the upper one keeps the others */
#pragma unroll
    for (uint32_t distance = STK_DROPOUT_LANES / 2; distance > 0; distance /= 2) {
        const uint32_t other = __shfl_xor_sync(0xFFFFFFFFU, bits, distance);
        bits = (threadIdx.x & distance) == 0 ? (bits & kept) | (other & kept) << distance
                                             : (bits & ~kept) | (other & ~kept) >> distance;
        kept ^= kept << distance / 2;
    }
    return bits;
}

/* Bit h: half h of the counter drops its element. */
static __device__ __forceinline__ uint32_t dropped_bits(const stk_train_dropout &a, uint64_t key,
                                                        uint64_t sample, uint64_t counter)
{
    const struct stk_random random =
        stk_philox(key, stk_dropout_counter_high(a.layer, a.first_sample + sample), counter);
    uint32_t bits = 0;
#pragma unroll
    for (uint32_t half = 0; half < 8; half++)
        bits |= (stk_dropout_bits(&random, half) < a.dropped_below ? 1U : 0U) << half;
    return bits;
}

/* Elements [at, at + PACK), of which the last ones may be beyond `end`. */
template <class T>
static __device__ __forceinline__ void drop(const stk_train_dropout &a, uint64_t at, uint64_t end,
                                            uint32_t dropped)
{
    const T *const x = (const T *)a.x;
    T *const y = (T *)a.y;
    if (a.elements % STK_TRAIN_PACK != 0) { /* packs of most samples are not aligned */
#pragma unroll 1
        for (uint64_t i = at; i < end && i < at + STK_TRAIN_PACK; i++)
            store(y, i, (dropped >> (i - at) & 1) != 0 ? 0 : load(x, i) * a.scale);
        return;
    }
    float v[STK_TRAIN_PACK];
    load_pack(x + at, v);
#pragma unroll
    EACH_OF_PACK(i)
    v[i] = (dropped >> i & 1) != 0 ? 0 : v[i] * a.scale;
    store_pack(y + at, v);
}

template <class T> static __device__ __forceinline__ void dropout(const stk_train_dropout &a)
{
    const uint64_t step = a.step + (a.state == nullptr ? 0 : a.state->tried);
    const uint64_t key = stk_dropout_key(a.seed, step);
    const uint64_t groups = (a.elements + STK_DROPOUT_GROUP - 1) / STK_DROPOUT_GROUP;
    const uint64_t counters = groups * STK_DROPOUT_LANES; /* per sample; as many packs */
    const uint64_t sample_step = element_stride() / counters;
    const uint64_t counter_step = element_stride() % counters;
    uint64_t sample = first_element() / counters;
    uint64_t counter = first_element() % counters;
    /* Whole warps continue, since their lanes exchange bits: as long as the first lane has a
     * sample. */
    for (uint64_t warp = first_element() - threadIdx.x % 32; warp < counters * a.samples;
         warp += element_stride()) {
        const uint32_t dropped = exchange_bits(dropped_bits(a, key, sample, counter));
        const uint64_t element = counter * STK_TRAIN_PACK;
        if (sample < a.samples && element < a.elements)
            drop<T>(a, sample * a.elements + element, (sample + 1) * a.elements, dropped);
        counter += counter_step;
        const bool next = counter >= counters;
        counter -= next ? counters : 0;
        sample += sample_step + (next ? 1 : 0);
    }
}

STK_KERNEL(stk_train_dropout, stk_train_dropout, dropout)
