/* reference.c - the conversion by its definition, one element at a time: the tests' reference.
 *
 * It shares only the 16-bit formats with the fast variants.
 */
#include "kernels/convert/convert.h"
#include <assert.h>
#include <math.h>
#include <string.h>

#define LOAD_AS(type, at) ((const type *)memcpy(&(type){ 0 }, (at), sizeof(type)))[0]

static float load_element(stoker_dtype dtype, const unsigned char *at)
{
    switch (dtype) {
    case STOKER_DTYPE_UINT8:
        return (float)LOAD_AS(uint8_t, at);
    case STOKER_DTYPE_INT8:
        return (float)LOAD_AS(int8_t, at);
    case STOKER_DTYPE_INT16:
        return (float)LOAD_AS(int16_t, at);
    case STOKER_DTYPE_INT32:
        return (float)LOAD_AS(int32_t, at);
    case STOKER_DTYPE_INT64:
        return (float)LOAD_AS(int64_t, at);
    case STOKER_DTYPE_UINT16:
        return (float)LOAD_AS(uint16_t, at);
    case STOKER_DTYPE_UINT32:
        return (float)LOAD_AS(uint32_t, at);
    case STOKER_DTYPE_UINT64:
        return (float)LOAD_AS(uint64_t, at);
    case STOKER_DTYPE_BOOL:
        return (float)LOAD_AS(uint8_t, at);
    case STOKER_DTYPE_FLOAT16:
        return stk_float_from_float16(LOAD_AS(uint16_t, at));
    case STOKER_DTYPE_BFLOAT16:
        return stk_float_from_bfloat16(LOAD_AS(uint16_t, at));
    case STOKER_DTYPE_FLOAT32:
        return LOAD_AS(float, at);
    default:
        return (float)LOAD_AS(double, at);
    }
}

/* A wider integer of the same value: in little-endian order the sign fills the bytes that are
 * added. */
static void widen_element(stoker_dtype from, const unsigned char *at, size_t from_bytes,
                          unsigned char *to, size_t to_bytes)
{
    const bool is_signed = from == STOKER_DTYPE_INT8 || from == STOKER_DTYPE_INT16 ||
                           from == STOKER_DTYPE_INT32 || from == STOKER_DTYPE_INT64;
    const bool negative = is_signed && at[from_bytes - 1] >= 128;
    memset(to, negative ? 255 : 0, to_bytes);
    memcpy(to, at, from_bytes);
    if (from == STOKER_DTYPE_BOOL)
        to[0] = at[0] != 0;
}

static void store_element(stoker_dtype dtype, unsigned char *at, float value)
{
    if (dtype == STOKER_DTYPE_FLOAT32) {
        memcpy(at, &value, sizeof(value));
        return;
    }
    uint16_t half = dtype == STOKER_DTYPE_FLOAT16 ? stk_float16_from_float(value)
                                                  : stk_bfloat16_from_float(value);
    memcpy(at, &half, sizeof(half));
}

void stk_convert_rows_reference(const struct stk_convert_plan *plan, const void *const *rows,
                                uint32_t count, uint32_t ahead, void *out)
{
    assert(plan != NULL);
    assert(plan->period > 0);
    (void)ahead;

    bool nchw = plan->layout == STOKER_LAYOUT_NCHW;
    const size_t from_bytes = plan->from_bytes / plan->elements;
    const size_t to_bytes = plan->to_bytes / plan->elements;
    for (uint32_t row = 0; row < count; row++) {
        const unsigned char *in = rows[row];
        unsigned char *row_out = (unsigned char *)out + row * plan->to_bytes;
        for (size_t i = 0; i < plan->elements; i++) {
            size_t pixels = nchw ? plan->elements / plan->channels : plan->elements;
            size_t channel = nchw ? i % plan->channels : i % plan->period;
            size_t place = nchw ? channel * pixels + i / plan->channels : i;
            if (plan->copies) {
                memcpy(row_out + place * to_bytes, in + i * from_bytes, to_bytes);
                continue;
            }
            if (plan->widen != NULL) {
                widen_element(plan->from, in + i * from_bytes, from_bytes,
                              row_out + place * to_bytes, to_bytes);
                continue;
            }
            float value = load_element(plan->from, in + i * from_bytes);
            value = fmaf(value, plan->factor[channel], plan->bias[channel]);
            store_element(plan->to, row_out + place * to_bytes, value);
        }
    }
}
