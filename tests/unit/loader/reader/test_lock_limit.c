/* test_lock_limit.c - what a ring may lock follows the limit and the capability.
 *
 * Method: children with other limits, with and without privileges, say what they may.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/reader/lock_limit.h"

enum { UNLIMITED = 1, ONE_PAGE = 2, HUNDREDTH = 4, ALL = 8, CANNOT = 64 };

/* What a process may that has this limit. */
static int judge(rlim_t bytes, bool privileged)
{
    const struct rlimit limit = { bytes, RLIM_INFINITY };
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 &&
        setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ bytes, bytes }) != 0)
        return CANNOT;
    if (!privileged && geteuid() == 0 && setuid(40000 + (uid_t)getpid() % 20000) != 0)
        return CANNOT;
    return (stk_lock_is_unlimited() ? UNLIMITED : 0) | (stk_lock_may_take(4096) ? ONE_PAGE : 0) |
           (stk_lock_may_take(80 << 10) ? HUNDREDTH : 0) | (stk_lock_may_take(8 << 20) ? ALL : 0);
}

static int in_child(rlim_t bytes, bool privileged)
{
    fflush(NULL);
    const pid_t child = fork();
    int status = 0;
    if (child == 0)
        _exit(judge(bytes, privileged));
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

Test(lock_limit, follows_the_limit_of_a_user)
{
    const int small = in_child(8 << 20, false);
    if (small & CANNOT)
        cr_skip_test("the limit cannot be set");
    cr_assert_eq(small, ONE_PAGE); /* 64 KiB of 8 MiB */
    cr_assert_eq(in_child(0, false), 0);
    const int all = in_child(RLIM_INFINITY, false);
    cr_assert(all == (UNLIMITED | ONE_PAGE | HUNDREDTH | ALL) || (all & CANNOT) != 0);
}

Test(lock_limit, the_capability_lifts_it)
{
    if (geteuid() != 0)
        cr_skip_test("needs root");
    const int found = in_child(8 << 20, true);
    if (found & CANNOT)
        cr_skip_test("the limit cannot be set");
    /* In a container root may lack the capability: then it is like any user. */
    cr_assert((found & ~UNLIMITED) == ONE_PAGE, "%d", found);
}
