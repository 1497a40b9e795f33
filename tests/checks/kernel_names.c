/* kernel_names.c - the names of the kernels of a training step, one a line, as the table has
 * them. */
#include <stdio.h>

#include "kernels/train/train.h"

int main(void)
{
    for (const struct stk_kernel *kernel = stk_train_kernels; kernel->name != NULL; kernel++)
        puts(kernel->name);
    return 0;
}
