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
    stoker_dataset_info info; /* checked: see stoker_dataset_create */
    struct stk_stamps stamps; /* taken from its open files */
    /* Fill out[0..count) with the weights of samples, finite and >= 0. Set by views (stoker/views.h); NULL = all have the
     * same weight. Returns 0 or a stoker_err < 0. */
    int (*weights)(const void *self, const uint64_t *ids, uint32_t count, double *out);
    size_t row_bytes;             /* elements per row x element size, >= 1 */
    _Atomic uint32_t references;  /* owners: the caller, and each view of it */
    _Atomic bool leaked;          /* close frees nothing: see stk_dataset_leak */
    _Atomic uint64_t fingerprint; /* 0 = not computed yet: see fingerprint.h */
};

/* Add an owner, which ends with stoker_dataset_close(). Returns the data set. Any thread. */
stoker_dataset *stk_dataset_hold(stoker_dataset *dataset);

/* The id that the codec of a located sample receives. */
static inline uint64_t stk_codec_id(const stoker_sample *sample, uint64_t id)
{
    return sample->codec_id > 0 ? sample->codec_id - 1 : id;
}

/* From now on close frees nothing: a thread that is stuck in a read may still return to the data set. Any
 * thread. */
void stk_dataset_leak(const stoker_dataset *dataset);

#endif
