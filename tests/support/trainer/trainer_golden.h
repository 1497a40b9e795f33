/* trainer_golden.h - the formula of data and first weights, as make_trainer_golden.py has it. */
#ifndef STK_TEST_TRAINER_GOLDEN_H
#define STK_TEST_TRAINER_GOLDEN_H

#include "loader/base/rng.h"
#include <stdint.h>
#include <stoker/trainer.h>

/* A multiple of 2^-23 in [-1, 1). */
static inline float golden_value(uint64_t stream, uint64_t index)
{
    return (float)(stk_mix64((stream << 32) + index) >> 40) / 8388608.0F - 1.0F;
}

static inline void golden_fill(float *to, uint64_t count, uint64_t stream, float bound)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] = golden_value(stream, i) * bound;
}

/* A batch in host memory of `count` images of h x w x c. */
static inline stoker_batch golden_images(float *images, int64_t *labels, uint32_t count, uint64_t h,
                                         uint64_t w, uint64_t c)
{
    return (stoker_batch){
        .struct_size = sizeof(stoker_batch),
        .images = { .data = images,
                    .dtype = STOKER_DTYPE_FLOAT32,
                    .rank = 4,
                    .shape = { count, h, w, c } },
        .labels = { .data = labels, .dtype = STOKER_DTYPE_INT64, .rank = 1, .shape = { count } },
        .count = count,
    };
}

#endif
