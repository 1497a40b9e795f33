/* memory.c - work in memory alone: random rows converted into a ring, which is all that a loader
 * does with a data set in memory; and bytes copied between large blocks, counted once. */
#include "bench/loaderbench/ceiling/share.h"

#include <stdlib.h>
#include <string.h>

/* ---- gather ---------------------------------------------------------------------------- */

static int setup_gather(const void *work, uint32_t thread, uint32_t threads, void **state)
{
    struct bench_share *share = calloc(1, sizeof(*share));
    if (share == NULL)
        return STOKER_ENOMEM;
    const int rc = bench_share_create(share, work, thread, threads);
    if (rc == STOKER_OK)
        *state = share;
    else
        free(share);
    return rc;
}

static void teardown_gather(void *share)
{
    bench_share_destroy(share);
    free(share);
}

static int64_t step_gather(void *state)
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

const struct bench_steps bench_steps_gather = { setup_gather, step_gather, teardown_gather };

/* ---- memcpy ---------------------------------------------------------------------------- */

enum { BLOCK_BYTES = 128 << 20, STEP_BYTES = 64 << 10 };

struct copier {
    struct bench_block from;
    struct bench_block to;
    size_t at;
};

static void teardown_copier(void *state)
{
    struct copier *copier = state;
    bench_block_destroy(&copier->from);
    bench_block_destroy(&copier->to);
    free(copier);
}

static int setup_copier(const void *context, uint32_t thread, uint32_t threads, void **state)
{
    (void)context;
    (void)thread;
    const size_t bytes = (BLOCK_BYTES / threads + STEP_BYTES) / STEP_BYTES * STEP_BYTES;
    struct copier *copier = calloc(1, sizeof(*copier));
    if (copier == NULL)
        return STOKER_ENOMEM;
    int rc = bench_block_create(&copier->from, bytes);
    if (rc == STOKER_OK)
        rc = bench_block_create(&copier->to, bytes);
    if (rc == STOKER_OK)
        *state = copier;
    else
        teardown_copier(copier);
    return rc;
}

static int64_t step_copier(void *state)
{
    struct copier *copier = state;
    if (copier->at == copier->from.size)
        copier->at = 0;
    memcpy((char *)copier->to.bytes + copier->at, (char *)copier->from.bytes + copier->at,
           STEP_BYTES);
    copier->at += STEP_BYTES;
    return STEP_BYTES;
}

const struct bench_steps bench_steps_memcpy = { setup_copier, step_copier, teardown_copier };
