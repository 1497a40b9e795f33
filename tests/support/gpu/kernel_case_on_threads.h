/* kernel_case_on_threads.h - runs a case (kernel_case.h) from the kernel's source (cuda_threads.h)
 * watched, and once more in order (kernel_source.h). */
#ifndef STK_TEST_KERNEL_CASE_ON_THREADS_H
#define STK_TEST_KERNEL_CASE_ON_THREADS_H

#include <dlfcn.h>

#include "support/cuda_threads/cuda_threads.h"
#include "support/gpu/kernel_case.h"

/* How a case is launched. */
struct kernel_run {
    uint64_t seed;
    uint32_t interrupt_every;
    /* Most blocks in x of a training kernel, in y of a transform; 0 = the kernel's grid. */
    uint32_t blocks_max;
    struct cuda_threads_mutation mutation;
    const char *module; /* path; NULL = the kernels */
};

struct kernel_verdict {
    uint32_t differences;
    char difference[512]; /* the first */
    struct cuda_threads_report report;
};

static inline void kernel_case_launch(struct kernel_case *c, const struct kernel_run *run,
                                      const unsigned char *arguments,
                                      struct cuda_threads_report *report)
{
    struct cuda_threads_memory memory[KERNEL_BUFFERS_MAX];
    size_t count = 0;
    for (int i = 0; i < c->count; i++) {
        const struct kernel_buffer *b = &c->buffers[i];
        if (b->alias < 0)
            memory[count++] = (struct cuda_threads_memory){
                b->by_kernel, b->count * kernel_number_bytes(b->number), b->name,
                b->role != ROLE_IN, b->role == ROLE_OUT || b->role == ROLE_SCRATCH
            };
    }
    const char *path = run->module != NULL ? run->module : STOKER_TEST_KERNELS;
    const struct cuda_threads_module *module = cuda_threads_open(path);
    cr_assert_not_null(module, "%s", dlerror());
    cr_assert(cuda_threads_has(module, c->name), "%s", c->name);
    struct stk_launch_grid grid = kernel_case_kernel(c)->grid(arguments);
    kernel_case_reduce(c, run->blocks_max, &grid);
    const struct cuda_threads_launch launch = { .kernel = c->name,
                                                .arguments = arguments,
                                                .arguments_bytes = c->arguments_bytes,
                                                .grid_x = grid.x,
                                                .grid_y = grid.y,
                                                .threads = STK_LAUNCH_THREADS,
                                                .memory = memory,
                                                .memory_count = count,
                                                .seed = run->seed,
                                                .interrupt_every = run->interrupt_every,
                                                .mutation = run->mutation };
    (void)cuda_threads_run(module, &launch, report);
}

/* Runs both and compares what they made. */
static inline void kernel_case_run(struct kernel_case *c, const struct kernel_run *run,
                                   struct kernel_verdict *verdict)
{
    _Alignas(16) unsigned char by_kernel[KERNEL_ARGUMENTS_MAX], in_order[KERNEL_ARGUMENTS_MAX];
    struct kernel_differences found = { 0 };
    *verdict = (struct kernel_verdict){ 0 };
    kernel_case_place(c, true, by_kernel);
    kernel_case_place(c, false, in_order);
    run_kernel(kernel_case_kernel(c), in_order);
    kernel_case_launch(c, run, by_kernel, &verdict->report);
    kernel_case_compare(&found, c);
    verdict->differences = found.count;
    memcpy(verdict->difference, found.first, sizeof(found.first));
    kernel_case_release(c);
}

/* Expects that nothing is found, and the numbers of the same source in order: with the kernel's own
 * grid, then in a random order with interruptions and fewer blocks. */
static inline void check_on_threads(struct kernel_case *c)
{
    static const struct kernel_run runs[] = {
        { 0 }, { .seed = 1, .interrupt_every = 32, .blocks_max = 2 }
    };
    static struct kernel_verdict verdict;
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        kernel_case_run(c, &runs[i], &verdict);
        cr_assert_eq(verdict.report.count, 0, "%s [%s]: %s", c->name, c->label,
                     verdict.report.findings[0].text);
        cr_assert_eq(verdict.differences, 0, "%s", verdict.difference);
    }
    kernel_case_end(c);
}

#endif
