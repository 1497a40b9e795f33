// examples.cpp - small kernels that are right or wrong in one way each: what the harness must find, and what it must not.
#include "device.h"

struct example {
    unsigned *out;
    const unsigned *in;
    unsigned count;
    unsigned *ticket;
};

enum { THREADS = 64 };

#define EXAMPLE(name) extern "C" __global__ void name(const example a)

static __device__ unsigned first()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

// ---- right ------------------------------------------------------------------------------------------

EXAMPLE(copies)
{
    if (first() < a.count)
        a.out[first()] = a.in[first()];
}

// The sum of a block through shared memory.
EXAMPLE(sums_of_blocks)
{
    __shared__ unsigned shared[THREADS];
    shared[threadIdx.x] = first() < a.count ? a.in[first()] : 0;
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            shared[threadIdx.x] += shared[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        a.out[blockIdx.x] = shared[0];
}

// The same by shuffles.
EXAMPLE(sums_of_warps)
{
    unsigned value = first() < a.count ? a.in[first()] : 0;
    for (int lanes = 16; lanes > 0; lanes /= 2)
        value += __shfl_xor_sync(0xFFFFFFFFU, value, lanes);
    const unsigned above = __shfl_up_sync(0xFFFFFFFFU, threadIdx.x, 1);
    const unsigned below = __shfl_down_sync(0xFFFFFFFFU, threadIdx.x, 1);
    const unsigned third = __shfl_sync(0xFFFFFFFFU, threadIdx.x, 3);
    const unsigned lane = threadIdx.x % 32;
    const bool right = above == threadIdx.x - (lane > 0) && below == threadIdx.x + (lane < 31) &&
                       third == threadIdx.x - lane + 3;
    if (threadIdx.x % 32 == 0)
        a.out[first() / 32] = right ? value : 0;
}

// The last block adds up what all have written: fences as CUDA's manual has them, by the thread that writes and counts.
EXAMPLE(last_block_adds)
{
    __shared__ unsigned last;
    if (threadIdx.x == 0) {
        a.out[1 + blockIdx.x] = a.in[blockIdx.x];
        __threadfence();
        last = atomicAdd(a.ticket, 1U) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last == 0 || threadIdx.x != 0)
        return;
    unsigned sum = 0;
    for (unsigned block = 0; block < gridDim.x; block++)
        sum += a.out[1 + block];
    a.out[0] = sum;
    *a.ticket = 0;
}

// All threads write; one thread's fence behind a barrier is for all of them.
EXAMPLE(fence_behind_a_barrier)
{
    __shared__ unsigned last;
    a.out[1 + first()] = a.in[first()];
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(a.ticket, 1U) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    unsigned sum = 0;
    if (last == 0 || threadIdx.x != 0)
        return;
    for (unsigned i = 0; i < gridDim.x * THREADS; i++)
        sum += a.out[1 + i];
    a.out[0] = sum;
}

// ---- wrong ------------------------------------------------------------------------------------------

EXAMPLE(no_barrier)
{
    __shared__ unsigned shared[THREADS];
    shared[threadIdx.x] = 0;
    __syncthreads();
    shared[threadIdx.x] = a.in[first()];
    a.out[first()] = shared[(threadIdx.x + 1) % THREADS];
}

EXAMPLE(all_write_one)
{
    a.out[0] = threadIdx.x;
}

EXAMPLE(blocks_write_one)
{
    if (threadIdx.x == 0)
        a.out[0] = blockIdx.x;
}

EXAMPLE(blocks_write_equal_values)
{
    if (threadIdx.x == 0)
        a.out[0] = 77;
}

EXAMPLE(write_after_read_of_another)
{
    __shared__ unsigned shared;
    if (threadIdx.x == 0)
        shared = 1;
    __syncthreads();
    a.out[first()] = shared;
    if (threadIdx.x == 0)
        shared = 2;
}

EXAMPLE(no_fence_before)
{
    if (threadIdx.x != 0)
        return;
    a.out[1 + blockIdx.x] = 1;
    if (atomicAdd(a.ticket, 1U) != gridDim.x - 1)
        return;
    __threadfence();
    a.out[0] = a.out[1] + a.out[gridDim.x];
}

EXAMPLE(no_fence_behind)
{
    if (threadIdx.x != 0)
        return;
    a.out[1 + blockIdx.x] = 1;
    __threadfence();
    if (atomicAdd(a.ticket, 1U) == gridDim.x - 1)
        a.out[0] = a.out[1] + a.out[gridDim.x];
}

// The fence of thread 0 says nothing of what thread 1 wrote: no barrier in between.
EXAMPLE(fence_of_another_thread)
{
    if (threadIdx.x == 1)
        a.out[1 + blockIdx.x] = 1;
    if (threadIdx.x != 0)
        return;
    __threadfence();
    if (atomicAdd(a.ticket, 1U) != gridDim.x - 1)
        return;
    __threadfence();
    for (unsigned block = 0; block < gridDim.x; block++)
        if (block != blockIdx.x)
            a.out[0] += a.out[1 + block];
}

EXAMPLE(reads_beyond)
{
    a.out[first()] = a.in[first() + 1];
}

EXAMPLE(reads_eight_bytes_at_four)
{
    a.out[first()] = (unsigned)*reinterpret_cast<const unsigned long long *>(a.in + 1);
}

EXAMPLE(writes_beyond)
{
    a.out[first() + 1] = 0;
}

EXAMPLE(writes_across_the_end)
{
    if (first() == a.count - 1)
        *(uint64_t *)(void *)(a.out + first()) = 0;
}

EXAMPLE(writes_constants)
{
    ((unsigned *)a.in)[first()] = 0;
}

EXAMPLE(reads_unwritten)
{
    __shared__ unsigned shared[THREADS];
    if (threadIdx.x > 0)
        shared[threadIdx.x] = 1;
    __syncthreads();
    a.out[first()] = shared[threadIdx.x];
}

EXAMPLE(reads_scratch)
{
    a.out[first()] += 1;
}

EXAMPLE(half_at_a_barrier)
{
    if (threadIdx.x < THREADS / 2)
        __syncthreads();
}

EXAMPLE(two_barriers)
{
    if (threadIdx.x < THREADS / 2)
        __syncthreads();
    else
        __syncthreads();
}

EXAMPLE(lane_not_in_its_mask)
{
    a.out[first()] = __shfl_sync(0x0000FFFFU, threadIdx.x, 0);
}

EXAMPLE(source_not_in_the_mask)
{
    if (threadIdx.x % 32 < 16)
        a.out[first()] = __shfl_sync(0x0000FFFFU, threadIdx.x, 20);
}

EXAMPLE(lanes_missing)
{
    if (threadIdx.x % 32 < 16)
        a.out[first()] = __shfl_sync(0xFFFFFFFFU, threadIdx.x, 0);
}

EXAMPLE(masks_differ)
{
    const unsigned mask = threadIdx.x % 32 == 31 ? 0xC0000000U : 0xFFFFFFFFU;
    a.out[first()] = __shfl_sync(mask, threadIdx.x, 30);
}

static const cuda_threads_kernel kernels[] = {
    CUDA_KERNEL(copies),
    CUDA_KERNEL(sums_of_blocks),
    CUDA_KERNEL(sums_of_warps),
    CUDA_KERNEL(last_block_adds),
    CUDA_KERNEL(fence_behind_a_barrier),
    CUDA_KERNEL(no_barrier),
    CUDA_KERNEL(all_write_one),
    CUDA_KERNEL(blocks_write_one),
    CUDA_KERNEL(blocks_write_equal_values),
    CUDA_KERNEL(write_after_read_of_another),
    CUDA_KERNEL(no_fence_before),
    CUDA_KERNEL(no_fence_behind),
    CUDA_KERNEL(fence_of_another_thread),
    CUDA_KERNEL(reads_beyond),
    CUDA_KERNEL(reads_eight_bytes_at_four),
    CUDA_KERNEL(writes_beyond),
    CUDA_KERNEL(writes_across_the_end),
    CUDA_KERNEL(writes_constants),
    CUDA_KERNEL(reads_unwritten),
    CUDA_KERNEL(reads_scratch),
    CUDA_KERNEL(half_at_a_barrier),
    CUDA_KERNEL(two_barriers),
    CUDA_KERNEL(lane_not_in_its_mask),
    CUDA_KERNEL(source_not_in_the_mask),
    CUDA_KERNEL(lanes_missing),
    CUDA_KERNEL(masks_differ),
    {},
};

CUDA_MODULE(kernels)
