/* cache.c - see cache.h. */
#include "loader/cache/cache.h"

#include <assert.h>
#include <stddef.h>
#include <unistd.h>

#include <stoker/error.h>

#include "loader/base/crc32c/crc32c.h"
#include "loader/base/memory/budget.h"

enum {
    LINE_BYTES = 64,        /* samples of different lengths begin at a cache line */
    TABLES_PART_MIN = 8,    /* tables for all samples may take this part of the budget, 1/8 */
    LOOKS_PER_SPARE = 16,   /* checks of the machine's memory until that is short */
    REFUSED_PER_LOOK = 1024 /* rows refused between two checks while paused */
};

#define GROWTH_MIN (UINT64_C(1) << 20) /* bytes between two checks */
#define GROWTH_MAX (UINT64_C(64) << 20)

/* ---- create and destroy ---- */

static bool has_whole_places(const struct stk_cache_options *options)
{
    return options->kind == STOKER_CACHE_DECODED || options->whole_places;
}

/* Bytes of the tables beside the rows: words, sizes and sums. */
static uint64_t tables_bytes(const struct stk_cache_options *options, uint64_t capacity)
{
    const uint64_t blocks = capacity / options->block_rows + 1;
    const uint64_t words = stk_region_bytes(blocks * sizeof(uint64_t));
    const uint64_t numbers = stk_region_bytes(blocks * sizeof(uint32_t));
    return words + (has_whole_places(options) ? 0 : numbers) +
           (options->key == NULL ? 0 : numbers + words);
}

uint64_t stk_cache_bytes(const struct stk_cache_options *options, uint64_t capacity)
{
    uint64_t rows;
    if (capacity == 0)
        return 0;
    if (__builtin_mul_overflow(capacity, (uint64_t)options->stride_bytes, &rows) ||
        rows > UINT64_MAX / 2)
        return UINT64_MAX;
    return stk_region_bytes(rows) + tables_bytes(options, capacity);
}

/* The most samples that fit if each is as long as the longest, with all that belongs to them. */
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

uint64_t stk_cache_capacity(const struct stk_cache_options *options, uint64_t *rows_bytes)
{
    uint64_t capacity = fitting(options);
    *rows_bytes = capacity * options->stride_bytes;
    if (capacity == options->count)
        return capacity;
    /* A partial cache ends with a whole block. */
    capacity -= capacity % options->block_rows;
    *rows_bytes = capacity * options->stride_bytes;
    const uint64_t tables = tables_bytes(options, options->count);
    if (has_whole_places(options) || tables > options->budget_bytes / TABLES_PART_MIN)
        return capacity;
    const uint64_t left = options->budget_bytes - tables;
    *rows_bytes = left - left % (left < STK_HUGE_PAGE_BYTES ? stk_region_bytes(1)
                                                            : (uint64_t)STK_HUGE_PAGE_BYTES);
    return *rows_bytes > 0 ? options->count : 0;
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
    const bool is_shared = cache->share.header != NULL;
    int rc = map_one(cache, &cache->words, blocks_of(cache) * sizeof(uint64_t));
    if (rc == 0 && !cache->whole_places)
        rc = map_one(cache, &cache->sizes, blocks_of(cache) * sizeof(uint32_t));
    if (rc == 0 && is_shared)
        rc = map_one(cache, &cache->sums, blocks_of(cache) * sizeof(uint32_t));
    if (rc == 0 && is_shared)
        rc = stk_region_map(&cache->checked, blocks_of(cache) * sizeof(uint64_t));
    cache->rows_at = cache->share.mapped;
    if (rc == 0)
        rc = map_one(cache, &cache->rows, cache->rows_bytes);
    cache->usable = is_shared ? cache->checked.base : cache->words.base;
    return rc;
}

/* Bytes of a segment for all regions. */
static uint64_t data_bytes(const struct stk_cache *cache)
{
    const uint64_t numbers = stk_cache_share_bytes(blocks_of(cache) * sizeof(uint32_t));
    return stk_cache_share_bytes(blocks_of(cache) * sizeof(uint64_t)) +
           (cache->whole_places ? 1 : 2) * numbers + stk_cache_share_bytes(cache->rows_bytes);
}

/* Returns 0, or -errno and the cache holds nothing. */
static int share(struct stk_cache *cache, const struct stk_cache_options *options)
{
    struct stk_share_form form = { .count = options->count,
                                   .capacity = cache->capacity,
                                   .rows_bytes = cache->rows_bytes,
                                   .stride_bytes = cache->stride_bytes,
                                   .block_rows = cache->block_rows,
                                   .kind = (uint32_t)cache->kind,
                                   .whole_places = cache->whole_places };
    const int rc = stk_cache_share_open(&cache->share, options->key, &form,
                                        options->join_only ? 0 : data_bytes(cache));
    cache->capacity = form.capacity;
    cache->rows_bytes = form.rows_bytes;
    if (rc < 0)
        *cache = (struct stk_cache){ .kind = STOKER_CACHE_NONE, .share_error = rc };
    return rc;
}

int stk_cache_init(struct stk_cache *cache, const struct stk_cache_options *options)
{
    assert(options->kind != STOKER_CACHE_AUTO);
    assert(options->block_rows >= 1);
    assert((options->block_rows & (options->block_rows - 1)) == 0);
    assert(options->block_rows == 1 || has_whole_places(options));
    *cache = (struct stk_cache){ .kind = STOKER_CACHE_NONE };
    if (options->kind == STOKER_CACHE_NONE || options->stride_bytes == 0)
        return 0;

    uint64_t rows_bytes;
    const uint64_t capacity = stk_cache_capacity(options, &rows_bytes);
    if (capacity == 0)
        return 0;

    cache->kind = options->kind;
    cache->stride_bytes = options->stride_bytes;
    cache->capacity = capacity;
    cache->rows_bytes = rows_bytes;
    cache->block_rows = options->block_rows;
    cache->block_shift = (uint32_t)__builtin_ctz(options->block_rows);
    cache->whole_places = has_whole_places(options);
    cache->has_gaps = options->has_gaps;
    cache->root = options->root == NULL ? "" : options->root;
    if (options->key != NULL && share(cache, options) < 0)
        return 0;
    const int rc = map_all(cache);
    if (rc < 0) {
        stk_cache_destroy(cache);
        return rc;
    }
    uint64_t never = 0; /* the first of the loaders that share it sets it */
    atomic_compare_exchange_strong_explicit(&stk_cache_counts(cache)->look_at, &never, GROWTH_MIN,
                                            memory_order_relaxed, memory_order_relaxed);
    return 0;
}

void stk_cache_destroy(struct stk_cache *cache)
{
    if (cache->share.header != NULL && cache->words.base != NULL)
        stk_cache_abandon(cache);
    stk_region_unmap(&cache->rows);
    stk_region_unmap(&cache->words);
    stk_region_unmap(&cache->sizes);
    stk_region_unmap(&cache->sums);
    stk_region_unmap(&cache->checked);
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

/* Bytes of a block's place. */
static size_t bytes_of(const struct stk_cache *cache, uint64_t id)
{
    return cache->whole_places ? stk_cache_block_rows(cache, id) * cache->stride_bytes
                               : stk_cache_length(cache, id);
}

/* Returns true if a word gives a place within rows: another process may have written anything. */
static bool has_place(const struct stk_cache *cache, uint64_t word, size_t bytes)
{
    const uint64_t end = word >> STK_CACHE_PLACE_SHIFT;
    return end > 0 && bytes <= cache->rows.bytes && end - 1 <= cache->rows.bytes - bytes;
}

/* The next `bytes` bytes of rows, as part of a word; 0 = there is no room. */
static uint64_t take_place(struct stk_cache *cache, size_t bytes)
{
    struct stk_cache_counts *counts = stk_cache_counts(cache);
    uint64_t taken = atomic_load_explicit(&counts->taken_bytes, memory_order_relaxed);
    do {
        if (bytes > cache->rows.bytes || taken > cache->rows.bytes - bytes)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&counts->taken_bytes, &taken, taken + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    uint64_t at = atomic_load_explicit(&counts->look_at, memory_order_relaxed);
    if (taken + bytes >= at && /* while this one looks, the others look at the next GROWTH_MIN */
        atomic_compare_exchange_strong_explicit(&counts->look_at, &at, taken + bytes + GROWTH_MIN,
                                                memory_order_relaxed, memory_order_relaxed))
        check_memory(cache);
    return (taken + 1) << STK_CACHE_PLACE_SHIFT;
}

/* While paused, only blocks that have a place are admitted. */
static bool may_grow(struct stk_cache *cache, uint64_t word)
{
    struct stk_cache_counts *counts = stk_cache_counts(cache);
    if (!atomic_load_explicit(&counts->paused, memory_order_relaxed) ||
        word >> STK_CACHE_PLACE_SHIFT != 0)
        return true;
    const uint64_t refused =
        atomic_fetch_add_explicit(&counts->refused, 1U, memory_order_relaxed) + 1;
    if (refused % REFUSED_PER_LOOK == 0)
        check_memory(cache);
    return !atomic_load_explicit(&counts->paused, memory_order_relaxed);
}

/* Returns true if a block may be claimed: it is empty, or its loader has died and writes there no
 * more. */
static bool is_free(const struct stk_cache *cache, uint64_t word)
{
    const uint8_t state = stk_cache_state_of(word);
    if (state < STK_CACHE_LOADING || cache->share.header == NULL)
        return state == STK_CACHE_EMPTY;
    const uint32_t owner = (uint32_t)state - STK_CACHE_LOADING;
    return owner != cache->share.member &&
           stk_members_is_dead(&cache->share.header->members, owner);
}

/* Give a claimed block its place, unless it has one that is long enough. Returns the word, or 0. */
static uint64_t place_block(struct stk_cache *cache, uint64_t id, uint64_t word, size_t bytes)
{
    if (!cache->whole_places && (bytes > UINT32_MAX || bytes > cache->stride_bytes))
        return 0;
    if (word >> STK_CACHE_PLACE_SHIFT == 0) {
        /* Not longer than the longest sample, or a budget for all of them would not do. */
        const size_t line_end = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
        const size_t place_bytes = cache->whole_places              ? bytes
                                   : line_end > cache->stride_bytes ? cache->stride_bytes
                                                                    : line_end;
        word |= take_place(cache, place_bytes);
        if (!cache->whole_places)
            ((uint32_t *)cache->sizes.base)[id] = (uint32_t)bytes;
    }
    return bytes <= bytes_of(cache, id) && has_place(cache, word, bytes) ? word : 0;
}

static uint64_t with_state(uint64_t word, uint32_t state)
{
    return (word >> STK_CACHE_PLACE_SHIFT << STK_CACHE_PLACE_SHIFT) | state;
}

uint8_t *stk_cache_begin(struct stk_cache *cache, uint64_t id, size_t bytes)
{
    if (id >= cache->capacity)
        return NULL;
    _Atomic uint64_t *at = stk_cache_word(cache, id);
    uint64_t word = atomic_load_explicit(at, memory_order_relaxed);
    if (!is_free(cache, word) || !may_grow(cache, word) ||
        !atomic_compare_exchange_strong_explicit(
            at, &word, with_state(word, STK_CACHE_LOADING + cache->share.member),
            memory_order_acquire, memory_order_relaxed))
        return NULL;
    if (cache->whole_places)
        bytes = stk_cache_block_rows(cache, id) * cache->stride_bytes;
    const uint64_t placed = place_block(cache, id, word, bytes);
    if (placed == 0) {
        atomic_store_explicit(at, with_state(word, STK_CACHE_EMPTY), memory_order_relaxed);
        return NULL;
    }
    atomic_store_explicit(at, with_state(placed, STK_CACHE_LOADING + cache->share.member),
                          memory_order_relaxed);
    if (stk_cache_state_of(word) == STK_CACHE_EMPTY) /* else the dead loader has counted it */
        atomic_fetch_add_explicit(&stk_cache_counts(cache)->coming_bytes,
                                  (int64_t)bytes_of(cache, id), memory_order_relaxed);
    return stk_cache_row_at(cache, placed, id);
}

/* ---- sums of a shared cache's blocks ---- */

/* The sum of bytes that may have pages without memory, which this does not take: a page of zeros
 * adds nothing. */
static uint32_t sum_of_pages(const struct stk_cache *cache, uint64_t from, uint64_t size)
{
    const int memory = cache->share.segment.memory;
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
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

/* The sum of a block that has a place: its number, its length, and all bytes there. */
static uint32_t sum_of(const struct stk_cache *cache, uint64_t id, uint64_t word, size_t bytes)
{
    const uint8_t *rows = stk_cache_row_at(cache, word, stk_cache_block_first(cache, id));
    const uint32_t number = (uint32_t)(id >> cache->block_shift);
    if (cache->has_gaps)
        return number ^ sum_of_pages(cache, (word >> STK_CACHE_PLACE_SHIFT) - 1, bytes);
    return stk_crc32c(stk_crc32c(number, &bytes, sizeof(bytes)), rows, bytes);
}

static uint32_t *sum_at(const struct stk_cache *cache, uint64_t id)
{
    return (uint32_t *)cache->sums.base + (id >> cache->block_shift);
}

/* Notes what this loader knows of a shared block. Returns true for the first thread that does.
 * Release: pairs with the acquire in find. */
static bool note(const struct stk_cache *cache, uint64_t id, uint64_t word)
{
    return atomic_exchange_explicit(&cache->usable[id >> cache->block_shift], word,
                                    memory_order_release) == STK_CACHE_EMPTY;
}

bool stk_cache_check(const struct stk_cache *cache, uint64_t id)
{
    struct stk_cache *own = (struct stk_cache *)cache; /* atomic members alone */
    const uint64_t word = atomic_load_explicit(stk_cache_word(cache, id), memory_order_acquire);
    if (stk_cache_state_of(word) != STK_CACHE_READY ||
        atomic_load_explicit(&cache->usable[id >> cache->block_shift], memory_order_relaxed) ==
            STK_CACHE_SPOILT)
        return false;
    const size_t bytes = bytes_of(cache, id);
    const bool good =
        has_place(cache, word, bytes) && sum_of(cache, id, word, bytes) == *sum_at(cache, id);
    if (!note(cache, id, good ? word : STK_CACHE_SPOILT))
        return good;
    if (good)
        atomic_fetch_add_explicit(&own->own.held_rows, stk_cache_block_rows(cache, id),
                                  memory_order_release);
    else
        atomic_fetch_add_explicit(&own->spoilt, 1U, memory_order_relaxed);
    return good;
}

/* ---- the end of loading ---- */

static void end_loading(struct stk_cache *cache, uint64_t id)
{
    atomic_fetch_sub_explicit(&stk_cache_counts(cache)->coming_bytes, (int64_t)bytes_of(cache, id),
                              memory_order_relaxed);
}

void stk_cache_commit(struct stk_cache *cache, uint64_t id)
{
    struct stk_cache_counts *counts = stk_cache_counts(cache);
    const uint64_t word = with_state(
        atomic_load_explicit(stk_cache_word(cache, id), memory_order_relaxed), STK_CACHE_READY);
    const uint32_t rows = stk_cache_block_rows(cache, id);
    const size_t bytes = bytes_of(cache, id);
    const bool is_shared = cache->share.header != NULL;
    if (is_shared && !has_place(cache, word, bytes)) { /* another process has written there */
        stk_cache_cancel(cache, id);
        return;
    }
    end_loading(cache, id);
    if (is_shared)
        *sum_at(cache, id) = sum_of(cache, id, word, bytes);
    atomic_fetch_add_explicit(&counts->held_bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(stk_cache_word(cache, id), word, memory_order_release);
    atomic_fetch_add_explicit(&counts->held_rows, rows, memory_order_release);
    if (is_shared && note(cache, id, word))
        atomic_fetch_add_explicit(&cache->own.held_rows, rows, memory_order_release);
}

void stk_cache_cancel(struct stk_cache *cache, uint64_t id)
{
    _Atomic uint64_t *at = stk_cache_word(cache, id);
    const uint64_t word = atomic_load_explicit(at, memory_order_relaxed);
    end_loading(cache, id);
    atomic_store_explicit(at, with_state(word, STK_CACHE_EMPTY), memory_order_release);
}

void stk_cache_abandon(struct stk_cache *cache)
{
    const uint32_t mine = STK_CACHE_LOADING + cache->share.member;
    for (uint64_t id = 0; id < cache->capacity; id += cache->block_rows)
        if (stk_cache_state_of(
                atomic_load_explicit(stk_cache_word(cache, id), memory_order_relaxed)) == mine)
            stk_cache_cancel(cache, id);
}

/* ---- queries ---- */

uint64_t stk_cache_reserved_bytes(const struct stk_cache *cache)
{
    return cache->rows.bytes + cache->words.bytes + cache->sizes.bytes + cache->sums.bytes +
           cache->checked.bytes;
}

bool stk_cache_is_paused(const struct stk_cache *cache)
{
    return atomic_load_explicit(&stk_cache_counts(cache)->paused, memory_order_relaxed);
}
