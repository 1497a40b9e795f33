/* cache.h - samples held in memory for good: nothing is evicted, so nothing thrashes.
 *
 * Samples below the capacity may be held, as long as there is room. They are grouped into blocks
 * that become valid together: one sample, or the neighbors that one read brings in if a file holds
 * them side by side. Blocks lie one behind the other in the order in which they were first begun,
 * so that the memory in use is what they hold: the kernel clears 2 MB for the first byte of a huge
 * page, and samples arrive in any order.
 *
 *   words   | place + 1, state | place + 1, state | ...   one word per block, in order of ids:
 *                56 bits  8 bits                            its offset in rows plus 1 (0 = none
 *                                                           yet), and its state
 *   rows    | block 7 | block 2 | block 9 | ...             in order of arrival
 *
 *   EMPTY ──begin──▶ LOADING ──commit──▶ READY (for good)
 *     ▲                 │
 *     └──── cancel ─────┘ its place stays
 *
 * One worker owns a LOADING block; until it is READY, others read those samples from storage.
 *
 * Loaders of several processes can share a cache: segment.h, share.h. A LOADING block then names
 * its loader (LOADING + its number), and if that process has died, the next that wants the block
 * takes it over. The loader that fills a block stores a checksum beside it, which each of the
 * others compares once, before it uses the block; a block that was changed since then counts as not
 * held, and its samples are read from storage. A loader keeps the word that it checked: a place
 * that another process writes later is not followed.
 *
 * When the machine's memory, or that of a control group, runs short, the cache is paused: it keeps
 * its blocks and takes no more memory. It checks each time it has grown by a fraction of what is
 * left, and occasionally while it is paused.
 */
#ifndef STK_CACHE_CACHE_H
#define STK_CACHE_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

#include "loader/base/memory/memory.h"
#include "loader/cache/share.h"

/* A block's word: its place + 1 above, its state below. */
enum { STK_CACHE_PLACE_SHIFT = 8 };

/* LOADING + the loader's number among those that share the cache, up to 255. */
enum { STK_CACHE_EMPTY, STK_CACHE_READY, STK_CACHE_LOADING };

/* What this loader knows about a block of a shared cache that is READY, beside STK_CACHE_EMPTY and
 * STK_CACHE_READY. */
enum { STK_CACHE_SPOILT = STK_CACHE_LOADING };

struct stk_cache {
    stoker_cache kind;    /* NONE, ENCODED or DECODED; never AUTO */
    size_t stride_bytes;  /* from one sample of a block to the next */
    uint64_t capacity;    /* samples 0..capacity-1 may be held */
    uint64_t rows_bytes;  /* room for samples; with whole_places enough for all of them */
    uint32_t block_rows;  /* samples that become READY together */
    uint32_t block_shift; /* log2 of it */
    struct stk_region rows;
    struct stk_region words; /* _Atomic uint64_t per block */
    struct stk_region sums;  /* uint32_t per block, if shared: CRC-32C of its samples */
    /* _Atomic uint64_t per block, if shared: the words of blocks whose sums were right. Each loader
     * has its own. */
    struct stk_region checked;
    _Atomic uint64_t *usable; /* in words, or in checked if the cache is shared: READY = use it */
    struct stk_region sizes; /* uint32_t per block, the bytes of its place; not with whole_places */
    bool whole_places;       /* all blocks take rows * stride_bytes */
    const char *root;        /* where the machine's memory is looked up: see stk_memory_look */
    bool has_gaps;           /* parts of a sample may be shorter than their places */
    uint64_t rows_at;        /* where rows begin in the segment, if shared */
    struct stk_cache_counts own; /* if the cache is shared, only held_rows: those checked */
    _Atomic uint64_t spoilt;     /* blocks found changed, if the cache is shared */
    struct stk_cache_share share;
    int share_error; /* -errno: it was to be shared and could not; else 0 */
};

struct stk_cache_options {
    stoker_cache kind;     /* NONE, ENCODED or DECODED */
    uint64_t budget_bytes; /* most memory in all: rows, words, rounding */
    uint64_t count;        /* samples */
    size_t stride_bytes;   /* length of the longest sample */
    uint32_t block_rows;   /* a power of two; 1 unless whole_places */
    bool whole_places;     /* ENCODED: samples are all as long as the longest */
    bool has_gaps;    /* a sample has several parts, and those may be shorter than their places */
    const char *root; /* NULL = the real one; a test's folder. Not copied */
    /* STK_SEGMENT_KEY_BYTES: share it with every loader that gives the same key, which must stand
     * for the same samples, kind, stride and blocks. NULL = do not share. Not copied. */
    const char *key;
    bool join_only; /* with key: do not make one (share_error -ENOENT) */
};

/* Bytes that a cache of options->count samples takes in all; UINT64_MAX = more than there are. */
uint64_t stk_cache_bytes(const struct stk_cache_options *options, uint64_t capacity);

/* Returns how many samples a cache with that budget may hold; *rows_bytes: its room for them. With
 * whole_places it has room for each of these, the first ones in whole blocks. Otherwise lengths are
 * not known yet: all samples may be held, until the room is used up. */
uint64_t stk_cache_capacity(const struct stk_cache_options *options, uint64_t *rows_bytes);

/* Reserve address space; pages come later. A budget too small for one block makes kind NONE. If it
 * was to be shared and cannot be, kind is NONE, too, and share_error says why: -errno, see
 * stk_cache_share_open(). 0 or STOKER_ENOMEM; on failure all zero. */
int stk_cache_init(struct stk_cache *cache, const struct stk_cache_options *options);
void stk_cache_destroy(struct stk_cache *cache); /* all zero is allowed */

static inline struct stk_cache_counts *stk_cache_counts(const struct stk_cache *cache)
{
    return cache->share.header != NULL ? &cache->share.header->counts
                                       : (struct stk_cache_counts *)&cache->own;
}

static inline _Atomic uint64_t *stk_cache_word(const struct stk_cache *cache, uint64_t id)
{
    return (_Atomic uint64_t *)cache->words.base + (id >> cache->block_shift);
}

static inline uint8_t stk_cache_state_of(uint64_t word)
{
    return (uint8_t)word;
}

/* Where a sample lies by the word of its block, which has a place. */
static inline uint8_t *stk_cache_row_at(const struct stk_cache *cache, uint64_t word, uint64_t id)
{
    return (uint8_t *)cache->rows.base + (word >> STK_CACHE_PLACE_SHIFT) - 1 +
           (id & (cache->block_rows - 1)) * cache->stride_bytes;
}

/* A sample of a block that this loader has begun, or that is held. */
static inline uint8_t *stk_cache_row(const struct stk_cache *cache, uint64_t id)
{
    return stk_cache_row_at(
        cache, atomic_load_explicit(stk_cache_word(cache, id), memory_order_relaxed), id);
}

/* Compare the sum of a shared cache's block, the first time that this loader wants it. Returns true
 * if it may be used. */
bool stk_cache_check(const struct stk_cache *cache, uint64_t id);

/* The row if it is held, else NULL. Acquire: pairs with commit, or with check. */
static inline const uint8_t *stk_cache_find(const struct stk_cache *cache, uint64_t id)
{
    if (id >= cache->capacity)
        return NULL;
    const _Atomic uint64_t *usable = &cache->usable[id >> cache->block_shift];
    uint64_t word = atomic_load_explicit(usable, memory_order_acquire);
    if (stk_cache_state_of(word) != STK_CACHE_READY) {
        if (cache->share.header == NULL || !stk_cache_check(cache, id))
            return NULL;
        word = atomic_load_explicit(usable, memory_order_acquire);
    }
    return stk_cache_row_at(cache, word, id);
}

/* The length that begin() was given for a sample that is held or begun; not with whole_places. */
static inline size_t stk_cache_length(const struct stk_cache *cache, uint64_t id)
{
    return ((const uint32_t *)cache->sizes.base)[id];
}

/* The row of a cache that holds_all. */
static inline const uint8_t *stk_cache_held(const struct stk_cache *cache, uint64_t id)
{
    const uint64_t word =
        atomic_load_explicit(&cache->usable[id >> cache->block_shift], memory_order_relaxed);
    return stk_cache_row_at(cache, word, id);
}

/* Returns true if all samples of the data set are held, and checked if need be: for good, since
 * none is ever dropped. */
static inline bool stk_cache_holds_all(const struct stk_cache *cache, uint64_t count)
{
    return cache->capacity == count && count > 0 &&
           atomic_load_explicit(&cache->own.held_rows, memory_order_acquire) == count;
}

/* Claim the loading of id's block, which will take `bytes` bytes (with whole_places all of them).
 * Returns where sample id goes, or NULL: there is no room, it is held, is loaded by another, or
 * memory is short. */
uint8_t *stk_cache_begin(struct stk_cache *cache, uint64_t id, size_t bytes);

/* The block is filled: make it visible to all threads. */
void stk_cache_commit(struct stk_cache *cache, uint64_t id);

/* Loading failed: let another try. */
void stk_cache_cancel(struct stk_cache *cache, uint64_t id);

/* What this loader was loading will not come, since its workers have ended: let others, or the next
 * owner, load it. */
void stk_cache_abandon(struct stk_cache *cache);

/* First sample of id's block, and the number of its samples. */
static inline uint64_t stk_cache_block_first(const struct stk_cache *cache, uint64_t id)
{
    return id >> cache->block_shift << cache->block_shift;
}

static inline uint32_t stk_cache_block_rows(const struct stk_cache *cache, uint64_t id)
{
    uint64_t left = cache->capacity - stk_cache_block_first(cache, id);
    return left < cache->block_rows ? (uint32_t)left : cache->block_rows;
}

/* Bytes of address space reserved for rows. */
uint64_t stk_cache_reserved_bytes(const struct stk_cache *cache);

/* Returns true while the cache takes no more memory because memory is short. */
bool stk_cache_is_paused(const struct stk_cache *cache);

#endif
