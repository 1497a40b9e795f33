/* members.c - see members.h. */
#include "loader/cache/members.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/io/number_file.h"

enum { PROCESS_BITS = 22, START_BITS = 64 - PROCESS_BITS }; /* PID_MAX_LIMIT is 2^22 */

struct process_status {
    char state;       /* 'R', 'S', ..., 'Z' */
    long threads;     /* that still exist */
    uint64_t started; /* clock ticks since boot */
};

/* Reads /proc/PID/stat (proc(5)): fields 3, 20 and 22. Field 2, the name, is in parentheses and may
 * contain any character, also those. Returns false if there is no such process. */
static bool status_of(int process, struct process_status *status)
{
    char path[32];
    char text[1024];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", process);
    const size_t got = stk_text_file_read(path, text, sizeof(text));
    const char *rest = got > 0 ? strrchr(text, ')') : NULL;
    unsigned long long started = 0;
    if (rest == NULL ||
        sscanf(rest,
               ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
               &status->state, &status->threads, &started) != 3)
        return false;
    status->started = started;
    return true;
}

static uint64_t word_of(int process, uint64_t started)
{
    return (uint64_t)process << START_BITS | (started & ((UINT64_C(1) << START_BITS) - 1));
}

int stk_members_join(struct stk_members *members)
{
    struct process_status own;
    const int process = getpid();
    if (!status_of(process, &own))
        return -ENOENT;
    const uint64_t word = word_of(process, own.started);
    for (int member = 0; member < STK_MEMBERS_MAX; member++) {
        uint64_t nobody = 0;
        /* Release: pairs with the acquire in is_dead, for a loader that found the number in the
         * cache. Acquire: pairs with leave, after which no block of the cache has this number. */
        if (atomic_compare_exchange_strong_explicit(&members->process[member], &nobody, word,
                                                    memory_order_acq_rel, memory_order_relaxed))
            return member;
    }
    return -ENOSPC;
}

void stk_members_leave(struct stk_members *members, uint32_t member)
{
    atomic_store_explicit(&members->process[member], 0, memory_order_release);
}

bool stk_members_is_dead(const struct stk_members *members, uint32_t member)
{
    const uint64_t word = member < STK_MEMBERS_MAX ? atomic_load_explicit(&members->process[member],
                                                                          memory_order_acquire)
                                                   : 0;
    if (word == 0)
        return false;
    const int process = (int)(word >> START_BITS);
    struct process_status status;
    if (!status_of(process, &status) || word_of(process, status.started) != word)
        return true;
    /* Not yet waited for by its parent. If other threads outlive the first one, the process
     * lives. */
    return (status.state == 'Z' || status.state == 'X') && status.threads <= 1;
}

uint32_t stk_members_count(const struct stk_members *members)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < STK_MEMBERS_MAX; i++)
        count += atomic_load_explicit(&members->process[i], memory_order_relaxed) != 0 &&
                 !stk_members_is_dead(members, i);
    return count;
}
