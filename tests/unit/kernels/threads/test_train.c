/* test_train.c - the source of every training kernel, on fibers: nothing is found, and the numbers
 * of the same source in order come out. */
#include "support/gpu/channel_kernel_cases.h"
#include "support/gpu/kernel_case_on_threads.h"

#include "support/leaks.h"

CleanTest(train_kernels_on_threads, losses)
{
    each_loss_case(check_on_threads);
}

CleanTest(train_kernels_on_threads, updates)
{
    each_update_case(check_on_threads);
}

CleanTest(train_kernels_on_threads, elementwise)
{
    each_elementwise_case(check_on_threads);
}

CleanTest(train_kernels_on_threads, pools)
{
    each_pool_case(check_on_threads);
}

CleanTest(train_kernels_on_threads, channels)
{
    each_channel_case(check_on_threads);
}

CleanTest(train_kernels_on_threads, dropout)
{
    each_dropout_case(check_on_threads);
}
