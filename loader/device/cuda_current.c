/* cuda_current.c - see cuda.h: errors in words, and the GPU as the caller's current device for the
 * time of a call. */
#include "loader/device/cuda.h"

#include <stdio.h>

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

int stk_gpu_explain(const struct stk_gpu *gpu, cudaError_t code, const char *what,
                    char why[STK_DEVICE_WHY_BYTES])
{
    if (code == cudaSuccess)
        return 0;
    (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s: %s (%d)", what,
                   stk_gpu_words(&gpu->runtime, code), (int)code);
    return STOKER_EDEVICE;
}

static const char exchange_words[] = "cudaThreadExchangeStreamCaptureMode";

int stk_gpu_enter(struct stk_gpu *gpu, struct stk_gpu_before *before)
{
    const char *what = NULL;
    const char *unused = NULL;
    cudaError_t code = stk_cuda_context_enter(&gpu->context, &before->device, &what);
    if (code != cudaSuccess)
        return stk_gpu_check(gpu, code, what);
    before->mode = cudaStreamCaptureModeRelaxed;
    code = gpu->runtime.cudaThreadExchangeStreamCaptureMode(&before->mode);
    if (code != cudaSuccess)
        (void)stk_cuda_context_leave(&gpu->context, before->device, &unused);
    return stk_gpu_check(gpu, code, exchange_words);
}

int stk_gpu_enter_or_explain(struct stk_gpu *gpu, struct stk_gpu_before *before,
                             char why[STK_DEVICE_WHY_BYTES])
{
    if (stk_gpu_enter(gpu, before) == 0)
        return 0;
    (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", stk_device_failure(&gpu->device));
    return STOKER_EDEVICE;
}

void stk_gpu_leave(struct stk_gpu *gpu, struct stk_gpu_before before)
{
    const char *what = NULL;
    (void)stk_gpu_check(gpu, gpu->runtime.cudaThreadExchangeStreamCaptureMode(&before.mode),
                        exchange_words);
    const cudaError_t code = stk_cuda_context_leave(&gpu->context, before.device, &what);
    (void)stk_gpu_check(gpu, code, what);
}
