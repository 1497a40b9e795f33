/* test_train.c - the source of every training kernel, on fibers: nothing is found, and the numbers
 * of the same source in order come out. */
#include "support/gpu/channel_kernel_cases.h"
#include "support/gpu/kernel_case_on_threads.h"

#include "support/leaks.h"

CleanTest(train_kernels_on_threads, every_case)
{
    each_train_case(check_on_threads);
}
