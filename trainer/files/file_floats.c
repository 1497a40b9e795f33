/* file_floats.c - see file_floats.h. */
#include "trainer/files/file_floats.h"

#include <assert.h>
#include <string.h>

#include "kernels/float16.h"

bool stk_holds_floats(enum stk_file_dtype dtype)
{
    return dtype == STK_FILE_F32 || dtype == STK_FILE_F16 || dtype == STK_FILE_BF16 ||
           dtype == STK_FILE_F64;
}

static float widen_half(const unsigned char *from, enum stk_file_dtype dtype)
{
    uint16_t bits;
    memcpy(&bits, from, sizeof(bits));
    return dtype == STK_FILE_F16 ? float_of_float16(bits) : float_of_bfloat16(bits);
}

static float narrow_double(const unsigned char *from)
{
    double value;
    memcpy(&value, from, sizeof(value));
    return (float)value;
}

void stk_read_floats(float *out, const void *from, enum stk_file_dtype dtype, uint64_t count)
{
    assert(stk_holds_floats(dtype));
    const unsigned char *at = from;
    if (dtype == STK_FILE_F32) {
        memcpy(out, from, count * sizeof(float));
        return;
    }
    for (uint64_t i = 0; i < count; i++, at += stk_file_dtype_bytes(dtype))
        out[i] = dtype == STK_FILE_F64 ? narrow_double(at) : widen_half(at, dtype);
}
