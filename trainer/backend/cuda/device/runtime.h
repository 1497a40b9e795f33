/* runtime.h - the functions of the CUDA runtime that the trainer uses, as a table: the one file
 * of the trainer that includes CUDA's headers.
 *
 * As in the loader the library is not linked but loaded when a GPU is asked for, and shared with a
 * loader and a program that have it already. STOKER_CUDART names another file than the system's. */
#ifndef STK_TRAINER_BACKEND_CUDA_DEVICE_RUNTIME_H
#define STK_TRAINER_BACKEND_CUDA_DEVICE_RUNTIME_H

#include <cuda_runtime_api.h>
#include <stoker/error.h>

#define STK_TRAINER_CUDA_FUNCTIONS(X)                                                              \
    X(cudaGetDeviceCount)                                                                          \
    X(cudaGetDevice)                                                                               \
    X(cudaSetDevice)                                                                               \
    X(cudaGetDeviceProperties)                                                                     \
    X(cudaDriverGetVersion)                                                                        \
    X(cudaRuntimeGetVersion)                                                                       \
    X(cudaGetLastError)                                                                            \
    X(cudaGetErrorString)                                                                          \
    X(cudaMalloc)                                                                                  \
    X(cudaFree)                                                                                    \
    X(cudaMemGetInfo)                                                                              \
    X(cudaMemsetAsync)                                                                             \
    X(cudaMemcpyAsync)                                                                             \
    X(cudaMemcpyPeerAsync)                                                                         \
    X(cudaHostAlloc)                                                                               \
    X(cudaFreeHost)                                                                                \
    X(cudaStreamWaitEvent)                                                                         \
    X(cudaStreamCreateWithFlags)                                                                   \
    X(cudaStreamDestroy)                                                                           \
    X(cudaStreamSynchronize)                                                                       \
    X(cudaStreamBeginCapture)                                                                      \
    X(cudaStreamEndCapture)                                                                        \
    X(cudaGraphInstantiate)                                                                        \
    X(cudaGraphLaunch)                                                                             \
    X(cudaGraphDestroy)                                                                            \
    X(cudaGraphExecDestroy)                                                                        \
    X(cudaEventCreateWithFlags)                                                                    \
    X(cudaEventDestroy)                                                                            \
    X(cudaEventRecord)                                                                             \
    X(cudaEventSynchronize)                                                                        \
    X(cudaEventElapsedTime)                                                                        \
    X(cudaLibraryLoadData)                                                                         \
    X(cudaLibraryUnload)                                                                           \
    X(cudaLibraryGetKernel)                                                                        \
    X(cudaLaunchKernel)

#define STK_TRAINER_CUDA_FIELD(name) __typeof__(name) *name;
struct stk_trainer_cuda {
    STK_TRAINER_CUDA_FUNCTIONS(STK_TRAINER_CUDA_FIELD)
};
#undef STK_TRAINER_CUDA_FIELD

/* Fill the table. 0, or STOKER_EDEVICE: error tells why. The library stays loaded until the program
 * ends: CUDA does not bear being unloaded. */
int stk_trainer_cuda_load(struct stk_trainer_cuda *runtime, stoker_error *error);

#endif
