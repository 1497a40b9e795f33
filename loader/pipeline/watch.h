/* watch.h - what passed between two looks at a consumer, and whether it says something about the workers.
 *
 * What the consumer does elsewhere (an evaluation, a checkpoint) does not. On its return it finds the
 * ring full; until it waits again, it lives on what was made meanwhile, and that says nothing either.
 *
 *            away for long, without waiting
 *   AT WORK ───────────────────────────────▶ RETURNED
 *      ▲                                        │
 *      └────────────────────────────────────────┘ waits again
 */
#ifndef STK_PIPELINE_WATCH_H
#define STK_PIPELINE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Totals, or what came between two of them. */
struct stk_look {
    uint64_t ns;
    uint64_t batches; /* delivered */
    uint64_t stall_ns;
    uint64_t rows;   /* completed by workers; 0 if the caller does not look at them */
    uint64_t spans;  /* the same */
    uint64_t cpu_ns; /* that workers used, or were ready to use; the same */
};

static inline void stk_look_add(struct stk_look *sum, const struct stk_look *passed)
{
    sum->ns += passed->ns;
    sum->batches += passed->batches;
    sum->stall_ns += passed->stall_ns;
    sum->rows += passed->rows;
    sum->spans += passed->spans;
    sum->cpu_ns += passed->cpu_ns;
}

struct stk_watch {
    struct stk_look last; /* ns == 0: none yet */
    bool returned;
};

enum stk_watched { STK_WATCHED_NOTHING, STK_WATCHED_WORK, STK_WATCHED_ABSENCE, STK_WATCHED_RETURN };

/* Take a look. *passed is what came since the last one: an absence if longer than away_ns without
 * waiting, work, or the return from an absence; nothing if there is no last one. */
enum stk_watched stk_watch_step(struct stk_watch *watch, const struct stk_look *now,
                                uint64_t away_ns, struct stk_look *passed);

#endif
