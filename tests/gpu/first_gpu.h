/* first_gpu.h - finds the first GPU, or the reason to skip; runs kernels by name and waits for
 * them. */
#ifndef STK_TEST_FIRST_GPU_H
#define STK_TEST_FIRST_GPU_H

#include <stdbool.h>
#include <stdio.h>

#include "kernels/transform/gpu/launch.h"
#include "loader/base/cuda/cuda_runtime.h"
#include "support/thread_check.h"

/* The exit status of a skipped program: ctest and ./run gpu read it and show the output. */
static inline int stk_gpu_skip(const char *why)
{
    enum { SKIP = 77 };
    printf("SKIPPED: %s\n", why);
    return SKIP;
}

/* Returns NULL if there is a GPU, else the reason. */
static inline const char *stk_gpu_missing(struct stk_cuda_runtime *cuda)
{
    const char *why = NULL;
    int count = 0;
    if (stk_cuda_runtime_load(cuda, &why) != 0)
        return why;
    return cuda->cudaGetDeviceCount(&count) != cudaSuccess || count == 0 ? "no GPU" : NULL;
}

/* The same for a program whose kernels are in `fatbin` (NULL without nvcc); loads them. */
static inline const char *stk_gpu_kernels_missing(struct stk_cuda_runtime *cuda, const void *fatbin,
                                                  cudaLibrary_t *library)
{
    if (fatbin == NULL)
        return "built without nvcc";
    const char *const missing = stk_gpu_missing(cuda);
    if (missing == NULL)
        CHECK(cuda->cudaLibraryLoadData(library, fatbin, NULL, NULL, 0, NULL, NULL, 0) ==
              cudaSuccess);
    return missing;
}

static inline void stk_gpu_copy(const struct stk_cuda_runtime *cuda, void *to, const void *from,
                                size_t bytes, enum cudaMemcpyKind kind)
{
    CHECK(cuda->cudaMemcpyAsync(to, from, bytes, kind, NULL) == cudaSuccess);
    CHECK(cuda->cudaStreamSynchronize(NULL) == cudaSuccess);
}

static inline void stk_gpu_launch(const struct stk_cuda_runtime *cuda, cudaLibrary_t library,
                                  const char *name, void *arguments, struct stk_launch_grid grid)
{
    cudaKernel_t found;
    void *list[] = { arguments };
    CHECK(cuda->cudaLibraryGetKernel(&found, library, name) == cudaSuccess);
    CHECK(stk_cuda_launch_kernel(cuda, (const void *)found, (dim3){ grid.x, grid.y, 1 },
                                 (dim3){ STK_LAUNCH_THREADS, 1, 1 }, list, NULL) == cudaSuccess);
    CHECK(cuda->cudaStreamSynchronize(NULL) == cudaSuccess);
}

#endif
