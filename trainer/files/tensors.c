/* tensors.c - see tensors.h. */
#include "trainer/files/tensors.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "kernels/float16.h"

#define DTYPE_NAME(constant, name, bytes)  name,
#define DTYPE_BYTES(constant, name, bytes) bytes,

const char *stk_file_dtype_name(enum stk_file_dtype dtype)
{
    static const char *const names[] = { STK_FILE_DTYPES(DTYPE_NAME) };
    assert((unsigned)dtype < STK_FILE_DTYPE_COUNT);
    return names[dtype];
}

uint32_t stk_file_dtype_bytes(enum stk_file_dtype dtype)
{
    static const uint8_t bytes[] = { STK_FILE_DTYPES(DTYPE_BYTES) };
    assert((unsigned)dtype < STK_FILE_DTYPE_COUNT);
    return bytes[dtype];
}

uint64_t stk_tensor_bytes(const struct stk_named_tensor *tensor)
{
    assert(tensor->rank <= STK_TENSOR_RANK_MAX);
    uint64_t bytes = stk_file_dtype_bytes(tensor->dtype);
    for (uint32_t axis = 0; axis < tensor->rank; axis++)
        if (tensor->shape[axis] == 0)
            return 0; /* whatever the other extents are */
    for (uint32_t axis = 0; axis < tensor->rank; axis++)
        if (__builtin_mul_overflow(bytes, tensor->shape[axis], &bytes) || bytes > INT64_MAX)
            return UINT64_MAX;
    return bytes;
}

const struct stk_named_tensor *stk_tensor_find(const struct stk_tensor_set *set, const char *name)
{
    uint32_t low = 0;
    uint32_t high = set->tensor_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = strcmp(name, set->tensors[middle].name);
        if (order == 0)
            return &set->tensors[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *stk_note_find(const struct stk_tensor_set *set, const char *key)
{
    for (uint32_t i = 0; i < set->note_count; i++)
        if (strcmp(set->notes[i].key, key) == 0)
            return set->notes[i].value;
    return NULL;
}

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
