/* operations.c - the order of a step: forward, loss, and segment by segment backward. */
#include "trainer/plan/operations.h"

#include <assert.h>
#include <string.h>

#include "loader/base/memory.h"
#include "trainer/plan/precision.h"

/* Upper bounds of what one node asks for: forward, again, and the widest backward (a remade
 * input, ReLU, weights, data, and an addition that must copy first). */
enum { OPS_PER_NODE = 9, BUFFERS_PER_NODE = 9 };

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

/* Rounded, or because the batch is gone when a stage goes on behind its seam. */
static bool keeps_samples(const struct stk_writer *writer)
{
    const struct stk_node *nodes = writer->graph->nodes;
    const bool pauses =
        writer->plan->options.train && nodes[writer->graph->count - 1].kind == STK_SEAM;
    return nodes[0].kind != STK_SEAM && (stk_is_narrow(writer->plan->storage) || pauses);
}

static void write_forward_pass(struct stk_writer *writer)
{
    const struct stk_recompute *r = writer->recompute;
    const bool train = writer->plan->options.train;
    if (keeps_samples(writer))
        stk_write_cast(writer);
    for (uint32_t segment = 0; segment < r->segments; segment++) {
        const bool last = segment + 1 == r->segments;
        for (uint32_t n = r->first[segment]; n < r->first[segment + 1]; n++)
            if (n + 1 < writer->graph->count)
                stk_write_forward(writer, n, false, train && last);
    }
    if (writer->graph->nodes[writer->graph->count - 1].kind == STK_SEAM)
        stk_write_end(writer);
    else
        stk_write_loss(writer);
}

static void write_again(struct stk_writer *writer, uint32_t segment)
{
    const struct stk_recompute *r = writer->recompute;
    for (uint32_t n = r->first[segment]; n < r->first[segment + 1]; n++)
        if (!r->stored[n])
            writer->value[n] = STK_NO_BUFFER;
    for (uint32_t n = r->first[segment]; n < r->first[segment + 1]; n++)
        if (r->again[n])
            stk_write_forward(writer, n, true, true);
}

static void write_backward_pass(struct stk_writer *writer)
{
    const struct stk_recompute *r = writer->recompute;
    for (uint32_t segment = r->segments; segment-- > 0;) {
        if (segment + 1 < r->segments)
            write_again(writer, segment);
        for (uint32_t n = r->first[segment + 1]; n-- > r->first[segment];)
            if (n + 1 < writer->graph->count && writer->graph->nodes[n].wants_gradient)
                stk_write_backward(writer, n);
    }
    if (writer->graph->nodes[0].kind == STK_SEAM)
        stk_write_beginning(writer);
}

int stk_operations_write(struct stk_plan *plan, const struct stk_graph *graph,
                         const struct stk_recompute *recompute)
{
    struct stk_writer writer = { .plan = plan, .graph = graph, .recompute = recompute };
    plan->segments = recompute->segments;
    plan->ops = stk_calloc(graph->count, OPS_PER_NODE * sizeof(*plan->ops));
    plan->buffers = stk_calloc(graph->count, BUFFERS_PER_NODE * sizeof(*plan->buffers));
    writer.value = stk_calloc(graph->count, 3 * sizeof(*writer.value));
    writer.holders = stk_calloc(graph->count, BUFFERS_PER_NODE * sizeof(*writer.holders));
    int rc = STOKER_ENOMEM;
    if (plan->ops != NULL && plan->buffers != NULL && writer.value != NULL &&
        writer.holders != NULL) {
        writer.aux = writer.value + graph->count;
        writer.gradient = writer.aux + graph->count;
        for (uint32_t i = 0; i < 3 * graph->count; i++)
            writer.value[i] = STK_NO_BUFFER;
        write_forward_pass(&writer);
        if (plan->options.train)
            write_backward_pass(&writer);
        rc = STOKER_OK;
    }
    stk_free(writer.value);
    stk_free(writer.holders);
    return rc;
}
