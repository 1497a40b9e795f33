/* ceiling_gather.c - random rows from memory, converted into a ring: all that a loader
 * with a resident data set has to do. */
#include "share.h"

#include <stdlib.h>

static int setup(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    struct bench_share *share = calloc(1, sizeof(*share));
    if (share == NULL)
        return STOKER_ENOMEM;
    int rc = bench_share_create(share, context, thread, threads);
    if (rc != STOKER_OK) {
        free(share);
        return rc;
    }
    *state = share;
    return STOKER_OK;
}

static int64_t step(void *state)
{
    struct bench_share *share = state;
    const struct bench_work *work = share->work;
    const struct stk_convert_plan *plan = work->plan;
    uint64_t start = 0;
    uint32_t count = bench_share_take(share, share->piece, &start);
    if (count > 0)
        plan->rows(plan, work->material->order + start, count, plan->prefetch_rows,
                   bench_share_room(share, count));
    return count;
}

static void teardown(void *state)
{
    bench_share_destroy(state);
    free(state);
}

const struct bench_steps bench_steps_gather = { setup, step, teardown };
