/* plan.h - one training step as a list of operations on buffers whose lives are known.
 *
 *   model ──▶ operations ──▶ lives ──▶ offsets in one arena
 *             forward, recompute, backward
 *
 * A buffer is bytes_per_sample x batch bytes at a fixed offset of the activation arena, alive from
 * the first operation that writes it to the last that reads it; buffers whose lives do not overlap
 * may share bytes. Operations run in order. The same list runs on every back end.
 *
 * Values and their gradients are stored in one type, T: float32, or one of the 16-bit types. What
 * else is stored, and what each operation computes in, is in precision.h. */
#ifndef STK_TRAINER_PLAN_H
#define STK_TRAINER_PLAN_H

#include "trainer/model/model.h"
#include <stdbool.h>
#include <stdint.h>
#include <stoker/tensor.h>

/* What an operation does. x, y: a layer's input and output; dx, dy: their gradients.
 * Operands not named are STK_NO_BUFFER. A backward operation WRITES dx (never adds to it) and
 * ADDS to parameter gradients; several readers' gradients are summed by STK_OP_ACCUMULATE.
 *
 *   CONV_FORWARD           x -> y                bias added; then max(., 0) if op.relu
 *   CONV_BACKWARD_DATA     dy -> dx
 *   CONV_BACKWARD_WEIGHTS  x, dy                 -> gradients of weight and bias
 *   LINEAR_*               the same
 *   MAX_POOL_FORWARD       x -> y, aux           then y = max(y, 0) if op.relu. aux: uint8 place of the maximum
 *                                                in its window (first in row order), one byte an
 *                                                output; a window over 256 places takes uint16 (2
 *                                                bytes); STK_NO_BUFFER if unused
 *   MAX_POOL_BACKWARD      y, dy, aux -> dx      if op.relu, dy counts where y > 0; else y is STK_NO_BUFFER
 *   AVG_POOL_FORWARD/BACKWARD  x -> y, dy -> dx
 *   RELU_FORWARD           x -> y                may be the same buffer
 *   RELU_BACKWARD          y, dy -> dx           dx = dy where y > 0; dx may be dy's buffer
 *   BATCH_NORM_FORWARD     x -> y, aux           batch statistics; aux: mean, then 1/sqrt(var + eps),
 *                                                c floats each; running statistics updated
 *                                                (unbiased variance, as PyTorch); then max(., 0) if
 *                                                op.relu; y may be x
 *   BATCH_NORM_APPLY       x, aux -> y           again from aux, bit-identical to FORWARD (op.relu too)
 *   BATCH_NORM_INFER       x -> y                with running statistics; op.relu
 *   BATCH_NORM_BACKWARD    x, y, dy, aux -> dx   -> gradients of gamma, beta; if op.relu, dy counts where
 *                                                y > 0 (y may be STK_NO_BUFFER: then its sign is
 *                                                computed from x and aux, bit-identically); dx may
 *                                                be dy
 *   DROPOUT_FORWARD        x -> y                mask of (seed, step, layer, sample in step, element), kept values
 *                                                times 1 / (1 - rate); y may be x
 *   DROPOUT_BACKWARD       dy -> dx              the same mask; may be the same buffer
 *   ADD_FORWARD            x, x2 -> y            y may be x (x and x2 may be either of the layer's two)
 *   ACCUMULATE             dy -> dx              dx += dy
 *   COPY                   dy -> dx
 *   CAST                   x -> y                copies the float32 samples, rounded to T: the first operation
 *                                                of a plan with a narrower T, and of one that
 *                                                pauses at a cut
 *   SOFTMAX_CROSS_ENTROPY  x -> dx loss and correct counts; dx = gradient x gradient scale;
 *                                                dx may be x; NO_BUFFER when only evaluated
 *   MSE                    x -> dx               the same
 *   CUT                    x -> dx               in place of the loss at the end of a stage: the next stage reads x
 *                          dy                    and writes dx. dy: the last operation of that next
 *                                                stage. stk_plan_cut() removes both before a back
 *                                                end runs the plan */
enum stk_op_kind {
    STK_OP_CONV_FORWARD,
    STK_OP_CONV_BACKWARD_DATA,
    STK_OP_CONV_BACKWARD_WEIGHTS,
    STK_OP_LINEAR_FORWARD,
    STK_OP_LINEAR_BACKWARD_DATA,
    STK_OP_LINEAR_BACKWARD_WEIGHTS,
    STK_OP_MAX_POOL_FORWARD,
    STK_OP_MAX_POOL_BACKWARD,
    STK_OP_AVG_POOL_FORWARD,
    STK_OP_AVG_POOL_BACKWARD,
    STK_OP_RELU_FORWARD,
    STK_OP_RELU_BACKWARD,
    STK_OP_BATCH_NORM_FORWARD,
    STK_OP_BATCH_NORM_APPLY,
    STK_OP_BATCH_NORM_INFER,
    STK_OP_BATCH_NORM_BACKWARD,
    STK_OP_DROPOUT_FORWARD,
    STK_OP_DROPOUT_BACKWARD,
    STK_OP_ADD_FORWARD,
    STK_OP_ACCUMULATE,
    STK_OP_COPY,
    STK_OP_CAST,
    STK_OP_SOFTMAX_CROSS_ENTROPY,
    STK_OP_MSE,
    STK_OP_CUT,
    STK_OP_KINDS
};

/* True if it adds to gradients of parameters: those of its layer. */
static inline bool stk_op_writes_gradients(enum stk_op_kind kind)
{
    return kind == STK_OP_CONV_BACKWARD_WEIGHTS || kind == STK_OP_LINEAR_BACKWARD_WEIGHTS ||
           kind == STK_OP_BATCH_NORM_BACKWARD;
}

/* A buffer's index in the plan; the samples themselves are a buffer that is not in the arena. */
enum { STK_NO_BUFFER = -1, STK_SAMPLES = -2 };

struct stk_op {
    enum stk_op_kind kind;
    uint32_t layer;
    int32_t x, x2, y, dy, dx, aux; /* buffer, STK_SAMPLES (x only) or STK_NO_BUFFER */
    bool relu;
    bool again; /* a recomputation: nothing but y (and aux) is written, no running statistics */
};

struct stk_buffer {
    uint64_t bytes_per_sample;  /* 0 for buffers that do not grow with the batch */
    uint64_t bytes;             /* size at options.batch, rounded up to 64 */
    uint64_t offset;            /* bytes from the start of the arena, a multiple of 64 */
    uint32_t first_op, last_op; /* its life, inclusive */
    uint32_t layer;
    stoker_dtype dtype; /* T, or the type that precision.h has for aux */
    bool gradient;      /* it holds the gradient of an activation */
};

struct stk_plan_options {
    uint32_t batch;            /* samples at a time, >= 1 */
    bool train;                /* false: forward only, nothing kept */
    stoker_dtype storage;      /* T: STOKER_DTYPE_FLOAT16, BFLOAT16, or FLOAT32 (or 0) */
    bool recompute_batch_norm; /* BatchNorm(+ReLU) outputs are recomputed from x, not kept */
    /* 0 or 1 = keep all; n = cut the layers into n segments, or fewer if that takes less memory,
     * and keep only values that cross their borders. */
    uint32_t checkpoint_segments;
    bool exact_segments; /* never fewer segments: for tests */
    bool no_reuse;       /* buffers share no bytes: for tests */
};

/* Returns true if both give the same plan of a model. */
static inline bool stk_plan_options_equal(const struct stk_plan_options *a,
                                          const struct stk_plan_options *b)
{
    return a->batch == b->batch && a->train == b->train && a->storage == b->storage &&
           a->recompute_batch_norm == b->recompute_batch_norm &&
           a->checkpoint_segments == b->checkpoint_segments &&
           a->exact_segments == b->exact_segments && a->no_reuse == b->no_reuse;
}

enum { STK_BATCH_MAX = 65536 };

struct stk_plan {
    const stoker_model *model;       /* borrowed */
    struct stk_plan_options options; /* as asked for */
    stoker_dtype storage;            /* T: never 0 */
    uint32_t segments;               /* as chosen, >= 1 */
    struct stk_op *ops;
    uint32_t op_count;
    struct stk_buffer *buffers;
    uint32_t buffer_count;
    uint64_t activation_bytes; /* size of the arena */
    uint64_t live_bytes_max;   /* most bytes alive at one time: a lower bound of the arena */
    /* Buffer of the logits; in a training plan the gradient may have overwritten it. In a first
     * stage: the value that the next one reads. */
    int32_t output;
    /* In a training plan of a first stage: the gradient of output, which the next stage writes. Of
     * a second stage: the gradient of its samples, which the first one reads. Else STK_NO_BUFFER.
     * */
    int32_t cut_gradient;
    uint64_t sample_bytes; /* per sample of STK_SAMPLES: float32, or T in a second stage */
};

/* Computes the operations, lives and offsets. The model must be closed. On success the caller
 * calls stk_plan_free(); on failure *plan is all zero. STOKER_EINVAL, ENOMEM,
 * ELIMIT (2^62 bytes and more). */
int stk_plan_make(struct stk_plan *plan, const stoker_model *model,
                  const struct stk_plan_options *options, stoker_error *error);
void stk_plan_free(struct stk_plan *plan); /* all zero is allowed */

/* Divides a plan at its cuts into what back ends run: plans that borrow its operations and buffers
 * (do not free them). halves[1] has operations only in a training plan of a first stage: they run
 * when the gradient has arrived. */
void stk_plan_cut(const struct stk_plan *plan, struct stk_plan halves[2]);

/* Returns true if two buffers that are alive at one time share bytes, which no plan does; *a and *b
 * are the two. For tests. */
bool stk_plan_overlaps(const struct stk_plan *plan, uint32_t *a, uint32_t *b);

#endif
