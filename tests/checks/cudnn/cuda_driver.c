/* cuda_driver.c - a libcuda.so.1 without a GPU behind it, for cuDNN's run-time compiled engines.
 *
 * Such an engine compiles its kernel with NVRTC while a plan is built, and passes the binary to the
 * driver. This driver accepts any binary, finds any kernel in it, and returns
 * CUDA_ERROR_STUB_LIBRARY from everything else: plans can be built, but not run. */

enum { CUDA_SUCCESS_CODE = 0, CUDA_ERROR_STUB_LIBRARY_CODE = 34 };

/* The address of every library and kernel. */
static char something;

int cuLibraryLoadData(void **library);
int cuLibraryLoadData(void **library)
{
    *library = &something;
    return CUDA_SUCCESS_CODE;
}

int cuLibraryGetKernel(void **kernel);
int cuLibraryGetKernel(void **kernel)
{
    *kernel = &something;
    return CUDA_SUCCESS_CODE;
}

int cuLibraryUnload(void *library);
int cuLibraryUnload(void *library)
{
    (void)library;
    return CUDA_SUCCESS_CODE;
}

/* What cuDNN 9 looks up besides; it complains about each one that is missing. */
#define REFUSED(X)                                                                                 \
    X(cuCtxGetCurrent)                                                                             \
    X(cuCtxGetDevice)                                                                              \
    X(cuCtxGetLimit)                                                                               \
    X(cuCtxPopCurrent)                                                                             \
    X(cuCtxPushCurrent)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGetName)                                                                             \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuDevicePrimaryCtxReset)                                                                     \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDeviceTotalMem_v2)                                                                         \
    X(cuDriverGetVersion)                                                                          \
    X(cuFuncGetAttribute)                                                                          \
    X(cuFuncGetName)                                                                               \
    X(cuFuncSetAttribute)                                                                          \
    X(cuGetErrorName)                                                                              \
    X(cuGetErrorString)                                                                            \
    X(cuGetProcAddress)                                                                            \
    X(cuGetProcAddress_v2)                                                                         \
    X(cuGraphAddDependencies)                                                                      \
    X(cuGraphAddDependencies_v2)                                                                   \
    X(cuGraphAddKernelNode_v2)                                                                     \
    X(cuGraphKernelNodeGetParams)                                                                  \
    X(cuGraphKernelNodeSetAttribute)                                                               \
    X(cuGraphKernelNodeSetParams_v2)                                                               \
    X(cuGraphNodeGetDependentNodes)                                                                \
    X(cuGraphNodeGetDependentNodes_v2)                                                             \
    X(cuInit)                                                                                      \
    X(cuKernelGetAttribute)                                                                        \
    X(cuKernelSetAttribute)                                                                        \
    X(cuLaunchCooperativeKernel)                                                                   \
    X(cuLaunchKernel)                                                                              \
    X(cuLaunchKernelEx)                                                                            \
    X(cuLibraryLoadFromFile)                                                                       \
    X(cuLinkAddData)                                                                               \
    X(cuLinkAddData_v2)                                                                            \
    X(cuLinkAddFile_v2)                                                                            \
    X(cuLinkComplete)                                                                              \
    X(cuLinkCreate)                                                                                \
    X(cuLinkCreate_v2)                                                                             \
    X(cuLinkDestroy)                                                                               \
    X(cuMemcpyDtoH_v2)                                                                             \
    X(cuModuleGetFunction)                                                                         \
    X(cuModuleGetGlobal_v2)                                                                        \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleLoadDataEx)                                                                          \
    X(cuModuleLoadFatBinary)                                                                       \
    X(cuModuleUnload)                                                                              \
    X(cuOccupancyAvailableDynamicSMemPerBlock)                                                     \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                 \
    X(cuOccupancyMaxActiveClusters)                                                                \
    X(cuOccupancyMaxPotentialClusterSize)                                                          \
    X(cuStreamGetCtx)                                                                              \
    X(cuStreamSynchronize)                                                                         \
    X(cuTensorMapEncodeTiled)

#define REFUSE(name)                                                                               \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        return CUDA_ERROR_STUB_LIBRARY_CODE;                                                       \
    }
REFUSED(REFUSE)
