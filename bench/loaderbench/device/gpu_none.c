/* gpu_none.c - gpu.h in a build without CUDA: opening fails, and the rest is never called. */
#include "bench/loaderbench/device/gpu.h"

#include <stdio.h>
#include <stoker/error.h>

struct bench_gpu {
    char failure[1];
};

int bench_gpu_open(struct bench_gpu **out, uint32_t index, char why[BENCH_GPU_WHY_BYTES])
{
    (void)out;
    (void)index;
    snprintf(why, BENCH_GPU_WHY_BYTES, "loaderbench was built without CUDA");
    return STOKER_EDEVICE;
}

void bench_gpu_close(struct bench_gpu **gpu)
{
    (void)gpu;
}

int bench_gpu_enter(struct bench_gpu *gpu)
{
    (void)gpu;
    return STOKER_EDEVICE;
}

const char *bench_gpu_failure(const struct bench_gpu *gpu)
{
    return gpu->failure;
}

void bench_gpu_name(struct bench_gpu *gpu, char out[BENCH_GPU_NAME_BYTES])
{
    (void)gpu;
    out[0] = '\0';
}

struct CUstream_st *bench_gpu_stream(struct bench_gpu *gpu)
{
    (void)gpu;
    return NULL;
}

void *bench_gpu_alloc(struct bench_gpu *gpu, size_t bytes)
{
    (void)gpu;
    (void)bytes;
    return NULL;
}

void bench_gpu_free(struct bench_gpu *gpu, void *memory)
{
    (void)gpu;
    (void)memory;
}

int bench_gpu_pin(struct bench_gpu *gpu, void *memory, size_t bytes)
{
    (void)gpu;
    (void)memory;
    (void)bytes;
    return STOKER_EDEVICE;
}

void bench_gpu_unpin(struct bench_gpu *gpu, void *memory)
{
    (void)gpu;
    (void)memory;
}

int bench_gpu_copy_to(struct bench_gpu *gpu, void *device, const void *host, size_t bytes)
{
    (void)gpu;
    (void)device;
    (void)host;
    (void)bytes;
    return STOKER_EDEVICE;
}

int bench_gpu_copy_from(struct bench_gpu *gpu, void *host, const void *device, size_t bytes)
{
    (void)gpu;
    (void)host;
    (void)device;
    (void)bytes;
    return STOKER_EDEVICE;
}

int bench_gpu_mark(struct bench_gpu *gpu, uint32_t event)
{
    (void)gpu;
    (void)event;
    return STOKER_EDEVICE;
}

int bench_gpu_wait(struct bench_gpu *gpu, uint32_t event)
{
    (void)gpu;
    (void)event;
    return STOKER_EDEVICE;
}

int bench_gpu_finish(struct bench_gpu *gpu)
{
    (void)gpu;
    return STOKER_EDEVICE;
}

int bench_gpu_kernel(struct bench_gpu *gpu, const void *image, const char *name, void **kernel)
{
    (void)gpu;
    (void)image;
    (void)name;
    (void)kernel;
    return STOKER_EDEVICE;
}

int bench_gpu_launch(struct bench_gpu *gpu, void *kernel, uint32_t threads, const void *arguments)
{
    (void)gpu;
    (void)kernel;
    (void)threads;
    (void)arguments;
    return STOKER_EDEVICE;
}
