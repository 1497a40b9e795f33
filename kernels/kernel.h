/* kernel.h - a GPU kernel: its name in the fatbin, its arguments, its grid, and its host version in plain C. */
#ifndef STK_KERNELS_KERNEL_H
#define STK_KERNELS_KERNEL_H

#include <stddef.h>
#include <stdint.h>

/* Threads of a block, in x. Kernels are launched without dynamic shared memory. */
enum { STK_LAUNCH_THREADS = 256 };

struct stk_launch_grid {
    uint32_t x, y;
};

struct stk_kernel {
    const char *name;
    size_t arguments_bytes; /* size of its argument struct */
    /* The whole launch in plain C, from the same struct with host pointers. */
    void (*run_on_host)(const void *arguments);
    struct stk_launch_grid (*grid)(const void *arguments);
};

#endif
