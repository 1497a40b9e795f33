/* choose.c - which loops run an operation on this machine.
 *
 *   convolution   AVX2 loops without groups, else oneDNN, else plain
 *   linear        AVX2 loops, else oneDNN's product, else plain
 *   the rest      AVX2 loops if there are any, else plain ones on each thread's samples
 *
 * In bfloat16 the loops of bf16/ take the place of those for AVX2, and the others work on copies (widened.c). */
#include "trainer/backend/cpu/choose.h"

#include <assert.h>
#include <stoker/error.h>

#include "trainer/backend/cpu/operations.h"
#include "trainer/plan/precision.h"

static void run_plain(const struct stk_cpu_task *task)
{
    task->step->plain(&task->o, task->loss);
}

/* Sums over all samples, which are not divided: thread 0 computes them. */
static void run_plain_alone(const struct stk_cpu_task *task)
{
    if (task->thread == 0)
        task->step->plain(&task->o, task->loss);
}

static enum stk_cpu_mode mode_of(enum stk_op_kind kind)
{
    switch (kind) {
    case STK_OP_LINEAR_FORWARD:
    case STK_OP_LINEAR_BACKWARD_DATA:
        return STK_CPU_SHARD;
    case STK_OP_LINEAR_BACKWARD_WEIGHTS:
    case STK_OP_BATCH_NORM_FORWARD:
    case STK_OP_BATCH_NORM_BACKWARD:
        return STK_CPU_TOGETHER;
    default:
        return STK_CPU_CHUNKED;
    }
}

static void choose_batch_norm(struct stk_cpu_step *step, const struct stk_layer *layer,
                              enum stk_op_kind kind, uint32_t threads)
{
    step->run = kind == STK_OP_BATCH_NORM_FORWARD ? stk_cpu_batch_norm_forward
                                                  : stk_cpu_batch_norm_backward;
    step->scratch_bytes = stk_cpu_batch_norm_scratch_bytes(layer);
    step->shared_bytes = stk_cpu_batch_norm_shared_bytes(layer, threads);
}

/* A plan in 16 bits: its own loops; or, on float copies, oneDNN's convolutions, or plain loops. */
static int choose_narrow(struct stk_cpu_step *step, const struct stk_plan *plan,
                         const struct stk_op *op, uint32_t threads, enum stk_loops loops)
{
    const struct stk_layer *layer = &plan->model->layers[op->layer];
    if (loops == STK_LOOPS_BEST && stk_cpu_has_bf16() &&
        stk_cpu_choose_bf16(step, layer, op->kind, plan->options.batch, threads))
        return STOKER_OK;
#ifdef STOKER_HAVE_DNNL
    if (loops != STK_LOOPS_PLAIN && op->kind <= STK_OP_CONV_BACKWARD_WEIGHTS) {
        const int rc = stk_cpu_choose_onednn(step, plan, op, threads);
        if (rc != STOKER_OK)
            return rc;
        step->wide = step->conv != NULL ? step->run : NULL;
    }
#endif
    stk_cpu_choose_widened(step, plan, op, threads);
    return STOKER_OK;
}

/* Each thread but the first, which writes to the arena, has partial weight gradients. */
static void add_partials(struct stk_cpu_step *step, const struct stk_plan *plan,
                         const struct stk_layer *layer)
{
    step->weights = plan->model->parameters[layer->weight].elements;
    step->biases = layer->bias < 0 ? 0 : plan->model->parameters[layer->bias].elements;
    step->partial_bytes = stk_round_to_line((step->weights + step->biases) * sizeof(float));
}

int stk_cpu_choose(struct stk_cpu_step *step, const struct stk_plan *plan, const struct stk_op *op,
                   uint32_t threads, enum stk_loops loops)
{
    const struct stk_layer *layer = &plan->model->layers[op->layer];
    *step = (struct stk_cpu_step){ .mode = mode_of(op->kind), .plain = stk_ref_ops[op->kind] };
    if (op->kind == STK_OP_BATCH_NORM_FORWARD || op->kind == STK_OP_BATCH_NORM_BACKWARD) {
        choose_batch_norm(step, layer, op->kind, threads);
        return STOKER_OK;
    }
    assert(step->plain != NULL);
    step->run = step->mode == STK_CPU_TOGETHER ? run_plain_alone : run_plain;
    if (op->kind == STK_OP_CONV_BACKWARD_WEIGHTS)
        add_partials(step, plan, layer);
    if (stk_is_narrow(plan->storage))
        return choose_narrow(step, plan, op, threads, loops);
    if (loops == STK_LOOPS_BEST && stk_cpu_choose_avx2(step, layer, op->kind))
        return STOKER_OK;
#ifdef STOKER_HAVE_DNNL
    if (loops != STK_LOOPS_PLAIN)
        return stk_cpu_choose_onednn(step, plan, op, threads);
#endif
    return STOKER_OK;
}
