/* cuda_runtime.h - a table of the CUDA runtime's functions, for the loader, the trainer and loaderbench.
 *
 * The library is not linked but loaded when a GPU is first asked for: programs run where CUDA is not
 * installed, can say what is missing, and share a runtime that is already loaded. STOKER_CUDART names
 * another file than the system's, such as that of a Python wheel or a test's stand-in.
 */
#ifndef STK_BASE_CUDA_RUNTIME_H
#define STK_BASE_CUDA_RUNTIME_H

#include <cuda_runtime_api.h>

#define STK_CUDA_FUNCTIONS(X)                                                                      \
    X(cudaGetDeviceCount)                                                                          \
    X(cudaGetDevice)                                                                               \
    X(cudaSetDevice)                                                                               \
    X(cudaGetDeviceProperties)                                                                     \
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
    X(cudaMemcpyPeerAsync)                                                                         \
    X(cudaStreamCreateWithFlags)                                                                   \
    X(cudaStreamDestroy)                                                                           \
    X(cudaStreamQuery)                                                                             \
    X(cudaStreamSynchronize)                                                                       \
    X(cudaStreamWaitEvent)                                                                         \
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
    X(cudaLibraryLoadData)                                                                         \
    X(cudaLibraryUnload)                                                                           \
    X(cudaLibraryGetKernel)                                                                        \
    X(cudaLaunchKernel)

#define STK_CUDA_FIELD(name) __typeof__(name) *name;
struct stk_cuda_runtime {
    STK_CUDA_FUNCTIONS(STK_CUDA_FIELD)
};
#undef STK_CUDA_FIELD

/* Fills the table. Returns 0, or STOKER_EDEVICE with the reason in *why, which is valid until this
 * thread's next call. The library stays loaded until the program ends: CUDA cannot be unloaded. */
int stk_cuda_runtime_load(struct stk_cuda_runtime *runtime, const char **why);

#endif
