/* float16.c - the 16-bit conversions as functions, for callers outside kernels/. */
#include "kernels/float16.h"
#include "kernels/convert/convert.h"

uint16_t stk_float16_from_float(float value)
{
    return float16_of_float(value);
}

uint16_t stk_bfloat16_from_float(float value)
{
    return bfloat16_of_float(value);
}

float stk_float_from_float16(uint16_t bits)
{
    return float_of_float16(bits);
}

float stk_float_from_bfloat16(uint16_t bits)
{
    return float_of_bfloat16(bits);
}
