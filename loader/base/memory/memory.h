/* memory.h - small blocks from the heap, large regions from the kernel.
 *
 * A region is page-aligned and zeroed, uses huge pages if they help, and can
 * be page-locked. Everything a loader needs is taken at create and given back at
 * destroy; nothing in between allocates.
 */
#ifndef STK_BASE_MEMORY_H
#define STK_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed memory for count x bytes, or NULL (overflow included). Free with stk_free. Blocks of 2 MiB
 * and more are advised for huge pages. */
void *stk_calloc(size_t count, size_t bytes);
void stk_free(void *block); /* NULL is allowed */

/* Make room for `more` items behind the first `count` of an array from stk_calloc() (or NULL),
 * which has memory for *capacity items. If they do not fit, at least double the capacity; new
 * memory is zeroed. Returns the array, moved if it grew, or NULL if memory is out: the array is
 * unchanged then. */
void *stk_array_grow(void *items, size_t item_bytes, size_t count, size_t *capacity, size_t more);

enum { STK_CACHE_LINE = 64, STK_HUGE_PAGE_BYTES = 2 << 20 };

struct stk_region {
    void *base;   /* NULL = not mapped */
    size_t bytes; /* usable, as asked for, rounded up to whole pages */
    size_t mapped_bytes;
    bool locked;
    bool huge; /* the kernel was asked for huge pages and agreed */
};

/* Bytes that a region of `bytes` takes, rounded up as stk_region_map() does. */
uint64_t stk_region_bytes(uint64_t bytes);

/* Map `bytes` (>= 1) of zeroed memory. Regions of 2 MiB and more are aligned to and
 * advised for huge pages. Pages are taken on first touch. Returns 0 or STOKER_ENOMEM. */
int stk_region_map(struct stk_region *region, size_t bytes);

/* Map `bytes` (>= 1) at `offset` of a file in memory (memfd_create()), which other processes may
 * map, too. Both are multiples of what stk_region_bytes() returns for them. Returns 0 or
 * STOKER_ENOMEM. */
int stk_region_map_file(struct stk_region *region, int fd, uint64_t offset, size_t bytes);

/* Take pages from this NUMA node as long as it has some: those that are touched for the first time.
 * The kernel may not know the node, or not allow it: then they come from the node of the thread
 * that touches them. */
void stk_region_prefer_node(struct stk_region *region, int32_t node);

/* Touch every page now, so that no later access faults. */
void stk_region_populate(struct stk_region *region);

/* Page-lock the region. Returns 0 or -errno. */
int stk_region_lock(struct stk_region *region);

/* Give the pages of a region from stk_region_map() back, whose bytes become 0; it stays mapped.
 * Page-locked ones are kept. */
void stk_region_discard(const struct stk_region *region);

/* Give it back; a region never mapped (all zero) is allowed. */
void stk_region_unmap(struct stk_region *region);

#endif
