// device.h - CUDA's language for the host's C++ compiler: what kernels need of it, by hooks.h.
//
// Include it before the kernels' sources, and nothing of CUDA's after it. __shared__ becomes
// static: the module has no other variables, so its .bss is the shared memory of the one block
// that runs.
#ifndef STK_TEST_CUDA_THREADS_DEVICE_H
#define STK_TEST_CUDA_THREADS_DEVICE_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <string.h>
#include <vector_functions.h>
#include <vector_types.h>

#include "cuda_threads.h"

#undef __global__
#undef __device__
#undef __host__
#undef __forceinline__
#undef __launch_bounds__
#undef __grid_constant__
#undef __shared__
#define __CUDACC__ 1
// All calls are inlined: gcc does not watch a struct (a half is one) that a call passes in memory.
#define __global__ __attribute__((flatten))
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static

// What reads the runtime's memory is not the kernel's access.
#define CUDA_UNWATCHED __attribute__((no_sanitize("thread"))) static inline

CUDA_UNWATCHED cuda_index cuda_thread_index()
{
    return cuda_now->thread;
}
CUDA_UNWATCHED cuda_index cuda_block_index()
{
    return cuda_now->block;
}
CUDA_UNWATCHED cuda_index cuda_block_size()
{
    return cuda_now->size;
}
CUDA_UNWATCHED cuda_index cuda_grid_size()
{
    return cuda_now->grid;
}
CUDA_UNWATCHED int cuda_lane()
{
    return (int)(cuda_now->thread.x % 32);
}
#define threadIdx (cuda_thread_index())
#define blockIdx  (cuda_block_index())
#define blockDim  (cuda_block_size())
#define gridDim   (cuda_grid_size())

#define CUDA_SITE(kind)                                                                            \
    ({                                                                                             \
        static const cuda_site site = { kind, __COUNTER__, __FILE__, __LINE__ };                   \
        &site;                                                                                     \
    })
#define __syncthreads() cuda_barrier(CUDA_SITE(CUDA_SITE_BARRIER))
#define __threadfence() cuda_fence(CUDA_SITE(CUDA_SITE_FENCE))

template <class T>
CUDA_UNWATCHED T cuda_shuffled(const cuda_site *site, uint32_t mask, int source, T value)
{
    cuda_shuffle(site, mask, source, &value, sizeof(value));
    return value;
}
// A lane without a source keeps its own value.
CUDA_UNWATCHED int cuda_lane_in_warp(int source)
{
    return source < 0 || source > 31 ? cuda_lane() : source;
}
#define __shfl_sync(mask, value, lane)                                                             \
    cuda_shuffled(CUDA_SITE(CUDA_SITE_SHUFFLE), mask, (int)(lane) % 32, value)
#define __shfl_xor_sync(mask, value, lanes)                                                        \
    cuda_shuffled(CUDA_SITE(CUDA_SITE_SHUFFLE), mask, cuda_lane() ^ (int)(lanes), value)
#define __shfl_down_sync(mask, value, lanes)                                                       \
    cuda_shuffled(CUDA_SITE(CUDA_SITE_SHUFFLE), mask,                                              \
                  cuda_lane_in_warp(cuda_lane() + (int)(lanes)), value)
#define __shfl_up_sync(mask, value, lanes)                                                         \
    cuda_shuffled(CUDA_SITE(CUDA_SITE_SHUFFLE), mask,                                              \
                  cuda_lane_in_warp(cuda_lane() - (int)(lanes)), value)

template <class T, class V> CUDA_UNWATCHED T atomicAdd(T *at, V value)
{
    cuda_atomic(at, sizeof(*at));
    const T before = *at;
    *at = (T)(before + value);
    return before;
}

CUDA_UNWATCHED uint32_t __float_as_uint(float value)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof(bits));
    return bits;
}
CUDA_UNWATCHED float __uint_as_float(unsigned bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

// In the module with mutants of bounds (mutants.sh), each comparison `at < end` of the kernels is
// one of these.
#define CUDA_LESS(at, end) (cuda_bound(CUDA_SITE(CUDA_SITE_BOUND)) ? (at) <= (end) : (at) < (end))

// ---- the table of kernels ----------------------------------------------------------------------

template <class Arguments, void (*kernel)(Arguments)>
__attribute__((no_sanitize("thread"))) static void cuda_call(const void *arguments)
{
    kernel(*(const Arguments *)arguments);
}
template <auto kernel> struct cuda_caller;
template <class Arguments, void (*kernel)(Arguments)> struct cuda_caller<kernel> {
    static constexpr size_t bytes = sizeof(Arguments);
    static constexpr void (*call)(const void *) = cuda_call<Arguments, kernel>;
};
#define CUDA_KERNEL(name)                                                                          \
    {                                                                                              \
#name, cuda_caller < name> ::bytes, cuda_caller < name> ::call                             \
    }

// The linker's, of this module alone.
extern "C" __attribute__((visibility("hidden"))) char __ehdr_start[], __bss_start[], _end[];

#define CUDA_MODULE(table)                                                                         \
    extern "C" __attribute__((visibility("default")))                                              \
    const cuda_threads_module cuda_threads_module = { table, __bss_start, _end, __ehdr_start,      \
                                                      __bss_start };

#endif
