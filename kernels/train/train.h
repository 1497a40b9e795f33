/* train.h - the kernels of a training step: their names, how they are launched, and their host versions.
 *
 *   arguments.h   what each is given
 *   *.cu          the kernels; nvcc makes one fat binary of them, which is loaded by name
 *   *.c           the host kernels: the same in plain C, whatever the grid
 *
 * A host kernel runs its kernel's whole launch at once, on memory that the host can read. So a step can be run
 * and checked where there is no GPU, and a stand-in for the CUDA runtime finds by name what to do. */
#ifndef STK_KERNELS_TRAIN_H
#define STK_KERNELS_TRAIN_H

#include "kernels/kernel.h"
#include "kernels/train/arguments.h"
#include <stoker/tensor.h>

/* Ends with one whose name is NULL. */
extern const struct stk_kernel stk_train_kernels[];

/* NULL if there is none of that name. */
const struct stk_kernel *stk_train_kernel_named(const char *name);

/* "stk_train_relu" and a storage type: FLOAT32, FLOAT16 or BFLOAT16. Must be there. */
const struct stk_kernel *stk_train_kernel_in(const char *name, stoker_dtype dtype);

/* All kernels as a fatbin (sm_80, sm_90, PTX); NULL in a build without nvcc. */
const void *stk_train_fatbin(size_t *bytes);

#endif
