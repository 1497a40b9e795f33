/* head.c - the host version of head.cu: the layer, the loss, then the gradients. */
#include "kernels/train/elements.h"
#include "kernels/train/host_kernels.h"

static float logit_of(const struct stk_train_head *a, enum stk_train_storage storage, uint64_t row,
                      uint32_t c)
{
    float sum = 0;
    for (uint32_t k = 0; k < a->depth; k++)
        sum += stk_train_load(a->x, row * a->depth + k, storage) *
               stk_train_load(a->weight, (uint64_t)c * a->depth + k, storage);
    return a->bias == NULL ? sum : sum + stk_train_load(a->bias, c, storage);
}

static float input_gradient(const struct stk_train_head *a, enum stk_train_storage storage,
                            uint64_t row, uint32_t k)
{
    float sum = 0;
    for (uint32_t c = 0; c < a->loss.classes; c++)
        sum += stk_train_load(a->loss.dx, row * a->loss.classes + c, storage) *
               stk_train_load(a->weight, (uint64_t)c * a->depth + k, storage);
    return sum;
}

static float bias_gradient(const struct stk_train_head *a, enum stk_train_storage storage,
                           uint32_t c)
{
    float sum = 0;
    for (uint64_t row = 0; row < a->loss.rows; row++)
        sum += stk_train_load(a->loss.dx, row * a->loss.classes + c, storage);
    return sum;
}

static void head(const struct stk_train_head *a, enum stk_train_storage storage)
{
    for (uint64_t row = 0; row < a->loss.rows; row++)
        for (uint32_t c = 0; c < a->loss.classes; c++)
            stk_train_store(a->logits, row * a->loss.classes + c, logit_of(a, storage, row, c),
                            storage);
    stk_train_host_cross_entropy(&a->loss, storage);
    for (uint64_t row = 0; a->dx != NULL && row < a->loss.rows; row++)
        for (uint32_t k = 0; k < a->depth; k++)
            stk_train_store(a->dx, row * a->depth + k, input_gradient(a, storage, row, k), storage);
    for (uint32_t c = 0; a->bias_grad != NULL && c < a->loss.classes; c++)
        stk_train_add_to(&a->bias_grad[c], bias_gradient(a, storage, c), a->write);
}

STK_TRAIN_HOST_KERNEL(stk_train_head, stk_train_head, head)
