/* cuda_context.h - makes a GPU current in the calling thread for a few calls, and then restores the
 * one that was current before.
 *
 *   enter ─▶ push the GPU's context on the thread's stack ─▶ calls ─▶ leave: pop it
 *
 * cudaSetDevice() makes a device current and initializes it, which takes hundreds of MB of its
 * memory. A thread that has chosen no device is at device 0, so going back to that with
 * cudaSetDevice() would initialize device 0 for work on another. The driver's stack of contexts has
 * nothing to go back to and nothing to initialize. Its functions are found through the runtime, so
 * they belong to the driver that the runtime uses. A runtime that does not offer them leaves
 * cudaSetDevice().
 *
 * Any call of the runtime, even cudaEventQuery(), may initialize the device that is current in its
 * thread; only those that ask about devices, versions and errors do not. So all calls but these lie
 * between enter and leave.
 *
 * The primary context is the one that the runtime uses as well. It is retained and never released:
 * the runtime keeps a context until the program ends, too, and the program's own work may be in it.
 */
#ifndef STK_BASE_CUDA_CONTEXT_H
#define STK_BASE_CUDA_CONTEXT_H

#include "loader/base/cuda/cuda_runtime.h"

struct CUctx_st;

/* cuCtxPushCurrent, cuCtxPopCurrent: a CUresult has the numbers of a cudaError_t. */
typedef int stk_cuda_push(struct CUctx_st *context);
typedef int stk_cuda_pop(struct CUctx_st **context);

struct stk_cuda_context {
    const struct stk_cuda_runtime *runtime;
    int device;
    struct CUctx_st *primary; /* the device's; NULL = cudaSetDevice() is used */
    stk_cuda_push *push;
    stk_cuda_pop *pop;
};

/* Prepare for a device, and initialize it if the driver's functions are there. The runtime must
 * outlive the context, which needs no close. *what names the call that failed. */
cudaError_t stk_cuda_context_open(struct stk_cuda_context *context,
                                  const struct stk_cuda_runtime *runtime, int device,
                                  const char **what);

/* Make the device current. *before is for leave, which must follow in the same thread if enter
 * succeeds, and must not if it fails. */
cudaError_t stk_cuda_context_enter(const struct stk_cuda_context *context, int *before,
                                   const char **what);
cudaError_t stk_cuda_context_leave(const struct stk_cuda_context *context, int before,
                                   const char **what);

#endif
