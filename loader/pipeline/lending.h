/* lending.h - whether a consumer that waits should work as the workers do.
 *
 *               it waits for more than half of the time
 *   WAITING ───────────────────────────────────────────▶ LENDING
 *      ▲                                                    │
 *      └────────────────────────────────────────────────────┘
 *               ... for less than a quarter, the work that it does meanwhile counted as waiting
 *
 * Judged over windows of work (pipeline/watch): one absence says nothing, but two without a wait between
 * them tell of a consumer that needs no help. Runs in the consumer's thread, inside next().
 */
#ifndef STK_PIPELINE_LENDING_H
#define STK_PIPELINE_LENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/watch.h"

struct stk_lending {
    bool lends;
    bool was_away; /* and has not waited since */
    struct stk_watch watch;
    struct stk_look window;
};

/* Look at the totals so far; returns whether to lend a hand from now on. All zero is a fresh one. */
bool stk_lending_step(struct stk_lending *lending, uint64_t now_ns, uint64_t batches,
                      uint64_t stall_ns);

#endif
