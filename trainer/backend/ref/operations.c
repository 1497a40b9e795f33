/* operations.c - the operation of each kind. */
#include "trainer/backend/ref/operations.h"

stk_ref_op *const stk_ref_ops[STK_OP_KINDS] = {
    [STK_OP_CONV_FORWARD] = stk_ref_conv_forward,
    [STK_OP_CONV_BACKWARD_DATA] = stk_ref_conv_backward_data,
    [STK_OP_CONV_BACKWARD_WEIGHTS] = stk_ref_conv_backward_weights,
    [STK_OP_LINEAR_FORWARD] = stk_ref_linear_forward,
    [STK_OP_LINEAR_BACKWARD_DATA] = stk_ref_linear_backward_data,
    [STK_OP_LINEAR_BACKWARD_WEIGHTS] = stk_ref_linear_backward_weights,
    [STK_OP_MAX_POOL_FORWARD] = stk_ref_max_pool_forward,
    [STK_OP_MAX_POOL_BACKWARD] = stk_ref_max_pool_backward,
    [STK_OP_AVG_POOL_FORWARD] = stk_ref_avg_pool_forward,
    [STK_OP_AVG_POOL_BACKWARD] = stk_ref_avg_pool_backward,
    [STK_OP_RELU_FORWARD] = stk_ref_relu_forward,
    [STK_OP_RELU_BACKWARD] = stk_ref_relu_backward,
    [STK_OP_BATCH_NORM_FORWARD] = stk_ref_batch_norm_forward,
    [STK_OP_BATCH_NORM_APPLY] = stk_ref_batch_norm_apply,
    [STK_OP_BATCH_NORM_INFER] = stk_ref_batch_norm_infer,
    [STK_OP_BATCH_NORM_BACKWARD] = stk_ref_batch_norm_backward,
    [STK_OP_DROPOUT_FORWARD] = stk_ref_dropout_forward,
    [STK_OP_DROPOUT_BACKWARD] = stk_ref_dropout_backward,
    [STK_OP_ADD_FORWARD] = stk_ref_add_forward,
    [STK_OP_ACCUMULATE] = stk_ref_accumulate,
    [STK_OP_COPY] = stk_ref_copy,
    [STK_OP_CAST] = stk_ref_cast,
    [STK_OP_SOFTMAX_CROSS_ENTROPY] = stk_ref_softmax_cross_entropy,
    [STK_OP_MSE] = stk_ref_mse,
};
