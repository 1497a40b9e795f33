/* cuda_kernels.h - for tests on the stand-in: if the library has kernels. */
#ifndef STK_TEST_CUDA_KERNELS_H
#define STK_TEST_CUDA_KERNELS_H

#include "kernels/transform/gpu/launch.h"
#include "support/standin_cuda/standin_cuda.h"

/* Without nvcc the library has no kernels and loads none. */
static inline bool stk_cuda_kernels_built(void)
{
    size_t bytes;
    return stk_kernels_fatbin(&bytes) != NULL;
}

#endif
