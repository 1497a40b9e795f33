/* members.h - list the loaders that share a cache, in its memory, and tell whether their processes
 * still run.
 *
 *   0: process 812, started at 5120077    lives
 *   1: process 813, started at 5120081    dead: /proc has no such process
 *   2: 0                                  free
 *
 * A member that leaves has finished all work marked with its number, so the number is reused. The
 * number of a dead member is never reused: its marks must not be confused with another's. A process
 * is identified by its id and its start time: ids are reused. The processes must be of one PID
 * namespace.
 */
#ifndef STK_CACHE_MEMBERS_H
#define STK_CACHE_MEMBERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { STK_MEMBERS_MAX = 250 };

struct stk_members {
    _Atomic uint64_t process[STK_MEMBERS_MAX]; /* 0 = free */
};

/* Returns this loader's number, 0..STK_MEMBERS_MAX - 1, or -ENOSPC: none is free; -ENOENT: /proc
 * cannot be read. */
int stk_members_join(struct stk_members *members);

/* The member has ended all that it marked with its number. */
void stk_members_leave(struct stk_members *members, uint32_t member);

/* Returns true if the member's process has ended without leaving: nothing of it runs or writes any
 * more. Reads a file of /proc: some 10 us. */
bool stk_members_is_dead(const struct stk_members *members, uint32_t member);

/* Members that joined, have not left, and whose processes live. Reads a file of /proc for each. */
uint32_t stk_members_count(const struct stk_members *members);

#endif
