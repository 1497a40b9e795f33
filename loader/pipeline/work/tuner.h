/* tuner.h - chooses the number of workers by trials while running.
 *
 *             the consumer stalls                 faster
 *   SETTLED ──────────────────────▶ TRYING ─────────────────────▶ CHECKING
 *      ▲                              │ another number              │ the old number again
 *      │       not faster: undo       │                             │
 *      ├──────────────────────────────┤     slower than the trial:  │
 *      │   clearly faster: keep it    │     keep the new number     │
 *      └──────────────────────────────┴─────────────────────────────┘
 *
 * Workers that wait for storage leave their CPUs idle, so more of them help: the first trial
 * doubles their number, within the CPU time left by what they use, or queue for beside other
 * programs. Each failure halves the step; then fewer workers are tried; then the tuner rests. If
 * the workers use every CPU, none is added.
 *
 * Each state lasts one window of work, measured in the rows that workers complete, not in batches
 * delivered: batches are delivered in order and come in bursts. A window starts when all batches
 * claimed under the previous number of workers have been delivered. A small gain counts only if the
 * trial beats the windows on both sides of it, since the machine's speed may drift. While the
 * consumer does not wait, nothing is tried.
 *
 * Time counts only while the consumer works (pipeline/activity): time it spends elsewhere belongs
 * to no window, and a window resumes afterwards. Runs in the consumer's thread, inside next().
 */
#ifndef STK_PIPELINE_TUNER_H
#define STK_PIPELINE_TUNER_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/work/activity.h"

enum stk_tuner_state { STK_TUNER_SETTLED, STK_TUNER_TRYING, STK_TUNER_CHECKING };

struct stk_tuner {
    uint32_t workers; /* running now */
    uint32_t workers_max;
    uint32_t cpus; /* available to the workers */
    enum stk_tuner_state state;
    uint32_t best; /* number settled on */
    uint32_t trial;
    double best_rate; /* rows per second in the window before the trial */
    double trial_rate;
    uint32_t stride;    /* workers that the next trial upward adds */
    bool down;          /* the next trial is with fewer workers */
    uint32_t failures;  /* directions in a row that did not help */
    uint64_t rest_ns;   /* working time until the next trial */
    uint64_t claimed;   /* batches that workers had started at the last check */
    uint64_t drain_end; /* batches started under the previous number of workers */
    struct stk_activity activity;
    struct stk_look window;
};

/* workers and workers_max: 1.., cpus: 1.. */
void stk_tuner_init(struct stk_tuner *tuner, uint32_t workers, uint32_t workers_max, uint32_t cpus);

/* Evaluate the totals so far; `claimed` is the number of batches that workers have started,
 * delivered ones included. Returns the number of workers to run from now on. */
uint32_t stk_tuner_step(struct stk_tuner *tuner, const struct stk_look *now, uint64_t claimed);

#endif
