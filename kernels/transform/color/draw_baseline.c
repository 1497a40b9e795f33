/* draw_baseline.c - draws the words of frames in plain C, for any CPU. */
#include "kernels/transform/variants.h"

void stk_draw_words_baseline(uint64_t key, uint64_t epoch, const uint64_t *samples, uint32_t count,
                             struct stk_random *words)
{
    for (uint32_t k = 0; k < count; k++)
        words[k] = stk_philox(key, epoch, samples[k]);
}
