/* cuda_runtime.c - see cuda_runtime.h. */
#ifdef STOKER_HAVE_CUDA
#include "loader/base/cuda/cuda_runtime.h"

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <string.h>

#include "loader/base/library.h"

#if CUDART_VERSION < 12000
#error "Stoker needs CUDA 12.0 or later"
#elif CUDART_VERSION < 13000
static const char *const sonames[] = { "libcudart.so.12", "libcudart.so.13" };
#else
static const char *const sonames[] = { "libcudart.so.13", "libcudart.so.12" };
#endif

enum { LIBRARY_FUNCTIONS = 3 };

/* Runtimes differ in these, and some have none. */
static void find_driver_entries(void *library, struct stk_cuda_runtime *runtime)
{
    static const struct stk_function by_version[] = {
        { "cudaGetDriverEntryPointByVersion", offsetof(struct stk_cuda_runtime, driver_entry_of) }
    };
    static const struct stk_function plain[] = {
        { "cudaGetDriverEntryPoint", offsetof(struct stk_cuda_runtime, driver_entry) }
    };
    const char *unused = NULL;
    runtime->driver_entry_of = NULL;
    runtime->driver_entry = NULL;
    (void)stk_library_fill(library, by_version, 1, runtime, &unused);
    (void)stk_library_fill(library, plain, 1, runtime, &unused);
}

bool stk_cuda_driver_function(const struct stk_cuda_runtime *runtime, const char *name, void *out)
{
    enum { VERSION = 12000 };
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void *address = NULL;
    cudaError_t code = cudaErrorNotSupported;
    if (runtime->driver_entry_of != NULL)
        code = runtime->driver_entry_of(name, &address, VERSION, 0, &found);
    else if (runtime->driver_entry != NULL)
        code = runtime->driver_entry(name, &address, 0, &found);
    if (code != cudaSuccess)
        (void)runtime->cudaGetLastError();
    if (code != cudaSuccess || found != cudaDriverEntryPointSuccess || address == NULL)
        return false;
    memcpy(out, &address, sizeof(address)); /* POSIX gives both kinds of pointers the same size */
    return true;
}

/* CUDA 12 has two versions of it under two names; CUDA 13 has the later one under the earlier
 * name. */
static bool find_properties(void *library, struct stk_cuda_runtime *runtime, const char **why)
{
    static const struct stk_function names[] = {
        { "cudaGetDeviceProperties_v2", offsetof(struct stk_cuda_runtime, device_properties) },
        { "cudaGetDeviceProperties", offsetof(struct stk_cuda_runtime, device_properties) },
    };
    return stk_library_fill(library, &names[0], 1, runtime, why) ||
           stk_library_fill(library, &names[1], 1, runtime, why);
}

/* In place of cudaLibraryLoadData if there is none: without a library, the other two are never
 * called. */
static cudaError_t cannot_load(cudaLibrary_t *library, const void *code, void *jit,
                               void **jit_values, unsigned jit_count, void *options,
                               void **option_values, unsigned option_count)
{
    (void)library;
    (void)code;
    (void)jit;
    (void)jit_values;
    (void)jit_count;
    (void)options;
    (void)option_values;
    (void)option_count;
    return cudaErrorNotSupported;
}

static void find_library_functions(void *library, struct stk_cuda_runtime *runtime)
{
    static const struct stk_function own[LIBRARY_FUNCTIONS] = {
        { "cudaLibraryLoadData", offsetof(struct stk_cuda_runtime, cudaLibraryLoadData) },
        { "cudaLibraryUnload", offsetof(struct stk_cuda_runtime, cudaLibraryUnload) },
        { "cudaLibraryGetKernel", offsetof(struct stk_cuda_runtime, cudaLibraryGetKernel) },
    };
    const char *unused = NULL;
    runtime->cuLaunchKernel = NULL;
    if (stk_library_fill(library, own, LIBRARY_FUNCTIONS, runtime, &unused) ||
        (stk_cuda_driver_function(runtime, "cuLibraryLoadData", &runtime->cudaLibraryLoadData) &&
         stk_cuda_driver_function(runtime, "cuLibraryUnload", &runtime->cudaLibraryUnload) &&
         stk_cuda_driver_function(runtime, "cuLibraryGetKernel", &runtime->cudaLibraryGetKernel) &&
         stk_cuda_driver_function(runtime, "cuLaunchKernel", &runtime->cuLaunchKernel)))
        return;
    runtime->cudaLibraryLoadData = cannot_load;
}

static bool load_cuda_runtime(struct stk_cuda_runtime *runtime, const char *soname,
                              const char **why)
{
#define FUNCTION(name) STK_FUNCTION(struct stk_cuda_runtime, name)
    static const struct stk_function functions[] = { STK_CUDA_FUNCTIONS(FUNCTION) };
#undef FUNCTION
    const size_t count = sizeof(functions) / sizeof(functions[0]);
    void *library = stk_library_open("STOKER_CUDART", soname, why);
    if (library == NULL || !stk_library_fill(library, functions, count, runtime, why) ||
        !find_properties(library, runtime, why))
        return false;
    find_driver_entries(library, runtime);
    find_library_functions(library, runtime);
    return true;
}

/* The versions of the runtime and of what the driver is for; *driver = 0: there is none.
 * STOKER_EDEVICE if the runtime does not even answer this. */
static int read_versions(const struct stk_cuda_runtime *runtime, int *has, int *driver,
                         const char **why)
{
    cudaError_t code = runtime->cudaRuntimeGetVersion(has);
    if (code == cudaSuccess)
        code = runtime->cudaDriverGetVersion(driver);
    if (code == cudaSuccess)
        return STOKER_OK;
    (void)runtime->cudaGetLastError();
    *why = runtime->cudaGetErrorString(code);
    return STOKER_EDEVICE;
}

/* A runtime works with drivers of its major version and of later ones. */
static void prefer_other(struct stk_cuda_runtime *runtime, int driver)
{
    struct stk_cuda_runtime other;
    const char *unused = NULL;
    int has = 0, same_driver = 0;
    if (load_cuda_runtime(&other, sonames[1], &unused) &&
        read_versions(&other, &has, &same_driver, &unused) == STOKER_OK &&
        has / 1000 <= driver / 1000)
        *runtime = other;
}

int stk_cuda_runtime_load(struct stk_cuda_runtime *runtime, const char **why)
{
    int has = 0, driver = 0;
    if (load_cuda_runtime(runtime, sonames[0], why)) {
        const int rc = read_versions(runtime, &has, &driver, why);
        if (rc == STOKER_OK && driver != 0 && driver / 1000 < has / 1000)
            prefer_other(runtime, driver);
        return rc;
    }
    if (load_cuda_runtime(runtime, sonames[1], why))
        return STOKER_OK;
    (void)load_cuda_runtime(runtime, sonames[0], why); /* once more, for its reason */
    return STOKER_EDEVICE;
}

cudaError_t stk_cuda_launch_kernel(const struct stk_cuda_runtime *runtime, const void *kernel,
                                   dim3 grid, dim3 block, void **arguments, cudaStream_t stream)
{
    if (runtime->cuLaunchKernel == NULL)
        return runtime->cudaLaunchKernel(kernel, grid, block, arguments, 0, stream);
    cudaKernel_t handle; /* the same pointer: the driver calls it by its own type */
    memcpy(&handle, &kernel, sizeof(handle));
    cudaError_t code = runtime->cuLaunchKernel(handle, grid.x, grid.y, grid.z, block.x, block.y,
                                               block.z, 0, stream, arguments, NULL);
    if (code != cudaErrorDeviceUninitialized)
        return code;
    /* This thread has no context yet: the driver makes none, while each function of the runtime
     * would. */
    int device = 0;
    code = runtime->cudaGetDevice(&device);
    if (code == cudaSuccess)
        code = runtime->cudaSetDevice(device);
    return code != cudaSuccess
               ? code
               : runtime->cuLaunchKernel(handle, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                         0, stream, arguments, NULL);
}
#else
typedef int stk_cuda_runtime_not_in_this_build; /* ISO C wants a declaration in every file */
#endif
