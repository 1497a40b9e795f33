/* cuda_send.c - queues the copies and kernels of a batch on the device's own stream, and waits for them at the end. */
#ifdef STOKER_HAVE_CUDA
#include "loader/device/cuda.h"

#include <stdio.h>
#include <time.h>

#include "loader/base/clock.h"

enum { DRAIN_POLL_NS = 50000 };

/* ---- kernels ---- */

int stk_gpu_load(struct stk_device *device, const void *image, const char *name, void **kernel,
                 char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    const struct stk_cuda_runtime *runtime = &gpu->runtime;
    const char *what = "cudaLibraryLoadData";
    cudaKernel_t found = NULL;
    int before;
    if (stk_gpu_enter(gpu, &before) < 0) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", stk_device_failure(device));
        return STOKER_EDEVICE;
    }
    cudaError_t code = cudaSuccess;
    if (gpu->library == NULL)
        code = runtime->cudaLibraryLoadData(&gpu->library, image, NULL, NULL, 0, NULL, NULL, 0);
    if (code == cudaSuccess) {
        what = "cudaLibraryGetKernel";
        code = runtime->cudaLibraryGetKernel(&found, gpu->library, name);
    }
    stk_gpu_leave(gpu, before);
    *kernel = found;
    if (code == cudaSuccess)
        return 0;
    (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s of %s: %s (%d)", what, name,
                   stk_gpu_words(runtime, code), (int)code);
    return STOKER_EDEVICE;
}

static int launch(struct stk_gpu *gpu, const struct stk_device_launch *launched)
{
    void *arguments[] = { (void *)launched->arguments };
    const dim3 grid = { launched->grid_x, launched->grid_y, 1 };
    const dim3 block = { launched->block_threads, 1, 1 };
    return stk_gpu_check(gpu,
                         stk_cuda_launch_kernel(&gpu->runtime, launched->kernel, grid, block,
                                                arguments, gpu->stream),
                         "cudaLaunchKernel");
}

int stk_gpu_send(struct stk_device *device, const struct stk_send *send)
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    const struct stk_cuda_runtime *runtime = &gpu->runtime;
    if (stk_device_failure(device) != NULL)
        return STOKER_EDEVICE;
    int before;
    int rc = stk_gpu_enter(gpu, &before);
    if (rc < 0)
        return rc;
    if (send->after != NULL)
        rc = stk_gpu_check(gpu, runtime->cudaStreamWaitEvent(gpu->stream, send->after, 0),
                           "cudaStreamWaitEvent");
    for (uint32_t i = 0; rc == 0 && i < send->piece_count; i++)
        rc = stk_gpu_check(gpu,
                           runtime->cudaMemcpyAsync(send->pieces[i].to, send->pieces[i].from,
                                                    send->pieces[i].bytes, cudaMemcpyHostToDevice,
                                                    gpu->stream),
                           "cudaMemcpyAsync to the device");
    for (uint32_t i = 0; rc == 0 && i < send->launch_count; i++)
        rc = launch(gpu, &send->launches[i]);
    if (rc == 0)
        rc = stk_gpu_check(gpu, runtime->cudaEventRecord(send->done, gpu->stream),
                           "cudaEventRecord");
    stk_gpu_leave(gpu, before);
    return rc;
}

/* Only a query can find out, without waiting forever, if copies are still in flight. A device that answers
 * twice with an error is lost, and a lost device touches no memory. */
static bool drain(struct stk_gpu *gpu, uint64_t deadline_ns)
{
    cudaError_t code;
    while ((code = gpu->runtime.cudaStreamQuery(gpu->stream)) == cudaErrorNotReady) {
        (void)gpu->runtime.cudaGetLastError();
        if (stk_now_ns() >= deadline_ns)
            return false;
        nanosleep(&(struct timespec){ .tv_nsec = DRAIN_POLL_NS }, NULL);
    }
    if (stk_gpu_check(gpu, code, "cudaStreamQuery") < 0)
        (void)stk_gpu_check(gpu, gpu->runtime.cudaStreamSynchronize(gpu->stream),
                            "cudaStreamSynchronize");
    return true;
}

/* With this GPU current if that can be done, else anyway. */
bool stk_gpu_drain(struct stk_device *device, uint64_t deadline_ns)
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    int before;
    const bool entered = stk_gpu_enter(gpu, &before) == 0;
    const bool drained = drain(gpu, deadline_ns);
    if (entered)
        stk_gpu_leave(gpu, before);
    return drained;
}
#else
typedef int stk_cuda_send_not_in_this_build; /* ISO C wants a declaration in every file */
#endif
