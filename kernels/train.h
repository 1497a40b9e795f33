/* train.h - the kernels of a training step: their names, how they are launched, and their twins.
 *
 *   train_arguments.h   what each is given
 *   train_*.cu          the kernels; nvcc makes one fat binary of them, which is loaded by name
 *   train_*.c           the twins: the same in plain C, whatever the grid
 *
 * A twin runs its kernel's whole launch at once, on memory that the host can read. So a step can be run
 * and checked where there is no GPU, and a stand-in for the CUDA runtime finds by name what to do. */
#ifndef STK_KERNELS_TRAIN_H
#define STK_KERNELS_TRAIN_H

#include "kernels/kernel.h"
#include "kernels/train_arguments.h"

/* Ends with one whose name is NULL. */
extern const struct stk_kernel stk_train_kernels[];

/* NULL if there is none of that name. */
const struct stk_kernel *stk_train_kernel_named(const char *name);

#endif
