/* cuda_twins.h - the kernels' twins in plain C, for the stand-in to run where a GPU runs kernels. */
#ifndef STK_TEST_CUDA_TWINS_H
#define STK_TEST_CUDA_TWINS_H

#include "kernels/launch.h"
#include "standin_cuda/standin_cuda.h"

/* Pointers in the struct are the device's; its twin wants those that can be used. */
static inline void stk_cuda_run_twin(const struct standin_cuda_kernel *kernel, void *argument)
{
    struct stk_crop_launch *launch = argument;
    launch->batch.ids = standin_cuda_view(launch->batch.ids);
    launch->batch.images = standin_cuda_view(launch->batch.images);
    launch->out = standin_cuda_view(launch->out);
    stk_kernel_named(kernel->name)->twin(launch);
}

/* Those that make rows: nothing is resized here. */
static inline void stk_cuda_use_twins(void)
{
    enum { CROPS = 8 };
    static struct standin_cuda_kernel kernels[CROPS + 1];
    for (int i = 0; i < CROPS; i++)
        kernels[i] =
            (struct standin_cuda_kernel){ stk_kernels[i].name, stk_kernels[i].arguments_bytes,
                                          stk_cuda_run_twin };
    standin_cuda_kernels(kernels);
}

#endif
