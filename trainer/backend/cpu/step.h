/* step.h - how the `cpu` back end goes through a plan.
 *
 *   step = operation + how its work is divided:
 *
 *   CHUNKED   each thread does its own samples, a few at a time through several steps in a row,
 *             so that what one step writes is still in the cache when the next reads it
 *   SHARD     each thread does its own samples, all at once (long weights are read once)
 *   TOGETHER  samples meet: the step divides its work itself, between two barriers
 *
 * Apart from that, barriers stand only where a step writes over bytes that another thread may still
 * need: buffers of the plan share bytes, and thread 1's half of one may be thread 0's of another. */
#ifndef STK_TRAINER_BACKEND_CPU_STEP_H
#define STK_TRAINER_BACKEND_CPU_STEP_H

#include "loader/base/thread_team.h"
#include "trainer/backend/common/operands.h"
#include "trainer/backend/ref/operations.h"

enum stk_cpu_mode { STK_CPU_CHUNKED, STK_CPU_SHARD, STK_CPU_TOGETHER };

/* One step, seen by one thread. */
struct stk_cpu_task {
    struct stk_operands o; /* its samples; all samples of the pass if TOGETHER */
    const struct stk_cpu_step *step;
    struct stk_thread_team *team;
    uint32_t thread, threads;
    void *scratch; /* of this thread, until the step ends */
    void *shared;  /* of this step, for all threads */
    struct stk_loss *loss;
    int *rc; /* the first error of this thread */
};
typedef void stk_cpu_op(const struct stk_cpu_task *task);

struct stk_onednn_conv;

struct stk_cpu_step {
    stk_cpu_op *run;
    stk_cpu_op *prepare; /* before the pass; NULL = nothing to do */
    stk_ref_op *plain;   /* what run_plain calls */
    enum stk_cpu_mode mode;
    bool barrier_before;
    uint64_t scratch_bytes;   /* for each thread */
    uint64_t shared_bytes;    /* for the step */
    uint64_t shared_at;       /* in the program's block */
    uint64_t partial_bytes;   /* for each thread but the first: its gradients of weight and bias */
    uint64_t partial_at;      /* of thread 1 */
    uint64_t weights, biases; /* floats of a partial */
    struct stk_onednn_conv *conv; /* NULL = not by oneDNN */
};

static inline uint64_t stk_round_to_line(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

#endif
