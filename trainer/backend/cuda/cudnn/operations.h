/* operations.h - the inside of a graph, filled by graph.c and read by plan.c. */
#ifndef STK_TRAINER_BACKEND_CUDA_CUDNN_OPERATIONS_H
#define STK_TRAINER_BACKEND_CUDA_CUDNN_OPERATIONS_H

#include "trainer/backend/cuda/cudnn/library.h"

struct stk_cudnn_graph {
    struct stk_cudnn *cudnn;
    uint32_t tensors, operations, candidates;
    struct stk_cudnn_tensor described[STK_CUDNN_TENSORS_MAX];
    cudnnBackendDescriptor_t tensor[STK_CUDNN_TENSORS_MAX];
    cudnnBackendDescriptor_t operation[STK_CUDNN_OPERATIONS_MAX];
    cudnnBackendDescriptor_t operation_graph, heuristics;
    cudnnBackendDescriptor_t candidate[STK_CUDNN_CANDIDATES_MAX]; /* best first */
    int rc;                                                       /* the first failure */
    stoker_error error;                                           /* if rc is one */
};

#endif
