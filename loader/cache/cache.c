/* cache.c - see cache.h. */
#include "loader/cache/cache.h"

#include <assert.h>

#include <stoker/error.h>

static int map_all(struct stk_cache *cache)
{
    int rc = stk_region_map(&cache->rows, cache->capacity * cache->stride_bytes);
    if (rc < 0)
        return rc;
    rc = stk_region_map(&cache->states, (cache->capacity >> cache->block_shift) + 1);
    if (rc < 0 || cache->kind != STOKER_CACHE_ENCODED)
        return rc;
    return stk_region_map(&cache->sizes, cache->capacity * sizeof(uint32_t));
}

int stk_cache_init(struct stk_cache *cache, const struct stk_cache_options *options)
{
    assert(options->kind != STOKER_CACHE_AUTO);
    assert(options->block_rows >= 1);
    assert((options->block_rows & (options->block_rows - 1)) == 0);
    *cache = (struct stk_cache){ .kind = STOKER_CACHE_NONE };
    if (options->kind == STOKER_CACHE_NONE || options->stride_bytes == 0)
        return 0;

    uint64_t fitting = options->budget_bytes / options->stride_bytes;
    uint64_t capacity = fitting < options->count ? fitting : options->count;
    if (capacity < options->count) /* a partial cache ends with a whole block */
        capacity -= capacity % options->block_rows;
    if (capacity == 0)
        return 0;

    cache->kind = options->kind;
    cache->stride_bytes = options->stride_bytes;
    cache->capacity = capacity;
    cache->block_rows = options->block_rows;
    cache->block_shift = (uint32_t)__builtin_ctz(options->block_rows);
    int rc = map_all(cache);
    if (rc < 0)
        stk_cache_destroy(cache);
    return rc;
}

void stk_cache_destroy(struct stk_cache *cache)
{
    stk_region_unmap(&cache->rows);
    stk_region_unmap(&cache->states);
    stk_region_unmap(&cache->sizes);
    *cache = (struct stk_cache){ 0 };
}

bool stk_cache_begin(struct stk_cache *cache, uint64_t id)
{
    if (id >= cache->capacity)
        return false;
    uint8_t empty = STK_CACHE_EMPTY;
    return atomic_compare_exchange_strong_explicit(stk_cache_state(cache, id), &empty,
                                                   STK_CACHE_LOADING, memory_order_acquire,
                                                   memory_order_relaxed);
}

void stk_cache_commit(struct stk_cache *cache, uint64_t id, uint64_t bytes)
{
    atomic_fetch_add_explicit(&cache->held_bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(stk_cache_state(cache, id), STK_CACHE_READY, memory_order_release);
    atomic_fetch_add_explicit(&cache->held_rows, stk_cache_block_rows(cache, id),
                              memory_order_release);
}

void stk_cache_cancel(struct stk_cache *cache, uint64_t id)
{
    atomic_store_explicit(stk_cache_state(cache, id), STK_CACHE_EMPTY, memory_order_release);
}

uint64_t stk_cache_reserved_bytes(const struct stk_cache *cache)
{
    return cache->rows.bytes + cache->states.bytes + cache->sizes.bytes;
}
