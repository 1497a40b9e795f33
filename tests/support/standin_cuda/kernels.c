/* kernels.c - libraries of kernels and launches, by the runtime's functions and by the driver's.
 *
 * A runtime older than CUDA 12.8 has no functions for libraries: with headers of one, and with
 * STANDIN_OLD_RUNTIME, so has this.
 */
#include <stdlib.h>
#include <string.h>

#include "state.h"

enum { INVALID_CONTEXT = 201 /* CUDA_ERROR_INVALID_CONTEXT */ };

/* Headers before 12.8 and 12.1 lack these types. */
typedef struct CUlib_st *library_handle;
typedef struct CUkern_st *kernel_handle;

struct CUlib_st {
    const void *code;
};

/* ---- the driver's functions ---- */

static cudaError_t load(library_handle *library, const void *code, void *jit, void **jit_values,
                        unsigned jit_count, void *options, void **option_values,
                        unsigned option_count)
{
    (void)jit;
    (void)jit_values;
    (void)jit_count;
    (void)options;
    (void)option_values;
    (void)option_count;
    STANDIN_BEGIN;
    if (code == NULL)
        return standin_end(cudaErrorInvalidValue);
    *library = malloc(sizeof(**library));
    if (*library == NULL)
        abort();
    (*library)->code = code;
    atomic_fetch_add(&standin.live, 1);
    return standin_end(cudaSuccess);
}

static cudaError_t unload(library_handle library)
{
    const cudaError_t refused = standin_begin();
    free(library);
    atomic_fetch_sub(&standin.live, 1);
    return standin_end(refused);
}

static cudaError_t get_kernel(kernel_handle *out, library_handle library, const char *name)
{
    (void)library;
    STANDIN_BEGIN;
    const struct standin_cuda_kernel *kernel = standin.kernels;
    while (kernel != NULL && kernel->name != NULL && strcmp(kernel->name, name) != 0)
        kernel++;
    if (kernel == NULL || kernel->name == NULL)
        return standin_end(cudaErrorSymbolNotFound);
    *out = (kernel_handle)(uintptr_t)kernel;
    return standin_end(cudaSuccess);
}

/* The runtime makes a context if the thread has none; the driver does not. */
static cudaError_t launch(kernel_handle kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared_bytes, cudaStream_t stream, void **arguments,
                          void **extra)
{
    (void)extra;
    if (!standin_has_context())
        return (cudaError_t)INVALID_CONTEXT;
    return cudaLaunchKernel((const void *)kernel, (dim3){ grid_x, grid_y, grid_z },
                            (dim3){ block_x, block_y, block_z }, arguments, shared_bytes, stream);
}

const struct standin_function standin_kernel_functions[] = {
    { "cuLibraryLoadData", (void (*)(void))load },
    { "cuLibraryUnload", (void (*)(void))unload },
    { "cuLibraryGetKernel", (void (*)(void))get_kernel },
    { "cuLaunchKernel", (void (*)(void))launch },
    { NULL, NULL },
};

/* ---- the runtime's functions ---- */

#if CUDART_VERSION >= 12080 && !defined(STANDIN_OLD_RUNTIME)
cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jit,
                                void **jit_values, unsigned jit_count,
                                enum cudaLibraryOption *options, void **option_values,
                                unsigned option_count)
{
    return load(library, code, jit, jit_values, jit_count, options, option_values, option_count);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    return unload(library);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t library, const char *name)
{
    return get_kernel(out, library, name);
}
#endif

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t stream)
{
    (void)shared_bytes;
    STANDIN_BEGIN;
    const struct standin_cuda_kernel *kernel = function;
    if (standin_current() != standin_stream_device(stream))
        return standin_end(cudaErrorInvalidResourceHandle);
    if (grid.x == 0 || grid.y == 0 || grid.y > 65535 || grid.z != 1 || block.x == 0 ||
        block.x > 1024)
        return standin_end(cudaErrorInvalidConfiguration);
    struct standin_operation operation = { .kind = STANDIN_LAUNCH,
                                           .kernel = kernel,
                                           .grid_x = grid.x,
                                           .grid_y = grid.y,
                                           .threads = block.x };
    operation.argument = malloc(kernel->argument_bytes);
    if (operation.argument == NULL)
        abort();
    memcpy(operation.argument, arguments[0], kernel->argument_bytes);
    if (!standin_capturing(stream))
        atomic_fetch_add(&standin.launches, 1U);
    atomic_store(&standin.launch_priority, standin_stream_priority(stream));
    return standin_end(standin_enqueue(stream, &operation));
}

bool standin_cuda_queue(const struct standin_cuda_kernel *kernel, void *argument, void *stream)
{
    const dim3 one = { 1, 1, 1 };
    return cudaLaunchKernel(kernel, one, one, &argument, 0, stream) == cudaSuccess;
}
