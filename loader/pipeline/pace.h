/* pace.h - how much a worker takes at once: about 100 us of work, by how long its rows took.
 *
 * Less, and taking costs more than it shares out; more, and the last worker of a batch is waited for.
 * The first rows that a worker makes have not been timed, so it begins with one part of a ticket and
 * at most doubles that each time. Rows that are gathered need no clock: a whole ticket of them is
 * sized to take no longer (sizing).
 */
#ifndef STK_PIPELINE_PACE_H
#define STK_PIPELINE_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct stk_pace {
    uint32_t parts;   /* taken last, 0 = none yet */
    bool gathers;     /* the last rows were in memory as stored */
    uint64_t rows;    /* made by this worker, at the last look */
    uint64_t busy_ns; /* and the time that took */
};

/* How many parts of part_rows rows to take next, 1..parts_max. rows and busy_ns are totals: rows
 * that this worker has made, and the time that it did not wait for slots. */
uint32_t stk_pace_step(struct stk_pace *pace, uint64_t rows, uint64_t busy_ns, uint32_t part_rows,
                       uint32_t parts_max);

#endif
