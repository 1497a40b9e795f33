/* cuda_every_twin.h - the kernels of a loader and those of a training step, in one table for the stand-in. */
#ifndef STK_TEST_CUDA_EVERY_TWIN_H
#define STK_TEST_CUDA_EVERY_TWIN_H

#include "cuda_train_twins.h"
#include "cuda_twins.h"

enum { STK_CUDA_EVERY_TWIN_MAX = 144 };

/* Fill the table's beginning. Returns how many there are; the caller ends it. */
static inline uint32_t stk_cuda_every_twin(
    struct standin_cuda_kernel table[STK_CUDA_EVERY_TWIN_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; stk_kernels[i].name != NULL && count < STK_CUDA_EVERY_TWIN_MAX; i++)
        table[count++] =
            (struct standin_cuda_kernel){ stk_kernels[i].name, stk_kernels[i].arguments_bytes,
                                          stk_cuda_run_twin };
    for (uint32_t i = 0; stk_train_kernels[i].name != NULL && count < STK_CUDA_EVERY_TWIN_MAX; i++)
        table[count++] = (struct standin_cuda_kernel){ stk_train_kernels[i].name,
                                                       stk_train_kernels[i].arguments_bytes,
                                                       stk_cuda_run_train_twin };
    return count;
}

static inline void stk_cuda_use_every_twin(void)
{
    static struct standin_cuda_kernel table[STK_CUDA_EVERY_TWIN_MAX + 1];
    table[stk_cuda_every_twin(table)] = (struct standin_cuda_kernel){ NULL, 0, NULL };
    standin_cuda_kernels(table);
}

#endif
