/* cuda_runtime.h - a table of the CUDA runtime's functions, for the loader, the trainer and
 * loaderbench.
 *
 * The library is not linked but loaded when a GPU is first asked for: programs run where CUDA is
 * not installed, can say what is missing, and share a runtime that is already loaded. STOKER_CUDART
 * names another file than the system's, such as that of a Python wheel or a test's stand-in.
 *
 * Headers and libraries of CUDA 12.0 to 13.x work together in any combination: the functions in the
 * list have one signature in all of them, and the others are declared here. So the library of
 * either major version will do: first the one that the headers are of, then the other one.
 */
#ifndef STK_BASE_CUDA_RUNTIME_H
#define STK_BASE_CUDA_RUNTIME_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#define STK_CUDA_FUNCTIONS(X)                                                                      \
    X(cudaGetDeviceCount)                                                                          \
    X(cudaGetDevice)                                                                               \
    X(cudaSetDevice)                                                                               \
    X(cudaDeviceGetAttribute)                                                                      \
    X(cudaDriverGetVersion)                                                                        \
    X(cudaRuntimeGetVersion)                                                                       \
    X(cudaGetLastError)                                                                            \
    X(cudaGetErrorString)                                                                          \
    X(cudaMemGetInfo)                                                                              \
    X(cudaMalloc)                                                                                  \
    X(cudaFree)                                                                                    \
    X(cudaHostAlloc)                                                                               \
    X(cudaFreeHost)                                                                                \
    X(cudaHostRegister)                                                                            \
    X(cudaHostUnregister)                                                                          \
    X(cudaMemsetAsync)                                                                             \
    X(cudaMemcpyAsync)                                                                             \
    X(cudaDeviceCanAccessPeer)                                                                     \
    X(cudaDeviceEnablePeerAccess)                                                                  \
    X(cudaMemcpyPeerAsync)                                                                         \
    X(cudaStreamCreateWithFlags)                                                                   \
    X(cudaDeviceGetStreamPriorityRange)                                                            \
    X(cudaStreamCreateWithPriority)                                                                \
    X(cudaStreamDestroy)                                                                           \
    X(cudaStreamQuery)                                                                             \
    X(cudaStreamSynchronize)                                                                       \
    X(cudaStreamWaitEvent)                                                                         \
    X(cudaStreamIsCapturing)                                                                       \
    X(cudaThreadExchangeStreamCaptureMode)                                                         \
    X(cudaStreamBeginCapture)                                                                      \
    X(cudaStreamEndCapture)                                                                        \
    X(cudaGraphInstantiate)                                                                        \
    X(cudaGraphLaunch)                                                                             \
    X(cudaGraphDestroy)                                                                            \
    X(cudaGraphExecDestroy)                                                                        \
    X(cudaEventCreateWithFlags)                                                                    \
    X(cudaEventDestroy)                                                                            \
    X(cudaEventRecord)                                                                             \
    X(cudaEventQuery)                                                                              \
    X(cudaEventSynchronize)                                                                        \
    X(cudaEventElapsedTime)                                                                        \
    X(cudaLaunchKernel)

/* Handles of a library of kernels and of a kernel. Headers before 12.8 and 12.1 lack these
 * types. */
typedef struct CUlib_st *cudaLibrary_t;
typedef struct CUkern_st *cudaKernel_t;

/* Find a function of the driver by its name. Typed here, since no version of the headers has both
 * without a warning. */
typedef cudaError_t stk_cuda_entry_of(const char *name, void **function, unsigned version,
                                      unsigned long long flags,
                                      enum cudaDriverEntryPointQueryResult *found);
typedef cudaError_t stk_cuda_entry(const char *name, void **function, unsigned long long flags,
                                   enum cudaDriverEntryPointQueryResult *found);

#define STK_CUDA_FIELD(name) __typeof__(name) *name;
struct stk_cuda_runtime {
    STK_CUDA_FUNCTIONS(STK_CUDA_FIELD)
    /* cudaGetDriverEntryPointByVersion and cudaGetDriverEntryPoint; NULL = this runtime has none */
    stk_cuda_entry_of *driver_entry_of;
    stk_cuda_entry *driver_entry;

    /* cudaGetDeviceProperties in the version that CUDA 12 and 13 share. Its struct differs from the
     * built one in size and behind `minor`: see cuda_card.h. */
    cudaError_t (*device_properties)(void *properties, int device);

    /* Libraries of kernels. A runtime older than 12.8 has no such functions; then these are the
     * driver's, which has had them since 12.0, with the same arguments, handles and error numbers:
     * cuLibraryLoadData and so on. The lists of options are empty here. If the driver does not have
     * them either, loading returns cudaErrorNotSupported. */
    cudaError_t (*cudaLibraryLoadData)(cudaLibrary_t *library, const void *code, void *jit,
                                       void **jit_values, unsigned jit_count, void *options,
                                       void **option_values, unsigned option_count);
    cudaError_t (*cudaLibraryUnload)(cudaLibrary_t library);
    cudaError_t (*cudaLibraryGetKernel)(cudaKernel_t *kernel, cudaLibrary_t library,
                                        const char *name);
    /* NULL unless the three above are the driver's, whose kernels it launches. */
    cudaError_t (*cuLaunchKernel)(cudaKernel_t kernel, unsigned grid_x, unsigned grid_y,
                                  unsigned grid_z, unsigned block_x, unsigned block_y,
                                  unsigned block_z, unsigned shared_bytes, cudaStream_t stream,
                                  void **arguments, void **extra);
};
#undef STK_CUDA_FIELD

/* Returns true if the driver has the function, as of CUDA 12.0; then *out, a pointer to a function,
 * points to it. */
bool stk_cuda_driver_function(const struct stk_cuda_runtime *runtime, const char *name, void *out);

/* Fills the table. Returns 0, or STOKER_EDEVICE with the reason in *why, which is valid until this
 * thread's next call. The library stays loaded until the program ends: CUDA cannot be unloaded. */
int stk_cuda_runtime_load(struct stk_cuda_runtime *runtime, const char **why);

/* Launch a kernel of cudaLibraryGetKernel, as cudaLaunchKernel does, without dynamic shared
 * memory. */
cudaError_t stk_cuda_launch_kernel(const struct stk_cuda_runtime *runtime, const void *kernel,
                                   dim3 grid, dim3 block, void **arguments, cudaStream_t stream);

#endif
