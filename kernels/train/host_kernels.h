/* host_kernels.h - shared by the host kernels: storage types and the names of the kernels. */
#ifndef STK_KERNELS_TRAIN_HOST_KERNELS_H
#define STK_KERNELS_TRAIN_HOST_KERNELS_H

#include "kernels/float16.h"
#include "kernels/train/train.h"
#include <math.h>
#include <stdbool.h>

enum stk_train_storage { STK_TRAIN_F32, STK_TRAIN_F16, STK_TRAIN_BF16 };

static inline uint32_t stk_train_bytes(enum stk_train_storage storage)
{
    return storage == STK_TRAIN_F32 ? 4 : 2;
}

static inline float stk_train_load(const void *array, uint64_t i, enum stk_train_storage storage)
{
    switch (storage) {
    case STK_TRAIN_F16:
        return float_of_float16(((const uint16_t *)array)[i]);
    case STK_TRAIN_BF16:
        return float_of_bfloat16(((const uint16_t *)array)[i]);
    case STK_TRAIN_F32:
    default:
        return ((const float *)array)[i];
    }
}

static inline void stk_train_store(void *array, uint64_t i, float value,
                                   enum stk_train_storage storage)
{
    switch (storage) {
    case STK_TRAIN_F16:
        ((uint16_t *)array)[i] = float16_of_float(value);
        break;
    case STK_TRAIN_BF16:
        ((uint16_t *)array)[i] = bfloat16_of_float(value);
        break;
    case STK_TRAIN_F32:
    default:
        ((float *)array)[i] = value;
        break;
    }
}

/* Rounds a value as storing it does. */
static inline float stk_train_rounded(float value, enum stk_train_storage storage)
{
    switch (storage) {
    case STK_TRAIN_F16:
        return float_of_float16(float16_of_float(value));
    case STK_TRAIN_BF16:
        return float_of_bfloat16(bfloat16_of_float(value));
    case STK_TRAIN_F32:
    default:
        return value;
    }
}

/* Defines NAME_f32, NAME_f16 and NAME_bf16 from body(const struct arguments *, storage). */
#define STK_TRAIN_HOST_KERNEL(name, arguments, body)                                               \
    void name##_f32(const void *a)                                                                 \
    {                                                                                              \
        body((const struct arguments *)a, STK_TRAIN_F32);                                          \
    }                                                                                              \
    void name##_f16(const void *a)                                                                 \
    {                                                                                              \
        body((const struct arguments *)a, STK_TRAIN_F16);                                          \
    }                                                                                              \
    void name##_bf16(const void *a)                                                                \
    {                                                                                              \
        body((const struct arguments *)a, STK_TRAIN_BF16);                                         \
    }

typedef void stk_train_host_kernel(const void *arguments);

#define STK_TRAIN_DECLARE(name) stk_train_host_kernel name##_f32, name##_f16, name##_bf16

STK_TRAIN_DECLARE(stk_train_softmax_cross_entropy);
STK_TRAIN_DECLARE(stk_train_mse);
STK_TRAIN_DECLARE(stk_train_gradient_norm);
STK_TRAIN_DECLARE(stk_train_update);
STK_TRAIN_DECLARE(stk_train_cast);
STK_TRAIN_DECLARE(stk_train_add_gradient);
STK_TRAIN_DECLARE(stk_train_relu);
STK_TRAIN_DECLARE(stk_train_relu_backward);
STK_TRAIN_DECLARE(stk_train_add);
STK_TRAIN_DECLARE(stk_train_bias_relu);
STK_TRAIN_DECLARE(stk_train_max_pool_forward);
STK_TRAIN_DECLARE(stk_train_max_pool_backward);
STK_TRAIN_DECLARE(stk_train_avg_pool_forward);
STK_TRAIN_DECLARE(stk_train_avg_pool_backward);
STK_TRAIN_DECLARE(stk_train_dropout);
STK_TRAIN_DECLARE(stk_train_batch_norm);
STK_TRAIN_DECLARE(stk_train_batch_norm_moments);
STK_TRAIN_DECLARE(stk_train_batch_norm_sums);
STK_TRAIN_DECLARE(stk_train_batch_norm_backward_sums);
STK_TRAIN_DECLARE(stk_train_batch_norm_backward);
STK_TRAIN_DECLARE(stk_train_bias_gradient);
stk_train_host_kernel stk_train_prepare, stk_train_batch_norm_finish, stk_train_move_statistics;

/* Of channel_sums.c, for bias.c: the sum of value(arguments, storage, at, c) over all elements `at` of channel c. */
typedef float stk_train_value_fn(const void *arguments, enum stk_train_storage storage, uint64_t at,
                                 uint32_t c);
float stk_train_host_sum(stk_train_value_fn *value, const struct stk_train_bias_gradient *shape,
                         const void *arguments, enum stk_train_storage storage, uint32_t c);

/* Of loss.c, for head.c. */
void stk_train_host_cross_entropy(const struct stk_train_cross_entropy *a,
                                  enum stk_train_storage storage);

/* Of update.c, for step.c. */
void stk_train_host_norm(const struct stk_train_norm *a, enum stk_train_storage storage);
void stk_train_host_update(const struct stk_train_update *a, enum stk_train_storage storage);

#endif
