/* fuse.h - operations of a plan that one launch of a GPU does together.
 *
 *   linear ─▶ softmax cross-entropy ─▶ gradient of the linear layer's input       head: all in one kernel, if the layer is small
 *   gradient of ReLU or of a maximum ─▶ gradients of a layer's weights and bias   the first kernel sums up the bias
 *
 * What is left out of an operation is done by an earlier one. */
#ifndef STK_TRAINER_BACKEND_CUDA_PROGRAM_FUSE_H
#define STK_TRAINER_BACKEND_CUDA_PROGRAM_FUSE_H

#include "trainer/plan/plan.h"

/* What becomes of one operation. All false: it is queued as the plan has it. */
struct stk_cuda_fused {
    bool skipped;    /* done by an earlier operation */
    bool head;       /* this and the next operation, as one kernel */
    bool head_data;  /* with head: the gradient of its input as well */
    bool sums_bias;  /* it adds up the gradient of the next operation's bias */
    bool bias_known; /* its gradient of the bias is done by an earlier operation */
};

/* Index of the operations behind a head: gradients of its weights, and of its input. */
enum { STK_CUDA_HEAD_LOSS = 1, STK_CUDA_HEAD_WEIGHTS = 2, STK_CUDA_HEAD_DATA = 3 };

/* Fill fused[plan->op_count]: a function of the plan alone, so that passes of fewer samples do the same. */
void stk_cuda_fuse(struct stk_cuda_fused *fused, const struct stk_plan *plan);

#endif
