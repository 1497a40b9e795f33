/* tensors.h - what a file of tensors holds: named arrays, and pairs of strings.
 *
 * The same set is what a writer takes and what a reader gives. It borrows everything it points at.
 */
#ifndef STK_TRAINER_TENSORS_H
#define STK_TRAINER_TENSORS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    STK_TENSOR_RANK_MAX = 8,
    STK_TENSORS_MAX = 1 << 18, /* in one file */
    STK_NOTES_MAX = 1 << 16
};

/* X(constant, name in the file, bytes of one element) */
#define STK_FILE_DTYPES(X)                                                                         \
    X(STK_FILE_BOOL, "BOOL", 1)                                                                    \
    X(STK_FILE_U8, "U8", 1)                                                                        \
    X(STK_FILE_I8, "I8", 1)                                                                        \
    X(STK_FILE_F8_E5M2, "F8_E5M2", 1)                                                              \
    X(STK_FILE_F8_E4M3, "F8_E4M3", 1)                                                              \
    X(STK_FILE_F8_E8M0, "F8_E8M0", 1)                                                              \
    X(STK_FILE_I16, "I16", 2)                                                                      \
    X(STK_FILE_U16, "U16", 2)                                                                      \
    X(STK_FILE_F16, "F16", 2)                                                                      \
    X(STK_FILE_BF16, "BF16", 2)                                                                    \
    X(STK_FILE_I32, "I32", 4)                                                                      \
    X(STK_FILE_U32, "U32", 4)                                                                      \
    X(STK_FILE_F32, "F32", 4)                                                                      \
    X(STK_FILE_I64, "I64", 8)                                                                      \
    X(STK_FILE_U64, "U64", 8)                                                                      \
    X(STK_FILE_F64, "F64", 8)                                                                      \
    X(STK_FILE_C64, "C64", 8)

#define STK_FILE_DTYPE_ENUM(constant, name, bytes) constant,
enum stk_file_dtype { STK_FILE_DTYPES(STK_FILE_DTYPE_ENUM) STK_FILE_DTYPE_COUNT };
#undef STK_FILE_DTYPE_ENUM

struct stk_named_tensor {
    const char *name; /* UTF-8, unique in its set, not "__metadata__" */
    enum stk_file_dtype dtype;
    uint32_t rank; /* 0..STK_TENSOR_RANK_MAX; 0 = one scalar */
    uint64_t shape[STK_TENSOR_RANK_MAX];
    /* Little-endian, row-major. In a set that was read its address may be unaligned: copy it
     * out. */
    const void *data;
    uint64_t bytes; /* size of data; a writer uses shape and dtype instead */
};

struct stk_note {
    const char *key; /* UTF-8, unique in its set */
    const char *value;
};

struct stk_tensor_set {
    const struct stk_named_tensor *tensors;
    uint32_t tensor_count;
    const struct stk_note *notes;
    uint32_t note_count;
};

const char *stk_file_dtype_name(enum stk_file_dtype dtype); /* "F32" */
uint32_t stk_file_dtype_bytes(enum stk_file_dtype dtype);

/* Returns the bytes that shape and dtype give, or UINT64_MAX if they do not fit in 63 bits. */
uint64_t stk_tensor_bytes(const struct stk_named_tensor *tensor);

/* Finds a name in a set that was read, or NULL. */
const struct stk_named_tensor *stk_tensor_find(const struct stk_tensor_set *set, const char *name);
const char *stk_note_find(const struct stk_tensor_set *set, const char *key);

/* Returns true for F32, F16, BF16 and F64. */
bool stk_holds_floats(enum stk_file_dtype dtype);

/* Converts count such numbers, which may lie at any address, to floats. A double beyond the range
 * of float becomes infinite. */
void stk_read_floats(float *out, const void *from, enum stk_file_dtype dtype, uint64_t count);

#endif
