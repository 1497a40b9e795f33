/* elementwise.c - the host version of elementwise.cu. */
#include "kernels/train/elements.h"
#include "kernels/train/host_kernels.h"

static void cast(const struct stk_train_cast *a, enum stk_train_storage storage)
{
    for (uint64_t i = 0; i < a->count; i++)
        stk_train_store(a->y, i, a->x[i], storage);
}

static void add_gradient(const struct stk_train_add_gradient *a, enum stk_train_storage storage)
{
    for (uint64_t i = 0; i < a->count; i++)
        stk_train_add_to(&a->sum[i], stk_train_load(a->gradient, i, storage), a->write);
}

static void relu(const struct stk_train_relu *a, enum stk_train_storage storage)
{
    for (uint64_t i = 0; i < a->count; i++)
        stk_train_store(a->y, i, stk_train_rectified(stk_train_load(a->x, i, storage)), storage);
}

static void relu_backward(const struct stk_train_relu_backward *a, enum stk_train_storage storage)
{
    for (uint64_t i = 0; i < a->count; i++) {
        const float dy = stk_train_load(a->dy, i, storage);
        stk_train_store(a->dx, i, stk_train_load(a->y, i, storage) > 0 ? dy : 0, storage);
    }
}

static void add(const struct stk_train_add *a, enum stk_train_storage storage)
{
    for (uint64_t i = 0; i < a->count; i++) {
        const float sum = stk_train_load(a->x, i, storage) + stk_train_load(a->x2, i, storage);
        stk_train_store(a->y, i, sum, storage);
    }
}

static void bias_relu(const struct stk_train_bias_relu *a, enum stk_train_storage storage)
{
    for (uint64_t i = 0; i < a->count; i++) {
        const float bias = a->bias != NULL ? stk_train_load(a->bias, i % a->c, storage) : 0;
        const float sum = stk_train_load(a->y, i, storage) + bias;
        stk_train_store(a->y, i, a->relu != 0 ? stk_train_rectified(sum) : sum, storage);
    }
}

STK_TRAIN_HOST_KERNEL(stk_train_cast, stk_train_cast, cast)
STK_TRAIN_HOST_KERNEL(stk_train_add_gradient, stk_train_add_gradient, add_gradient)
STK_TRAIN_HOST_KERNEL(stk_train_relu, stk_train_relu, relu)
STK_TRAIN_HOST_KERNEL(stk_train_relu_backward, stk_train_relu_backward, relu_backward)
STK_TRAIN_HOST_KERNEL(stk_train_add, stk_train_add, add)
STK_TRAIN_HOST_KERNEL(stk_train_bias_relu, stk_train_bias_relu, bias_relu)
