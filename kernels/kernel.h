/* kernel.h - one kernel of a GPU: its name in the fatbin, what it is given, how it is launched, and its
 * host version in plain C. */
#ifndef STK_KERNELS_KERNEL_H
#define STK_KERNELS_KERNEL_H

#include <stddef.h>
#include <stdint.h>

/* What a kernel is called with: grid x STK_LAUNCH_THREADS threads, no shared memory but its own. */
enum { STK_LAUNCH_THREADS = 256 /* of a block, in x; host kernels have none */ };

struct stk_launch_grid {
    uint32_t x, y;
};

struct stk_kernel {
    const char *name;
    size_t arguments_bytes;                     /* of its struct */
    void (*run_on_host)(const void *arguments); /* the struct, with pointers of the host */
    struct stk_launch_grid (*grid)(const void *arguments);
};

#endif
