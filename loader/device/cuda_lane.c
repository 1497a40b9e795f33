/* cuda_lane.c - see lane.h. */
#include "loader/device/lane.h"

#include <stdio.h>

#ifdef STOKER_HAVE_CUDA
#include "loader/device/cuda.h"

struct stk_lane {
    struct stk_gpu *gpu;
    cudaStream_t stream;
    cudaEvent_t done; /* behind what was queued; its waiter sleeps */
    struct stk_gpu_before before;
};

static int make_lane_stream(struct stk_lane *lane)
{
    const struct stk_cuda_runtime *runtime = &lane->gpu->runtime;
    int rc = stk_lane_enter(lane);
    if (rc < 0)
        return rc;
    rc = stk_gpu_check(lane->gpu,
                       runtime->cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking),
                       "cudaStreamCreate");
    if (rc == 0)
        rc = stk_gpu_check(lane->gpu,
                           runtime->cudaEventCreateWithFlags(
                               &lane->done, cudaEventDisableTiming | cudaEventBlockingSync),
                           "cudaEventCreate");
    stk_lane_leave(lane);
    return rc;
}

int stk_lane_open(struct stk_lane **out, struct stk_device *device, char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_lane *lane = stk_calloc(1, sizeof(*lane));
    if (lane == NULL)
        return STOKER_ENOMEM;
    lane->gpu = stk_gpu_of(device);
    const int rc = make_lane_stream(lane);
    if (rc == 0) {
        *out = lane;
        return 0;
    }
    (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", stk_device_failure(device));
    stk_lane_close(&lane);
    return rc;
}

void stk_lane_close(struct stk_lane **at)
{
    struct stk_lane *lane = *at;
    if (lane == NULL)
        return;
    *at = NULL;
    const struct stk_cuda_runtime *runtime = &lane->gpu->runtime;
    const bool entered = stk_lane_enter(lane) == 0; /* destroyed anyway */
    if (lane->done != NULL)
        (void)stk_gpu_check(lane->gpu, runtime->cudaEventDestroy(lane->done), "cudaEventDestroy");
    if (lane->stream != NULL)
        (void)stk_gpu_check(lane->gpu, runtime->cudaStreamDestroy(lane->stream),
                            "cudaStreamDestroy");
    if (entered)
        stk_lane_leave(lane);
    stk_free(lane);
}

void *stk_lane_stream(const struct stk_lane *lane)
{
    return lane->stream;
}

int stk_lane_enter(struct stk_lane *lane)
{
    return stk_gpu_enter(lane->gpu, &lane->before);
}

void stk_lane_leave(struct stk_lane *lane)
{
    stk_gpu_leave(lane->gpu, lane->before);
}

int stk_lane_copy(struct stk_lane *lane, void *to, const void *from, size_t bytes)
{
    return stk_gpu_check(
        lane->gpu,
        lane->gpu->runtime.cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, lane->stream),
        "cudaMemcpyAsync to the device");
}

int stk_lane_launch(struct stk_lane *lane, const struct stk_device_launch *launch)
{
    return stk_gpu_launch(lane->gpu, launch, lane->stream);
}

/* If the event fails, by the stream: its memory is used again, or freed. */
int stk_lane_wait(struct stk_lane *lane)
{
    const struct stk_cuda_runtime *runtime = &lane->gpu->runtime;
    int rc = stk_gpu_record(lane->gpu, lane->done, lane->stream);
    if (rc == 0)
        rc = stk_gpu_check(lane->gpu, runtime->cudaEventSynchronize(lane->done),
                           "cudaEventSynchronize");
    if (rc < 0)
        (void)runtime->cudaStreamSynchronize(lane->stream);
    return rc;
}

#else

int stk_lane_open(struct stk_lane **out, struct stk_device *device, char why[STK_DEVICE_WHY_BYTES])
{
    (void)out;
    (void)device;
    (void)snprintf(why, STK_DEVICE_WHY_BYTES, "libstoker was built without CUDA");
    return STOKER_EDEVICE;
}

void stk_lane_close(struct stk_lane **at)
{
    *at = NULL;
}

void *stk_lane_stream(const struct stk_lane *lane)
{
    (void)lane;
    return NULL;
}

int stk_lane_enter(struct stk_lane *lane)
{
    (void)lane;
    return STOKER_EDEVICE;
}

void stk_lane_leave(struct stk_lane *lane)
{
    (void)lane;
}

int stk_lane_copy(struct stk_lane *lane, void *to, const void *from, size_t bytes)
{
    (void)lane;
    (void)to;
    (void)from;
    (void)bytes;
    return STOKER_EDEVICE;
}

int stk_lane_launch(struct stk_lane *lane, const struct stk_device_launch *launch)
{
    (void)lane;
    (void)launch;
    return STOKER_EDEVICE;
}

int stk_lane_wait(struct stk_lane *lane)
{
    (void)lane;
    return STOKER_EDEVICE;
}
#endif
