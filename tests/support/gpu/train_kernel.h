/* train_kernel.h - runs the source of a training kernel on made-up numbers, for tests that
 * compare it with `ref`. */
#ifndef STK_TEST_TRAIN_KERNEL_H
#define STK_TEST_TRAIN_KERNEL_H

#include <criterion/criterion.h>
#include <string.h>

#include "kernels/float16.h"
#include "kernels/train/train.h"
#include "loader/base/rng.h"
#include "support/gpu/kernel_source.h"

/* Values in -1..1 that look random and are the same everywhere. */
static inline void fill(float *values, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(int32_t)(uint32_t)stk_mix64(seed * 1000003 + i) * 0x1p-31F;
}

static inline void run(const char *name, const char *type, const void *arguments)
{
    char whole[64];
    (void)snprintf(whole, sizeof(whole), "stk_train_%s%s", name, type);
    const struct stk_kernel *const kernel = stk_train_kernel_named(whole);
    cr_assert_not_null(kernel, "%s", whole);
    run_kernel(kernel, arguments);
}

/* ---- 16-bit storage -------------------------------------------------------------------------- */

static inline uint16_t rounded(float value, bool half)
{
    return half ? float16_of_float(value) : bfloat16_of_float(value);
}

static inline float widened(uint16_t bits, bool half)
{
    return half ? float_of_float16(bits) : float_of_bfloat16(bits);
}

static const char *const narrow[] = { "_bf16", "_f16" }; /* by `half` */

static inline void round_all(uint16_t *to, float *values, size_t count, bool half)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = rounded(values[i], half);
        values[i] = widened(to[i], half);
    }
}

static inline void check_rounded(const uint16_t *narrow_values, const float *values, size_t count,
                                 bool half, const char *what)
{
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(narrow_values[i], rounded(values[i], half), "%s%s, element %zu", what,
                     narrow[half], i);
}

#endif
