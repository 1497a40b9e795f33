/* tuner.h - how many workers to use: tried out while running.
 *
 *             the consumer stalls                 faster
 *   SETTLED ──────────────────────▶ TRYING ─────────────────────▶ CHECKING
 *      ▲                              │ another number              │ the old number again
 *      │       not faster: go back    │                             │
 *      ├──────────────────────────────┤     slower than the trial:  │
 *      │   clearly faster: keep it    │     keep the new number     │
 *      └──────────────────────────────┴─────────────────────────────┘
 *
 * Workers that wait for storage leave their CPUs idle, so more of them help: the first trial doubles
 * their number, as far as the CPU time that they use, or wait for beside other programs, leaves room. Each failure halves the step; then
 * fewer workers are tried; then the tuner rests. Where the workers use every CPU, none is added.
 *
 * Each state lasts one window of work, measured in the rows that workers complete, not in batches
 * delivered: batches are delivered in order and come in bursts. A window begins when all that was
 * claimed under the previous number of workers has been delivered. A small gain counts only if the
 * trial beats the windows on both sides of it, since the machine's speed may drift. A consumer that
 * does not wait is left alone.
 *
 * Time counts only while the consumer works (pipeline/activity): what it does elsewhere belongs to no
 * window, and a window continues where it stopped.
 * Runs in the consumer's thread, inside next().
 */
#ifndef STK_PIPELINE_TUNER_H
#define STK_PIPELINE_TUNER_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/activity.h"

enum stk_tuner_state { STK_TUNER_SETTLED, STK_TUNER_TRYING, STK_TUNER_CHECKING };

struct stk_tuner {
    uint32_t workers; /* running now */
    uint32_t workers_max;
    uint32_t cpus; /* that the workers may use */
    enum stk_tuner_state state;
    uint32_t best; /* settled on */
    uint32_t trial;
    double best_rate; /* of the window before the trial, rows per second */
    double trial_rate;
    uint32_t stride;    /* workers that the next trial upward adds */
    bool down;          /* the next trial is of fewer workers */
    uint32_t failures;  /* directions in a row that did not help */
    uint64_t rest_ns;   /* of work, until the next trial */
    uint64_t claimed;   /* batches that workers have begun, at the last look */
    uint64_t drain_end; /* batches begun under the previous number of workers */
    struct stk_activity activity;
    struct stk_look window;
};

/* workers and workers_max: 1.., cpus: 1.. */
void stk_tuner_init(struct stk_tuner *tuner, uint32_t workers, uint32_t workers_max, uint32_t cpus);

/* Look at the totals so far; claimed is the number of batches that workers have begun, delivered ones
 * included. Returns the number of workers to run from now on. */
uint32_t stk_tuner_step(struct stk_tuner *tuner, const struct stk_look *now, uint64_t claimed);

#endif
