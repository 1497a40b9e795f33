/* caller_assist.h - decides if a waiting consumer does a worker's share inside next().
 *
 *            it waits for more than 1/2 of the time
 *   OFF ───────────────────────────────────────────▶ ON
 *    ▲                                                │
 *    └────────────────────────────────────────────────┘
 *            it waits for less than 1/4 (its own work inside next() counts as waiting)
 *
 * Judged over windows of work (pipeline/activity). One absence of the consumer changes nothing; two
 * without a wait between them switch it off. Runs in the consumer's thread, inside next().
 */
#ifndef STK_PIPELINE_CALLER_ASSIST_H
#define STK_PIPELINE_CALLER_ASSIST_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/work/activity.h"

struct stk_caller_assist {
    bool on;
    bool was_away; /* and has not waited since */
    struct stk_activity activity;
    struct stk_look window;
};

/* Take the totals so far and return the new state. Starts all zero. */
bool stk_caller_assist_step(struct stk_caller_assist *assist, uint64_t now_ns, uint64_t batches,
                            uint64_t stall_ns);

#endif
