/* cuda_consumer.c - streams of the consumer wait for a batch, and mark the end of their work with
 * it.
 *
 * A stream that cannot do so is the caller's mistake and an error of that call alone: one that is
 * recording a graph, or that belongs to another GPU. The first is asked for beforehand: CUDA would
 * end the recording with an error, or draw our own streams into it.
 */
#include "loader/device/cuda.h"

#include <stdio.h>

/* Returns true if the error says that the stream was the wrong one, and nothing else is broken. */
static bool blames_stream(cudaError_t code)
{
    return code == cudaErrorInvalidResourceHandle || code == cudaErrorContextIsDestroyed ||
           (code >= cudaErrorStreamCaptureUnsupported && code <= cudaErrorStreamCaptureWrongThread);
}

/* 0; STOKER_EINVAL with the reason in `why` if the stream is to blame; or the device has failed. */
static int check_stream(struct stk_gpu *gpu, cudaError_t code, const char *what,
                        char why[STK_DEVICE_WHY_BYTES])
{
    if (!blames_stream(code))
        return stk_gpu_check(gpu, code, what);
    (void)snprintf(
        why, STK_DEVICE_WHY_BYTES,
        "cuda:%u: the consumer's stream does not belong to this GPU, or is capturing a graph: "
        "%s: %s (%d)",
        (unsigned)gpu->device.index, what, stk_gpu_words(&gpu->runtime, code), (int)code);
    return STOKER_EINVAL;
}

static int refuse_capture(struct stk_gpu *gpu, cudaStream_t stream, char why[STK_DEVICE_WHY_BYTES])
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t code = gpu->runtime.cudaStreamIsCapturing(stream, &status);
    if (code != cudaSuccess || status == cudaStreamCaptureStatusNone)
        return check_stream(gpu, code, "cudaStreamIsCapturing", why);
    (void)snprintf(
        why, STK_DEVICE_WHY_BYTES,
        "cuda:%u: the consumer's stream is capturing a graph, which cannot wait for batches: "
        "use them before or after",
        (unsigned)gpu->device.index);
    return STOKER_EINVAL;
}

/* A wait works on streams of any GPU, a mark only on this one's: so the probe, which nobody waits
 * for. */
int stk_gpu_wait_on(struct stk_device *device, void *event, void *stream,
                    char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    struct stk_gpu_before before; /* the default stream is that of the current device */
    int rc = stk_gpu_enter(gpu, &before);
    if (rc < 0)
        return rc;
    rc = refuse_capture(gpu, stream, why);
    if (rc == 0)
        rc = check_stream(gpu, gpu->runtime.cudaEventRecord(gpu->probe, stream),
                          "cudaEventRecord on the consumer's stream", why);
    if (rc == 0 && event != NULL)
        rc = check_stream(gpu, gpu->runtime.cudaStreamWaitEvent(stream, event, 0),
                          "cudaStreamWaitEvent of the consumer's stream", why);
    stk_gpu_leave(gpu, before);
    return rc;
}

/* If the device has failed, the host waits: the memory must not be reused while the stream uses
 * it. */
int stk_gpu_mark_on(struct stk_device *device, void *event, void *stream,
                    char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    struct stk_gpu_before before;
    int rc = stk_gpu_enter(gpu, &before);
    const bool entered = rc == 0;
    if (entered)
        rc = refuse_capture(gpu, stream, why);
    if (rc == 0)
        rc = check_stream(gpu, gpu->runtime.cudaEventRecord(event, stream),
                          "cudaEventRecord on the consumer's stream", why);
    if (rc < 0 && rc != STOKER_EINVAL)
        (void)gpu->runtime.cudaStreamSynchronize(stream);
    if (entered)
        stk_gpu_leave(gpu, before);
    return rc;
}

/* By an event of this call alone, since cudaStreamSynchronize() spins. It waits for streams of
 * another GPU, too. */
static int wait_for_stream(struct stk_gpu *gpu, cudaStream_t stream, char why[STK_DEVICE_WHY_BYTES])
{
    const struct stk_cuda_runtime *const cuda = &gpu->runtime;
    cudaEvent_t end = NULL;
    cudaError_t code =
        cuda->cudaEventCreateWithFlags(&end, cudaEventDisableTiming | cudaEventBlockingSync);
    if (code == cudaSuccess)
        code = cuda->cudaEventRecord(end, stream);
    if (code == cudaSuccess)
        code = cuda->cudaEventSynchronize(end);
    else if (blames_stream(code)) {
        (void)cuda->cudaGetLastError();
        code = cuda->cudaStreamSynchronize(stream);
    }
    const int rc = check_stream(gpu, code, "waiting for the consumer's stream", why);
    if (end != NULL)
        (void)stk_gpu_check(gpu, cuda->cudaEventDestroy(end), "cudaEventDestroy");
    return rc;
}

int stk_gpu_finish(struct stk_device *device, void *stream, char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    struct stk_gpu_before before;
    int rc = stk_gpu_enter(gpu, &before);
    if (rc < 0)
        return rc;
    rc = refuse_capture(gpu, stream, why);
    if (rc == 0)
        rc = wait_for_stream(gpu, stream, why);
    stk_gpu_leave(gpu, before);
    return rc;
}
