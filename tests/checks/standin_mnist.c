/* standin_mnist.c - what makes stoker-mnist a program with stand-in GPUs, as many as $STANDIN_GPUS
 * says: see check_torchrun.sh. */
#include <stdlib.h>

#include "support/gpu/cuda_kernels.h"

/* Before main(). */
__attribute__((constructor)) static void install_gpus(void)
{
    const char *const gpus = getenv("STANDIN_GPUS");
    standin_cuda_reset(gpus == NULL ? 1 : atoi(gpus));
    standin_cuda_delay(0);
    standin_cuda_use_kernels();
}
