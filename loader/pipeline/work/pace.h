/* pace.h - choose how much a worker claims at once: about 100 us of work, judged by its last rows.
 *
 * Smaller claims cost more than they gain by sharing; with larger ones the batch waits for its last
 * worker. The first rows are not timed yet, so a worker starts with one share of a ticket and at
 * most doubles each time. Gathered rows need no clock: a whole ticket of them takes no longer
 * (sizing.h).
 */
#ifndef STK_PIPELINE_PACE_H
#define STK_PIPELINE_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct stk_pace {
    uint32_t shares;  /* taken last; 0 = none yet */
    bool gathers;     /* the last rows were in memory as stored */
    uint64_t rows;    /* made by this worker when last measured */
    uint64_t busy_ns; /* their time */
};

/* Shares of share_rows rows to take next, 1..shares_max. Totals of this worker: rows made, and
 * busy_ns not spent waiting for slots. */
uint32_t stk_pace_step(struct stk_pace *pace, uint64_t rows, uint64_t busy_ns, uint32_t share_rows,
                       uint32_t shares_max);

#endif
