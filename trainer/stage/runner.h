/* runner.h - how the passes of a trainer run: on one stage (one_stage.c), or through two
 * (split/split.h).
 *
 *   train ─▶ train ─▶ ... ─▶ drain ─▶ the host decides: norm, then an update of each stage
 *                                  └▶ every device decides: queue_update
 *   forward ─▶ forward ─▶ ...          evaluation; the same drain first
 *
 * One thread calls a runner. Stages outlive it. */
#ifndef STK_TRAINER_RUNNER_H
#define STK_TRAINER_RUNNER_H

#include "trainer/stage/stage.h"

struct stk_runner;

struct stk_runner_ops {
    /* Runs or queues one training pass of a group; group->update is ignored. It may still be under
     * way on return. What it finds is added to *found, by this call or a later one that has found,
     * unless it stays on the device. STOKER_EINVAL: a label out of range, and nothing has changed.
     * STOKER_EDEVICE, ENOMEM. */
    int (*train)(struct stk_runner *runner, const struct stk_pass *pass,
                 const struct stk_group_pass *group, struct stk_loss *found, stoker_error *error);
    /* Finishes passes under way: then the gradients are complete. STOKER_EDEVICE. */
    int (*drain)(struct stk_runner *runner, struct stk_loss *found, stoker_error *error);
    /* The norm of all gradients, drained, for the host to decide on. STOKER_EDEVICE. */
    int (*norm)(struct stk_runner *runner, double *squared, bool *finite, stoker_error *error);
    /* Queues the update of a group, drained, if every device decides; early: before its last pass
     * was run as such. STOKER_EDEVICE. */
    int (*queue_update)(struct stk_runner *runner, uint64_t samples, bool early,
                        stoker_error *error);
    /* Runs the evaluation plans. *found is written; NULL: it stays on the device if queues_forward,
     * else is dropped. STOKER_EINVAL: a label out of range. STOKER_EDEVICE, ENOMEM. */
    int (*forward)(struct stk_runner *runner, const struct stk_pass *pass, struct stk_loss *found,
                   stoker_error *error);
    void (*destroy)(struct stk_runner *runner);
};

/* The head of each runner. */
struct stk_runner {
    const struct stk_runner_ops *ops;
    const char *crossing;      /* how values go from one device to another; NULL = none do */
    bool takes_device_batches; /* batches may lie in the memory of the first stage's GPU */
    bool queues_forward;       /* losses of forward passes add up on the device until collected */
};

/* Passes run one after the other on `stage`. STOKER_ENOMEM. */
int stk_one_stage_create(struct stk_runner **out, struct stk_stage *stage, stoker_error *error);

static inline void stk_loss_add(struct stk_loss *sum, const struct stk_loss *loss)
{
    sum->loss_sum += loss->loss_sum;
    sum->correct += loss->correct;
    sum->count += loss->count;
}

#endif
