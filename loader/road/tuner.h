/* tuner.h - how many workers to use: tried out while running.
 *
 *             the consumer stalls                 faster
 *   SETTLED ──────────────────────▶ TRYING ─────────────────────▶ CHECKING
 *      ▲                              │ a neighbour's number        │ the old number again
 *      │       not faster: go back    │                             │
 *      ├──────────────────────────────┘     slower than the trial:  │
 *      └────── keep the new number, else stay with the old ─────────┘
 *
 * Each state lasts one window of work. A trial counts only if it beats the windows on both sides of
 * it, so that a machine whose speed drifts is not taken for a number that helps. Only a consumer that
 * waits is worth tuning for; while it does not, nothing is changed.
 *
 * Time counts only while the consumer works (road/watch): what it does elsewhere belongs to no
 * window, and a window goes on where it stopped.
 * Runs in the consumer's thread, inside next().
 */
#ifndef STK_ROAD_TUNER_H
#define STK_ROAD_TUNER_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/road/watch.h"

enum stk_tuner_state { STK_TUNER_SETTLED, STK_TUNER_TRYING, STK_TUNER_CHECKING };

struct stk_tuner {
    uint32_t workers; /* running now */
    uint32_t workers_max;
    enum stk_tuner_state state;
    uint32_t best; /* settled on */
    uint32_t trial;
    double best_rate; /* of the window before the trial, batches per second */
    double trial_rate;
    int32_t step;      /* the direction being tried: +1 or -1 */
    uint32_t failures; /* tries in a row that did not help */
    uint64_t rest_ns;  /* of work, until the next trial */
    struct stk_watch watch;
    struct stk_look window;
};

void stk_tuner_init(struct stk_tuner *tuner, uint32_t workers, uint32_t workers_max);

/* Look at the totals so far; returns the number of workers to run from now on. */
uint32_t stk_tuner_step(struct stk_tuner *tuner, uint64_t now_ns, uint64_t batches,
                        uint64_t stall_ns);

#endif
