/* sample.h - codecs for NPY files that hold one sample each, and their common header. */
#ifndef STK_DATASETS_NPY_SAMPLE_H
#define STK_DATASETS_NPY_SAMPLE_H

#include "datasets/npy/header.h"

/* What the arrays of a field have in common: all but the length of the first axis. All zero: none
 * seen. */
struct stk_npy_shape {
    bool seen;
    stoker_dtype dtype;
    bool big_endian; /* elements are swapped when they are decoded */
    uint32_t rank;
    uint64_t lengths[STOKER_RANK_MAX]; /* [0] = the longest first axis */
    uint64_t shortest;                 /* first axis */
    uint64_t row_bytes; /* bytes of an entry along the first axis; rank 0: of the array */
};

/* Take one more array into account. Returns false if it has another type or byte order, or differs
 * in more than the first axis. */
bool stk_npy_shape_add(struct stk_npy_shape *shape, const struct stk_npy_header *header);

/* The same for all arrays of another shape. Nothing changes if that one has seen none. */
bool stk_npy_shape_merge(struct stk_npy_shape *shape, const struct stk_npy_shape *more);

/* Set type, axes and `varies` of a field. */
void stk_npy_shape_describe(const struct stk_npy_shape *shape, stoker_field_info *out);

/* Make the codec of such files; shape must outlive it. An array that does not fit the shape is
 * STOKER_EFORMAT. */
stoker_codec stk_npy_sample_codec(const struct stk_npy_shape *shape);

/* The same for big-endian elements without their header. */
stoker_codec stk_npy_elements_codec(const struct stk_npy_shape *shape);

#endif
