/* narrow.c - see narrow.h. */
#include "trainer/backend/ref/narrow.h"

#include "trainer/backend/ref/rounding.h"
#include "trainer/plan/precision.h"

enum { OPERANDS = 5 };

static uint64_t parameter_elements(const stoker_model *model, int32_t index)
{
    return index < 0 ? 0 : model->parameters[index].elements;
}

static uint64_t scratch_floats(const struct stk_plan *plan, const struct stk_op *op)
{
    const int32_t buffers[OPERANDS] = { op->x, op->x2, op->y, op->dy, op->dx };
    const struct stk_layer *layer = &plan->model->layers[op->layer];
    uint64_t floats = 0;
    for (int i = 0; i < OPERANDS; i++)
        floats += stk_operands_elements(plan, buffers[i]) * plan->options.batch;
    if (stk_reads_rounded(op->kind))
        floats += parameter_elements(plan->model, layer->weight) +
                  parameter_elements(plan->model, layer->bias);
    return floats;
}

uint64_t stk_narrow_scratch_bytes(const struct stk_plan *plan)
{
    uint64_t most = 0;
    if (!stk_is_narrow(plan->storage))
        return 0;
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const uint64_t floats = scratch_floats(plan, &plan->ops[i]);
        most = floats > most ? floats : most;
    }
    return most * sizeof(float);
}

/* A buffer converted to float. Operands in the same buffer share one. */
struct wide {
    int32_t buffer;
    void *stored;
    float *floats;
    uint64_t count;
};

struct widening {
    const struct stk_plan *plan;
    const struct stk_pass *pass;
    struct wide operands[OPERANDS];
    int operand_count;
    float *next; /* free scratch */
};

/* The address of a buffer in T. */
static void *stored_at(const struct widening *w, const struct stk_arenas *arenas, int32_t buffer)
{
    if (buffer == STK_SAMPLES)
        return (void *)w->pass->samples;
    return (unsigned char *)arenas->activations + w->plan->buffers[buffer].offset;
}

/* Convert a buffer; NULL for STK_NO_BUFFER. */
static float *widen_buffer(struct widening *w, const struct stk_arenas *arenas, int32_t buffer)
{
    if (buffer == STK_NO_BUFFER)
        return NULL;
    for (int i = 0; i < w->operand_count; i++)
        if (w->operands[i].buffer == buffer)
            return w->operands[i].floats;
    struct wide *wide = &w->operands[w->operand_count++];
    *wide = (struct wide){ .buffer = buffer,
                           .stored = stored_at(w, arenas, buffer),
                           .floats = w->next,
                           .count = stk_operands_elements(w->plan, buffer) * w->pass->count };
    stk_widen(wide->floats, wide->stored, wide->count, w->plan->storage);
    w->next += wide->count;
    return wide->floats;
}

static const float *widen_parameter(struct widening *w, const struct stk_arenas *arenas,
                                    int32_t index)
{
    if (index < 0)
        return NULL;
    const struct stk_parameter *parameter = &w->plan->model->parameters[index];
    float *floats = w->next;
    stk_widen(floats, (const uint16_t *)arenas->half_weights + parameter->offset,
              parameter->elements, w->plan->storage);
    w->next += parameter->elements;
    return floats;
}

/* Round a buffer that the operation has written back to T. */
static void store(const struct widening *w, int32_t buffer)
{
    for (int i = 0; i < w->operand_count; i++)
        if (w->operands[i].buffer == buffer)
            stk_narrow(w->operands[i].stored, w->operands[i].floats, w->operands[i].count,
                       w->plan->storage);
}

void stk_narrow_run(const struct stk_plan *plan, const struct stk_op *op,
                    const struct stk_arenas *arenas, const struct stk_pass *pass, void *scratch,
                    struct stk_loss *loss)
{
    struct widening w = { .plan = plan, .pass = pass, .next = scratch };
    struct stk_operands o;
    stk_operands_find(&o, plan, op, arenas, pass, 0, pass->count);
    if (op->kind != STK_OP_CAST) /* reads samples, which are float32 */
        o.x = widen_buffer(&w, arenas, op->x);
    o.x2 = widen_buffer(&w, arenas, op->x2);
    o.y = widen_buffer(&w, arenas, op->y);
    o.dy = widen_buffer(&w, arenas, op->dy);
    o.dx = widen_buffer(&w, arenas, op->dx);
    if (stk_reads_rounded(op->kind)) {
        o.weight = widen_parameter(&w, arenas, o.layer->weight);
        o.bias = widen_parameter(&w, arenas, o.layer->bias);
    }
    stk_ref_ops[op->kind](&o, loss);
    store(&w, op->dx != STK_NO_BUFFER ? op->dx : op->y);
}
