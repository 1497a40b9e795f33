/* choose.c - which loops run an operation on this machine, and where threads wait for each other.
 *
 *   convolution   its gradients in float32, without groups: AVX2 loops that skip zeros; else
 *                 oneDNN, else plain
 *   linear        oneDNN, else plain
 *   the rest      AVX2 loops if there are any (maximum, dropout), else plain ones on each thread's
 *                 samples
 *
 * In 16 bits oneDNN computes convolutions and linear layers in the type; the others work on copies
 * (widened.c). */
#include "trainer/backend/cpu/program.h"

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

/* Each thread but the first, which writes to the arena, has partial weight gradients. */
static void add_partials(struct stk_cpu_step *step, const struct stk_plan *plan,
                         const struct stk_layer *layer)
{
    step->weights = plan->model->parameters[layer->weight].elements;
    step->biases = layer->bias < 0 ? 0 : plan->model->parameters[layer->bias].elements;
    step->partial_bytes = stk_round_to_line((step->weights + step->biases) * sizeof(float));
}

/* Float loops that are faster than plain ones, if there are any; of a plan in 16 bits, for copies.
 * */
static int choose_float_loops(struct stk_cpu_step *step, const struct stk_plan *plan,
                              const struct stk_op *op, uint32_t threads)
{
    if (stk_cpu_choose_avx2(step, &plan->model->layers[op->layer], op->kind))
        return STOKER_OK;
#ifdef STOKER_HAVE_DNNL
    return stk_cpu_choose_onednn(step, plan, op, STOKER_DTYPE_FLOAT32, threads);
#else
    (void)threads;
    return STOKER_OK;
#endif
}

int stk_cpu_choose(struct stk_cpu_step *step, const struct stk_plan *plan, const struct stk_op *op,
                   uint32_t threads, bool plain)
{
    const struct stk_layer *layer = &plan->model->layers[op->layer];
    int rc = STOKER_OK;
    *step = (struct stk_cpu_step){ .mode = mode_of(op->kind), .plain = stk_ref_ops[op->kind] };
    if (op->kind == STK_OP_BATCH_NORM_FORWARD || op->kind == STK_OP_BATCH_NORM_BACKWARD) {
        choose_batch_norm(step, layer, op->kind, threads);
        return STOKER_OK;
    }
    assert(step->plain != NULL);
    step->run = step->mode == STK_CPU_TOGETHER ? run_plain_alone : run_plain;
    if (op->kind == STK_OP_CONV_BACKWARD_WEIGHTS)
        add_partials(step, plan, layer);
    const bool narrow = stk_is_narrow(plan->storage);
#ifdef STOKER_HAVE_DNNL
    if (narrow && !plain)
        rc = stk_cpu_choose_onednn(step, plan, op, plan->storage, threads);
#endif
    if (rc != STOKER_OK || step->onednn != NULL)
        return rc;
    if (!plain && !(narrow && step->mode == STK_CPU_TOGETHER)) /* copies are one thread's */
        rc = choose_float_loops(step, plan, op, threads);
    if (rc == STOKER_OK && narrow)
        stk_cpu_choose_widened(step, plan, op, threads);
    return rc;
}

/* ---- barriers ----
 *
 * Two buffers that share bytes need no barrier if they have the same offset and sample size: each
 * thread's samples then use the same bytes of both. */

static bool touches(const struct stk_op *op, int32_t buffer)
{
    return op->x == buffer || op->x2 == buffer || op->y == buffer || op->dy == buffer ||
           op->dx == buffer || op->aux == buffer;
}

static bool collide(const struct stk_buffer *a, const struct stk_buffer *b)
{
    const bool apart = a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
    const bool alike = a->offset == b->offset && a->bytes_per_sample == b->bytes_per_sample &&
                       a->bytes_per_sample > 0;
    return !apart && !alike;
}

/* True if an operation since the last barrier uses another buffer in the same bytes. */
static bool disturbs(const struct stk_plan *plan, uint32_t since, uint32_t now, int32_t buffer)
{
    if (buffer < 0)
        return false;
    for (uint32_t other = 0; other < plan->buffer_count; other++) {
        if ((int32_t)other == buffer || !collide(&plan->buffers[buffer], &plan->buffers[other]))
            continue;
        for (uint32_t i = since; i < now; i++)
            if (touches(&plan->ops[i], (int32_t)other))
                return true;
    }
    return false;
}

void stk_cpu_place_barriers(struct stk_cpu_step *steps, const struct stk_plan *plan)
{
    uint32_t since = 0; /* first operation after the last barrier */
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const struct stk_op *op = &plan->ops[i];
        const bool meets =
            steps[i].mode == STK_CPU_TOGETHER || (i > 0 && steps[i - 1].mode == STK_CPU_TOGETHER);
        /* A buffer that is only read here is live, so nothing else uses its bytes. */
        steps[i].barrier_before =
            i > 0 && (meets || disturbs(plan, since, i, op->y) ||
                      disturbs(plan, since, i, op->dx) || disturbs(plan, since, i, op->aux));
        if (steps[i].barrier_before)
            since = i;
    }
}
