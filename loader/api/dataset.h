/* dataset.h - the inside of a stoker_dataset: its callbacks and their answers.
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
    struct stk_stamps stamps;     /* taken from its open files */
    size_t row_bytes;             /* elements per row x element size, >= 1 */
    _Atomic bool leaked;          /* close frees nothing: see stk_dataset_leak */
    _Atomic uint64_t fingerprint; /* 0 = not computed yet: see fingerprint.h */
};

/* From now on close frees nothing: a thread that is stuck in a read may still return to the data set. Any
 * thread. */
void stk_dataset_leak(const stoker_dataset *dataset);

#endif
