/* watch.c - see watch.h. */
#include "loader/pipeline/watch.h"

enum { AWAY_STALL = 20 }; /* who waits for less than one part in so many was not held up by us */

static bool was_away(const struct stk_look *passed, uint64_t away_ns)
{
    return passed->ns > away_ns && passed->stall_ns < passed->ns / AWAY_STALL;
}

enum stk_watched stk_watch_step(struct stk_watch *watch, const struct stk_look *now,
                                uint64_t away_ns, struct stk_look *passed)
{
    const struct stk_look last = watch->last;
    const bool returned = watch->returned;
    watch->last = *now;
    *passed = (struct stk_look){
        .ns = now->ns - last.ns,
        .batches = now->batches - last.batches,
        .stall_ns = now->stall_ns - last.stall_ns,
        .rows = now->rows - last.rows,
        .spans = now->spans - last.spans,
        .cpu_ns = now->cpu_ns - last.cpu_ns,
    };
    if (last.ns == 0)
        return STK_WATCHED_NOTHING;
    const bool away = was_away(passed, away_ns);
    watch->returned = away || (returned && passed->stall_ns == 0);
    return away ? STK_WATCHED_ABSENCE : returned ? STK_WATCHED_RETURN : STK_WATCHED_WORK;
}
