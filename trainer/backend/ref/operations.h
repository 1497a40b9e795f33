/* operations.h - the operations of the `ref` back end: plain loops, easy to verify.
 *
 * Sums are in double and rounded once. Each function runs one operation, described in plan.h, on
 * the samples of its operands. */
#ifndef STK_TRAINER_BACKEND_REF_OPERATIONS_H
#define STK_TRAINER_BACKEND_REF_OPERATIONS_H

#include "trainer/backend/common/operands.h"

typedef void stk_ref_op(const struct stk_operands *o, struct stk_loss *loss);

stk_ref_op stk_ref_conv_forward;
stk_ref_op stk_ref_conv_backward_data;
stk_ref_op stk_ref_conv_backward_weights;
stk_ref_op stk_ref_linear_forward;
stk_ref_op stk_ref_linear_backward_data;
stk_ref_op stk_ref_linear_backward_weights;
stk_ref_op stk_ref_max_pool_forward;
stk_ref_op stk_ref_max_pool_backward;
stk_ref_op stk_ref_avg_pool_forward;
stk_ref_op stk_ref_avg_pool_backward;
stk_ref_op stk_ref_relu_forward;
stk_ref_op stk_ref_relu_backward;
stk_ref_op stk_ref_batch_norm_forward;
stk_ref_op stk_ref_batch_norm_apply;
stk_ref_op stk_ref_batch_norm_infer;
stk_ref_op stk_ref_batch_norm_backward;
stk_ref_op stk_ref_dropout_forward;
stk_ref_op stk_ref_dropout_backward;
stk_ref_op stk_ref_add_forward;
stk_ref_op stk_ref_accumulate;
stk_ref_op stk_ref_copy;
stk_ref_op stk_ref_cast;
stk_ref_op stk_ref_softmax_cross_entropy;
stk_ref_op stk_ref_mse;

/* The operation of each kind. */
extern stk_ref_op *const stk_ref_ops[STK_OP_KINDS];

#endif
