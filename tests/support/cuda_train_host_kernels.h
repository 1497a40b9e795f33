/* cuda_train_host_kernels.h - host versions of the training kernels, which the stand-in runs.
 *
 * Each word of the argument struct that is an address in device memory is replaced by the accessible address of
 * the same byte. Counts and seeds are no such addresses. */
#ifndef STK_TEST_CUDA_TRAIN_HOST_KERNELS_H
#define STK_TEST_CUDA_TRAIN_HOST_KERNELS_H

#include <string.h>

#include "kernels/train/train.h"
#include "support/standin_cuda/standin_cuda.h"

static inline void stk_cuda_run_train_host_kernel(const struct standin_cuda_kernel *kernel,
                                                  void *argument)
{
    unsigned char *const bytes = argument;
    for (size_t at = 0; at + sizeof(void *) <= kernel->argument_bytes; at += sizeof(void *)) {
        void *word;
        memcpy(&word, bytes + at, sizeof(word));
        void *const view = standin_cuda_view(word);
        if (view != NULL)
            memcpy(bytes + at, &view, sizeof(view));
    }
    stk_train_kernel_named(kernel->name)->run_on_host(argument);
}

static inline void stk_cuda_use_train_host_kernels(void)
{
    enum { KERNELS_MAX = 128 };
    static struct standin_cuda_kernel kernels[KERNELS_MAX + 1];
    for (int i = 0; i < KERNELS_MAX && stk_train_kernels[i].name != NULL; i++)
        kernels[i] = (struct standin_cuda_kernel){ stk_train_kernels[i].name,
                                                   stk_train_kernels[i].arguments_bytes,
                                                   stk_cuda_run_train_host_kernel };
    standin_cuda_kernels(kernels);
}

#endif
