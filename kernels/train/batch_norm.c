/* batch_norm.c - the host version of batch_norm.cu. */
#include "kernels/train/elements.h"
#include "kernels/train/host_kernels.h"

static void batch_norm(const struct stk_train_batch_norm *a, enum stk_train_storage storage)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const uint32_t c = i % a->c;
        const float inverse =
            a->inverse != NULL ? a->inverse[c] : stk_train_inverse(a->variance[c], a->epsilon);
        const float value = stk_train_normalise(stk_train_load(a->x, i, storage), a->mean[c],
                                                inverse, a->gamma[c], a->beta[c]);
        stk_train_store(a->y, i, a->relu != 0 && value < 0 ? 0 : value, storage);
    }
}

STK_TRAIN_HOST_KERNEL(stk_train_batch_norm, stk_train_batch_norm, batch_norm)

void stk_train_batch_norm_finish(const void *arguments)
{
    const struct stk_train_batch_norm_finish *const a = arguments;
    for (uint32_t c = 0; c < a->c; c++)
        stk_train_finish_channel(a, c);
}

void stk_train_move_statistics(const void *arguments)
{
    const struct stk_train_move_statistics *const a = arguments;
    for (uint64_t i = 0; i < a->count; i++)
        stk_train_move_by_all(a, i);
}
