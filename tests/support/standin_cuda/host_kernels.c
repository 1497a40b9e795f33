/* host_kernels.c - the host versions of all kernels, for a stand-in that whole programs load through STOKER_CUDART:
 * loaderbench, `./run gpu` and the programs of tests/gpu run with it without a GPU.
 */
#include "bench/loaderbench/device/spin.h"
#include <stdlib.h>
#include <string.h>

#include "support/cuda_all_host_kernels.h"

static void run_spin(const struct standin_cuda_kernel *kernel, void *argument)
{
    struct bench_spin *spin = argument;
    (void)kernel;
    spin->images = standin_cuda_view(spin->images);
    spin->sum = standin_cuda_view(spin->sum);
    bench_spin_on_host(spin);
}

/* STOKER_TEST_STANDIN_LIE=slot or buffer breaks a rule of the loader, to show that a program notices: slots are refilled
 * before they are copied, or buffers before the consumer has released them. The first stream is the program's own. */
static void lie(void)
{
    const char *const which = getenv("STOKER_TEST_STANDIN_LIE");
    if (which != NULL && strcmp(which, "slot") == 0)
        standin_cuda_lie(STANDIN_CUDA_SAYS_DONE);
    if (which != NULL && strcmp(which, "buffer") == 0)
        standin_cuda_lie(STANDIN_CUDA_LATER_FORGET_WAITS);
}

/* Before main(), or when the library is loaded. */
__attribute__((constructor)) static void install_host_kernels(void)
{
    static struct standin_cuda_kernel kernels[STK_CUDA_HOST_KERNELS_MAX + 1];
    uint32_t count = stk_cuda_all_host_kernels(kernels);
    kernels[count++] =
        (struct standin_cuda_kernel){ BENCH_SPIN_NAME, sizeof(struct bench_spin), run_spin };
    standin_cuda_kernels(kernels);
    standin_cuda_delay(20);
    lie();
}
