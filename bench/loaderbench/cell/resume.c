/* resume.c - times how long a loader takes to resume from the state of another. */
#include "bench/loaderbench/cell/run.h"
#include "loader/base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Returns the next batch, skipping the ends of epochs. */
static int next_batch(stoker_loader *loader, stoker_batch *batch)
{
    int rc = stoker_loader_next(loader, batch, -1);
    while (rc == STOKER_EPOCH_END)
        rc = stoker_loader_next(loader, batch, -1);
    return rc;
}

static int skip_two(stoker_loader *loader)
{
    int rc = STOKER_OK;
    for (int turn = 0; turn < 2 && rc == STOKER_OK; turn++) {
        stoker_batch batch = STOKER_BATCH_INIT;
        rc = next_batch(loader, &batch);
        if (rc == STOKER_OK)
            stoker_batch_release(&batch);
    }
    return rc;
}

static int compare_next(stoker_loader *loader, stoker_batch *resumed, stoker_error *error)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc = next_batch(loader, &batch);
    if (rc != STOKER_OK)
        return rc;
    bool same = batch.count == resumed->count && batch.epoch == resumed->epoch &&
                memcmp(batch.ids, resumed->ids, batch.count * sizeof(batch.ids[0])) == 0;
    stoker_batch_release(&batch);
    if (same)
        return STOKER_OK;
    snprintf(error->message, sizeof(error->message),
             "wrong data: a resumed loader continues with other samples");
    return STOKER_EMISMATCH;
}

int bench_resume_measure(const stoker_dataset *dataset, const stoker_loader_options *options,
                         stoker_loader *loader, double *resume_ms, stoker_error *error)
{
    stoker_loader_options again = *options;
    stoker_loader *resumed = NULL;
    uint8_t state[STOKER_STATE_BYTES];
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc = skip_two(loader);
    if (rc == STOKER_OK)
        rc = stoker_loader_state(loader, state, sizeof(state), NULL, error);
    if (rc != STOKER_OK)
        return rc;
    again.resume = state;
    again.resume_size = sizeof(state);
    if (again.pin_memory == STOKER_SWITCH_ON)
        again.pin_memory =
            STOKER_SWITCH_AUTO; /* two loaders may exceed the limit on locked memory */
    uint64_t begin_ns = stk_now_ns();
    rc = stoker_loader_create(&resumed, dataset, &again, error);
    if (rc == STOKER_OK)
        rc = next_batch(resumed, &batch);
    *resume_ms = (double)(stk_now_ns() - begin_ns) / 1e6;
    if (rc == STOKER_OK) {
        rc = compare_next(loader, &batch, error);
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&resumed);
    return rc;
}
