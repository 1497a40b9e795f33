/* test_length_batches.c - workers plan batches by length while others fill and the consumer reads
 * what was planned: every run delivers what one thread does.
 */
#include <stoker/stoker.h>

#include "loader/base/rng.h"
#include "support/thread_check.h"

enum { COUNT = 2000, LONGEST = 30, EPOCHS = 3, RUNS = 6 };

static int64_t offsets[COUNT + 1];
static uint16_t tokens[COUNT * LONGEST];

static stoker_dataset *documents(void)
{
    stoker_array array = STOKER_ARRAY_INIT;
    stoker_dataset *dataset = NULL;
    for (int64_t i = 0; i < COUNT; i++)
        offsets[i + 1] = offsets[i] + 1 + (int64_t)(stk_mix64((uint64_t)i) % LONGEST);
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
        tokens[i] = (uint16_t)i;
    array.name = "tokens";
    array.data = tokens;
    array.dtype = STOKER_DTYPE_UINT16;
    array.rank = 1;
    array.offsets = offsets;
    CHECK(stoker_dataset_from_arrays(&dataset, &array, 1, COUNT, NULL, NULL) == STOKER_OK);
    return dataset;
}

/* A hash of all batches: what they hold, and where they end. */
static uint64_t run(const stoker_dataset *dataset, int32_t workers)
{
    stoker_loader_options options =
        stk_default_options(.batch_size = 16, .shuffle = true, .epochs = EPOCHS,
                            .num_workers = workers, .prefetch_batches = 6, .batch_values_max = 60,
                            .batch_window = 50);
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t hash = 0;
    CHECK(stoker_loader_create(&loader, dataset, &options, NULL) == STOKER_OK);
    for (int rc = STOKER_OK; rc != STOKER_FINISHED;) {
        rc = stoker_loader_next(loader, &batch, 60000);
        CHECK(rc == STOKER_OK || rc == STOKER_EPOCH_END || rc == STOKER_FINISHED);
        hash = stk_mix64(hash + (uint64_t)rc);
        if (rc != STOKER_OK)
            continue;
        const uint16_t *values = batch.fields[0].values.data;
        for (uint32_t i = 0; i < batch.count; i++)
            hash = stk_mix64(hash ^ batch.ids[i]);
        for (int64_t i = 0; i < batch.fields[0].offsets[batch.count]; i++)
            hash += values[i];
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    return hash;
}

int main(void)
{
    stoker_dataset *dataset = documents();
    const uint64_t due = run(dataset, 0);
    for (int32_t i = 0; i < RUNS; i++)
        CHECK(run(dataset, 1 + i % 4) == due);
    stoker_dataset_close(&dataset);
    return 0;
}
