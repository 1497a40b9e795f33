/* fork.h - detects a forked child of the process that made the loader.
 *
 * The kernel wipes a page of ours in the child (MADV_WIPEONFORK, Linux 4.14): the check costs one
 * load; getpid() would cost a system call per batch.
 */
#ifndef STK_BASE_FORK_H
#define STK_BASE_FORK_H

#include <stdbool.h>

#include "loader/base/memory/memory.h"

struct stk_fork_guard {
    struct stk_region page; /* first byte: 1 in the maker, 0 in its children */
    int pid;                /* used where the kernel cannot wipe; 0 = it can */
};

/* Returns 0 or STOKER_ENOMEM. */
int stk_fork_guard_init(struct stk_fork_guard *guard);
void stk_fork_guard_destroy(struct stk_fork_guard *guard); /* all zero is allowed */

/* Returns true if this process is not the one that made the guard. Any thread. */
bool stk_fork_guard_tripped(const struct stk_fork_guard *guard);

#endif
