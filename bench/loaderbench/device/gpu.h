/* gpu.h - a GPU for the consumer and the ceilings: one stream, memory, copies, launches.
 *
 * The CUDA runtime is loaded, not linked (loader/base/cuda/cuda_runtime.h). The text of the first
 * failure is kept. One thread at a time; a thread other than the one that opened it calls
 * bench_gpu_enter first.
 */
#ifndef BENCH_DEVICE_GPU_H
#define BENCH_DEVICE_GPU_H

#include <stddef.h>
#include <stdint.h>

enum { BENCH_GPU_WHY_BYTES = 192, BENCH_GPU_NAME_BYTES = 96, BENCH_GPU_EVENTS = 2 };

struct bench_gpu;
struct CUstream_st;

/* Opens GPU number `index` and makes it this thread's current one. STOKER_ENOMEM, or STOKER_EDEVICE
 * with the reason in `why`. */
int bench_gpu_open(struct bench_gpu **out, uint32_t index, char why[BENCH_GPU_WHY_BYTES]);
/* Waits for the stream. NULL and a pointer to NULL are allowed. */
void bench_gpu_close(struct bench_gpu **gpu);
int bench_gpu_enter(struct bench_gpu *gpu);

/* The text of the first failure; "" = none. */
const char *bench_gpu_failure(const struct bench_gpu *gpu);
/* "NVIDIA H200"; "a GPU" if the runtime does not report a name. */
void bench_gpu_name(struct bench_gpu *gpu, char out[BENCH_GPU_NAME_BYTES]);
struct CUstream_st *bench_gpu_stream(struct bench_gpu *gpu);

/* Device memory; NULL = out of memory. */
void *bench_gpu_alloc(struct bench_gpu *gpu, size_t bytes);
void bench_gpu_free(struct bench_gpu *gpu, void *memory);
/* Page-locks host memory. */
int bench_gpu_pin(struct bench_gpu *gpu, void *memory, size_t bytes);
void bench_gpu_unpin(struct bench_gpu *gpu, void *memory);

/* On the stream. All return STOKER_OK or STOKER_EDEVICE. */
int bench_gpu_copy_to(struct bench_gpu *gpu, void *device, const void *host, size_t bytes);
int bench_gpu_copy_from(struct bench_gpu *gpu, void *host, const void *device, size_t bytes);
int bench_gpu_mark(struct bench_gpu *gpu, uint32_t event); /* < BENCH_GPU_EVENTS */
/* The host waits for a mark, if it was ever made; or for all work on the stream. */
int bench_gpu_wait(struct bench_gpu *gpu, uint32_t event);
int bench_gpu_finish(struct bench_gpu *gpu);

/* Finds a kernel that takes one struct. The image is loaded once and must be the same in every
 * call. */
int bench_gpu_kernel(struct bench_gpu *gpu, const void *image, const char *name, void **kernel);
/* Launches one block of it. */
int bench_gpu_launch(struct bench_gpu *gpu, void *kernel, uint32_t threads, const void *arguments);

#endif
