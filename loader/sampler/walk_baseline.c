/* walk_baseline.c - the rounds in plain C, and the list of variants. */
#include <stdbool.h>
#include <stddef.h>

#include "loader/base/cpu_features.h"
#include "loader/sampler/walk.h"

/* The rounds over a whole block: the inner loops have no branches and vectorise. */
static inline __attribute__((always_inline)) uint32_t walk_block(const struct stk_sampler *sampler,
                                                                 const uint32_t *keys,
                                                                 uint32_t *left, uint32_t *right,
                                                                 uint64_t *ids)
{
    const uint32_t width = sampler->width;
    const uint32_t height = sampler->height;
    for (uint32_t round = 0; round < sampler->rounds; round += 2) {
        for (int i = 0; i < STK_SAMPLER_BLOCK; i++)
            left[i] = add_modulo(left[i], round_value(right[i], keys[round], width), width);
        for (int i = 0; i < STK_SAMPLER_BLOCK; i++)
            right[i] = add_modulo(right[i], round_value(left[i], keys[round + 1], height), height);
    }
    const int64_t count = (int64_t)sampler->count; /* signed: what vectors can compare */
    int64_t past = 0;
    for (int i = 0; i < STK_SAMPLER_BLOCK; i++) {
        ids[i] = (uint64_t)right[i] * width + left[i];
        past += (int64_t)ids[i] >= count;
    }
    return (uint32_t)past;
}

static uint32_t walk_neighbours_baseline(const struct stk_sampler *sampler, const uint32_t *keys,
                                         uint32_t left, uint32_t right, uint64_t *ids)
{
    uint32_t lefts[STK_SAMPLER_BLOCK];
    uint32_t rights[STK_SAMPLER_BLOCK];
    const uint32_t width = sampler->width;
    const uint32_t after = row_after(sampler, right);
    for (uint32_t i = 0; i < STK_SAMPLER_BLOCK; i++) {
        const uint32_t at = left + i;
        lefts[i] = at < width ? at : at - width;
        rights[i] = at < width ? right : after;
    }
    return walk_block(sampler, keys, lefts, rights, ids);
}

static uint32_t walk_block_baseline(const struct stk_sampler *sampler, const uint32_t *keys,
                                    uint32_t *left, uint32_t *right, uint64_t *ids)
{
    return walk_block(sampler, keys, left, right, ids);
}

const struct stk_walk stk_walk_baseline = { walk_block_baseline, walk_neighbours_baseline };

const struct stk_walk *stk_walk_variant(uint32_t number)
{
    const struct stk_walk *variants[4] = { NULL };
    uint32_t count = 0;
#if defined(__x86_64__)
    if (stk_cpu_has(STK_CPU_AVX512F))
        variants[count++] = &stk_walk_avx512;
    if (stk_cpu_has(STK_CPU_AVX2))
        variants[count++] = &stk_walk_avx2;
#endif
    variants[count++] = &stk_walk_baseline;
    return number < count ? variants[number] : NULL;
}
