/* cuda_consumer.c - streams of the consumer wait for a batch, and mark the end of their work with it. */
#ifdef STOKER_HAVE_CUDA
#include "loader/device/cuda.h"

int stk_gpu_wait_on(struct stk_device *device, void *event, void *stream)
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    int before; /* the default stream is that of the current device */
    int rc = stk_gpu_enter(gpu, &before);
    if (rc < 0)
        return rc;
    rc = stk_gpu_check(gpu, gpu->runtime.cudaStreamWaitEvent(stream, event, 0),
                       "cudaStreamWaitEvent of the consumer's stream");
    stk_gpu_leave(gpu, before);
    return rc;
}

static int record_on(struct stk_gpu *gpu, cudaEvent_t event, cudaStream_t stream)
{
    int before;
    int rc = stk_gpu_enter(gpu, &before);
    if (rc < 0)
        return rc;
    rc = stk_gpu_check(gpu, gpu->runtime.cudaEventRecord(event, stream),
                       "cudaEventRecord on the consumer's stream");
    stk_gpu_leave(gpu, before);
    return rc;
}

/* If the event cannot be marked, the host waits: the memory must not be reused while the stream uses it. */
int stk_gpu_mark_on(struct stk_device *device, void *event, void *stream)
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    const int rc = record_on(gpu, event, stream);
    if (rc < 0)
        (void)gpu->runtime.cudaStreamSynchronize(stream);
    return rc;
}

int stk_gpu_finish(struct stk_device *device, void *stream)
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    int before;
    int rc = stk_gpu_enter(gpu, &before);
    if (rc < 0)
        return rc;
    rc = stk_gpu_check(gpu, gpu->runtime.cudaStreamSynchronize(stream),
                       "cudaStreamSynchronize of the consumer's stream");
    stk_gpu_leave(gpu, before);
    return rc;
}
#else
typedef int stk_cuda_consumer_not_in_this_build; /* ISO C wants a declaration in every file */
#endif
