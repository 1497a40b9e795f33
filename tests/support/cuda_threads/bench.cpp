// bench.cpp - the source of loaderbench's gather kernel as a module for cuda_threads.h.
#include "device.h"

#include "bench/device/gather.cu"

static const cuda_threads_kernel kernels[] = {
    CUDA_KERNEL(bench_gather_1),
    CUDA_KERNEL(bench_gather_2),
    CUDA_KERNEL(bench_gather_4),
    { nullptr, nullptr },
};

CUDA_MODULE(kernels)
