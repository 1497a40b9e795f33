/* memory.c - see memory.h. */
#include "loader/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stoker/error.h>

#include "loader/base/fault.h"

/* Each block carries its size in front, a cache line long so that it stays aligned:
 * the test build counts live bytes with it. */
struct block_head {
    size_t bytes;
};

void *stk_calloc(size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total) || total > SIZE_MAX / 2 - STK_CACHE_LINE)
        return NULL;
    if (stk_fault_hit(STK_FAULT_MEMORY))
        return NULL;
    size_t padded = (total + 2 * STK_CACHE_LINE - 1) / STK_CACHE_LINE * STK_CACHE_LINE;
    struct block_head *head = aligned_alloc(STK_CACHE_LINE, padded);
    if (head == NULL)
        return NULL;
    memset(head, 0, padded);
    head->bytes = total;
    stk_fault_count((int64_t)total);
    return (uint8_t *)head + STK_CACHE_LINE;
}

void stk_free(void *block)
{
    if (block == NULL)
        return;
    struct block_head *head = (struct block_head *)(void *)((uint8_t *)block - STK_CACHE_LINE);
    stk_fault_count(-(int64_t)head->bytes);
    free(head);
}

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

int stk_region_map(struct stk_region *region, size_t bytes)
{
    assert(bytes >= 1);
    *region = (struct stk_region){ 0 };
    if (bytes > SIZE_MAX / 2 || stk_fault_hit(STK_FAULT_MEMORY))
        return STOKER_ENOMEM;

    bool huge = bytes >= STK_HUGE_PAGE_BYTES;
    size_t unit = huge ? (size_t)STK_HUGE_PAGE_BYTES : (size_t)sysconf(_SC_PAGESIZE);
    size_t usable = round_up(bytes, unit);
    size_t mapped = huge ? usable + unit : usable; /* slack to align within */
    uint8_t *base = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return STOKER_ENOMEM;

    size_t lead = round_up((uintptr_t)base, unit) - (uintptr_t)base;
    if (lead > 0)
        munmap(base, lead);
    if (mapped - lead > usable)
        munmap(base + lead + usable, mapped - lead - usable);
    region->base = base + lead;
    region->bytes = usable;
    region->mapped_bytes = usable;
    if (huge)
        region->huge = madvise(region->base, usable, MADV_HUGEPAGE) == 0;
    stk_fault_count((int64_t)usable);
    return 0;
}

void stk_region_populate(struct stk_region *region)
{
    /* One fault per huge page where the kernel gave them, one per page elsewhere. */
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile uint8_t *bytes = region->base; /* volatile: the stores must happen */
    for (size_t at = 0; at < region->bytes; at += page)
        bytes[at] = 0;
}

int stk_region_lock(struct stk_region *region)
{
    if (stk_fault_hit(STK_FAULT_LOCK))
        return -ENOMEM;
    if (mlock(region->base, region->bytes) != 0)
        return -errno;
    region->locked = true;
    return 0;
}

void stk_region_unmap(struct stk_region *region)
{
    if (region->base != NULL) {
        munmap(region->base, region->mapped_bytes); /* unlocks as well */
        stk_fault_count(-(int64_t)region->mapped_bytes);
    }
    *region = (struct stk_region){ 0 };
}

/* The number after `key` in a file of "key value" lines or a file of one number;
 * UINT64_MAX if there is none. */
static uint64_t read_number(const char *path, const char *key)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return UINT64_MAX;
    char line[256];
    uint64_t value = UINT64_MAX;
    size_t skip = strlen(key);
    while (value == UINT64_MAX && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, key, skip) != 0)
            continue;
        char *end;
        unsigned long long number = strtoull(line + skip, &end, 10);
        if (end != line + skip)
            value = number;
    }
    fclose(file);
    return value;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t stk_memory_available(void)
{
    uint64_t kilobytes = read_number("/proc/meminfo", "MemAvailable:");
    uint64_t available = kilobytes == UINT64_MAX ? UINT64_MAX : kilobytes * 1024;

    /* In a container, the root of the cgroup file system is the container's own. */
    uint64_t limit = lesser(read_number("/sys/fs/cgroup/memory.max", ""),
                            read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", ""));
    uint64_t used = read_number("/sys/fs/cgroup/memory.current", "");
    if (used == UINT64_MAX)
        used = read_number("/sys/fs/cgroup/memory/memory.usage_in_bytes", "");
    if (limit != UINT64_MAX && used != UINT64_MAX)
        available = lesser(available, limit > used ? limit - used : 0);
    return available == UINT64_MAX ? (uint64_t)1 << 30 : available;
}
