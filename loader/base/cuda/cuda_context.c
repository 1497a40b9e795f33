/* cuda_context.c - see cuda_context.h. */
#ifdef STOKER_HAVE_CUDA
#include "loader/base/cuda/cuda_context.h"

#include <stdbool.h>
#include <stddef.h>

typedef int init_fn(unsigned flags);
typedef int device_fn(int *device, int ordinal);
typedef int retain_fn(struct CUctx_st **context, int device);

/* The driver's functions; all or none. */
struct driver {
    init_fn *init;
    device_fn *device;
    retain_fn *retain;
    stk_cuda_push *push;
    stk_cuda_pop *pop;
};

static bool find_all(const struct stk_cuda_runtime *runtime, struct driver *driver)
{
    return stk_cuda_driver_function(runtime, "cuInit", &driver->init) &&
           stk_cuda_driver_function(runtime, "cuDeviceGet", &driver->device) &&
           stk_cuda_driver_function(runtime, "cuDevicePrimaryCtxRetain", &driver->retain) &&
           stk_cuda_driver_function(runtime, "cuCtxPushCurrent", &driver->push) &&
           stk_cuda_driver_function(runtime, "cuCtxPopCurrent", &driver->pop);
}

cudaError_t stk_cuda_context_open(struct stk_cuda_context *context,
                                  const struct stk_cuda_runtime *runtime, int device,
                                  const char **what)
{
    struct driver driver = { .init = NULL };
    int handle = 0;
    *context = (struct stk_cuda_context){ .runtime = runtime, .device = device };
    if (!find_all(runtime, &driver))
        return cudaSuccess;
    *what = "cuInit";
    int code = driver.init(0);
    if (code == 0) {
        *what = "cuDeviceGet";
        code = driver.device(&handle, device);
    }
    if (code == 0) {
        *what = "cuDevicePrimaryCtxRetain";
        code = driver.retain(&context->primary, handle);
    }
    if (code != 0)
        context->primary = NULL;
    context->push = driver.push;
    context->pop = driver.pop;
    return (cudaError_t)code;
}

cudaError_t stk_cuda_context_enter(const struct stk_cuda_context *context, int *before,
                                   const char **what)
{
    const struct stk_cuda_runtime *const runtime = context->runtime;
    *before = context->device;
    if (context->primary != NULL) {
        *what = "cuCtxPushCurrent";
        return (cudaError_t)context->push(context->primary);
    }
    *what = "cudaGetDevice";
    const cudaError_t code = runtime->cudaGetDevice(before);
    if (code != cudaSuccess || *before == context->device)
        return code;
    *what = "cudaSetDevice";
    return runtime->cudaSetDevice(context->device);
}

cudaError_t stk_cuda_context_leave(const struct stk_cuda_context *context, int before,
                                   const char **what)
{
    struct CUctx_st *popped = NULL;
    if (context->primary != NULL) {
        *what = "cuCtxPopCurrent";
        return (cudaError_t)context->pop(&popped);
    }
    *what = "cudaSetDevice back";
    return before == context->device ? cudaSuccess : context->runtime->cudaSetDevice(before);
}
#else
typedef int stk_cuda_context_not_in_this_build; /* ISO C wants a declaration in every file */
#endif
