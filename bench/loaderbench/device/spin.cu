/* spin.cu - see spin.h. */
#include "bench/loaderbench/device/spin.h"

static __device__ uint64_t now_ns()
{
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

extern "C" __global__ void bench_spin(const bench_spin spin)
{
    const uint64_t begin_ns = now_ns();
    if (threadIdx.x == 0)
        *spin.sum +=
            spin.images[0] + spin.images[spin.image_bytes / 2] + spin.images[spin.image_bytes - 1];
    while (now_ns() - begin_ns < spin.spin_ns)
        ;
}
