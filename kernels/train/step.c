/* step.c - the host version of step.cu. */
#include "kernels/train/elements.h"
#include "kernels/train/host_kernels.h"

void stk_train_norm_prepare(const void *arguments)
{
    const struct stk_train_norm_prepare *const a = arguments;
    stk_train_host_norm(&a->norm, STK_TRAIN_F32);
    stk_train_prepare_state(&a->prepare);
}

static void step(const struct stk_train_step *a, enum stk_train_storage storage)
{
    struct stk_train_update moved = a->update;
    moved.state = a->prepare.state;
    stk_train_prepare_state(&a->prepare);
    stk_train_host_update(&moved, storage);
}

STK_TRAIN_HOST_KERNEL(stk_train_step, stk_train_step, step)
