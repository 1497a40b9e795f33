/* train.h - the kernels of a training step: names, grids, and host versions.
 *
 *   arguments.h   their arguments
 *   *.cu          the kernels; nvcc makes one fat binary of them, loaded by name
 *   *.c           the host kernels: the same in plain C, for any grid
 *
 * A host kernel does its kernel's whole launch on host memory. So a step can be tested without a GPU: a
 * stand-in for the CUDA runtime finds the host kernels by name. */
#ifndef STK_KERNELS_TRAIN_H
#define STK_KERNELS_TRAIN_H

#include "kernels/kernel.h"
#include "kernels/train/arguments.h"
#include <stoker/tensor.h>

/* The last has a NULL name. */
extern const struct stk_kernel stk_train_kernels[];

/* Returns the kernel of that name, or NULL. */
const struct stk_kernel *stk_train_kernel_named(const char *name);

/* Returns kernel `name`, such as "stk_train_relu", for storage in FLOAT32, FLOAT16 or BFLOAT16. It must exist. */
const struct stk_kernel *stk_train_kernel_in(const char *name, stoker_dtype dtype);

/* Returns all kernels as a fatbin, or NULL in a build without nvcc. */
const void *stk_train_fatbin(size_t *bytes);
/* What it was compiled for. */
struct stk_fatbin_targets stk_train_targets(void);

#endif
