/* forked_examples.c - tests that pass, fail, crash and skip in the ways that forked_criterion.c
 * must distinguish. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>

static int prepared;

static void prepare(void)
{
    prepared++;
}

static void fail_at_the_end(void)
{
    cr_assert_eq(prepared, 0, "a failure in .fini counts");
}

TestSuite(passes, .init = prepare);

Test(passes, after_both_inits, .init = prepare)
{
    cr_assert_eq(prepared, 2);
}

Test(passes, in_memory_of_its_own)
{
    prepared = 100;
}

Test(passes, with_the_signal_expected, .signal = SIGABRT)
{
    abort();
}

Test(passes, with_the_status_expected, .exit_code = 3)
{
    exit(3);
}

Test(fails, at_an_assertion)
{
    cr_assert(false);
    abort(); /* not reached */
}

Test(fails, at_an_expectation)
{
    cr_expect_eq(1, 2);
}

Test(fails, in_its_fini, .init = prepare, .fini = fail_at_the_end)
{
}

Test(fails, without_the_signal_expected, .signal = SIGABRT)
{
}

Test(fails, with_another_status)
{
    exit(3);
}

Test(crashes, by_a_signal)
{
    raise(SIGSEGV);
}

Test(skips, by_itself)
{
    cr_skip_test("it may");
    abort(); /* not reached */
}

Test(skips, by_its_option, .disabled = true)
{
    abort();
}
