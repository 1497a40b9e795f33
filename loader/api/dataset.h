/* dataset.h - what stands behind a stoker_dataset: its callbacks, and what they said.
 *
 * The pipeline calls dataset->ops->locate(dataset->self, ...) itself: one call per span,
 * with nothing between.
 */
#ifndef STK_DATASET_H
#define STK_DATASET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stoker/dataset.h>

#include "loader/api/stamps.h"

struct stoker_dataset {
    const stoker_dataset_ops *ops;
    void *self;
    stoker_dataset_info info;     /* checked: see stoker_dataset_create */
    struct stk_stamps stamps;     /* of its open files */
    size_t row_bytes;             /* elements of a row x element size, >= 1 */
    _Atomic bool kept;            /* close leaves it as it is: see stk_dataset_keep */
    _Atomic uint64_t fingerprint; /* 0 = not computed yet: see fingerprint.h */
};

/* A thread that is stuck in a read of it may come back at any time: from now on close gives nothing of it
 * back. Any thread. */
void stk_dataset_keep(const stoker_dataset *dataset);

#endif
