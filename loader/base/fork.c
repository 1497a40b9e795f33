/* fork.c - see fork.h. */
#include "loader/base/fork.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

int stk_fork_guard_init(struct stk_fork_guard *guard)
{
    *guard = (struct stk_fork_guard){ 0 };
    int rc = stk_region_map(&guard->page, 1);
    if (rc < 0)
        return rc;
    if (madvise(guard->page.base, guard->page.bytes, MADV_WIPEONFORK) != 0)
        guard->pid = getpid();
    *(volatile uint8_t *)guard->page.base = 1;
    return 0;
}

void stk_fork_guard_destroy(struct stk_fork_guard *guard)
{
    stk_region_unmap(&guard->page);
}

bool stk_fork_guard_tripped(const struct stk_fork_guard *guard)
{
    /* volatile: the kernel changes the byte behind the compiler's back. */
    return *(const volatile uint8_t *)guard->page.base == 0 ||
           (guard->pid != 0 && guard->pid != getpid());
}
