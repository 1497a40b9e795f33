/* program.c - kernels for a stand-in that whole programs load through STOKER_CUDART: loaderbench,
 * `./run gpu` and the programs of tests/gpu run with it without a GPU.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/loaderbench/device/spin.h"
#include "loader/base/clock.h"
#include "standin_cuda.h"

/* Its source reads a GPU's clock. */
static void run_spin(const struct standin_cuda_kernel *kernel, void *argument)
{
    const struct bench_spin *const spin = argument;
    const uint8_t *const images = standin_cuda_view(spin->images);
    const uint64_t begin_ns = stk_now_ns();
    (void)kernel;
    *(uint64_t *)standin_cuda_view(spin->sum) +=
        (uint64_t)(images[0] + images[spin->image_bytes / 2] + images[spin->image_bytes - 1]);
    while (stk_now_ns() - begin_ns < spin->spin_ns)
        continue;
}

/* STOKER_TEST_STANDIN_LIE=slot or buffer breaks a rule of the loader, to show that a program
 * notices: slots are refilled before they are copied, or buffers before the consumer has released
 * them. The first stream is the program's own. */
static void lie(void)
{
    const char *const which = getenv("STOKER_TEST_STANDIN_LIE");
    if (which != NULL && strcmp(which, "slot") == 0)
        standin_cuda_lie(STANDIN_CUDA_SAYS_DONE);
    if (which != NULL && strcmp(which, "buffer") == 0)
        standin_cuda_lie(STANDIN_CUDA_LATER_FORGET_WAITS);
}

/* Before main(), or when the library is loaded. */
__attribute__((constructor)) static void begin_program(void)
{
    standin_cuda_use_kernels();
    standin_cuda_add_kernel(
        &(struct standin_cuda_kernel){ BENCH_SPIN_NAME, sizeof(struct bench_spin), run_spin });
    standin_cuda_delay(20);
    lie();
}
