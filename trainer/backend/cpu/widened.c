/* widened.c - operations whose loops are for floats, on values stored in 16 bits.
 *
 *   operands in T ──▶ floats in this thread's scratch ──▶ the step's loops ──▶ rounded to T
 *
 * As ref/narrow.c does for a whole pass, for the samples of one task. scratch: that of the
 * operation, then the floats. */
#include "trainer/backend/cpu/operations.h"
#include "trainer/backend/ref/rounding.h"
#include "trainer/plan/precision.h"

/* Float copies side by side. */
struct copies {
    float *next; /* free scratch */
    stoker_dtype storage;
};

/* The floats of an operand, converted if the operation reads them; NULL for NULL. */
static float *widen(struct copies *copies, const void *stored, uint64_t elements, bool reads)
{
    float *floats = copies->next;
    if (stored == NULL)
        return NULL;
    if (reads)
        stk_widen(floats, stored, elements, copies->storage);
    copies->next += elements;
    return floats;
}

static void run_widened(const struct stk_cpu_task *task)
{
    const struct stk_cpu_step *step = task->step;
    const struct stk_cpu_elements *each = &step->elements;
    const uint64_t count = task->o.count;
    struct stk_cpu_task wide = *task;
    struct stk_operands o = task->o;
    struct copies copies = { .next = (float *)(void *)((uint8_t *)task->scratch +
                                                       stk_round_to_line(step->wide_scratch_bytes)),
                             .storage = o.storage };
    const bool backward = o.dx != NULL;
    if (o.op->kind != STK_OP_CAST) /* reads samples, which are float32 */
        o.x = widen(&copies, o.x, each->x * count, true);
    o.x2 = widen(&copies, o.x2, each->x2 * count, true);
    o.y = widen(&copies, o.y, each->y * count, backward);
    o.dy = widen(&copies, o.dy, each->dy * count, true);
    o.dx = widen(&copies, o.dx, each->dx * count, o.op->kind == STK_OP_ACCUMULATE);
    if (stk_reads_rounded(o.op->kind)) {
        o.weight = widen(&copies, o.weight, step->weights, true);
        o.bias = widen(&copies, o.bias, step->biases, true);
    }
    o.storage = STOKER_DTYPE_FLOAT32;
    wide.o = o;
    step->wide(&wide);
    if (o.dx != NULL)
        stk_narrow(task->o.dx, o.dx, each->dx * count, task->o.storage);
    else if (o.y != NULL)
        stk_narrow(task->o.y, o.y, each->y * count, task->o.storage);
}

/* Sums over all samples, which are not divided: thread 0 computes them. */
static void run_widened_alone(const struct stk_cpu_task *task)
{
    if (task->thread == 0)
        run_widened(task);
}

/* Most samples of a task. */
static uint64_t samples_of(enum stk_cpu_mode mode, uint64_t batch, uint32_t threads)
{
    const uint64_t shard = (batch + threads - 1) / threads;
    if (mode == STK_CPU_TOGETHER)
        return batch;
    return mode == STK_CPU_CHUNKED && shard > STK_CPU_CHUNK_SAMPLES ? STK_CPU_CHUNK_SAMPLES : shard;
}

void stk_cpu_choose_widened(struct stk_cpu_step *step, const struct stk_plan *plan,
                            const struct stk_op *op, uint32_t threads)
{
    const struct stk_layer *layer = &plan->model->layers[op->layer];
    const struct stk_parameter *parameters = plan->model->parameters;
    const struct stk_cpu_elements each = {
        .x = stk_operands_elements(plan, op->x),
        .x2 = stk_operands_elements(plan, op->x2),
        .y = stk_operands_elements(plan, op->y),
        .dy = stk_operands_elements(plan, op->dy),
        .dx = stk_operands_elements(plan, op->dx),
    };
    uint64_t floats = (each.x + each.x2 + each.y + each.dy + each.dx) *
                      samples_of(step->mode, plan->options.batch, threads);
    step->elements = each;
    if (stk_reads_rounded(op->kind)) {
        step->weights = parameters[layer->weight].elements;
        step->biases = layer->bias < 0 ? 0 : parameters[layer->bias].elements;
        floats += step->weights + step->biases;
    }
    step->wide = step->run;
    step->wide_scratch_bytes = step->scratch_bytes;
    step->run = step->mode == STK_CPU_TOGETHER ? run_widened_alone : run_widened;
    step->scratch_bytes = stk_round_to_line(step->wide_scratch_bytes) + floats * sizeof(float);
}
