/* kernel_source.h - runs a kernel's source (cuda_threads.h) over the host's memory: blocks and
 * threads in order, unwatched. */
#ifndef STK_TEST_KERNEL_SOURCE_H
#define STK_TEST_KERNEL_SOURCE_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/kernel.h"
#include "support/cuda_threads/cuda_threads.h"

/* Runs the blocks from `first` on. */
static inline void run_blocks(const struct stk_kernel *kernel, const void *arguments,
                              struct stk_launch_grid first)
{
    static struct cuda_threads_report report;
    const struct stk_launch_grid grid = kernel->grid(arguments);
    const struct cuda_threads_module *module = cuda_threads_open(STOKER_TEST_PLAIN_KERNELS);
    if (module == NULL || !cuda_threads_has(module, kernel->name)) {
        fprintf(stderr, "%s: %s\n", kernel->name,
                module == NULL ? dlerror() : "no row in cuda_threads/kernels.cpp");
        abort();
    }
    const struct cuda_threads_launch launch = { .kernel = kernel->name,
                                                .arguments = arguments,
                                                .arguments_bytes = kernel->arguments_bytes,
                                                .grid_x = grid.x,
                                                .grid_y = grid.y,
                                                .first_x = first.x,
                                                .first_y = first.y,
                                                .threads = STK_LAUNCH_THREADS };
    if (cuda_threads_run(module, &launch, &report) == 0)
        return;
    fprintf(stderr, "%s\n", report.findings[0].text);
    abort();
}

static inline void run_kernel(const struct stk_kernel *kernel, const void *arguments)
{
    run_blocks(kernel, arguments, (struct stk_launch_grid){ 0, 0 });
}

#endif
