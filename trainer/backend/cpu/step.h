/* step.h - how the `cpu` back end runs a plan.
 *
 *   step = operation + how its work is divided:
 *
 *   CHUNKED   each thread takes a few of its samples at a time through several steps, so that
 *             the output of one step is still in the cache when the next reads it
 *   SHARD     each thread takes all of its samples at once, so that long weights are read once
 *   TOGETHER  the step combines samples and divides its work itself, between two barriers
 *
 * Other barriers are only before steps that overwrite bytes that another thread may still need:
 * buffers of the plan share bytes, and thread 1's half of one may be thread 0's half of another. */
#ifndef STK_TRAINER_BACKEND_CPU_STEP_H
#define STK_TRAINER_BACKEND_CPU_STEP_H

#include "loader/base/cpu/thread_team.h"
#include "trainer/backend/common/operands.h"
#include "trainer/backend/ref/operations.h"

enum { STK_CPU_CHUNK_SAMPLES = 4 }; /* most samples of a chunk */

enum stk_cpu_mode { STK_CPU_CHUNKED, STK_CPU_SHARD, STK_CPU_TOGETHER };

/* One step, seen by one thread. */
struct stk_cpu_task {
    struct stk_operands o; /* its samples; all samples of the pass if TOGETHER */
    const struct stk_cpu_step *step;
    struct stk_thread_team *team;
    uint32_t thread, threads;
    void *scratch; /* this thread's, until the step ends */
    void *shared;  /* this step's, for all threads */
    struct stk_loss *loss;
    int *rc; /* the first error of this thread */
};
typedef void stk_cpu_op(const struct stk_cpu_task *task);

struct stk_onednn;

/* Elements of each operand for a sample; of steps in widened.c. */
struct stk_cpu_elements {
    uint64_t x, x2, y, dy, dx;
};

struct stk_cpu_step {
    stk_cpu_op *run;
    stk_cpu_op *prepare; /* before the pass; NULL = nothing to do */
    stk_ref_op *plain;   /* operation of `ref`, for run_plain */
    enum stk_cpu_mode mode;
    bool barrier_before;
    uint64_t scratch_bytes;   /* for each thread */
    uint64_t shared_bytes;    /* for the step */
    uint64_t shared_at;       /* offset in the program's block */
    uint64_t partial_bytes;   /* per thread but the first: gradients of weight and bias */
    uint64_t partial_at;      /* offset of thread 1's */
    uint64_t weights, biases; /* elements, for a partial or a widened copy */
    struct stk_cpu_elements elements;
    stk_cpu_op *wide;            /* what widened.c runs on copies */
    uint64_t wide_scratch_bytes; /* its scratch */
    struct stk_onednn *onednn;   /* NULL = not a step of oneDNN */
};

static inline uint64_t stk_round_to_line(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

#endif
