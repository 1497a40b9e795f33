/* forward.c - the operation that computes a node, in place if its input is not needed later. */
#include <assert.h>

#include "trainer/plan/operations.h"

enum { SMALL_WINDOW = 256 }; /* positions that fit in one byte */

static int32_t output_buffer(struct stk_writer *writer, uint32_t n)
{
    const struct stk_node *node = &writer->graph->nodes[n];
    return stk_writer_buffer(
        writer, (struct stk_content){ .bytes_per_sample = node->bytes, .layer = node->out_layer });
}

/* The buffer for y: that of x if it may be overwritten. */
static int32_t output_over_input(struct stk_writer *writer, uint32_t n, bool backward_follows)
{
    const uint32_t in = writer->graph->nodes[n].in;
    if (!stk_writer_may_overwrite(writer, in, n, backward_follows))
        return output_buffer(writer, n);
    const int32_t buffer = stk_writer_value(writer, in);
    writer->value[in] = STK_NO_BUFFER;
    return buffer;
}

static void write_in_place(struct stk_writer *writer, uint32_t n, enum stk_op_kind kind, bool again,
                           bool backward_follows)
{
    const struct stk_node *node = &writer->graph->nodes[n];
    struct stk_op *op = stk_writer_op(writer, kind, node->layer);
    op->x = stk_writer_value(writer, node->in);
    op->y = output_over_input(writer, n, backward_follows);
    op->relu = node->relu;
    op->again = again;
    writer->value[n] = op->y;
}

static void write_apart(struct stk_writer *writer, uint32_t n, enum stk_op_kind kind, bool again)
{
    const struct stk_node *node = &writer->graph->nodes[n];
    struct stk_op *op = stk_writer_op(writer, kind, node->layer);
    op->x = stk_writer_value(writer, node->in);
    op->y = output_buffer(writer, n);
    op->relu = node->relu;
    op->again = again;
    writer->value[n] = op->y;
}

/* Rounds the samples to the type of all other values. */
void stk_write_cast(struct stk_writer *writer)
{
    struct stk_op *op = stk_writer_op(writer, STK_OP_CAST, 0);
    op->x = STK_SAMPLES;
    op->y = output_buffer(writer, 0);
    writer->value[0] = op->y;
}

/* The places of the maxima are kept only if a backward operation reads them: a pool that is
 * recomputed writes them again. */
static void write_max_pool(struct stk_writer *writer, uint32_t n, bool again, bool backward_follows)
{
    const struct stk_node *node = &writer->graph->nodes[n];
    const struct stk_layer *layer = &writer->graph->model->layers[node->layer];
    write_apart(writer, n, STK_OP_MAX_POOL_FORWARD, again);
    if (!node->wants_gradient || !(backward_follows || writer->recompute->stored[n]))
        return;
    const bool small = (uint64_t)layer->kernel[0] * layer->kernel[1] <= SMALL_WINDOW;
    writer->aux[n] = stk_writer_buffer(
        writer,
        (struct stk_content){ .bytes_per_sample = stk_shape_elements(layer->out) * (small ? 1 : 2),
                              .layer = node->layer,
                              .dtype = small ? STOKER_DTYPE_UINT8 : STOKER_DTYPE_INT16 });
    writer->plan->ops[writer->plan->op_count - 1].aux = writer->aux[n];
}

/* The batch statistics of the first pass are kept, so recomputation gives the same bits and running
 * statistics are updated once. */
static void write_batch_norm(struct stk_writer *writer, uint32_t n, bool again,
                             bool backward_follows)
{
    const struct stk_node *node = &writer->graph->nodes[n];
    if (!writer->plan->options.train) {
        write_apart(writer, n, STK_OP_BATCH_NORM_INFER, again);
        return;
    }
    if (again) {
        write_apart(writer, n, STK_OP_BATCH_NORM_APPLY, again);
    } else {
        const uint32_t channels = writer->graph->model->layers[node->layer].in.c;
        write_in_place(writer, n, STK_OP_BATCH_NORM_FORWARD, again, backward_follows);
        writer->aux[n] = stk_writer_buffer(
            writer, (struct stk_content){ .fixed_bytes = 2 * sizeof(float) * (uint64_t)channels,
                                          .layer = node->layer,
                                          .dtype = STOKER_DTYPE_FLOAT32 });
    }
    writer->plan->ops[writer->plan->op_count - 1].aux = writer->aux[n];
}

/* The result may overwrite either input. */
static void write_add(struct stk_writer *writer, uint32_t n, bool again, bool backward_follows)
{
    const struct stk_node *node = &writer->graph->nodes[n];
    uint32_t first = node->in;
    uint32_t second = node->other;
    if (!stk_writer_may_overwrite(writer, first, n, backward_follows)) {
        first = node->other;
        second = node->in;
    }
    struct stk_op *op = stk_writer_op(writer, STK_OP_ADD_FORWARD, node->layer);
    op->x = stk_writer_value(writer, first);
    op->x2 = stk_writer_value(writer, second);
    op->again = again;
    if (first != second && stk_writer_may_overwrite(writer, first, n, backward_follows)) {
        op->y = op->x;
        writer->value[first] = STK_NO_BUFFER;
    } else {
        op->y = output_buffer(writer, n);
    }
    writer->value[n] = op->y;
}

void stk_write_forward(struct stk_writer *writer, uint32_t n, bool again, bool backward_follows)
{
    switch (writer->graph->nodes[n].kind) {
    case STK_CONV2D:
        write_apart(writer, n, STK_OP_CONV_FORWARD, again);
        return;
    case STK_LINEAR:
        write_apart(writer, n, STK_OP_LINEAR_FORWARD, again);
        return;
    case STK_MAX_POOL:
        write_max_pool(writer, n, again, backward_follows);
        return;
    case STK_AVG_POOL:
        write_apart(writer, n, STK_OP_AVG_POOL_FORWARD, again);
        return;
    case STK_RELU:
        write_in_place(writer, n, STK_OP_RELU_FORWARD, again, backward_follows);
        return;
    case STK_BATCH_NORM:
        write_batch_norm(writer, n, again, backward_follows);
        return;
    case STK_DROPOUT:
        write_in_place(writer, n, STK_OP_DROPOUT_FORWARD, again, backward_follows);
        return;
    case STK_ADD:
        write_add(writer, n, again, backward_follows);
        return;
    default:
        assert(false); /* not a node that computes a value */
    }
}

void stk_write_loss(struct stk_writer *writer)
{
    const uint32_t n = writer->graph->count - 1;
    const struct stk_node *node = &writer->graph->nodes[n];
    const struct stk_node *in = &writer->graph->nodes[node->in];
    struct stk_op *op = stk_writer_op(
        writer, node->kind == STK_MSE ? STK_OP_MSE : STK_OP_SOFTMAX_CROSS_ENTROPY, node->layer);
    op->x = stk_writer_value(writer, node->in);
    writer->plan->output = op->x;
    if (!writer->plan->options.train)
        return;
    if (stk_writer_may_overwrite(writer, node->in, n, true)) {
        op->dx = op->x;
        writer->value[node->in] = STK_NO_BUFFER;
        writer->holders[op->dx] = 1;
    } else {
        op->dx = stk_writer_buffer(writer, (struct stk_content){ .bytes_per_sample = in->bytes,
                                                                 .layer = in->out_layer,
                                                                 .gradient = true });
    }
    writer->gradient[node->in] = op->dx;
}

void stk_write_end(struct stk_writer *writer)
{
    const struct stk_node *node = &writer->graph->nodes[writer->graph->count - 1];
    const struct stk_node *in = &writer->graph->nodes[node->in];
    struct stk_plan *plan = writer->plan;
    struct stk_op *op = stk_writer_op(writer, STK_OP_CUT, node->layer);
    op->x = stk_writer_value(writer, node->in);
    plan->output = op->x;
    if (!plan->options.train)
        return;
    op->dx = stk_writer_buffer(writer, (struct stk_content){ .bytes_per_sample = in->bytes,
                                                             .layer = in->out_layer,
                                                             .gradient = true });
    plan->cut_gradient = op->dx;
    writer->gradient[node->in] = op->dx;
}

void stk_write_beginning(struct stk_writer *writer)
{
    struct stk_op *op = stk_writer_op(writer, STK_OP_CUT, 0);
    op->dy = writer->gradient[0];
    writer->plan->cut_gradient = op->dy;
}
