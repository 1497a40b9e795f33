/* twins.c - a stand-in that whole programs can be given: STOKER_CUDART names it, and where a GPU would
 * run a kernel it runs the kernel's twin in plain C. loaderbench, `./run gpu` and the programs of
 * tests/gpu go through their paces with it where there is no GPU.
 *
 * A kernel's argument is one struct. Pointers in it are the device's; the twin wants those that can be used.
 */
#include <string.h>

#include "bench/spin.h"
#include "kernels/launch.h"
#include "standin_cuda/standin_cuda.h"

static void run_rows(const struct standin_cuda_kernel *kernel, void *argument)
{
    struct stk_crop_launch *launch = argument;
    const bool crops = kernel->argument_bytes == sizeof(*launch);
    struct stk_launch_batch *batch = &launch->batch; /* every struct begins with it */
    batch->ids = standin_cuda_view(batch->ids);
    batch->images = standin_cuda_view(batch->images);
    batch->taps = standin_cuda_view(batch->taps);
    batch->resized = standin_cuda_view(batch->resized);
    if (crops)
        launch->out = standin_cuda_view(launch->out);
    stk_kernel_named(kernel->name)->twin(argument);
}

static void run_spin(const struct standin_cuda_kernel *kernel, void *argument)
{
    struct bench_spin *spin = argument;
    (void)kernel;
    spin->images = standin_cuda_view(spin->images);
    spin->sum = standin_cuda_view(spin->sum);
    bench_spin_twin(spin);
}

/* Before main(), or when the library is loaded. */
__attribute__((constructor)) static void bring_twins(void)
{
    enum { KERNELS_MAX = 32 };
    static struct standin_cuda_kernel kernels[KERNELS_MAX + 2];
    uint32_t count = 0;
    for (; stk_kernels[count].name != NULL && count < KERNELS_MAX; count++)
        kernels[count] =
            (struct standin_cuda_kernel){ stk_kernels[count].name,
                                          stk_kernels[count].arguments_bytes, run_rows };
    kernels[count] =
        (struct standin_cuda_kernel){ BENCH_SPIN_NAME, sizeof(struct bench_spin), run_spin };
    standin_cuda_kernels(kernels);
    standin_cuda_delay(20);
}
