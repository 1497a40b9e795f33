/* cuda_send.c - queues the copies and kernels of a batch on the device's own streams.
 *
 *   copies    after ─▶ copy of batch b ─▶ copied ┐        ─▶ copy of batch b + 1 ─▶ ...
 *   kernels                                      └▶ kernels of batch b ─▶ ready
 */
#include "loader/device/cuda.h"

#include <stdio.h>

/* The driver looks for code that fits the GPU when a kernel is first launched, which is too late
 * for the CPU to take the kernel's place. */
int stk_gpu_load(struct stk_device *device, const struct stk_device_image *image, const char *name,
                 void **kernel, char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    const struct stk_cuda_runtime *runtime = &gpu->runtime;
    const char *what = "cudaLibraryLoadData";
    cudaKernel_t found = NULL;
    struct stk_gpu_before before;
    if (!stk_cuda_card_runs(&gpu->card, image->toolkit, image->cards, why, STK_DEVICE_WHY_BYTES))
        return STOKER_EDEVICE;
    if (stk_gpu_enter_or_explain(gpu, &before, why) < 0)
        return STOKER_EDEVICE;
    cudaError_t code = cudaSuccess;
    if (gpu->library == NULL)
        code =
            runtime->cudaLibraryLoadData(&gpu->library, image->bytes, NULL, NULL, 0, NULL, NULL, 0);
    if (code == cudaSuccess && gpu->kernels == NULL)
        code = stk_gpu_make_kernel_stream(gpu, &what);
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

int stk_gpu_launch(struct stk_gpu *gpu, const struct stk_device_launch *launch, cudaStream_t stream)
{
    void *arguments[] = { (void *)launch->arguments };
    const dim3 grid = { launch->grid_x, launch->grid_y, 1 };
    const dim3 block = { launch->block_threads, 1, 1 };
    return stk_gpu_check(
        gpu, stk_cuda_launch_kernel(&gpu->runtime, launch->kernel, grid, block, arguments, stream),
        "cudaLaunchKernel");
}

static int wait_for(struct stk_gpu *gpu, cudaStream_t stream, cudaEvent_t event)
{
    return event == NULL ? 0
                         : stk_gpu_check(gpu, gpu->runtime.cudaStreamWaitEvent(stream, event, 0),
                                         "cudaStreamWaitEvent");
}

int stk_gpu_record(struct stk_gpu *gpu, cudaEvent_t event, cudaStream_t stream)
{
    return stk_gpu_check(gpu, gpu->runtime.cudaEventRecord(event, stream), "cudaEventRecord");
}

static int queue_copies(struct stk_gpu *gpu, const struct stk_send *send)
{
    int rc = wait_for(gpu, gpu->copies, send->after);
    if (rc == 0)
        rc = wait_for(gpu, gpu->copies, send->after_kernels);
    for (uint32_t i = 0; rc == 0 && i < send->piece_count; i++)
        rc = stk_gpu_check(
            gpu,
            gpu->runtime.cudaMemcpyAsync(
                send->pieces[i].to, send->pieces[i].from, send->pieces[i].bytes,
                send->pieces[i].within ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice,
                gpu->copies),
            "cudaMemcpyAsync to the device");
    return rc == 0 ? stk_gpu_record(gpu, send->copied, gpu->copies) : rc;
}

static int queue_kernels(struct stk_gpu *gpu, const struct stk_send *send)
{
    int rc = wait_for(gpu, gpu->kernels, send->copied);
    for (uint32_t i = 0; rc == 0 && i < send->launch_count; i++)
        rc = stk_gpu_launch(gpu, &send->launches[i], gpu->kernels);
    return rc == 0 ? stk_gpu_record(gpu, send->ready, gpu->kernels) : rc;
}

int stk_gpu_send(struct stk_device *device, const struct stk_send *send)
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    if (stk_device_failure(device) != NULL)
        return STOKER_EDEVICE;
    struct stk_gpu_before before;
    int rc = stk_gpu_enter(gpu, &before);
    if (rc < 0)
        return rc;
    rc = queue_copies(gpu, send);
    if (rc == 0 && send->launch_count > 0)
        rc = queue_kernels(gpu, send);
    stk_gpu_leave(gpu, before);
    return rc;
}
