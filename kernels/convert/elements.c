/* elements.c - see elements.h. One loop per pair of types, which the compiler vectorizes. */
#include "kernels/convert/elements.h"

#include <stdint.h>
#include <string.h>

#include "kernels/float16.h"

/* How an element is stored, and its value as a number. */
#define VALUE_OF(bits)      (bits)
#define VALUE_OF_BOOL(bits) ((bits) != 0)

/* A number as it is stored. */
#define STORE_F16(value)  float16_of_float((float)(value))
#define STORE_BF16(value) bfloat16_of_float((float)(value))

#define CONVERSION(from, from_type, value_of, to, to_type, store)                                  \
    static void from##_to_##to(const void *in, void *out, size_t count)                            \
    {                                                                                              \
        const unsigned char *read = in;                                                            \
        unsigned char *write = out;                                                                \
        for (size_t i = 0; i < count; i++) {                                                       \
            from_type bits;                                                                        \
            memcpy(&bits, read + i * sizeof(bits), sizeof(bits));                                  \
            const to_type stored = store(value_of(bits));                                          \
            memcpy(write + i * sizeof(stored), &stored, sizeof(stored));                           \
        }                                                                                          \
    }

/* X(from, type it is stored as, its value, more...) for every type. */
#define EACH_TYPE(X, ...)                                                                          \
    X(u8, uint8_t, VALUE_OF, __VA_ARGS__)                                                          \
    X(i8, int8_t, VALUE_OF, __VA_ARGS__)                                                           \
    X(u16, uint16_t, VALUE_OF, __VA_ARGS__)                                                        \
    X(i16, int16_t, VALUE_OF, __VA_ARGS__)                                                         \
    X(u32, uint32_t, VALUE_OF, __VA_ARGS__)                                                        \
    X(i32, int32_t, VALUE_OF, __VA_ARGS__)                                                         \
    X(u64, uint64_t, VALUE_OF, __VA_ARGS__)                                                        \
    X(i64, int64_t, VALUE_OF, __VA_ARGS__)                                                         \
    X(b8, uint8_t, VALUE_OF_BOOL, __VA_ARGS__)                                                     \
    X(f16, uint16_t, float_of_float16, __VA_ARGS__)                                                \
    X(bf16, uint16_t, float_of_bfloat16, __VA_ARGS__)                                              \
    X(f32, float, VALUE_OF, __VA_ARGS__)                                                           \
    X(f64, double, VALUE_OF, __VA_ARGS__)

EACH_TYPE(CONVERSION, f16, uint16_t, STORE_F16)
EACH_TYPE(CONVERSION, bf16, uint16_t, STORE_BF16)
EACH_TYPE(CONVERSION, f32, float, (float))
EACH_TYPE(CONVERSION, f64, double, (double))

/* X(from, type, its value, to, type) for every wider integer type. */
#define EACH_WIDENING(X)                                                                           \
    X(b8, uint8_t, VALUE_OF_BOOL, u8, uint8_t, (uint8_t))                                          \
    X(b8, uint8_t, VALUE_OF_BOOL, i8, int8_t, (int8_t))                                            \
    X(b8, uint8_t, VALUE_OF_BOOL, u16, uint16_t, (uint16_t))                                       \
    X(b8, uint8_t, VALUE_OF_BOOL, i16, int16_t, (int16_t))                                         \
    X(b8, uint8_t, VALUE_OF_BOOL, u32, uint32_t, (uint32_t))                                       \
    X(b8, uint8_t, VALUE_OF_BOOL, i32, int32_t, (int32_t))                                         \
    X(b8, uint8_t, VALUE_OF_BOOL, u64, uint64_t, (uint64_t))                                       \
    X(b8, uint8_t, VALUE_OF_BOOL, i64, int64_t, (int64_t))                                         \
    X(u8, uint8_t, VALUE_OF, u16, uint16_t, (uint16_t))                                            \
    X(u8, uint8_t, VALUE_OF, i16, int16_t, (int16_t))                                              \
    X(u8, uint8_t, VALUE_OF, u32, uint32_t, (uint32_t))                                            \
    X(u8, uint8_t, VALUE_OF, i32, int32_t, (int32_t))                                              \
    X(u8, uint8_t, VALUE_OF, u64, uint64_t, (uint64_t))                                            \
    X(u8, uint8_t, VALUE_OF, i64, int64_t, (int64_t))                                              \
    X(i8, int8_t, VALUE_OF, i16, int16_t, (int16_t))                                               \
    X(i8, int8_t, VALUE_OF, i32, int32_t, (int32_t))                                               \
    X(i8, int8_t, VALUE_OF, i64, int64_t, (int64_t))                                               \
    X(u16, uint16_t, VALUE_OF, u32, uint32_t, (uint32_t))                                          \
    X(u16, uint16_t, VALUE_OF, i32, int32_t, (int32_t))                                            \
    X(u16, uint16_t, VALUE_OF, u64, uint64_t, (uint64_t))                                          \
    X(u16, uint16_t, VALUE_OF, i64, int64_t, (int64_t))                                            \
    X(i16, int16_t, VALUE_OF, i32, int32_t, (int32_t))                                             \
    X(i16, int16_t, VALUE_OF, i64, int64_t, (int64_t))                                             \
    X(u32, uint32_t, VALUE_OF, u64, uint64_t, (uint64_t))                                          \
    X(u32, uint32_t, VALUE_OF, i64, int64_t, (int64_t))                                            \
    X(i32, int32_t, VALUE_OF, i64, int64_t, (int64_t))

EACH_WIDENING(CONVERSION)

#define COPY(bytes)                                                                                \
    static void copy_##bytes(const void *in, void *out, size_t count)                              \
    {                                                                                              \
        memcpy(out, in, count *(bytes));                                                           \
    }
COPY(1)
COPY(2)
COPY(4)
COPY(8)

/* The types' names above, by value. */
enum {
    TYPE_u8 = STOKER_DTYPE_UINT8,
    TYPE_i8 = STOKER_DTYPE_INT8,
    TYPE_u16 = STOKER_DTYPE_UINT16,
    TYPE_i16 = STOKER_DTYPE_INT16,
    TYPE_u32 = STOKER_DTYPE_UINT32,
    TYPE_i32 = STOKER_DTYPE_INT32,
    TYPE_u64 = STOKER_DTYPE_UINT64,
    TYPE_i64 = STOKER_DTYPE_INT64,
    TYPE_b8 = STOKER_DTYPE_BOOL,
    TYPE_f16 = STOKER_DTYPE_FLOAT16,
    TYPE_bf16 = STOKER_DTYPE_BFLOAT16,
    TYPE_f32 = STOKER_DTYPE_FLOAT32,
    TYPE_f64 = STOKER_DTYPE_FLOAT64,
    TYPES = STOKER_DTYPE_BOOL + 1
};

static stk_elements_fn *copy_of(stoker_dtype dtype)
{
    switch (dtype) {
    case STOKER_DTYPE_UINT8:
    case STOKER_DTYPE_INT8:
    case STOKER_DTYPE_BOOL:
        return copy_1;
    case STOKER_DTYPE_UINT16:
    case STOKER_DTYPE_INT16:
    case STOKER_DTYPE_FLOAT16:
    case STOKER_DTYPE_BFLOAT16:
        return copy_2;
    case STOKER_DTYPE_UINT32:
    case STOKER_DTYPE_INT32:
    case STOKER_DTYPE_FLOAT32:
        return copy_4;
    case STOKER_DTYPE_UINT64:
    case STOKER_DTYPE_INT64:
    case STOKER_DTYPE_FLOAT64:
        return copy_8;
    case STOKER_DTYPE_NONE:
        break;
    }
    return NULL;
}

stk_elements_fn *stk_elements_choose(stoker_dtype from, stoker_dtype to)
{
#define ENTRY(from, from_type, value_of, to, to_type, store)                                       \
    [TYPE_##from][TYPE_##to] = from##_to_##to,
#define FLOAT_ENTRY(from, from_type, value_of, to, to_type, store) ENTRY(from, , , to, , )
    static stk_elements_fn *const table[TYPES][TYPES] = { EACH_WIDENING(ENTRY) EACH_TYPE(
        FLOAT_ENTRY, f16, , ) EACH_TYPE(FLOAT_ENTRY, bf16, , ) EACH_TYPE(FLOAT_ENTRY, f32, , )
                                                              EACH_TYPE(FLOAT_ENTRY, f64, , ) };
    if ((unsigned)from >= TYPES || (unsigned)to >= TYPES)
        return NULL;
    return from == to ? copy_of(from) : table[from][to];
}
