/* array.h - one NPY array, a file of its own or a member of an archive, as an array of a set. */
#ifndef STK_DATASETS_NPY_ARRAY_H
#define STK_DATASETS_NPY_ARRAY_H

#include "datasets/arrays/set.h"
#include "datasets/npy/header.h"

/* What becomes of an array. */
struct stk_npy_wish {
    char name[STOKER_FIELD_NAME_BYTES]; /* "" = "image" or "row" */
    bool first;                         /* field 0 */
    bool labels;                        /* one number per sample, as int64 or float32, finite */
    uint64_t max_bytes;                 /* memory that it may take */
};

/* Fill *out; arrays that are copied lie in *region. All shapes but labels' are taken as they are.
 * Errors: STOKER_ENOTSUP (element type), STOKER_ELIMIT, STOKER_ENOMEM, STOKER_EFORMAT, and those of
 * reading. */
int stk_npy_take(struct stk_array *out, struct stk_region *region, const struct stk_npy_wish *wish,
                 const struct stk_npy_input *input, const struct stk_npy_header *header,
                 stoker_error *error);

/* STOKER_EMISMATCH unless `header` has as many samples as the first array, which is that of
 * `first`. */
int stk_npy_check_count(const struct stk_npy_input *input, const struct stk_npy_header *header,
                        const struct stk_npy_input *first, uint64_t count, stoker_error *error);

#endif
