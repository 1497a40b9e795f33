/* cuda_memory.c - memory of a GPU, and host memory that is page-locked for it. */
#include "loader/device/cuda.h"

#include <stdio.h>

/* Portable: page-locked for every GPU, so that several loaders and the program may use it. This
 * device is made current for the call, which would otherwise initialize whichever device is
 * current. */
int stk_gpu_pin(struct stk_device *device, struct stk_region *region,
                char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    struct stk_gpu_before before;
    if (stk_gpu_enter_or_explain(gpu, &before, why) < 0)
        return STOKER_EDEVICE;
    const cudaError_t code =
        gpu->runtime.cudaHostRegister(region->base, region->bytes, cudaHostRegisterPortable);
    stk_gpu_leave(gpu, before);
    if (code != cudaSuccess) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "cudaHostRegister of %zu bytes: %s (%d)",
                       region->bytes, stk_gpu_words(&gpu->runtime, code), (int)code);
        return STOKER_EPIN;
    }
    region->locked = true;
    return 0;
}

void stk_gpu_unpin(struct stk_device *device, struct stk_region *region)
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    struct stk_gpu_before before;
    const bool entered = stk_gpu_enter(gpu, &before) == 0;
    (void)stk_gpu_check(gpu, gpu->runtime.cudaHostUnregister(region->base), "cudaHostUnregister");
    if (entered)
        stk_gpu_leave(gpu, before);
    region->locked = false;
}

void *stk_gpu_alloc(struct stk_device *device, size_t bytes, char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    void *memory = NULL;
    struct stk_gpu_before before;
    if (stk_gpu_enter_or_explain(gpu, &before, why) < 0)
        return NULL;
    const cudaError_t code = gpu->runtime.cudaMalloc(&memory, bytes);
    stk_gpu_leave(gpu, before);
    if (code == cudaSuccess)
        return memory;
    (void)snprintf(why, STK_DEVICE_WHY_BYTES, "cudaMalloc of %zu bytes: %s (%d)", bytes,
                   stk_gpu_words(&gpu->runtime, code), (int)code);
    return NULL;
}

int stk_gpu_available(struct stk_device *device, uint64_t *bytes, char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    size_t available = 0, all = 0;
    struct stk_gpu_before before;
    if (stk_gpu_enter_or_explain(gpu, &before, why) < 0)
        return STOKER_EDEVICE;
    const cudaError_t code = gpu->runtime.cudaMemGetInfo(&available, &all);
    stk_gpu_leave(gpu, before);
    *bytes = available;
    return stk_gpu_explain(gpu, code, "cudaMemGetInfo", why);
}

void stk_gpu_free(struct stk_device *device, void *memory)
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    /* Freed on this device if that can be made current, else anyway. */
    struct stk_gpu_before before;
    const bool entered = stk_gpu_enter(gpu, &before) == 0;
    (void)stk_gpu_check(gpu, gpu->runtime.cudaFree(memory), "cudaFree");
    if (entered)
        stk_gpu_leave(gpu, before);
}
