/* mixed_run.h - runs of a loader that mixes samples: hashes of its batches with the fields beside,
 * and the same batches mixed by the test itself, from a run without mixing.
 */
#ifndef STK_TEST_MIXED_RUN_H
#define STK_TEST_MIXED_RUN_H

#include <criterion/criterion.h>

#include "support/opened_loader.h"
#include "support/scenario.h"

static inline const stoker_field *stk_mixed_field(const stoker_batch *batch, const char *name)
{
    for (uint32_t i = 0; i < batch->field_count; i++)
        if (strcmp(batch->fields[i].name, name) == 0)
            return &batch->fields[i];
    return NULL;
}

/* Bytes of one row of an array of a batch. */
static inline size_t stk_mixed_row_bytes(const stoker_tensor *values)
{
    size_t bytes = stoker_dtype_bytes(values->dtype);
    for (uint32_t axis = 1; axis < values->rank; axis++)
        bytes *= (size_t)values->shape[axis];
    return bytes;
}

/* A hash of every byte of all fields. */
static inline uint64_t stk_mixed_hash(const stoker_batch *batch)
{
    uint64_t hash = stk_batch_hash(batch);
    for (uint32_t i = 0; i < batch->field_count; i++)
        hash = stk_hash_bytes(hash, batch->fields[i].values.data,
                              stk_mixed_row_bytes(&batch->fields[i].values) * batch->count);
    return hash;
}

static inline void stk_mixed_run(const stoker_dataset *dataset,
                                 const stoker_loader_options *options, struct stk_run *run)
{
    stoker_loader *loader = loader_of(dataset, options);
    *run = (struct stk_run){ 0 };
    stk_run_hashed(loader, run, UINT32_MAX, stk_mixed_hash);
    stoker_loader_destroy(&loader);
}

#endif
