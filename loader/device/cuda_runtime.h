/* cuda_runtime.h - the functions of the CUDA runtime that the device uses, as a table.
 *
 * The library is not linked but loaded when the first loader asks for a GPU: libstoker then runs
 * where CUDA is not installed, can say what is missing, and shares the runtime of a program that
 * has one already. STOKER_CUDART names another file than the system's, such as that of a Python
 * wheel; a stand-in takes its place in tests.
 */
#ifndef STK_DEVICE_CUDA_RUNTIME_H
#define STK_DEVICE_CUDA_RUNTIME_H

#include <cuda_runtime_api.h>

#include "loader/device/device.h"

#define STK_CUDA_FUNCTIONS(X)                                                                      \
    X(cudaGetDeviceCount)                                                                          \
    X(cudaGetDevice)                                                                               \
    X(cudaSetDevice)                                                                               \
    X(cudaGetLastError)                                                                            \
    X(cudaGetErrorString)                                                                          \
    X(cudaMemGetInfo)                                                                              \
    X(cudaMalloc)                                                                                  \
    X(cudaFree)                                                                                    \
    X(cudaHostRegister)                                                                            \
    X(cudaHostUnregister)                                                                          \
    X(cudaStreamCreateWithFlags)                                                                   \
    X(cudaStreamDestroy)                                                                           \
    X(cudaStreamQuery)                                                                             \
    X(cudaStreamSynchronize)                                                                       \
    X(cudaStreamWaitEvent)                                                                         \
    X(cudaEventCreateWithFlags)                                                                    \
    X(cudaEventDestroy)                                                                            \
    X(cudaEventRecord)                                                                             \
    X(cudaEventQuery)                                                                              \
    X(cudaEventSynchronize)                                                                        \
    X(cudaMemcpyAsync)                                                                             \
    X(cudaLibraryLoadData)                                                                         \
    X(cudaLibraryUnload)                                                                           \
    X(cudaLibraryGetKernel)                                                                        \
    X(cudaLaunchKernel)

#define STK_CUDA_FIELD(name) __typeof__(name) *name;
struct stk_cuda_runtime {
    STK_CUDA_FUNCTIONS(STK_CUDA_FIELD)
};
#undef STK_CUDA_FIELD

/* Fill the table. 0, or STOKER_EDEVICE with the reason in `why`. The library stays loaded until
 * the program ends: CUDA does not bear being unloaded. */
int stk_cuda_runtime_load(struct stk_cuda_runtime *runtime, char why[STK_DEVICE_WHY_BYTES]);

#endif
