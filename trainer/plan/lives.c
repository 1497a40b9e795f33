/* lives.c - the size of each buffer, and the operations between which it is needed. */
#include <assert.h>

#include "loader/base/memory/memory.h"
#include "trainer/plan/arena.h"

enum { ALIGN_BYTES = 64 };
static const uint64_t total_bytes_max = UINT64_C(1) << 62;

static void touch(struct stk_plan *plan, int32_t index, uint32_t op)
{
    if (index < 0)
        return;
    assert((uint32_t)index < plan->buffer_count);
    struct stk_buffer *buffer = &plan->buffers[index];
    if (buffer->first_op == UINT32_MAX)
        buffer->first_op = op;
    buffer->last_op = op;
}

static int size_buffers(struct stk_plan *plan)
{
    uint64_t total_bytes = 0;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        struct stk_buffer *buffer = &plan->buffers[i];
        if (buffer->bytes_per_sample > 0)
            buffer->bytes = buffer->bytes_per_sample * plan->options.batch;
        buffer->bytes = (buffer->bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
        total_bytes += buffer->bytes; /* each is below 2^49 */
        if (total_bytes >= total_bytes_max)
            return STOKER_ELIMIT;
        buffer->first_op = UINT32_MAX;
    }
    return STOKER_OK;
}

int stk_lives_find(struct stk_plan *plan)
{
    int rc = size_buffers(plan);
    if (rc != STOKER_OK)
        return rc;
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const struct stk_op *op = &plan->ops[i];
        const int32_t operands[] = { op->x, op->x2, op->y, op->dy, op->dx, op->aux };
        for (size_t j = 0; j < sizeof(operands) / sizeof(operands[0]); j++)
            touch(plan, operands[j], i);
    }

    /* change[i]: bytes that become alive at operation i, less those that died before it. */
    uint64_t *change = stk_calloc(plan->op_count + 1U, sizeof(*change));
    if (change == NULL)
        return STOKER_ENOMEM;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        assert(plan->buffers[i].first_op != UINT32_MAX);
        change[plan->buffers[i].first_op] += plan->buffers[i].bytes;
        change[plan->buffers[i].last_op + 1] -= plan->buffers[i].bytes;
    }
    uint64_t live_bytes = 0;
    for (uint32_t i = 0; i < plan->op_count; i++) {
        live_bytes += change[i];
        if (live_bytes > plan->live_bytes_max)
            plan->live_bytes_max = live_bytes;
    }
    stk_free(change);
    return STOKER_OK;
}
