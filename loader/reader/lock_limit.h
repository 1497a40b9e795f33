/* lock_limit.h - find the limit that a ring's locked memory counts against. */
#ifndef STK_READER_LOCK_LIMIT_H
#define STK_READER_LOCK_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if the kernel does not count registered memory against any limit: RLIMIT_MEMLOCK is
 * unlimited, or the thread has CAP_IPC_LOCK in the first user namespace. */
bool stk_lock_is_unlimited(void);

/* Returns true if a ring may register `bytes`: a small part of the limit, which is per user, for
 * all rings of all of the user's processes, the rings' own memory included; when nothing is left no
 * ring can be made. */
bool stk_lock_may_take(size_t bytes);

#endif
