/* cache.c - see cache.h. */
#include "loader/cache/cache.h"

#include <assert.h>
#include <stddef.h>
#include <unistd.h>

#include <stoker/error.h>

#include "loader/base/crc32c/crc32c.h"
#include "loader/base/memory/budget.h"

enum {
    HUGE_PAGE_SHIFT = 21,
    LOOKS_PER_SPARE = 16,   /* checks of the machine's memory until that is short */
    REFUSED_PER_LOOK = 1024 /* rows refused between two checks while paused */
};

#define GROWTH_MIN (UINT64_C(1) << 20) /* bytes between two checks */
#define GROWTH_MAX (UINT64_C(64) << 20)

/* ---- create and destroy ---- */

static uint32_t page_shift(void)
{
    return (uint32_t)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
}

/* One more than fit: the region's length is rounded up. */
static uint64_t pages_of(uint64_t bytes)
{
    return (bytes >> page_shift()) + 1;
}

uint64_t stk_cache_bytes(const struct stk_cache_options *options, uint64_t capacity)
{
    uint64_t rows;
    if (capacity == 0)
        return 0;
    if (__builtin_mul_overflow(capacity, (uint64_t)options->stride_bytes, &rows) ||
        rows > UINT64_MAX / 2)
        return UINT64_MAX;
    const uint64_t blocks = capacity / options->block_rows + 1;
    const uint64_t sizes =
        options->kind == STOKER_CACHE_ENCODED ? stk_region_bytes(capacity * sizeof(uint32_t)) : 0;
    const uint64_t checks = options->key == NULL ? 0
                                                 : stk_region_bytes(blocks * sizeof(uint32_t)) +
                                                       stk_region_bytes(blocks);
    return stk_region_bytes(rows) + stk_region_bytes(blocks) + sizes + checks +
           stk_region_bytes(pages_of(rows));
}

/* The most samples whose places and all that belongs to them fit. */
static uint64_t fitting(const struct stk_cache_options *options)
{
    uint64_t fits = 0;
    uint64_t too_many = options->count + 1;
    while (too_many - fits > 1) {
        const uint64_t middle = fits + (too_many - fits) / 2;
        if (stk_cache_bytes(options, middle) <= options->budget_bytes)
            fits = middle;
        else
            too_many = middle;
    }
    return fits;
}

uint64_t stk_cache_capacity(const struct stk_cache_options *options)
{
    const uint64_t capacity = fitting(options);
    /* A partial cache ends with a whole block. */
    return capacity < options->count ? capacity - capacity % options->block_rows : capacity;
}

static int map_one(struct stk_cache *cache, struct stk_region *region, size_t bytes)
{
    return cache->share.header != NULL ? stk_cache_share_map(&cache->share, region, bytes)
                                       : stk_region_map(region, bytes);
}

static size_t blocks_of(const struct stk_cache *cache)
{
    return (cache->capacity >> cache->block_shift) + 1;
}

static int map_all(struct stk_cache *cache)
{
    const size_t row_bytes = cache->capacity * cache->stride_bytes;
    const bool is_shared = cache->share.header != NULL;
    int rc = map_one(cache, &cache->states, blocks_of(cache));
    if (rc == 0 && cache->kind == STOKER_CACHE_ENCODED)
        rc = map_one(cache, &cache->sizes, cache->capacity * sizeof(uint32_t));
    if (rc == 0 && is_shared)
        rc = map_one(cache, &cache->sums, blocks_of(cache) * sizeof(uint32_t));
    if (rc == 0 && is_shared)
        rc = stk_region_map(&cache->checked, blocks_of(cache));
    if (rc == 0)
        rc = map_one(cache, &cache->taken, pages_of(row_bytes));
    cache->rows_at = cache->share.mapped;
    if (rc == 0)
        rc = map_one(cache, &cache->rows, row_bytes);
    cache->usable = is_shared ? cache->checked.base : cache->states.base;
    return rc;
}

/* Bytes of a segment for all regions. */
static uint64_t data_bytes(const struct stk_cache *cache)
{
    const uint64_t row_bytes = cache->capacity * cache->stride_bytes;
    const uint64_t sizes =
        cache->kind == STOKER_CACHE_ENCODED ? cache->capacity * sizeof(uint32_t) : 0;
    return stk_cache_share_bytes(blocks_of(cache)) +
           stk_cache_share_bytes(blocks_of(cache) * sizeof(uint32_t)) +
           stk_cache_share_bytes(sizes) + stk_cache_share_bytes(pages_of(row_bytes)) +
           stk_cache_share_bytes(row_bytes);
}

/* Returns 0, or -errno and the cache holds nothing. */
static int share(struct stk_cache *cache, const struct stk_cache_options *options)
{
    struct stk_share_form form = { .count = options->count,
                                   .capacity = cache->capacity,
                                   .stride_bytes = cache->stride_bytes,
                                   .block_rows = cache->block_rows,
                                   .kind = (uint32_t)cache->kind,
                                   .whole_places = cache->whole_places };
    const int rc = stk_cache_share_open(&cache->share, options->key, &form,
                                        options->join_only ? 0 : data_bytes(cache));
    cache->capacity = form.capacity;
    if (rc < 0)
        *cache = (struct stk_cache){ .kind = STOKER_CACHE_NONE, .share_error = rc };
    return rc;
}

/* A huge page for a single row would waste memory that other rows could use. */
static void begin_growth(struct stk_cache *cache)
{
    const struct stk_memory_room room = stk_memory_look(cache->root);
    if (cache->rows.bytes > room.spare)
        stk_region_take_small_pages(&cache->rows);
    cache->page_shift = cache->rows.huge ? HUGE_PAGE_SHIFT : page_shift();
    uint64_t never = 0; /* the first of the loaders that share it sets it */
    atomic_compare_exchange_strong_explicit(&stk_cache_counts(cache)->look_at, &never, GROWTH_MIN,
                                            memory_order_relaxed, memory_order_relaxed);
}

int stk_cache_init(struct stk_cache *cache, const struct stk_cache_options *options)
{
    assert(options->kind != STOKER_CACHE_AUTO);
    assert(options->block_rows >= 1);
    assert((options->block_rows & (options->block_rows - 1)) == 0);
    *cache = (struct stk_cache){ .kind = STOKER_CACHE_NONE };
    if (options->kind == STOKER_CACHE_NONE || options->stride_bytes == 0)
        return 0;

    const uint64_t capacity = stk_cache_capacity(options);
    if (capacity == 0)
        return 0;

    cache->kind = options->kind;
    cache->stride_bytes = options->stride_bytes;
    cache->capacity = capacity;
    cache->block_rows = options->block_rows;
    cache->block_shift = (uint32_t)__builtin_ctz(options->block_rows);
    cache->whole_places = options->kind == STOKER_CACHE_DECODED || options->whole_places;
    cache->has_gaps = options->has_gaps;
    cache->root = options->root == NULL ? "" : options->root;
    if (options->key != NULL && share(cache, options) < 0)
        return 0;
    const int rc = map_all(cache);
    if (rc < 0)
        stk_cache_destroy(cache);
    else
        begin_growth(cache);
    return rc;
}

void stk_cache_destroy(struct stk_cache *cache)
{
    if (cache->share.header != NULL && cache->states.base != NULL)
        stk_cache_abandon(cache);
    stk_region_unmap(&cache->rows);
    stk_region_unmap(&cache->states);
    stk_region_unmap(&cache->sizes);
    stk_region_unmap(&cache->sums);
    stk_region_unmap(&cache->checked);
    stk_region_unmap(&cache->taken);
    stk_cache_share_close(&cache->share);
    *cache = (struct stk_cache){ 0 };
}

/* ---- growth ---- */

/* Pause or resume, by what the machine and control groups leave. The next check is due by what was
 * taken before this one: a thread that is stopped in here for long leaves no room to the others
 * that nobody checked. */
static void check_memory(struct stk_cache *cache)
{
    struct stk_cache_counts *counts = stk_cache_counts(cache);
    const uint64_t taken = atomic_load_explicit(&counts->taken_bytes, memory_order_relaxed);
    const int64_t coming = atomic_load_explicit(&counts->coming_bytes, memory_order_relaxed);
    const uint64_t seen = stk_memory_look(cache->root).spare;
    const uint64_t expected = coming > 0 ? (uint64_t)coming : 0;
    const uint64_t spare = seen > expected ? seen - expected : 0;
    uint64_t growth = spare / LOOKS_PER_SPARE;
    growth = growth < GROWTH_MIN ? GROWTH_MIN : growth > GROWTH_MAX ? GROWTH_MAX : growth;
    atomic_store_explicit(&counts->paused, spare == 0, memory_order_relaxed);
    atomic_store_explicit(&counts->look_at, taken + growth, memory_order_relaxed);
}

/* Count the pages that bytes from .. from + size take for the first time. */
static void count_fresh_pages(struct stk_cache *cache, uint64_t from, uint64_t size)
{
    struct stk_cache_counts *counts = stk_cache_counts(cache);
    const uint64_t last = (from + (size > 0 ? size - 1 : 0)) >> cache->page_shift;
    uint64_t fresh = 0;
    for (uint64_t at = from >> cache->page_shift; at <= last; at++) {
        _Atomic uint8_t *page = (_Atomic uint8_t *)cache->taken.base + at;
        if (atomic_load_explicit(page, memory_order_relaxed) == 0)
            fresh += atomic_exchange_explicit(page, 1U, memory_order_relaxed) == 0;
    }
    if (fresh == 0)
        return;
    const uint64_t bytes = fresh << cache->page_shift;
    const uint64_t taken =
        atomic_fetch_add_explicit(&counts->taken_bytes, bytes, memory_order_relaxed) + bytes;
    uint64_t at = atomic_load_explicit(&counts->look_at, memory_order_relaxed);
    if (taken >= at && /* and while this one looks, the others look at the next GROWTH_MIN */
        atomic_compare_exchange_strong_explicit(&counts->look_at, &at, taken + GROWTH_MIN,
                                                memory_order_relaxed, memory_order_relaxed))
        check_memory(cache);
}

/* Bytes that a block takes once its loading starts: all of them, unless samples are shorter than
 * the stride. */
static uint64_t bytes_begun(const struct stk_cache *cache, uint64_t id)
{
    return cache->whole_places ? stk_cache_block_rows(cache, id) * cache->stride_bytes : 0;
}

static uint64_t block_start(const struct stk_cache *cache, uint64_t id)
{
    return stk_cache_block_first(cache, id) * cache->stride_bytes;
}

/* Returns true if the block lies in pages that are in use. */
static bool lies_in_taken(const struct stk_cache *cache, uint64_t id)
{
    const uint64_t from = block_start(cache, id);
    const uint64_t size = stk_cache_block_rows(cache, id) * cache->stride_bytes;
    for (uint64_t at = from >> cache->page_shift; at <= (from + size - 1) >> cache->page_shift;
         at++)
        if (atomic_load_explicit((_Atomic uint8_t *)cache->taken.base + at, memory_order_relaxed) ==
            0)
            return false;
    return true;
}

/* While paused, only blocks that take no more memory are admitted. */
static bool may_grow(struct stk_cache *cache, uint64_t id)
{
    struct stk_cache_counts *counts = stk_cache_counts(cache);
    if (lies_in_taken(cache, id))
        return true;
    const uint64_t refused =
        atomic_fetch_add_explicit(&counts->refused, 1U, memory_order_relaxed) + 1;
    if (refused % REFUSED_PER_LOOK == 0)
        check_memory(cache);
    return !atomic_load_explicit(&counts->paused, memory_order_relaxed);
}

/* Take a block over that a dead process was loading: nobody writes there any more. Counts it has
 * added stay. */
static bool take_over(struct stk_cache *cache, uint64_t id, uint8_t state)
{
    if (cache->share.header == NULL || state < STK_CACHE_LOADING)
        return false;
    const uint32_t owner = (uint32_t)state - STK_CACHE_LOADING;
    return owner != cache->share.member &&
           stk_members_is_dead(&cache->share.header->members, owner) &&
           atomic_compare_exchange_strong_explicit(
               stk_cache_state(cache, id), &state,
               (uint8_t)(STK_CACHE_LOADING + cache->share.member), memory_order_acquire,
               memory_order_relaxed);
}

bool stk_cache_begin(struct stk_cache *cache, uint64_t id)
{
    if (id >= cache->capacity)
        return false;
    struct stk_cache_counts *counts = stk_cache_counts(cache);
    if (atomic_load_explicit(&counts->paused, memory_order_relaxed) && !may_grow(cache, id))
        return false;
    uint8_t state = STK_CACHE_EMPTY;
    if (!atomic_compare_exchange_strong_explicit(stk_cache_state(cache, id), &state,
                                                 (uint8_t)(STK_CACHE_LOADING + cache->share.member),
                                                 memory_order_acquire, memory_order_relaxed))
        return take_over(cache, id, state);
    const uint64_t bytes = bytes_begun(cache, id);
    if (bytes > 0) {
        atomic_fetch_add_explicit(&counts->coming_bytes, (int64_t)bytes, memory_order_relaxed);
        count_fresh_pages(cache, block_start(cache, id), bytes);
    }
    return true;
}

static void end_loading(struct stk_cache *cache, uint64_t id)
{
    const uint64_t bytes = bytes_begun(cache, id);
    if (bytes > 0)
        atomic_fetch_sub_explicit(&stk_cache_counts(cache)->coming_bytes, (int64_t)bytes,
                                  memory_order_relaxed);
}

/* ---- sums of a shared cache's blocks ---- */

/* The sum of bytes that may have pages without memory, which this does not take: a page of zeros
 * adds nothing. */
static uint32_t sum_of_pages(const struct stk_cache *cache, uint64_t from, uint64_t size)
{
    const int memory = cache->share.segment.memory;
    const uint64_t page_bytes = UINT64_C(1) << page_shift();
    const uint64_t end = cache->rows_at + from + size;
    const uint8_t *rows = cache->rows.base;
    uint32_t sum = 0;
    off_t at = lseek(memory, (off_t)(cache->rows_at + from), SEEK_DATA);
    while (at >= 0 && (uint64_t)at < end) {
        const off_t hole = lseek(memory, at, SEEK_HOLE);
        const uint64_t stop = hole < 0 || (uint64_t)hole > end ? end : (uint64_t)hole;
        for (uint64_t piece = (uint64_t)at, next; piece < stop; piece = next) {
            next = (piece / page_bytes + 1) * page_bytes;
            next = next < stop ? next : stop;
            /* Inverted before and after, so that zeros give 0; turned, so that pages in another
             * order differ. */
            const uint32_t part =
                ~stk_crc32c(UINT32_MAX, rows + (piece - cache->rows_at), next - piece);
            const uint32_t turn = (uint32_t)(piece / page_bytes) % 32;
            sum ^= part << turn | part >> (32 - turn) % 32;
        }
        at = lseek(memory, (off_t)stop, SEEK_DATA);
    }
    return sum;
}

/* The sum of a block: its number, and all bytes that its samples fill. */
static uint32_t sum_of(const struct stk_cache *cache, uint64_t id)
{
    const uint64_t first = stk_cache_block_first(cache, id);
    const uint32_t rows = stk_cache_block_rows(cache, id);
    const uint32_t number = (uint32_t)(id >> cache->block_shift);
    if (cache->has_gaps)
        return number ^ sum_of_pages(cache, block_start(cache, id), rows * cache->stride_bytes);
    if (cache->kind == STOKER_CACHE_DECODED)
        return stk_crc32c(number, stk_cache_row(cache, first), rows * cache->stride_bytes);
    uint32_t sum = number;
    for (uint64_t row = first; row < first + rows; row++) {
        const uint32_t size = *stk_cache_size(cache, row);
        sum = stk_crc32c(sum, &size, sizeof(size));
        sum = stk_crc32c(sum, stk_cache_row(cache, row),
                         size < cache->stride_bytes ? size : cache->stride_bytes);
    }
    return sum;
}

static uint32_t *sum_at(const struct stk_cache *cache, uint64_t id)
{
    return (uint32_t *)cache->sums.base + (id >> cache->block_shift);
}

/* Returns true for the first thread that says so. Release: pairs with the acquire in find. */
static bool mark_block(const struct stk_cache *cache, uint64_t id, uint8_t state)
{
    return atomic_exchange_explicit(&cache->usable[id >> cache->block_shift], state,
                                    memory_order_release) == STK_CACHE_EMPTY;
}

bool stk_cache_check(const struct stk_cache *cache, uint64_t id)
{
    struct stk_cache *own = (struct stk_cache *)cache; /* atomic members alone */
    if (atomic_load_explicit(stk_cache_state(cache, id), memory_order_acquire) != STK_CACHE_READY ||
        atomic_load_explicit(&cache->usable[id >> cache->block_shift], memory_order_relaxed) ==
            STK_CACHE_SPOILT)
        return false;
    const bool good = sum_of(cache, id) == *sum_at(cache, id);
    if (!mark_block(cache, id, good ? STK_CACHE_READY : STK_CACHE_SPOILT))
        return good;
    if (good)
        atomic_fetch_add_explicit(&own->own.held_rows, stk_cache_block_rows(cache, id),
                                  memory_order_release);
    else
        atomic_fetch_add_explicit(&own->spoilt, 1U, memory_order_relaxed);
    return good;
}

/* ---- the end of loading ---- */

void stk_cache_commit(struct stk_cache *cache, uint64_t id, uint64_t bytes)
{
    struct stk_cache_counts *counts = stk_cache_counts(cache);
    end_loading(cache, id);
    if (cache->share.header != NULL)
        *sum_at(cache, id) = sum_of(cache, id);
    if (!cache->whole_places)
        count_fresh_pages(cache, block_start(cache, id), bytes);
    atomic_fetch_add_explicit(&counts->held_bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(stk_cache_state(cache, id), STK_CACHE_READY, memory_order_release);
    atomic_fetch_add_explicit(&counts->held_rows, stk_cache_block_rows(cache, id),
                              memory_order_release);
    if (cache->share.header != NULL && mark_block(cache, id, STK_CACHE_READY))
        atomic_fetch_add_explicit(&cache->own.held_rows, stk_cache_block_rows(cache, id),
                                  memory_order_release);
}

void stk_cache_cancel(struct stk_cache *cache, uint64_t id)
{
    end_loading(cache, id);
    atomic_store_explicit(stk_cache_state(cache, id), STK_CACHE_EMPTY, memory_order_release);
}

void stk_cache_abandon(struct stk_cache *cache)
{
    const uint8_t mine = (uint8_t)(STK_CACHE_LOADING + cache->share.member);
    for (uint64_t id = 0; id < cache->capacity; id += cache->block_rows)
        if (atomic_load_explicit(stk_cache_state(cache, id), memory_order_relaxed) == mine)
            stk_cache_cancel(cache, id);
}

/* ---- queries ---- */

uint64_t stk_cache_reserved_bytes(const struct stk_cache *cache)
{
    return cache->rows.bytes + cache->states.bytes + cache->sizes.bytes + cache->sums.bytes +
           cache->checked.bytes + cache->taken.bytes;
}

bool stk_cache_is_paused(const struct stk_cache *cache)
{
    return atomic_load_explicit(&stk_cache_counts(cache)->paused, memory_order_relaxed);
}
