/* host_kernels.c - the host versions of all kernels, for a stand-in that whole programs load through STOKER_CUDART:
 * loaderbench, `./run gpu` and the programs of tests/gpu run with it without a GPU.
 */
#include "bench/device/spin.h"
#include "support/cuda_all_host_kernels.h"

static void run_spin(const struct standin_cuda_kernel *kernel, void *argument)
{
    struct bench_spin *spin = argument;
    (void)kernel;
    spin->images = standin_cuda_view(spin->images);
    spin->sum = standin_cuda_view(spin->sum);
    bench_spin_on_host(spin);
}

/* Before main(), or when the library is loaded. */
__attribute__((constructor)) static void install_host_kernels(void)
{
    static struct standin_cuda_kernel kernels[STK_CUDA_HOST_KERNELS_MAX + 2];
    const uint32_t count = stk_cuda_all_host_kernels(kernels);
    kernels[count] =
        (struct standin_cuda_kernel){ BENCH_SPIN_NAME, sizeof(struct bench_spin), run_spin };
    standin_cuda_kernels(kernels);
    standin_cuda_delay(20);
}
