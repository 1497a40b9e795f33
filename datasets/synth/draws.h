/* draws.h - the random numbers of one generated sample, a function of key and sample alone. */
#ifndef STK_DATASETS_SYNTH_DRAWS_H
#define STK_DATASETS_SYNTH_DRAWS_H

#include <assert.h>
#include <stdint.h>

#include "loader/base/rng.h"

struct stk_draws {
    uint64_t key; /* from seed and split */
    uint64_t sample;
    uint64_t block;
    uint32_t used; /* words drawn of the block; 4 at first */
    struct stk_random words;
};

static inline uint32_t stk_draw(struct stk_draws *draws)
{
    if (draws->used == 4) {
        draws->words = stk_philox(draws->key, draws->block++, draws->sample);
        draws->used = 0;
    }
    return draws->words.word[draws->used++];
}

/* Uniform in least..most. */
static inline int32_t stk_draw_between(struct stk_draws *draws, int32_t least, int32_t most)
{
    assert(least <= most);
    uint64_t span = (uint64_t)(most - least) + 1;
    return least + (int32_t)((stk_draw(draws) * span) >> 32);
}

#endif
