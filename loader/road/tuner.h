/* tuner.h - how many workers to use: tried out while running.
 *
 *   SETTLED ──consumer stalls──▶ TRYING a neighbour's number for one window
 *      ▲                              │
 *      └── keep it if it is faster, ──┘
 *          else return to the best
 *
 * Only a consumer that waits is worth tuning for; while it does not, nothing is changed.
 * Runs in the consumer's thread, inside next().
 */
#ifndef STK_ROAD_TUNER_H
#define STK_ROAD_TUNER_H

#include <stdbool.h>
#include <stdint.h>

struct stk_tuner {
    uint32_t workers; /* running now */
    uint32_t workers_max;
    uint32_t best;     /* number with the best rate seen */
    double best_rate;  /* batches per second */
    int32_t step;      /* the direction being tried: +1 or -1 */
    uint32_t failures; /* tries in a row that did not help */
    bool trying;
    uint64_t window_ns; /* start of the window, 0 = none yet */
    uint64_t window_batches;
    uint64_t window_stall_ns;
    uint64_t looked_ns; /* the last call */
    uint64_t looked_stall_ns;
    uint64_t rest_until_ns;
};

void stk_tuner_init(struct stk_tuner *tuner, uint32_t workers, uint32_t workers_max);

/* Look at the totals so far; returns the number of workers to run from now on. */
uint32_t stk_tuner_step(struct stk_tuner *tuner, uint64_t now_ns, uint64_t batches,
                        uint64_t stall_ns);

#endif
