/* stoker/tensor.h - element types, axis orders, and the description of a borrowed array. */
#ifndef STOKER_TENSOR_H
#define STOKER_TENSOR_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/export.h>

STOKER_BEGIN_DECLS

typedef enum stoker_dtype {
    STOKER_DTYPE_NONE = 0, /* in options: as the data set stores it; in a data set: absent */
    STOKER_DTYPE_UINT8,
    STOKER_DTYPE_INT8,
    STOKER_DTYPE_INT16,
    STOKER_DTYPE_INT32,
    STOKER_DTYPE_INT64,
    STOKER_DTYPE_FLOAT16,
    STOKER_DTYPE_BFLOAT16,
    STOKER_DTYPE_FLOAT32,
    STOKER_DTYPE_FLOAT64,
    STOKER_DTYPE_UINT16,
    STOKER_DTYPE_UINT32,
    STOKER_DTYPE_UINT64,
    STOKER_DTYPE_BOOL /* one byte, 0 or 1 */
} stoker_dtype;

/* Axis order of an image batch. Data sets store channels last. */
typedef enum stoker_layout { STOKER_LAYOUT_NHWC = 0, STOKER_LAYOUT_NCHW = 1 } stoker_layout;

enum { STOKER_RANK_MAX = 8 }; /* axes, the batch axis included */

/* A dense array, last axis fastest, host byte order. Borrowed: it owns nothing. Its size never
 * changes. */
typedef struct stoker_tensor {
    void *data;
    stoker_dtype dtype;
    uint32_t rank;                   /* axes used in shape, 0..STOKER_RANK_MAX */
    uint64_t shape[STOKER_RANK_MAX]; /* shape[0] is the batch */
    uint64_t reserved[2];            /* 0; new members replace them */
} stoker_tensor;

/* Return the bytes of one element; 0 for STOKER_DTYPE_NONE and unknown values. Any thread. */
STOKER_API size_t stoker_dtype_bytes(stoker_dtype dtype);

/* Return "uint8", "float32", ...; "none" for STOKER_DTYPE_NONE and unknown values. Static. */
STOKER_API const char *stoker_dtype_name(stoker_dtype dtype);

/* Return the type with that name, or STOKER_DTYPE_NONE. */
STOKER_API stoker_dtype stoker_dtype_from_name(const char *name);

STOKER_END_DECLS
#endif
