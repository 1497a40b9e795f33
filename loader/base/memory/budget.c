/* budget.c - see budget.h. */
#include "loader/base/memory/budget.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "loader/base/io/number_file.h"

#define UNKNOWN_BYTES (UINT64_C(1) << 30) /* if nothing is known */
#define SHARE         2 /* divides what is available: the program needs memory, too */

/* ---- what there is ---- */

static uint64_t bytes_in(const char *meminfo, const char *key)
{
    const uint64_t kilobytes = stk_number_in(meminfo, key);
    return kilobytes == UINT64_MAX ? UINT64_MAX : kilobytes * 1024;
}

struct stk_memory_room stk_memory_look(const char *root)
{
    struct stk_memory_room room = { .left = UINT64_MAX, .spare = UINT64_MAX };
    char name[1024];
    char meminfo[512]; /* both are among the first lines */
    (void)snprintf(name, sizeof(name), "%s/proc/meminfo", root);
    (void)stk_text_file_read(name, meminfo, sizeof(meminfo));
    const uint64_t total = bytes_in(meminfo, "MemTotal:");
    const uint64_t available = bytes_in(meminfo, "MemAvailable:");
    if (total != UINT64_MAX && available <= total)
        stk_memory_room_lower(&room, total, total - available, 0);
    stk_cgroup_memory(root, &room);
    return room;
}

uint64_t stk_memory_available(void)
{
    const struct stk_memory_room room = stk_memory_look("");
    return room.left == UINT64_MAX ? UNKNOWN_BYTES : room.left;
}

/* ---- shared among ranks and loaders ---- */

/* Pages of what loaders reserved, and in the upper bits the process that they belong to: what a
 * child inherits is not its own. */
enum { PAGE_SHIFT = 12, PAGES_BITS = 42 };
#define PAGES_MASK ((UINT64_C(1) << PAGES_BITS) - 1)

static _Atomic uint64_t reserved; /* relaxed: it is a number alone */

static uint64_t owner(void)
{
    return (uint64_t)getpid() << PAGES_BITS;
}

static uint64_t pages_of(uint64_t word)
{
    return (word & ~PAGES_MASK) == owner() ? word & PAGES_MASK : 0;
}

static uint64_t to_pages(uint64_t bytes)
{
    const uint64_t pages = (bytes >> PAGE_SHIFT) + ((bytes & ((1U << PAGE_SHIFT) - 1)) != 0);
    return pages < PAGES_MASK ? pages : PAGES_MASK;
}

uint64_t stk_budget_left(uint64_t available_bytes, uint32_t ranks)
{
    const uint64_t taken = pages_of(atomic_load_explicit(&reserved, memory_order_relaxed))
                           << PAGE_SHIFT;
    const uint64_t most = available_bytes / ranks / SHARE;
    return most > taken ? most - taken : 0;
}

void stk_budget_reserve(uint64_t bytes)
{
    uint64_t word = atomic_load_explicit(&reserved, memory_order_relaxed);
    uint64_t next;
    do {
        const uint64_t pages = pages_of(word) + to_pages(bytes);
        next = owner() | (pages < PAGES_MASK ? pages : PAGES_MASK);
    } while (!atomic_compare_exchange_weak_explicit(&reserved, &word, next, memory_order_relaxed,
                                                    memory_order_relaxed));
}

void stk_budget_give_back(uint64_t bytes)
{
    uint64_t word = atomic_load_explicit(&reserved, memory_order_relaxed);
    uint64_t next;
    do {
        const uint64_t pages = pages_of(word);
        const uint64_t back = to_pages(bytes);
        next = owner() | (pages > back ? pages - back : 0);
    } while (!atomic_compare_exchange_weak_explicit(&reserved, &word, next, memory_order_relaxed,
                                                    memory_order_relaxed));
}
