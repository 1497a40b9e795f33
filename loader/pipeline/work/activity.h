/* activity.h - decide whether the time since the last look tells anything about the workers.
 *
 * Time that the consumer spends elsewhere (an evaluation, a checkpoint) says nothing. On its return
 * it finds the ring full and lives on what was made meanwhile, which says nothing either, until it
 * waits again.
 *
 *            away for long, without waiting
 *   AT WORK ───────────────────────────────▶ RETURNED
 *      ▲                                        │
 *      └────────────────────────────────────────┘ waits again
 */
#ifndef STK_PIPELINE_ACTIVITY_H
#define STK_PIPELINE_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

/* Totals since create, or the difference of two looks. */
struct stk_look {
    uint64_t ns;
    uint64_t batches; /* delivered */
    uint64_t stall_ns;
    uint64_t rows;   /* completed by workers; 0 if the caller of step does not need them */
    uint64_t spans;  /* as rows */
    uint64_t cpu_ns; /* that workers used or were ready to use; as rows */
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

struct stk_activity {
    struct stk_look last; /* ns == 0: none yet */
    bool returned;
};

enum stk_activity_kind {
    STK_ACTIVITY_UNKNOWN, /* the first look */
    STK_ACTIVITY_WORK,
    STK_ACTIVITY_ABSENCE, /* longer than away_ns, and hardly any waiting */
    STK_ACTIVITY_RETURN   /* after an absence, before the first wait */
};

/* Take a look. *passed becomes the difference to the last one. */
enum stk_activity_kind stk_activity_step(struct stk_activity *activity, const struct stk_look *now,
                                         uint64_t away_ns, struct stk_look *passed);

#endif
