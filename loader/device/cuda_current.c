/* cuda_current.c - see cuda.h: errors in words, and the GPU as the caller's current device for the
 * time of a call. */
#ifdef STOKER_HAVE_CUDA
#include "loader/device/cuda.h"

/* The error in words. It is removed from cudaGetLastError: the program would take it for its
 * own. */
const char *stk_gpu_words(const struct stk_cuda_runtime *runtime, cudaError_t code)
{
    (void)runtime->cudaGetLastError();
    return runtime->cudaGetErrorString(code);
}

/* 0, or the device has failed. */
int stk_gpu_check(struct stk_gpu *gpu, cudaError_t code, const char *what)
{
    if (code == cudaSuccess)
        return 0;
    return stk_device_fail(&gpu->device, "cuda:%u: %s: %s (%d)", (unsigned)gpu->device.index, what,
                           stk_gpu_words(&gpu->runtime, code), (int)code);
}

int stk_gpu_enter(struct stk_gpu *gpu, int *before)
{
    const char *what = NULL;
    const cudaError_t code = stk_cuda_context_enter(&gpu->context, before, &what);
    return stk_gpu_check(gpu, code, what);
}

void stk_gpu_leave(struct stk_gpu *gpu, int before)
{
    const char *what = NULL;
    const cudaError_t code = stk_cuda_context_leave(&gpu->context, before, &what);
    (void)stk_gpu_check(gpu, code, what);
}
#else
typedef int stk_cuda_current_not_in_this_build; /* ISO C wants a declaration in every file */
#endif
