/* dropout.c - the host version of dropout.cu: element by element. */
#include "kernels/train/dropout.h"
#include "kernels/train/host_kernels.h"

static void dropout(const struct stk_train_dropout *a, enum stk_train_storage storage)
{
    const uint64_t step = a->step + (a->state == NULL ? 0 : a->state->tried);
    for (uint32_t sample = 0; sample < a->samples; sample++) {
        const struct stk_dropout mask = { .key = stk_dropout_key(a->seed, step),
                                          .counter_high = stk_dropout_counter_high(
                                              a->layer, a->first_sample + sample),
                                          .dropped_below = a->dropped_below,
                                          .scale = a->scale };
        for (uint64_t i = 0; i < a->elements; i++) {
            const uint64_t at = sample * a->elements + i;
            const float factor = stk_dropout_factor(&mask, i);
            stk_train_store(a->y, at, factor > 0 ? stk_train_load(a->x, at, storage) * factor : 0,
                            storage);
        }
    }
}

STK_TRAIN_HOST_KERNEL(stk_train_dropout, stk_train_dropout, dropout)
