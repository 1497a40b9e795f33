/* test_transform.c - the source of every kernel of the transforms, on fibers: nothing is found, and
 * the bytes of the same source in order come out; and no kernel is missing.
 */
#include "support/gpu/kernel_case_on_threads.h"
#include "support/gpu/transform_kernel_cases.h"

#include "support/leaks.h"

CleanTest(transform_kernels_on_threads, every_case)
{
    each_picture_case(check_on_threads);
    check_on_threads(cutmix_case(1, 2, 0, 24)); /* empty: no thread may divide by its lines */
}

static void note(struct kernel_case *c)
{
    ++*kernel_cases_of(c->name);
    kernel_case_end(c);
}

static void check_table(const struct stk_kernel *kernels)
{
    const struct cuda_threads_module *module = cuda_threads_open(STOKER_TEST_KERNELS);
    cr_assert_not_null(module, "%s", dlerror());
    for (const struct stk_kernel *k = kernels; k->name != NULL; k++) {
        cr_assert(*kernel_cases_of(k->name) > 0, "no case runs %s", k->name);
        cr_assert(cuda_threads_has(module, k->name), "kernels.cpp has no row for %s", k->name);
    }
}

CleanTest(transform_kernels_on_threads, every_kernel_has_a_case)
{
    each_train_case(note);
    each_picture_case(note);
    check_table(stk_kernels);
    check_table(stk_train_kernels);
}
