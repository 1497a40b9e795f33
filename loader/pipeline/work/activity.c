/* activity.c - see activity.h. */
#include "loader/pipeline/work/activity.h"

enum { AWAY_STALL = 20 }; /* waits of less than 1/20 of the time are no stall */

static bool was_away(const struct stk_look *passed, uint64_t away_ns)
{
    return passed->ns > away_ns && passed->stall_ns < passed->ns / AWAY_STALL;
}

enum stk_activity_kind stk_activity_step(struct stk_activity *activity, const struct stk_look *now,
                                         uint64_t away_ns, struct stk_look *passed)
{
    const struct stk_look last = activity->last;
    const bool returned = activity->returned;
    activity->last = *now;
    *passed = (struct stk_look){
        .ns = now->ns - last.ns,
        .batches = now->batches - last.batches,
        .stall_ns = now->stall_ns - last.stall_ns,
        .rows = now->rows - last.rows,
        .spans = now->spans - last.spans,
        .cpu_ns = now->cpu_ns - last.cpu_ns,
    };
    if (last.ns == 0)
        return STK_ACTIVITY_UNKNOWN;
    const bool away = was_away(passed, away_ns);
    activity->returned = away || (returned && passed->stall_ns == 0);
    return away ? STK_ACTIVITY_ABSENCE : returned ? STK_ACTIVITY_RETURN : STK_ACTIVITY_WORK;
}
