/* color_baseline.c - color steps, sums of weighted lines and the words of frames, for any CPU. */
#define COLOR_NAME(name) name##_baseline
#include "kernels/transform/color/color_body.h"

enum { BLUR_BLOCK = 64 };

static void sum_block(const int16_t *const *lines, const int32_t *weights, uint32_t reach,
                      size_t at, size_t count, int32_t *sums)
{
    for (size_t i = 0; i < count; i++)
        sums[i] = weights[0] * lines[reach][at + i];
    for (uint32_t tap = 1; tap <= reach; tap++) {
        const int16_t *before = lines[reach - tap] + at, *after = lines[reach + tap] + at;
        for (size_t i = 0; i < count; i++)
            sums[i] += weights[tap] * (before[i] + after[i]);
    }
}

void stk_blur_baseline(const int16_t *const *lines, const int32_t *weights, uint32_t reach,
                       size_t count, int16_t *out16, uint8_t *out8)
{
    for (size_t at = 0; at < count; at += BLUR_BLOCK) {
        const size_t in_block = count - at < BLUR_BLOCK ? count - at : BLUR_BLOCK;
        int32_t sums[BLUR_BLOCK];
        sum_block(lines, weights, reach, at, in_block, sums);
        for (size_t i = 0; i < in_block; i++) {
            if (out8 != NULL)
                out8[at + i] = stk_blur_settle(sums[i]);
            else
                out16[at + i] = (int16_t)stk_blur_keep(sums[i]);
        }
    }
}

/* The words of frames. */
void stk_draw_words_baseline(uint64_t key, uint64_t epoch, const uint64_t *samples, uint32_t count,
                             struct stk_random *words)
{
    for (uint32_t k = 0; k < count; k++)
        words[k] = stk_philox(key, epoch, samples[k]);
}
