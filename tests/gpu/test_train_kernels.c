/* test_train_kernels.c - every kernel of a training step on a GPU against its source in order on
 * the CPU: the launches that run from the kernels' source elsewhere (tests/unit/kernels/threads),
 * in each storage type. */
#include "kernel_case_on_gpu.h"

#include "support/gpu/channel_kernel_cases.h"

int main(int count, char **words)
{
    size_t bytes;
    const int skip = begin(stk_train_fatbin(&bytes), count, words);
    if (skip != 0)
        return skip;
    each_train_case(check);
    return end(stk_train_kernels);
}
