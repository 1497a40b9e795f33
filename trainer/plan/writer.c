/* writer.c - see writer.h. */
#include "trainer/plan/writer.h"

#include <assert.h>

#include "loader/base/memory/memory.h"

/* Upper bounds per node: forward, recomputation, and the longest backward (a recomputed input,
 * ReLU, weights, data, and an addition that must copy first). */
enum { OPS_PER_NODE = 9, BUFFERS_PER_NODE = 9 };

int stk_writer_open(struct stk_writer *writer, struct stk_plan *plan, const struct stk_graph *graph,
                    const struct stk_recompute *recompute)
{
    *writer = (struct stk_writer){ .plan = plan, .graph = graph, .recompute = recompute };
    plan->ops = stk_calloc(graph->count, OPS_PER_NODE * sizeof(*plan->ops));
    plan->buffers = stk_calloc(graph->count, BUFFERS_PER_NODE * sizeof(*plan->buffers));
    writer->value = stk_calloc(graph->count, 3 * sizeof(*writer->value));
    writer->holders = stk_calloc(graph->count, BUFFERS_PER_NODE * sizeof(*writer->holders));
    if (plan->ops == NULL || plan->buffers == NULL || writer->value == NULL ||
        writer->holders == NULL)
        return STOKER_ENOMEM;
    writer->aux = writer->value + graph->count;
    writer->gradient = writer->aux + graph->count;
    for (uint32_t i = 0; i < 3 * graph->count; i++)
        writer->value[i] = STK_NO_BUFFER;
    return STOKER_OK;
}

void stk_writer_close(struct stk_writer *writer)
{
    stk_free(writer->value);
    stk_free(writer->holders);
}

int32_t stk_writer_buffer(struct stk_writer *writer, struct stk_content content)
{
    struct stk_plan *plan = writer->plan;
    assert(plan->buffer_count < BUFFERS_PER_NODE * writer->graph->count);
    plan->buffers[plan->buffer_count] =
        (struct stk_buffer){ .bytes_per_sample = content.bytes_per_sample,
                             .bytes = content.fixed_bytes,
                             .layer = content.layer,
                             .dtype =
                                 content.dtype == STOKER_DTYPE_NONE ? plan->storage : content.dtype,
                             .gradient = content.gradient };
    writer->holders[plan->buffer_count] = content.gradient ? 1 : 0;
    return (int32_t)plan->buffer_count++;
}

struct stk_op *stk_writer_op(struct stk_writer *writer, enum stk_op_kind kind, uint32_t layer)
{
    struct stk_plan *plan = writer->plan;
    assert(plan->op_count < OPS_PER_NODE * writer->graph->count);
    struct stk_op *op = &plan->ops[plan->op_count++];
    *op = (struct stk_op){ .kind = kind,
                           .layer = layer,
                           .x = STK_NO_BUFFER,
                           .x2 = STK_NO_BUFFER,
                           .y = STK_NO_BUFFER,
                           .dy = STK_NO_BUFFER,
                           .dx = STK_NO_BUFFER,
                           .aux = STK_NO_BUFFER };
    return op;
}

int32_t stk_writer_value(const struct stk_writer *writer, uint32_t node)
{
    if (node == 0 && writer->value[0] == STK_NO_BUFFER)
        return STK_SAMPLES;
    assert(writer->value[node] != STK_NO_BUFFER);
    return writer->value[node];
}

bool stk_writer_may_overwrite(const struct stk_writer *writer, uint32_t node, uint32_t reader,
                              bool backward_follows)
{
    const struct stk_node *v = &writer->graph->nodes[node];
    if (node == 0 || v->last_reader != reader || writer->recompute->stored[node])
        return false;
    return !backward_follows || !v->kept || writer->recompute->remade[node];
}
