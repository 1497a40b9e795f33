/* kernel.h - a GPU kernel: its name in the fatbin, its arguments and its grid. */
#ifndef STK_KERNELS_KERNEL_H
#define STK_KERNELS_KERNEL_H

#include <stddef.h>
#include <stdint.h>

/* Threads of a block, in x. Kernels are launched without dynamic shared memory. */
enum { STK_LAUNCH_THREADS = 256 };

/* Launch bounds of kernels of which CUDA 12.8 spills a register or two on these GPUs to fit more
 * blocks on a multiprocessor: that many are enough. */
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 800 || __CUDA_ARCH__ >= 1000)
#define STK_LAUNCH_UNSPILLED(blocks) STK_LAUNCH_THREADS, blocks
#else
#define STK_LAUNCH_UNSPILLED(blocks) STK_LAUNCH_THREADS
#endif

struct stk_launch_grid {
    uint32_t x, y;
};

/* GPUs that kernels were compiled for: arguments of stk_cuda_card_runs(), in
 * loader/base/cuda/cuda_card.h. */
struct stk_fatbin_targets {
    int toolkit;       /* CUDA version of nvcc: 13000 = 13.0; 0 without nvcc */
    const char *cards; /* compute capabilities: "8.0 9.0 PTX 9.0" */
};

struct stk_kernel {
    const char *name;
    size_t arguments_bytes; /* size of its argument struct */
    struct stk_launch_grid (*grid)(const void *arguments);
};

#endif
