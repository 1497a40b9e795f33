/* memory.c - see memory.h. */
#include "loader/base/memory/memory.h"

#include <assert.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <stoker/error.h>

#include "loader/base/fault.h"

enum { NODES_MAX = 1024 }; /* as many as the kernel has */

/* Each block carries its size in front, a cache line long so that it stays aligned:
 * the test build counts live bytes with it. */
struct block_head {
    size_t bytes;
};

/* Heap memory of `bytes`. Large blocks are aligned to huge pages, and those that lie in them wholly
 * are asked for: fewer misses of address translation, and MPI copies from other processes page by
 * page. */
static void *take_heap_block(size_t bytes)
{
    const bool huge = bytes >= (size_t)STK_HUGE_PAGE_BYTES;
    void *block = NULL;
    if (posix_memalign(&block, huge ? STK_HUGE_PAGE_BYTES : STK_CACHE_LINE, bytes) != 0)
        return NULL;
    if (huge)
        (void)madvise(block, bytes / STK_HUGE_PAGE_BYTES * STK_HUGE_PAGE_BYTES, MADV_HUGEPAGE);
    return block;
}

void *stk_calloc(size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total) || total > SIZE_MAX / 2 - STK_CACHE_LINE)
        return NULL;
    if (stk_fault_hit(STK_FAULT_MEMORY))
        return NULL;
    size_t padded = (total + 2 * STK_CACHE_LINE - 1) / STK_CACHE_LINE * STK_CACHE_LINE;
    struct block_head *head = take_heap_block(padded);
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

void *stk_array_grow(void *items, size_t item_bytes, size_t count, size_t *capacity, size_t more)
{
    enum { CAPACITY_FIRST = 16 };
    size_t wanted = *capacity < CAPACITY_FIRST / 2 ? CAPACITY_FIRST : 2 * *capacity;
    assert(count <= *capacity);
    if (more <= *capacity - count && items != NULL)
        return items;
    if (more > SIZE_MAX / 2 - count)
        return NULL;
    if (wanted < count + more)
        wanted = count + more;
    void *larger = stk_calloc(wanted, item_bytes);
    if (larger == NULL)
        return NULL;
    if (items != NULL)
        memcpy(larger, items, count * item_bytes);
    stk_free(items);
    *capacity = wanted;
    return larger;
}

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static size_t unit_of(uint64_t bytes)
{
    return bytes >= STK_HUGE_PAGE_BYTES ? (size_t)STK_HUGE_PAGE_BYTES
                                        : (size_t)sysconf(_SC_PAGESIZE);
}

uint64_t stk_region_bytes(uint64_t bytes)
{
    const uint64_t unit = unit_of(bytes);
    return (bytes + unit - 1) / unit * unit;
}

int stk_region_map(struct stk_region *region, size_t bytes)
{
    assert(bytes >= 1);
    *region = (struct stk_region){ 0 };
    if (bytes > SIZE_MAX / 2 || stk_fault_hit(STK_FAULT_MEMORY))
        return STOKER_ENOMEM;

    bool huge = bytes >= STK_HUGE_PAGE_BYTES;
    size_t unit = unit_of(bytes);
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

int stk_region_map_file(struct stk_region *region, int fd, uint64_t offset, size_t bytes)
{
    assert(bytes >= 1);
    *region = (struct stk_region){ 0 };
    if (bytes > SIZE_MAX / 2 || stk_fault_hit(STK_FAULT_MEMORY))
        return STOKER_ENOMEM;
    const size_t usable = round_up(bytes, unit_of(bytes));
    void *base =
        mmap(NULL, usable, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset);
    if (base == MAP_FAILED)
        return STOKER_ENOMEM;
    *region = (struct stk_region){ .base = base, .bytes = usable, .mapped_bytes = usable };
    stk_fault_count((int64_t)usable);
    return 0;
}

void stk_region_prefer_node(struct stk_region *region, int32_t node)
{
    enum { WORD_BITS = 8 * sizeof(unsigned long) };
    unsigned long nodes[NODES_MAX / WORD_BITS] = { 0 };
    assert(node >= 0);
    if (node >= NODES_MAX)
        return;
    nodes[node / WORD_BITS] = 1UL << (node % WORD_BITS);
    /* The last argument but one counts bits, and the kernel leaves the last bit out. */
    (void)syscall(SYS_mbind, region->base, region->bytes, MPOL_PREFERRED, nodes, NODES_MAX + 1UL,
                  0U);
}

void stk_region_populate(struct stk_region *region)
{
    /* One page fault per huge page if the kernel gave them, else one per page. */
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

void stk_region_discard(const struct stk_region *region)
{
    if (region->base != NULL && !region->locked)
        (void)madvise(region->base, region->bytes, MADV_DONTNEED);
}

void stk_region_unmap(struct stk_region *region)
{
    if (region->base != NULL) {
        munmap(region->base, region->mapped_bytes); /* unlocks as well */
        stk_fault_count(-(int64_t)region->mapped_bytes);
    }
    *region = (struct stk_region){ 0 };
}
