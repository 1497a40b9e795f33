/* bias.c - the host version of bias.cu: first the sums, since dx may be dy or y. */
#include "kernels/train/elements.h"
#include "kernels/train/host_kernels.h"

static float relu_value(const void *arguments, enum stk_train_storage storage, uint64_t at,
                        uint32_t c)
{
    const struct stk_train_relu_bias *const a = arguments;
    (void)c;
    return stk_train_load(a->y, at, storage) > 0 ? stk_train_load(a->dy, at, storage) : 0;
}

static void relu_bias(const struct stk_train_relu_bias *a, enum stk_train_storage storage)
{
    const struct stk_train_bias_gradient shape = { .pixels = a->pixels,
                                                   .c = a->c,
                                                   .chunks = a->chunks };
    for (uint32_t c = 0; c < a->c; c++)
        stk_train_add_to(&a->bias_grad[c], stk_train_host_sum(relu_value, &shape, a, storage, c),
                         a->write);
    for (uint64_t i = 0; i < a->pixels * a->c; i++)
        stk_train_store(a->dx, i, relu_value(a, storage, i, 0), storage);
}

static float pool_value(const void *arguments, enum stk_train_storage storage, uint64_t at,
                        uint32_t c)
{
    const struct stk_train_pool_bias *const a = arguments;
    (void)c;
    return a->y == NULL || stk_train_load(a->y, at, storage) > 0
               ? stk_train_load(a->dy, at, storage)
               : 0;
}

/* Writes the window of output `at`. */
static void fill_window(const struct stk_train_pool_bias *a, enum stk_train_storage storage,
                        uint64_t at)
{
    const struct stk_train_window *const w = &a->window;
    const uint64_t pixel = at / a->c;
    const float value = pool_value(a, storage, at, 0);
    for (uint32_t r = 0; r < w->kernel[0]; r++)
        for (uint32_t s = 0; s < w->kernel[1]; s++) {
            const uint64_t row = pixel / w->out_w * w->kernel[0] + r;
            const uint64_t column = pixel % w->out_w * w->kernel[1] + s;
            const bool here = ((const uint8_t *)a->places)[at] == r * w->kernel[1] + s;
            stk_train_store(a->dx, (row * w->in_w + column) * a->c + at % a->c, here ? value : 0,
                            storage);
        }
}

static void pool_bias(const struct stk_train_pool_bias *a, enum stk_train_storage storage)
{
    const struct stk_train_bias_gradient shape = { .pixels = a->pixels,
                                                   .c = a->c,
                                                   .chunks = a->chunks };
    for (uint32_t c = 0; c < a->c; c++)
        stk_train_add_to(&a->bias_grad[c], stk_train_host_sum(pool_value, &shape, a, storage, c),
                         a->write);
    for (uint64_t at = 0; at < a->pixels * a->c; at++)
        fill_window(a, storage, at);
}

STK_TRAIN_HOST_KERNEL(stk_train_relu_bias, stk_train_relu_bias, relu_bias)
STK_TRAIN_HOST_KERNEL(stk_train_pool_bias, stk_train_pool_bias, pool_bias)
