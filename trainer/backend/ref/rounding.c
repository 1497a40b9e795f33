/* rounding.c - see rounding.h. */
#include "trainer/backend/ref/rounding.h"

#include <assert.h>

#include "kernels/float16.h"
#include "trainer/backend/common/vectors.h"
#include "trainer/plan/precision.h"

static uint16_t bits_of(float value, stoker_dtype storage)
{
    assert(stk_is_narrow(storage));
    return storage == STOKER_DTYPE_FLOAT16 ? float16_of_float(value) : bfloat16_of_float(value);
}

static float value_of(uint16_t bits, stoker_dtype storage)
{
    return storage == STOKER_DTYPE_FLOAT16 ? float_of_float16(bits) : float_of_bfloat16(bits);
}

float stk_rounded(float value, stoker_dtype storage)
{
    return stk_is_narrow(storage) ? value_of(bits_of(value, storage), storage) : value;
}

STK_VECTOR_BODY narrow_bfloat16_body(uint16_t *bits, const float *from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        bits[i] = bfloat16_of_float(from[i]);
}
STK_VECTORS(narrow_bfloat16, (uint16_t * bits, const float *from, uint64_t count),
            (bits, from, count))

void stk_narrow(void *to, const float *from, uint64_t count, stoker_dtype storage)
{
    uint16_t *const bits = to;
    assert(stk_is_narrow(storage));
    if (storage == STOKER_DTYPE_BFLOAT16)
        narrow_bfloat16(bits, from, count);
    for (uint64_t i = 0; storage == STOKER_DTYPE_FLOAT16 && i < count; i++)
        bits[i] = float16_of_float(from[i]);
}

STK_VECTOR_BODY widen_bfloat16_body(float *to, const uint16_t *bits, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] = float_of_bfloat16(bits[i]);
}
STK_VECTORS(widen_bfloat16, (float *to, const uint16_t *bits, uint64_t count), (to, bits, count))

void stk_widen(float *to, const void *from, uint64_t count, stoker_dtype storage)
{
    const uint16_t *const bits = from;
    if (storage == STOKER_DTYPE_BFLOAT16)
        widen_bfloat16(to, bits, count);
    for (uint64_t i = 0; storage == STOKER_DTYPE_FLOAT16 && i < count; i++)
        to[i] = float_of_float16(bits[i]);
}
