/* operations.h - graph -> list of operations on buffers. */
#ifndef STK_TRAINER_OPERATIONS_H
#define STK_TRAINER_OPERATIONS_H

#include "trainer/plan/graph.h"
#include "trainer/plan/plan.h"
#include "trainer/plan/recompute.h"

/* Fill plan's ops and buffers (all but sizes, lives and offsets), output and segments. A buffer's
 * number grows with the operation that first uses it. On failure (STOKER_ENOMEM) the caller frees
 * what plan has. */
int stk_operations_write(struct stk_plan *plan, const struct stk_graph *graph,
                         const struct stk_recompute *recompute);

/* Forward and backward of one pass; the list being written. */
struct stk_writer {
    struct stk_plan *plan;
    const struct stk_graph *graph;
    const struct stk_recompute *recompute;
    int32_t *value;    /* [node]: the buffer that holds it now */
    int32_t *aux;      /* [node]: of max pools and BatchNorms */
    int32_t *gradient; /* [node]: of its value, as far as it has been summed */
    uint32_t *holders; /* [buffer]: gradients of how many values it holds. One that several values
                          share is read only; one of a single value may be overwritten */
};

/* What a buffer is for. */
struct stk_content {
    uint64_t bytes_per_sample;
    uint64_t fixed_bytes; /* instead, where it does not grow with the batch */
    uint32_t layer;
    stoker_dtype dtype; /* 0 = the type of values */
    bool gradient;
};

int32_t stk_writer_buffer(struct stk_writer *writer, struct stk_content content);
/* Append an operation; its operands are STK_NO_BUFFER until the caller sets them. */
struct stk_op *stk_writer_op(struct stk_writer *writer, enum stk_op_kind kind, uint32_t layer);
/* The buffer of a value that must be there; STK_SAMPLES for node 0, unless they were cast. */
int32_t stk_writer_value(const struct stk_writer *writer, uint32_t node);
/* Whether operation `reader` may write over the value it reads. */
bool stk_writer_may_overwrite(const struct stk_writer *writer, uint32_t node, uint32_t reader,
                              bool backward_follows);

/* forward.c: compute one node. backward_follows: backward operations read what this makes;
 * otherwise only forward ones do. */
void stk_write_cast(struct stk_writer *writer);
void stk_write_forward(struct stk_writer *writer, uint32_t n, bool again, bool backward_follows);
void stk_write_loss(struct stk_writer *writer);
/* Seams: a stage hands on its value and takes the gradient; one that begins hands back the gradient. */
void stk_write_end(struct stk_writer *writer);
void stk_write_beginning(struct stk_writer *writer);

/* backward.c: from the gradient of a node's value to those of what it reads. */
void stk_write_backward(struct stk_writer *writer, uint32_t n);

#endif
