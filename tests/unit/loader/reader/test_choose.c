/* test_choose.c - the reader that fits this system, and the reason in words.
 *
 * A seccomp filter plays the container that forbids io_uring.
 */
#include "loader/base/fault.h"
#include "loader/reader/readers.h"
#include "support/files/reader_file.h"
#include "support/leaks.h"
#include "support/seccomp.h"

static const stoker_reader *choose(char *reason, size_t reason_bytes)
{
    const stoker_reader *chosen = NULL;
    stoker_error error = { 0 };
    cr_assert_eq(stk_reader_choose(&chosen, reason, reason_bytes, &error), 0, "%s", error.message);
    cr_assert_eq(error.code, 0); /* success leaves it alone */
    return chosen;
}

CleanTest(reader_choose, takes_io_uring_where_it_works)
{
    char reason[128] = "";
    unsetenv("STOKER_READER");
    const bool works = stk_test_reader_works(&stk_reader_uring);
    cr_assert_eq(choose(reason, sizeof(reason)), works ? &stk_reader_uring : &stk_reader_pread);
    cr_assert_neq(reason[0], '\0');
    setenv("STOKER_READER", "", 1); /* empty is unset */
    cr_assert_eq(choose(reason, sizeof(reason)), works ? &stk_reader_uring : &stk_reader_pread);
}

CleanTest(reader_choose, obeys_the_environment)
{
    static const stoker_reader *const readers[] = { &stk_reader_pread, &stk_reader_uring };
    for (size_t i = 0; i < 2; i++) {
        if (!stk_test_reader_works(readers[i]))
            continue;
        char reason[128] = "";
        setenv("STOKER_READER", readers[i]->name, 1);
        cr_assert_eq(choose(reason, sizeof(reason)), readers[i]);
        cr_assert_not_null(strstr(reason, readers[i]->name));
    }
}

CleanTest(reader_choose, a_name_that_is_none_is_named)
{
    static const char *const names[] = { "urin", "URING", "uring ", "pread,uring", "null" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const stoker_reader *chosen = NULL;
        char reason[16] = "as before";
        stoker_error error = { 0 };
        setenv("STOKER_READER", names[i], 1);
        cr_assert_eq(stk_reader_choose(&chosen, reason, sizeof(reason), &error), STOKER_EINVAL);
        cr_assert_eq(error.code, STOKER_EINVAL);
        cr_assert_eq(error.stage, STOKER_STAGE_OPTIONS);
        cr_assert_not_null(strstr(error.message, names[i]));
        cr_assert_not_null(strstr(error.message, "not one of uring, pread"));
        cr_assert_null(chosen);
        cr_assert_str_eq(reason, "as before");
        cr_assert_eq(stk_reader_choose(&chosen, reason, sizeof(reason), NULL), STOKER_EINVAL);
    }
}

static void without_rings(int os_errno, const char *reason_expected)
{
    if (!stk_test_reader_works(&stk_reader_uring))
        cr_skip_test("no io_uring here: nothing to take away");
    if (stk_seccomp_refuse_rings(os_errno) != 0)
        cr_skip_test("no seccomp filters here");
    char reason[128] = "";
    unsetenv("STOKER_READER");
    cr_assert_eq(choose(reason, sizeof(reason)), &stk_reader_pread);
    cr_assert_str_eq(reason, reason_expected);
    char cut[20] = "";
    cr_assert_eq(choose(cut, sizeof(cut)), &stk_reader_pread);
    cr_assert_eq(strncmp(cut, reason, sizeof(cut) - 1), 0);
    cr_assert_eq(strlen(cut), sizeof(cut) - 1);

    const stoker_reader *chosen = NULL;
    stoker_error error = { 0 };
    setenv("STOKER_READER", "uring", 1);
    cr_assert_eq(stk_reader_choose(&chosen, reason, sizeof(reason), &error), STOKER_EREADER);
    cr_assert_eq(error.os_errno, os_errno);
    cr_assert_not_null(strstr(error.message, strerror(os_errno)));
    cr_assert_null(chosen);
    stk_test_check_leaks();
}

Test(reader_choose, falls_back_when_rings_are_forbidden)
{
    without_rings(EPERM, "io_uring: Operation not permitted (a seccomp filter or "
                         "kernel.io_uring_disabled); reading with pread");
}

Test(reader_choose, falls_back_when_the_kernel_has_no_rings)
{
    without_rings(ENOSYS, "io_uring: Function not implemented (no io_uring in this kernel, or a "
                          "seccomp filter); reading with pread");
}

/* Setup alone may pass: Some sandboxes refuse the second call. */
CleanTest(reader_choose, falls_back_when_a_ring_can_be_made_but_not_run)
{
    if (!stk_test_reader_works(&stk_reader_uring))
        cr_skip_test("no io_uring here: nothing to take away");
    if (stk_seccomp_refuse(SYS_io_uring_enter, EPERM) != 0)
        cr_skip_test("no seccomp filters here");
    char reason[128] = "";
    unsetenv("STOKER_READER");
    cr_assert_eq(choose(reason, sizeof(reason)), &stk_reader_pread);
    cr_assert_not_null(strstr(reason, "no-op failed: Operation not permitted"));
}

/* Out of memory is no reason to read differently. */
CleanTest(reader_choose, fails_cleanly_when_out_of_memory)
{
    unsetenv("STOKER_READER");
    const int64_t live_before = stk_fault_live_bytes();
    const stoker_reader *chosen = NULL;
    for (uint64_t nth = 1; chosen == NULL; nth++) {
        cr_assert_lt(nth, 20);
        char reason[128] = "";
        stoker_error error = { 0 };
        stk_fault_arm(STK_FAULT_MEMORY, nth);
        const int rc = stk_reader_choose(&chosen, reason, sizeof(reason), &error);
        cr_assert_eq(stk_fault_disarm(), rc != 0);
        cr_assert(rc == 0 || rc == STOKER_ENOMEM);
        cr_assert_eq(error.code, rc);
        cr_assert_eq(stk_fault_live_bytes(), live_before);
    }
}
