/* labels.h - an NPY array of one number per sample as labels. */
#ifndef STK_DATASETS_NPY_LABELS_H
#define STK_DATASETS_NPY_LABELS_H

#include "datasets/arrays/set.h"
#include "datasets/npy/input.h"

/* Fill *out with the labels, as int64 or float32 in *region, which may take max_bytes. name has STOKER_FIELD_NAME_BYTES
 * bytes. Errors: STOKER_EFORMAT (not one finite number per sample), STOKER_ELIMIT, STOKER_ENOMEM, and those of reading. */
int stk_npy_take_labels(struct stk_array *out, struct stk_region *region, const char *name,
                        uint64_t max_bytes, const struct stk_npy_input *input,
                        const struct stk_npy_header *header, stoker_error *error);

#endif
