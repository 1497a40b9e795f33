/* operation.h - the operations of a plan that are own kernels: all but convolutions and linear
 * layers. */
#ifndef STK_TRAINER_BACKEND_CUDA_PROGRAM_OPERATION_H
#define STK_TRAINER_BACKEND_CUDA_PROGRAM_OPERATION_H

#include "trainer/backend/common/operands.h"
#include "trainer/backend/cuda/device/device.h"

/* Memory that operations may write to besides their operands. Undefined between operations, but for
 * the tickets. */
struct stk_cuda_scratch {
    void *workspace;   /* as large as the largest operation needs */
    uint32_t *tickets; /* 0 before and after each operation */
};

/* Arguments of the losses and dropout besides their operands. */
struct stk_cuda_pass {
    struct stk_train_metrics *metrics;
    const struct stk_train_state *state; /* NULL: use the loss scale and step of the pass */
    float gradient_factor;
    uint64_t step; /* keys dropout; added to the step of the state */
    bool together; /* a training step of several ranks */
    bool write;    /* overwrite the gradients of parameters, else add to them */
};

/* Bytes of workspace and words of tickets that an operation on `count` samples needs. */
uint64_t stk_cuda_operation_workspace(const struct stk_plan *plan, const struct stk_op *op,
                                      uint32_t count);
uint32_t stk_cuda_operation_tickets(const struct stk_plan *plan, const struct stk_op *op);

/* Queue what this rank, without samples, must add to an operation of several ranks. */
int stk_cuda_operation_without_samples(struct stk_backend *backend,
                                       const struct stk_operands *operands, stoker_error *error);

/* Queue an operation. */
int stk_cuda_operation(struct stk_backend *backend, const struct stk_operands *operands,
                       const struct stk_cuda_scratch *scratch, const struct stk_cuda_pass *pass,
                       stoker_error *error);

#endif
