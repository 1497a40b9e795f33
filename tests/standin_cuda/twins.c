/* twins.c - a stand-in that whole programs can be given: STOKER_CUDART names it, and where a GPU would
 * run a kernel it runs the kernel's twin in plain C. loaderbench, `./run gpu` and the programs of
 * tests/gpu go through their paces with it where there is no GPU.
 */
#include "bench/spin.h"
#include "cuda_train_twins.h"
#include "cuda_twins.h"

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
    enum { KERNELS_MAX = 128 };
    static struct standin_cuda_kernel kernels[KERNELS_MAX + 2];
    uint32_t count = 0;
    for (; stk_kernels[count].name != NULL && count < KERNELS_MAX; count++)
        kernels[count] =
            (struct standin_cuda_kernel){ stk_kernels[count].name,
                                          stk_kernels[count].arguments_bytes, stk_cuda_run_twin };
    for (uint32_t i = 0; stk_train_kernels[i].name != NULL && count < KERNELS_MAX; i++, count++)
        kernels[count] = (struct standin_cuda_kernel){ stk_train_kernels[i].name,
                                                       stk_train_kernels[i].arguments_bytes,
                                                       stk_cuda_run_train_twin };
    kernels[count] =
        (struct standin_cuda_kernel){ BENCH_SPIN_NAME, sizeof(struct bench_spin), run_spin };
    standin_cuda_kernels(kernels);
    standin_cuda_delay(20);
}
