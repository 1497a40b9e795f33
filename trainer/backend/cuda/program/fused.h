/* fused.h - the kernels of fuse.h: what they take, and queueing them. */
#ifndef STK_TRAINER_BACKEND_CUDA_PROGRAM_FUSED_H
#define STK_TRAINER_BACKEND_CUDA_PROGRAM_FUSED_H

#include "trainer/backend/cuda/program/operation.h"

/* Bytes of workspace of operation i on `count` samples, if it sums up a bias, and if it is a head. */
uint64_t stk_cuda_sums_bias_workspace(const struct stk_plan *plan, uint32_t i, uint32_t count);
uint64_t stk_cuda_head_workspace(const struct stk_plan *plan, uint32_t i, uint32_t count);

/* Queue the gradient of a ReLU or of a maximum, with that of the bias; weights: operands of the next operation, which computes
 * the other gradients of that layer. */
int stk_cuda_queue_sums_bias(struct stk_backend *backend, const struct stk_operands *operands,
                             const struct stk_operands *weights,
                             const struct stk_cuda_scratch *scratch,
                             const struct stk_cuda_pass *pass, stoker_error *error);

/* Operands of a head. */
struct stk_cuda_head {
    struct stk_operands forward, loss; /* those of the plan's operations */
    const void *weight, *bias;         /* T */
    void *dx;                          /* NULL = none */
    float *bias_grad;                  /* NULL = none */
};

int stk_cuda_queue_head(struct stk_backend *backend, const struct stk_cuda_head *head,
                        const struct stk_cuda_scratch *scratch, const struct stk_cuda_pass *pass,
                        stoker_error *error);

#endif
