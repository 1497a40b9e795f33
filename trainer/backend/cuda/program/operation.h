/* operation.h - one operation of a plan as kernels of this project; not convolutions and linear layers. */
#ifndef STK_TRAINER_BACKEND_CUDA_PROGRAM_OPERATION_H
#define STK_TRAINER_BACKEND_CUDA_PROGRAM_OPERATION_H

#include "trainer/backend/common/operands.h"
#include "trainer/backend/cuda/device/device.h"

/* What operations may write to beside their operands; each finds it as the last one left it, and only
 * tickets are 0 before and after. */
struct stk_cuda_scratch {
    void *workspace; /* as many bytes as the largest operation asks for */
    uint32_t *tickets;
};

/* What the losses and dropout are given beside their operands. */
struct stk_cuda_pass {
    struct stk_train_metrics *metrics;
    const struct stk_train_state *state; /* NULL: loss scale and step are those of the pass */
    float gradient_factor;
    uint64_t step; /* of dropout, added to the state's */
};

/* Bytes of workspace and words of tickets that an operation on `count` samples takes; convolutions and
 * linear layers are not asked here. */
uint64_t stk_cuda_operation_workspace(const struct stk_plan *plan, const struct stk_op *op,
                                      uint32_t count);
uint32_t stk_cuda_operation_tickets(const struct stk_plan *plan, const struct stk_op *op);

/* Queue an operation that is neither a convolution nor a linear layer. */
int stk_cuda_operation(struct stk_backend *backend, const struct stk_operands *operands,
                       const struct stk_cuda_scratch *scratch, const struct stk_cuda_pass *pass,
                       stoker_error *error);

#endif
