/* gpu.c - see gpu.h. */
#include "bench/loaderbench/device/gpu.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/error.h>

#include "loader/base/cuda/cuda_card.h"

struct bench_gpu {
    struct stk_cuda_runtime cuda;
    int index;
    cudaStream_t stream;
    cudaEvent_t events[BENCH_GPU_EVENTS];
    bool marked[BENCH_GPU_EVENTS];
    const void *image; /* loaded as `library`; NULL = none */
    cudaLibrary_t library;
    char failure[BENCH_GPU_WHY_BYTES];
};

/* ---- errors ---- */

static int check(struct bench_gpu *gpu, cudaError_t code, const char *what)
{
    if (code == cudaSuccess)
        return STOKER_OK;
    (void)gpu->cuda.cudaGetLastError();
    if (gpu->failure[0] == '\0')
        snprintf(gpu->failure, sizeof(gpu->failure), "%s: %s (%d)", what,
                 gpu->cuda.cudaGetErrorString(code), (int)code);
    return STOKER_EDEVICE;
}

const char *bench_gpu_failure(const struct bench_gpu *gpu)
{
    return gpu->failure;
}

/* ---- open and close ---- */

static int load_runtime(struct bench_gpu *gpu)
{
    const char *why = "";
    const int rc = stk_cuda_runtime_load(&gpu->cuda, &why);
    if (rc != STOKER_OK)
        snprintf(gpu->failure, sizeof(gpu->failure), "%.190s", why);
    return rc;
}

static int create_stream(struct bench_gpu *gpu)
{
    int count = 0;
    int rc = stk_cuda_count(&gpu->cuda, &count, gpu->failure, sizeof(gpu->failure));
    if (rc == STOKER_OK && gpu->index >= count) {
        snprintf(gpu->failure, sizeof(gpu->failure), "there are %d GPUs", count);
        return STOKER_EDEVICE;
    }
    if (rc == STOKER_OK)
        rc = bench_gpu_enter(gpu);
    if (rc == STOKER_OK)
        rc = check(gpu, gpu->cuda.cudaStreamCreateWithFlags(&gpu->stream, cudaStreamNonBlocking),
                   "cudaStreamCreate");
    for (uint32_t event = 0; rc == STOKER_OK && event < BENCH_GPU_EVENTS; event++)
        rc = check(gpu,
                   gpu->cuda.cudaEventCreateWithFlags(&gpu->events[event], cudaEventDisableTiming),
                   "cudaEventCreate");
    return rc;
}

int bench_gpu_open(struct bench_gpu **out, uint32_t index, char why[BENCH_GPU_WHY_BYTES])
{
    struct bench_gpu *gpu = calloc(1, sizeof(*gpu));
    if (gpu == NULL)
        return STOKER_ENOMEM;
    gpu->index = (int)index;
    int rc = load_runtime(gpu);
    if (rc == STOKER_OK)
        rc = create_stream(gpu);
    if (rc == STOKER_OK) {
        *out = gpu;
        return STOKER_OK;
    }
    snprintf(why, BENCH_GPU_WHY_BYTES, "%s", gpu->failure);
    bench_gpu_close(&gpu);
    return rc;
}

void bench_gpu_close(struct bench_gpu **gpu)
{
    struct bench_gpu *it = gpu != NULL ? *gpu : NULL;
    if (it == NULL)
        return;
    if (it->stream != NULL)
        (void)it->cuda.cudaStreamSynchronize(it->stream);
    for (uint32_t event = 0; event < BENCH_GPU_EVENTS; event++)
        if (it->events[event] != NULL)
            (void)it->cuda.cudaEventDestroy(it->events[event]);
    if (it->library != NULL)
        (void)it->cuda.cudaLibraryUnload(it->library);
    if (it->stream != NULL)
        (void)it->cuda.cudaStreamDestroy(it->stream);
    free(it);
    *gpu = NULL;
}

int bench_gpu_enter(struct bench_gpu *gpu)
{
    return check(gpu, gpu->cuda.cudaSetDevice(gpu->index), "cudaSetDevice");
}

void bench_gpu_name(struct bench_gpu *gpu, char out[BENCH_GPU_NAME_BYTES])
{
    struct stk_cuda_card card;
    const bool known = stk_cuda_card_read(&gpu->cuda, gpu->index, &card) == cudaSuccess;
    snprintf(out, BENCH_GPU_NAME_BYTES, "%.*s", BENCH_GPU_NAME_BYTES - 1,
             known ? card.name : "a GPU");
}

struct CUstream_st *bench_gpu_stream(struct bench_gpu *gpu)
{
    return gpu->stream;
}

/* ---- memory ---- */

void *bench_gpu_alloc(struct bench_gpu *gpu, size_t bytes)
{
    void *memory = NULL;
    return check(gpu, gpu->cuda.cudaMalloc(&memory, bytes), "cudaMalloc") == STOKER_OK ? memory
                                                                                       : NULL;
}

void bench_gpu_free(struct bench_gpu *gpu, void *memory)
{
    if (memory != NULL)
        (void)check(gpu, gpu->cuda.cudaFree(memory), "cudaFree");
}

int bench_gpu_pin(struct bench_gpu *gpu, void *memory, size_t bytes)
{
    return check(gpu, gpu->cuda.cudaHostRegister(memory, bytes, cudaHostRegisterPortable),
                 "cudaHostRegister");
}

void bench_gpu_unpin(struct bench_gpu *gpu, void *memory)
{
    (void)check(gpu, gpu->cuda.cudaHostUnregister(memory), "cudaHostUnregister");
}

/* ---- on the stream ---- */

int bench_gpu_copy_to(struct bench_gpu *gpu, void *device, const void *host, size_t bytes)
{
    return check(
        gpu, gpu->cuda.cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, gpu->stream),
        "cudaMemcpyAsync to the GPU");
}

int bench_gpu_copy_from(struct bench_gpu *gpu, void *host, const void *device, size_t bytes)
{
    return check(
        gpu, gpu->cuda.cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, gpu->stream),
        "cudaMemcpyAsync from the GPU");
}

int bench_gpu_mark(struct bench_gpu *gpu, uint32_t event)
{
    assert(event < BENCH_GPU_EVENTS);
    gpu->marked[event] = true;
    return check(gpu, gpu->cuda.cudaEventRecord(gpu->events[event], gpu->stream),
                 "cudaEventRecord");
}

int bench_gpu_wait(struct bench_gpu *gpu, uint32_t event)
{
    assert(event < BENCH_GPU_EVENTS);
    if (!gpu->marked[event])
        return STOKER_OK;
    return check(gpu, gpu->cuda.cudaEventSynchronize(gpu->events[event]), "cudaEventSynchronize");
}

int bench_gpu_finish(struct bench_gpu *gpu)
{
    return check(gpu, gpu->cuda.cudaStreamSynchronize(gpu->stream), "cudaStreamSynchronize");
}

/* ---- kernels ---- */

int bench_gpu_kernel(struct bench_gpu *gpu, const void *image, const char *name, void **kernel)
{
    assert(gpu->image == NULL || gpu->image == image);
    int rc = STOKER_OK;
    cudaKernel_t found = NULL;
    if (gpu->library == NULL)
        rc = check(
            gpu, gpu->cuda.cudaLibraryLoadData(&gpu->library, image, NULL, NULL, 0, NULL, NULL, 0),
            "cudaLibraryLoadData");
    gpu->image = image;
    if (rc == STOKER_OK)
        rc = check(gpu, gpu->cuda.cudaLibraryGetKernel(&found, gpu->library, name), name);
    *kernel = found;
    return rc;
}

int bench_gpu_launch(struct bench_gpu *gpu, void *kernel, uint32_t threads, const void *arguments)
{
    void *list[] = { (void *)arguments }; /* CUDA only reads them */
    const dim3 grid = { 1, 1, 1 };
    const dim3 block = { threads, 1, 1 };
    return check(gpu, stk_cuda_launch_kernel(&gpu->cuda, kernel, grid, block, list, gpu->stream),
                 "cudaLaunchKernel");
}
