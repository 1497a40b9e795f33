/* cuda_all_host_kernels.h - one table of the loader's and the trainer's host kernels, for the stand-in. */
#ifndef STK_TEST_CUDA_ALL_HOST_KERNELS_H
#define STK_TEST_CUDA_ALL_HOST_KERNELS_H

#include "cuda_host_kernels.h"
#include "cuda_train_host_kernels.h"

enum { STK_CUDA_HOST_KERNELS_MAX = 144 };

/* Fills the table and returns the number of kernels; the caller appends the end. */
static inline uint32_t stk_cuda_all_host_kernels(
    struct standin_cuda_kernel table[STK_CUDA_HOST_KERNELS_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; stk_kernels[i].name != NULL && count < STK_CUDA_HOST_KERNELS_MAX; i++)
        table[count++] =
            (struct standin_cuda_kernel){ stk_kernels[i].name, stk_kernels[i].arguments_bytes,
                                          stk_cuda_run_host_kernel };
    for (uint32_t i = 0; stk_train_kernels[i].name != NULL && count < STK_CUDA_HOST_KERNELS_MAX;
         i++)
        table[count++] = (struct standin_cuda_kernel){ stk_train_kernels[i].name,
                                                       stk_train_kernels[i].arguments_bytes,
                                                       stk_cuda_run_train_host_kernel };
    return count;
}

static inline void stk_cuda_use_all_host_kernels(void)
{
    static struct standin_cuda_kernel table[STK_CUDA_HOST_KERNELS_MAX + 1];
    table[stk_cuda_all_host_kernels(table)] = (struct standin_cuda_kernel){ NULL, 0, NULL };
    standin_cuda_kernels(table);
}

#endif
