/* cuda_streams.c - the two streams of a GPU: made, waited for at the end, destroyed.
 *
 * Kernels have a stream of their own, so that the copy of a batch does not wait for the kernels of
 * the one before, which wait for processors that training holds. They have the highest priority: of
 * all blocks that are ready to run, theirs come first, since training waits for what they make.
 * Both are non-blocking: the legacy default stream does not hold them up.
 */
#include "loader/device/cuda.h"

#include <stdio.h>
#include <time.h>

#include "loader/base/clock.h"

enum { DRAIN_POLL_NS = 50000 };

int stk_gpu_make_streams(struct stk_gpu *gpu, char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_gpu_before before;
    int rc = stk_gpu_enter(gpu, &before);
    if (rc == 0) {
        rc = stk_gpu_check(
            gpu, gpu->runtime.cudaStreamCreateWithFlags(&gpu->copies, cudaStreamNonBlocking),
            "cudaStreamCreate");
        if (rc == 0)
            rc = stk_gpu_check(
                gpu, gpu->runtime.cudaEventCreateWithFlags(&gpu->probe, cudaEventDisableTiming),
                "cudaEventCreate");
        stk_gpu_leave(gpu, before);
    }
    const char *failure = stk_device_failure(&gpu->device);
    if (failure != NULL)
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", failure);
    return failure != NULL ? STOKER_EDEVICE : rc;
}

cudaError_t stk_gpu_make_kernel_stream(struct stk_gpu *gpu, const char **what)
{
    int least = 0, greatest = 0; /* numbers fall as priorities rise */
    *what = "cudaDeviceGetStreamPriorityRange";
    const cudaError_t code = gpu->runtime.cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (code != cudaSuccess)
        return code;
    *what = "cudaStreamCreateWithPriority";
    return gpu->runtime.cudaStreamCreateWithPriority(&gpu->kernels, cudaStreamNonBlocking,
                                                     greatest);
}

void stk_gpu_destroy_streams(struct stk_gpu *gpu)
{
    cudaStream_t const streams[] = { gpu->kernels, gpu->copies };
    if (gpu->probe != NULL)
        (void)stk_gpu_check(gpu, gpu->runtime.cudaEventDestroy(gpu->probe), "cudaEventDestroy");
    for (int i = 0; i < 2; i++)
        if (streams[i] != NULL)
            (void)stk_gpu_check(gpu, gpu->runtime.cudaStreamDestroy(streams[i]),
                                "cudaStreamDestroy");
}

/* Only a query can find out, without waiting forever, if work is still in flight. A device that
 * answers twice with an error is lost, and a lost device touches no memory. */
static bool drain(struct stk_gpu *gpu, cudaStream_t stream, uint64_t deadline_ns)
{
    cudaError_t code;
    while ((code = gpu->runtime.cudaStreamQuery(stream)) == cudaErrorNotReady) {
        (void)gpu->runtime.cudaGetLastError();
        if (stk_now_ns() >= deadline_ns)
            return false;
        nanosleep(&(struct timespec){ .tv_nsec = DRAIN_POLL_NS }, NULL);
    }
    if (stk_gpu_check(gpu, code, "cudaStreamQuery") < 0)
        (void)stk_gpu_check(gpu, gpu->runtime.cudaStreamSynchronize(stream),
                            "cudaStreamSynchronize");
    return true;
}

/* With this GPU current if that can be done, else anyway. */
bool stk_gpu_drain(struct stk_device *device, uint64_t deadline_ns)
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    struct stk_gpu_before before;
    const bool entered = stk_gpu_enter(gpu, &before) == 0;
    const bool drained = drain(gpu, gpu->copies, deadline_ns) &&
                         (gpu->kernels == NULL || drain(gpu, gpu->kernels, deadline_ns));
    if (entered)
        stk_gpu_leave(gpu, before);
    return drained;
}
