/* walk.h - the rounds of the sampler's network, over a block of positions at a time.
 *
 *   (left, right) ──▶ rounds ──▶ id = right * width + left        64 of each
 *
 * The definition of a round is here; each variant does the same with other instructions, and gives the same ids.
 */
#ifndef STK_SAMPLER_WALK_H
#define STK_SAMPLER_WALK_H

#include <stdint.h>

#include "loader/sampler/sampler.h"

#define FIRST_MIX  0x9E3779B1U
#define SECOND_MIX 0x85EBCA77U

/* A hash of one half, then mapped to [0, size) by multiplication (Lemire, "Fast random
 * integer generation in an interval", 2019): only its high bits, the well-mixed ones, count.
 * The bias is below size / 2^32. */
static inline uint32_t round_value(uint32_t half, uint32_t key, uint32_t size)
{
    uint32_t h = (half ^ key) * FIRST_MIX;
    h = (h ^ (h >> 15)) * SECOND_MIX;
    return (uint32_t)(((uint64_t)h * size) >> 32);
}

static inline uint32_t add_modulo(uint32_t a, uint32_t b, uint32_t size)
{
    uint32_t sum = a + b; /* sizes are at most 2^31: no overflow */
    uint32_t wrapped = sum - size;
    return wrapped < sum ? wrapped : sum; /* the smaller of the two: a vector minimum */
}

/* The next row; the one past the end is never used. */
static inline uint32_t row_after(const struct stk_sampler *sampler, uint32_t right)
{
    return right + 1 < sampler->height ? right + 1 : 0;
}

struct stk_walk {
    /* All rounds over one block, then ids; returns how many of them are past the set's end. */
    uint32_t (*block)(const struct stk_sampler *sampler, const uint32_t *keys, uint32_t *left,
                      uint32_t *right, uint64_t *ids);
    /* The same for neighbouring positions from (left, right) on; width >= STK_SAMPLER_BLOCK, so
     * that they wrap at most once. */
    uint32_t (*neighbours)(const struct stk_sampler *sampler, const uint32_t *keys, uint32_t left,
                           uint32_t right, uint64_t *ids);
};

extern const struct stk_walk stk_walk_baseline;
#if defined(__x86_64__)
extern const struct stk_walk stk_walk_avx2;
extern const struct stk_walk stk_walk_avx512;
#endif

/* The variants that this CPU can run, best first; NULL after the last. */
const struct stk_walk *stk_walk_variant(uint32_t number);

#endif
