/* backward.c - from the gradient of a node's value to those of the values it reads.
 *
 *   gradient of a value    none ──first reader──▶ its buffer ──further readers──▶ summed
 *
 * Readers come in reverse order, so a value's gradient is complete when its own node is reached. An
 * addition gives the same gradient to both of its inputs: they share a buffer until one must
 * change, and that one is then written to another buffer.
 */
#include <assert.h>

#include "trainer/plan/operations.h"

static int32_t gradient_buffer(struct stk_writer *writer, uint32_t node)
{
    const struct stk_node *v = &writer->graph->nodes[node];
    return stk_writer_buffer(writer, (struct stk_content){ .bytes_per_sample = v->bytes,
                                                           .layer = v->out_layer,
                                                           .gradient = true });
}

static void write_sum(struct stk_writer *writer, uint32_t node, enum stk_op_kind kind, int32_t from,
                      int32_t to)
{
    struct stk_op *op = stk_writer_op(writer, kind, writer->graph->nodes[node].out_layer);
    op->dy = from;
    op->dx = to;
    if (kind == STK_OP_ACCUMULATE)
        writer->holders[from]--;
}

/* Adds the gradient in `part`, which the value then holds too, to the gradient of the value. */
static void contribute(struct stk_writer *writer, uint32_t node, int32_t part)
{
    int32_t *gradient = &writer->gradient[node];
    const int32_t sum = *gradient;
    if (sum == STK_NO_BUFFER) {
        *gradient = part;
    } else if (writer->holders[sum] == 1) {
        write_sum(writer, node, STK_OP_ACCUMULATE, part, sum);
    } else if (writer->holders[part] == 1) {
        write_sum(writer, node, STK_OP_ACCUMULATE, sum, part);
        *gradient = part;
    } else {
        *gradient = gradient_buffer(writer, node);
        write_sum(writer, node, STK_OP_COPY, sum, *gradient);
        writer->holders[sum]--;
        write_sum(writer, node, STK_OP_ACCUMULATE, part, *gradient);
    }
}

/* Returns the buffer of a value for a backward operation, recomputing it if needed. */
static int32_t fetch(struct stk_writer *writer, uint32_t node)
{
    if (!writer->recompute->remade[node])
        return stk_writer_value(writer, node);
    const struct stk_node *v = &writer->graph->nodes[node];
    struct stk_op *op = stk_writer_op(writer, STK_OP_BATCH_NORM_APPLY, v->layer);
    op->x = stk_writer_value(writer, v->in);
    op->aux = writer->aux[node];
    op->relu = v->relu;
    op->again = true;
    op->y = stk_writer_buffer(
        writer, (struct stk_content){ .bytes_per_sample = v->bytes, .layer = v->out_layer });
    return op->y;
}

/* The buffer for the result of an operation that may overwrite dy: dy if nothing else reads it. */
static int32_t over(struct stk_writer *writer, int32_t dy, uint32_t node)
{
    if (writer->holders[dy] == 1)
        return dy;
    writer->holders[dy]--;
    return gradient_buffer(writer, node);
}

static int32_t write_relu(struct stk_writer *writer, uint32_t n, int32_t dy)
{
    const struct stk_node *node = &writer->graph->nodes[n];
    struct stk_op *op = stk_writer_op(writer, STK_OP_RELU_BACKWARD, node->out_layer);
    op->y = stk_writer_value(writer, n);
    op->dy = dy;
    op->dx = over(writer, dy, n);
    return op->dx;
}

static void write_weights_and_data(struct stk_writer *writer, uint32_t n, int32_t dy,
                                   enum stk_op_kind weights, enum stk_op_kind data)
{
    const struct stk_node *node = &writer->graph->nodes[n];
    if (node->relu)
        dy = write_relu(writer, n, dy);
    const int32_t x = fetch(writer, node->in);
    struct stk_op *op = stk_writer_op(writer, weights, node->layer);
    op->x = x;
    op->dy = dy;
    if (writer->graph->nodes[node->in].wants_gradient) {
        op = stk_writer_op(writer, data, node->layer);
        op->dy = dy;
        op->dx = gradient_buffer(writer, node->in);
        contribute(writer, node->in, op->dx);
    }
    writer->holders[dy]--;
}

/* dx is always computed; if the layer's input needs no gradient, it overwrites dy. */
static void write_batch_norm(struct stk_writer *writer, uint32_t n, int32_t dy)
{
    const struct stk_node *node = &writer->graph->nodes[n];
    const int32_t x = fetch(writer, node->in);
    struct stk_op *op = stk_writer_op(writer, STK_OP_BATCH_NORM_BACKWARD, node->layer);
    op->x = x;
    op->dy = dy;
    op->dx = over(writer, dy, node->in);
    op->aux = writer->aux[n];
    op->relu = node->relu;
    if (node->relu && node->kept && !writer->recompute->remade[n])
        op->y =
            stk_writer_value(writer, n); /* already there for other readers; else from x and aux */
    if (writer->graph->nodes[node->in].wants_gradient)
        contribute(writer, node->in, op->dx);
    else
        writer->holders[op->dx]--;
}

static void write_pool(struct stk_writer *writer, uint32_t n, int32_t dy, enum stk_op_kind kind)
{
    const struct stk_node *node = &writer->graph->nodes[n];
    struct stk_op *op = stk_writer_op(writer, kind, node->layer);
    op->dy = dy;
    op->aux = kind == STK_OP_MAX_POOL_BACKWARD ? writer->aux[n] : STK_NO_BUFFER;
    op->relu = node->relu;
    if (node->relu)
        op->y = stk_writer_value(writer, n);
    op->dx = gradient_buffer(writer, node->in);
    contribute(writer, node->in, op->dx);
    writer->holders[dy]--;
}

static void write_dropout(struct stk_writer *writer, uint32_t n, int32_t dy)
{
    const struct stk_node *node = &writer->graph->nodes[n];
    struct stk_op *op = stk_writer_op(writer, STK_OP_DROPOUT_BACKWARD, node->layer);
    op->dy = dy;
    op->dx = over(writer, dy, node->in);
    contribute(writer, node->in, op->dx);
}

static void share(struct stk_writer *writer, uint32_t n, int32_t dy)
{
    const struct stk_node *node = &writer->graph->nodes[n];
    const uint32_t terms[2] = { node->in, node->other };
    const bool wanted[2] = { writer->graph->nodes[terms[0]].wants_gradient,
                             writer->graph->nodes[terms[1]].wants_gradient };
    if (wanted[0] && wanted[1])
        writer->holders[dy]++;
    for (int i = 0; i < 2; i++)
        if (wanted[i])
            contribute(writer, terms[i], dy);
}

void stk_write_backward(struct stk_writer *writer, uint32_t n)
{
    const int32_t dy = writer->gradient[n];
    assert(dy != STK_NO_BUFFER);
    writer->gradient[n] = STK_NO_BUFFER;
    switch (writer->graph->nodes[n].kind) {
    case STK_CONV2D:
        write_weights_and_data(writer, n, dy, STK_OP_CONV_BACKWARD_WEIGHTS,
                               STK_OP_CONV_BACKWARD_DATA);
        return;
    case STK_LINEAR:
        write_weights_and_data(writer, n, dy, STK_OP_LINEAR_BACKWARD_WEIGHTS,
                               STK_OP_LINEAR_BACKWARD_DATA);
        return;
    case STK_BATCH_NORM:
        write_batch_norm(writer, n, dy);
        return;
    case STK_MAX_POOL:
        write_pool(writer, n, dy, STK_OP_MAX_POOL_BACKWARD);
        return;
    case STK_AVG_POOL:
        write_pool(writer, n, dy, STK_OP_AVG_POOL_BACKWARD);
        return;
    case STK_RELU:
        contribute(writer, writer->graph->nodes[n].in, write_relu(writer, n, dy));
        return;
    case STK_DROPOUT:
        write_dropout(writer, n, dy);
        return;
    case STK_ADD:
        share(writer, n, dy);
        return;
    default:
        assert(false); /* not a node with a gradient */
    }
}
