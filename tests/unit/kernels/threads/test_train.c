/* test_train.c - the source of every training kernel, on fibers: nothing is found, and the numbers
 * of the same source in order come out.
 *
 * Each case runs in order with the kernel's own grid, then in a random order with interruptions and
 * fewer blocks.
 */
#include "support/gpu/channel_kernel_cases.h"
#include "support/gpu/kernel_case_on_threads.h"

#include "support/leaks.h"

static void check(struct kernel_case *c)
{
    static const struct kernel_run runs[] = {
        { 0 }, { .seed = 1, .interrupt_every = 24, .blocks_max = 2 }
    };
    static struct kernel_verdict verdict;
    for (size_t i = 0; i < COUNT_OF(runs); i++) {
        kernel_case_run(c, &runs[i], &verdict);
        cr_assert_eq(verdict.report.count, 0, "%s [%s]: %s", c->name, c->label,
                     verdict.report.findings[0].text);
        cr_assert_eq(verdict.differences, 0, "%s", verdict.difference);
        cr_assert(verdict.report.accesses > 0, "%s", c->name);
    }
    kernel_case_end(c);
}

CleanTest(train_kernels_on_threads, losses)
{
    each_loss_case(check);
}

/* Logits that are not finite, at each place of a lane and of a warp. A loss that is no number must
 * not look like one. */
CleanTest(train_kernels_on_threads, losses_of_what_is_not_finite)
{
    static const double bad[] = { (double)NAN, -(double)INFINITY, (double)INFINITY };
    static const uint32_t classes[] = { 1, 10, 40, 100 };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        for (size_t k = 0; k < COUNT_OF(classes); k++)
            for (uint32_t at = 0; at < classes[k]; at += 3)
                for (uint32_t also = 0; also < classes[k]; also += 16) {
                    struct kernel_case *c = cross_entropy_case(0, 1, classes[k], 0);
                    kernel_case_label(c, "%u classes, %g at %u and %u", classes[k], bad[i], at,
                                      also);
                    kernel_put(&c->buffers[0], at, bad[i]);
                    kernel_put(&c->buffers[0], also, bad[i]);
                    check(c);
                }
}

CleanTest(train_kernels_on_threads, updates)
{
    each_update_case(check);
}

CleanTest(train_kernels_on_threads, elementwise)
{
    each_elementwise_case(check);
}

CleanTest(train_kernels_on_threads, pools)
{
    each_pool_case(check);
}

CleanTest(train_kernels_on_threads, channels)
{
    each_channel_case(check);
}

CleanTest(train_kernels_on_threads, dropout)
{
    each_dropout_case(check);
}
