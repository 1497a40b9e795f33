/* writer.h - the list of operations and buffers while it is being written. */
#ifndef STK_TRAINER_WRITER_H
#define STK_TRAINER_WRITER_H

#include "trainer/plan/graph.h"
#include "trainer/plan/plan.h"
#include "trainer/plan/recompute.h"

struct stk_writer {
    struct stk_plan *plan;
    const struct stk_graph *graph;
    const struct stk_recompute *recompute;
    int32_t *value;    /* [node]: the buffer that holds it now */
    int32_t *aux;      /* [node]: of max pools and BatchNorms */
    int32_t *gradient; /* [node]: of its value, as far as it has been summed */
    /* [buffer]: values whose gradient it holds. A buffer that several share is read only; that of a
     * single one may be overwritten. */
    uint32_t *holders;
};

/* What a buffer is for. */
struct stk_content {
    uint64_t bytes_per_sample;
    uint64_t fixed_bytes; /* instead, if it does not grow with the batch */
    uint32_t layer;
    stoker_dtype dtype; /* 0 = the type of values */
    bool gradient;
};

/* Allocates the plan's lists and the writer's. The caller closes it, after a failure as well.
 * STOKER_ENOMEM. */
int stk_writer_open(struct stk_writer *writer, struct stk_plan *plan, const struct stk_graph *graph,
                    const struct stk_recompute *recompute);
void stk_writer_close(struct stk_writer *writer); /* the plan keeps its lists */

int32_t stk_writer_buffer(struct stk_writer *writer, struct stk_content content);
/* Appends an operation; its operands are STK_NO_BUFFER until the caller sets them. */
struct stk_op *stk_writer_op(struct stk_writer *writer, enum stk_op_kind kind, uint32_t layer);
/* The buffer of a value that must be there; STK_SAMPLES for node 0, unless they were cast. */
int32_t stk_writer_value(const struct stk_writer *writer, uint32_t node);
/* True if operation `reader` may write over the value it reads. */
bool stk_writer_may_overwrite(const struct stk_writer *writer, uint32_t node, uint32_t reader,
                              bool backward_follows);

#endif
