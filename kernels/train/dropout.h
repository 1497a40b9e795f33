/* dropout.h - the mask of dropout, a pure function of (seed, step, layer, sample, element).
 *
 * An element takes sixteen random bits, 64 elements eight Philox counters. The bits are assigned so
 * that eight lanes, one per counter, deliver them in order without a shuffle:
 *
 *   element 64 g + 8 h + lane   has half h (0..7) of counter 8 g + lane
 *   half 2 w is the low and half 2 w + 1 the high 16 bits of word w */
#ifndef STK_KERNELS_TRAIN_DROPOUT_H
#define STK_KERNELS_TRAIN_DROPOUT_H

#include "loader/base/rng.h"
#include <stdint.h>

enum { STK_DROPOUT_GROUP = 64, STK_DROPOUT_LANES = 8 };

/* The part that is common to all elements of a sample. */
struct stk_dropout {
    uint64_t key;
    uint64_t counter_high;
    uint32_t dropped_below; /* elements with smaller bits are dropped: rate x 65536 */
    float scale;            /* factor on kept elements */
};

/* Returns the key of one step. */
STK_RNG uint64_t stk_dropout_key(uint64_t seed, uint64_t step)
{
    return stk_mix64(stk_mix64(seed) + step);
}

STK_RNG uint64_t stk_dropout_counter_high(uint32_t layer, uint64_t sample)
{
    return ((uint64_t)layer << 40) | (sample & ((UINT64_C(1) << 40) - 1));
}

static inline uint32_t stk_dropout_dropped_below(float rate)
{
    return (uint32_t)((double)rate * 65536 + 0.5);
}

static inline float stk_dropout_scale(float rate)
{
    return (float)(1 / (1 - (double)rate));
}

static inline struct stk_dropout stk_dropout_of(uint64_t seed, uint64_t step, uint32_t layer,
                                                uint64_t sample, float rate)
{
    const struct stk_dropout dropout = { stk_dropout_key(seed, step),
                                         stk_dropout_counter_high(layer, sample),
                                         stk_dropout_dropped_below(rate), stk_dropout_scale(rate) };
    return dropout;
}

/* Returns half h, 0..7, of a counter's words: 16 bits. */
STK_RNG uint32_t stk_dropout_bits(const struct stk_random *random, uint32_t half)
{
    return (random->word[half / 2] >> (half % 2 * 16)) & 0xFFFF;
}

/* Returns the factor of one element: 0 or scale. */
static inline float stk_dropout_factor(const struct stk_dropout *dropout, uint64_t element)
{
    const uint64_t group = element / STK_DROPOUT_GROUP;
    const uint32_t half = (uint32_t)(element % STK_DROPOUT_GROUP) / STK_DROPOUT_LANES;
    const uint64_t counter = group * STK_DROPOUT_LANES + element % STK_DROPOUT_LANES;
    const struct stk_random random = stk_philox(dropout->key, dropout->counter_high, counter);
    return stk_dropout_bits(&random, half) < dropout->dropped_below ? 0.0F : dropout->scale;
}

#endif
