/* operations.c - the order of a step: forward, loss, and segment by segment backward. */
#include "trainer/plan/operations.h"

#include "trainer/plan/precision.h"

/* Needed to round them, or because the batch may be gone when a first stage runs backward. */
static bool keeps_samples(const struct stk_writer *writer)
{
    const struct stk_node *nodes = writer->graph->nodes;
    const bool pauses =
        writer->plan->options.train && nodes[writer->graph->count - 1].kind == STK_CUT;
    return nodes[0].kind != STK_CUT && (stk_is_narrow(writer->plan->storage) || pauses);
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
    if (writer->graph->nodes[writer->graph->count - 1].kind == STK_CUT)
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
    if (writer->graph->nodes[0].kind == STK_CUT)
        stk_write_beginning(writer);
}

int stk_operations_write(struct stk_plan *plan, const struct stk_graph *graph,
                         const struct stk_recompute *recompute)
{
    struct stk_writer writer;
    plan->segments = recompute->segments;
    const int rc = stk_writer_open(&writer, plan, graph, recompute);
    if (rc == STOKER_OK) {
        write_forward_pass(&writer);
        if (plan->options.train)
            write_backward_pass(&writer);
    }
    stk_writer_close(&writer);
    return rc;
}
