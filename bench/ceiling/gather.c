/* gather.c - random rows from memory, converted into a ring: all the work of a loader whose
 * data set is in memory. */
#include "bench/ceiling/share.h"

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

const struct bench_steps bench_steps_gather = { bench_share_setup, step, bench_share_teardown };
