/* barriers.c - see choose.h.
 *
 * Two buffers that share bytes need no barrier if they have the same offset and sample size: each thread's samples then
 * use the same bytes of both. */
#include "trainer/backend/cpu/choose.h"

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
