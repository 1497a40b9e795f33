/* rounding.c - see rounding.h. */
#include "trainer/backend/ref/rounding.h"

#include <assert.h>

#include "kernels/float16.h"
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

void stk_narrow(void *to, const float *from, uint64_t count, stoker_dtype storage)
{
    uint16_t *const bits = to;
    for (uint64_t i = 0; i < count; i++)
        bits[i] = bits_of(from[i], storage);
}

void stk_widen(float *to, const void *from, uint64_t count, stoker_dtype storage)
{
    const uint16_t *const bits = from;
    for (uint64_t i = 0; i < count; i++)
        to[i] = value_of(bits[i], storage);
}
