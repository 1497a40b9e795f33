/* kernel_names.c - the names of all kernels, one a line, as the tables have them. */
#include <stdio.h>

#include "kernels/train/train.h"
#include "kernels/transform/gpu/launch.h"

int main(void)
{
    const struct stk_kernel *const tables[] = { stk_kernels, stk_train_kernels };
    for (int i = 0; i < 2; i++)
        for (const struct stk_kernel *kernel = tables[i]; kernel->name != NULL; kernel++)
            puts(kernel->name);
    return 0;
}
