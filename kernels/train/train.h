/* train.h - the kernels of a training step: names and grids. arguments.h has their arguments, the
 * .cu files their code, which nvcc compiles into one fat binary. */
#ifndef STK_KERNELS_TRAIN_H
#define STK_KERNELS_TRAIN_H

#include "kernels/kernel.h"
#include "kernels/train/arguments.h"
#include <stoker/tensor.h>

/* The last has a NULL name. */
extern const struct stk_kernel stk_train_kernels[];

/* Returns the kernel of that name, or NULL. */
const struct stk_kernel *stk_train_kernel_named(const char *name);

/* Returns kernel `name`, such as "stk_train_relu", for storage in FLOAT32, FLOAT16 or BFLOAT16. It
 * must exist. */
const struct stk_kernel *stk_train_kernel_in(const char *name, stoker_dtype dtype);

/* Returns all kernels as a fatbin, or NULL in a build without nvcc. */
const void *stk_train_fatbin(size_t *bytes);
/* What it was compiled for. */
struct stk_fatbin_targets stk_train_targets(void);

#endif
