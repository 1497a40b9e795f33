/* library.h - the loaded library, for this folder only: the one file that includes cuDNN's
 * headers. */
#ifndef STK_TRAINER_BACKEND_CUDA_CUDNN_LIBRARY_H
#define STK_TRAINER_BACKEND_CUDA_CUDNN_LIBRARY_H

#include "trainer/backend/cuda/cudnn/graph.h"
#include <cudnn_graph.h>

/* X(function): functions to look up. All are in libcudnn_graph; none is deprecated. */
#define STK_CUDNN_FUNCTIONS(X)                                                                     \
    X(cudnnGetVersion)                                                                             \
    X(cudnnGetErrorString)                                                                         \
    X(cudnnGetLastErrorString)                                                                     \
    X(cudnnCreate)                                                                                 \
    X(cudnnDestroy)                                                                                \
    X(cudnnSetStream)                                                                              \
    X(cudnnBackendCreateDescriptor)                                                                \
    X(cudnnBackendDestroyDescriptor)                                                               \
    X(cudnnBackendSetAttribute)                                                                    \
    X(cudnnBackendGetAttribute)                                                                    \
    X(cudnnBackendFinalize)                                                                        \
    X(cudnnBackendExecute)

struct stk_cudnn_calls {
#define STK_CUDNN_MEMBER(function) __typeof__(&(function)) function;
    STK_CUDNN_FUNCTIONS(STK_CUDNN_MEMBER)
#undef STK_CUDNN_MEMBER
};

struct stk_cudnn {
    void *library;
    cudnnHandle_t handle;            /* NULL = a described device */
    cudnnBackendDescriptor_t device; /* NULL = the current one */
    struct stk_cudnn_calls call;
};

/* A descriptor being filled. After the first failure, which is kept, all calls do nothing. */
struct stk_cudnn_writer {
    const struct stk_cudnn *cudnn;
    cudnnBackendDescriptor_t descriptor;
    cudnnStatus_t status;
};

struct stk_cudnn_writer stk_cudnn_begin(const struct stk_cudnn *cudnn,
                                        cudnnBackendDescriptorType_t type);
void stk_cudnn_set(struct stk_cudnn_writer *writer, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int64_t count, const void *values);
void stk_cudnn_set_descriptor(struct stk_cudnn_writer *writer, cudnnBackendAttributeName_t name,
                              cudnnBackendDescriptor_t value);
/* Finalize. On success the caller owns *out; on failure nothing is left behind. */
cudnnStatus_t stk_cudnn_end(struct stk_cudnn_writer *writer, cudnnBackendDescriptor_t *out);

void stk_cudnn_drop(const struct stk_cudnn *cudnn, cudnnBackendDescriptor_t *descriptor);

/* Report a failure as "WHAT: CUDNN_STATUS_...: last message". Returns STOKER_ENOTSUP if cuDNN does
 * not support this, or its kernels do not compile here; else STOKER_EDEVICE. */
int stk_cudnn_failed(const struct stk_cudnn *cudnn, cudnnStatus_t status, const char *what,
                     stoker_error *error);

#endif
