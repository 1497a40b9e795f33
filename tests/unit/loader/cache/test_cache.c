/* test_cache.c - rows have a place or none, one loader at a time, and stay once they are in. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "loader/base/fault.h"
#include "loader/cache/cache.h"
#include "support/files/dataset_files.h"
#include "support/leaks.h"

static struct stk_cache make(stoker_cache kind, uint64_t budget_bytes, uint64_t count,
                             size_t stride_bytes, uint32_t block_rows)
{
    const struct stk_cache_options options = { .kind = kind,
                                               .budget_bytes = budget_bytes,
                                               .count = count,
                                               .stride_bytes = stride_bytes,
                                               .block_rows = block_rows,
                                               .whole_places = block_rows > 1 };
    struct stk_cache cache;
    cr_assert_eq(stk_cache_init(&cache, &options), 0);
    return cache;
}

CleanTest(cache, a_row_is_seen_only_once_it_is_committed)
{
    struct stk_cache cache = make(STOKER_CACHE_DECODED, 1 << 20, 100, 10, 1);
    cr_assert_null(stk_cache_find(&cache, 7));
    cr_assert(stk_cache_begin(&cache, 7, 10));
    cr_assert_null(stk_cache_find(&cache, 7));
    cr_assert_not(stk_cache_begin(&cache, 7, 10), "two loaders of one row");
    cr_assert(stk_cache_begin(&cache, 8, 10), "neighbors are not bound together");
    memset(stk_cache_row(&cache, 7), 77, 10);
    stk_cache_commit(&cache, 7);
    const uint8_t *row = stk_cache_find(&cache, 7);
    cr_assert_not_null(row);
    cr_assert_eq(row[9], 77);
    cr_assert_not(stk_cache_begin(&cache, 7, 10), "loaded twice");
    cr_assert_eq(atomic_load(&stk_cache_counts(&cache)->held_bytes), 10);
    stk_cache_destroy(&cache);
}

CleanTest(cache, holds_all_once_each_block_is_committed)
{
    struct stk_cache cache = make(STOKER_CACHE_DECODED, 1 << 20, 10, 10, 4);
    for (uint64_t id = 0; id < 10; id += 4) {
        cr_assert_not(stk_cache_holds_all(&cache, 10));
        cr_assert(stk_cache_begin(&cache, id, 10));
        stk_cache_cancel(&cache, id);
        cr_assert(stk_cache_begin(&cache, id, 10));
        stk_cache_commit(&cache, id);
    }
    cr_assert(stk_cache_holds_all(&cache, 10));
    cr_assert_not(stk_cache_holds_all(&cache, 11));
    stk_cache_destroy(&cache);
    cr_assert_not(stk_cache_holds_all(&cache, 0));
}

CleanTest(cache, after_a_cancel_another_may_try)
{
    struct stk_cache cache = make(STOKER_CACHE_ENCODED, 1 << 20, 100, 10, 4);
    cr_assert(stk_cache_begin(&cache, 5, 10));
    cr_assert_not(stk_cache_begin(&cache, 6, 10), "the same block");
    stk_cache_cancel(&cache, 5);
    cr_assert_null(stk_cache_find(&cache, 5));
    cr_assert(stk_cache_begin(&cache, 6, 10));
    stk_cache_commit(&cache, 6);
    for (uint64_t id = 4; id < 8; id++)
        cr_assert_not_null(stk_cache_find(&cache, id));
    cr_assert_null(stk_cache_find(&cache, 3));
    cr_assert_null(stk_cache_find(&cache, 8));
    stk_cache_destroy(&cache);
}

/* Every budget from nothing to more than enough, every block size: never more than the budget in
 * all, and nothing more would fit. */
CleanTest(cache, takes_what_the_budget_allows_in_whole_blocks)
{
    enum { COUNT = 3700, STRIDE = 1000 };
    for (uint32_t block_rows = 1; block_rows <= 64; block_rows *= 2)
        for (uint64_t budget = 0; budget < 8000000; budget += 50021) {
            struct stk_cache cache = make(STOKER_CACHE_DECODED, budget, COUNT, STRIDE, block_rows);
            const struct stk_cache_options options = { .kind = STOKER_CACHE_DECODED,
                                                       .stride_bytes = STRIDE,
                                                       .block_rows = block_rows };
            const uint64_t fits = cache.capacity;
            cr_assert_leq(stk_cache_reserved_bytes(&cache), budget);
            cr_assert(fits == COUNT || fits % block_rows == 0);
            if (fits < COUNT)
                cr_assert_gt(stk_cache_bytes(&options, fits + block_rows), budget);
            cr_assert_eq(cache.kind, fits > 0 ? STOKER_CACHE_DECODED : STOKER_CACHE_NONE);
            cr_assert_not(stk_cache_begin(&cache, fits, 10), "no place for sample %llu",
                          (unsigned long long)fits);
            cr_assert_null(stk_cache_find(&cache, fits));
            if (fits > 0) {
                const uint64_t first = stk_cache_block_first(&cache, fits - 1);
                cr_assert_eq(first + stk_cache_block_rows(&cache, fits - 1), fits);
                cr_assert(stk_cache_begin(&cache, fits - 1, 10));
            }
            stk_cache_destroy(&cache);
        }
}

CleanTest(cache, none_holds_nothing)
{
    struct stk_cache cache = make(STOKER_CACHE_NONE, 1 << 20, 10, 10, 1);
    cr_assert_eq(stk_cache_reserved_bytes(&cache), 0);
    cr_assert_not(stk_cache_begin(&cache, 0, 10));
    stk_cache_destroy(&cache);
}

CleanTest(cache, reserves_what_stats_report)
{
    struct stk_cache cache = make(STOKER_CACHE_ENCODED, 1 << 20, 1000, 100, 1);
    cr_assert_eq((int64_t)stk_cache_reserved_bytes(&cache), stk_fault_live_bytes());
    cr_assert_geq(stk_cache_reserved_bytes(&cache), 100000U + 4000U + 8000U);
    stk_cache_destroy(&cache);
}

/* Rows of a byte: what manages them takes more than they do. */
CleanTest(cache, what_manages_it_counts_towards_the_budget)
{
    for (int kind = STOKER_CACHE_ENCODED; kind <= STOKER_CACHE_DECODED; kind++)
        for (size_t stride = 1; stride <= 64; stride *= 4) {
            struct stk_cache cache = make((stoker_cache)kind, 5000000, 100000000, stride, 1);
            const uint64_t reserved = stk_cache_reserved_bytes(&cache);
            cr_assert_leq(reserved, 5000000, "%d bytes", (int)reserved);
            cr_assert_gt(reserved, 1000000);
            cr_assert_eq((int64_t)reserved, stk_fault_live_bytes());
            stk_cache_destroy(&cache);
        }
}

/* ---- when memory gets short ---- */

static struct stk_directory machine;

static void set_available(uint64_t megabytes)
{
    char text[128];
    (void)snprintf(text, sizeof(text), "MemTotal: %d kB\nMemAvailable: %d kB\n", 160 * 1024,
                   (int)(megabytes * 1024));
    stk_file_write(&machine, "proc/meminfo", text, strlen(text));
}

/* A cache on a machine that has so much left. Remove `machine` at the end. */
static struct stk_cache make_on_machine(uint64_t megabytes, uint64_t count, size_t stride_bytes)
{
    char path[512];
    machine = stk_directory_make();
    cr_assert_eq(mkdir(stk_path_in(path, &machine, "proc"), 0755), 0);
    set_available(megabytes);
    const struct stk_cache_options options = { .kind = STOKER_CACHE_DECODED,
                                               .budget_bytes = UINT64_C(1) << 30,
                                               .count = count,
                                               .stride_bytes = stride_bytes,
                                               .block_rows = 1,
                                               .root = machine.path };
    struct stk_cache cache;
    cr_assert_eq(stk_cache_init(&cache, &options), 0);
    return cache;
}

/* Fill samples from..to; the number that came in. */
static uint32_t fill(struct stk_cache *cache, uint64_t from, uint64_t to)
{
    uint32_t came = 0;
    for (uint64_t id = from; id < to; id++) {
        uint8_t *row = stk_cache_begin(cache, id, 0);
        if (row != NULL) {
            memset(row, 1, cache->stride_bytes);
            stk_cache_commit(cache, id);
            came++;
        }
    }
    return came;
}

/* Of 160 MB an eighth is kept free. */
CleanTest(cache, stops_growing_while_memory_is_short)
{
    enum { STRIDE = 4096, COUNT = 50000, PER_MB = (1 << 20) / STRIDE };
    struct stk_cache cache = make_on_machine(100, COUNT, STRIDE);
    cr_assert_eq(fill(&cache, 0, 5000), 5000);
    cr_assert_not(stk_cache_is_paused(&cache));
    set_available(21); /* a MB more than the eighth: it continues, and checks again after a MB */
    cr_assert_eq(fill(&cache, 5000, 8000), 3000);
    cr_assert_not(stk_cache_is_paused(&cache));
    set_available(20);
    const uint32_t came = fill(&cache, 8000, 9000);
    cr_assert_leq(came, 3 * PER_MB, "%u rows came in", came);
    cr_assert(stk_cache_is_paused(&cache));
    const uint32_t later = fill(&cache, 40000, 40500);
    cr_assert_eq(later, 0);
    cr_assert_not_null(stk_cache_find(&cache, 7999)); /* what it holds it keeps */
    set_available(60);
    (void)fill(&cache, 20000, 21100); /* notices by and by */
    cr_assert_not(stk_cache_is_paused(&cache));
    cr_assert_eq(fill(&cache, 30000, 31000), 1000);
    stk_cache_destroy(&cache);
    stk_directory_remove(&machine);
}

static void *fill_early(void *cache)
{
    (void)fill(cache, 0, 5000);
    return NULL;
}

/* The first thread is stopped while it reads how much memory there is, as the kernel stops one that
 * other work displaces: meanwhile the others notice that memory is short. */
CleanTest(cache, stops_growing_while_one_thread_still_looks)
{
    enum { STRIDE = 4096, COUNT = 50000, PER_MB = (1 << 20) / STRIDE };
    char path[512];
    char pipe[512];
    pthread_t thread;
    int pipe_end;
    struct stk_cache cache = make_on_machine(100, COUNT, STRIDE);
    cr_assert_eq(mkfifo(stk_path_in(pipe, &machine, "pipe"), 0600), 0);
    cr_assert_eq(rename(pipe, stk_path_in(path, &machine, "proc/meminfo")), 0);
    cr_assert_eq(pthread_create(&thread, NULL, fill_early, &cache), 0);
    while ((pipe_end = open(path, O_WRONLY | O_NONBLOCK)) < 0)
        cr_assert_eq(errno, ENXIO, "nobody reads it yet");
    cr_assert_eq(unlink(path), 0);
    set_available(20);
    const uint32_t came = fill(&cache, 10000, 20000);
    cr_assert_leq(came, 2 * PER_MB, "%u rows came in", came);
    cr_assert(stk_cache_is_paused(&cache));
    cr_assert_gt(dprintf(pipe_end, "MemTotal: %d kB\nMemAvailable: %d kB\n", 160 << 10, 100 << 10),
                 0);
    cr_assert_eq(close(pipe_end), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    /* What it has read was true before; the next check comes after a sixteenth of what was spare
     * then. */
    cr_assert_leq(fill(&cache, 20000, 30000), 5 * PER_MB);
    cr_assert(stk_cache_is_paused(&cache));
    stk_cache_destroy(&cache);
    stk_directory_remove(&machine);
}

/* Blocks lie one behind the other as they come, whatever their ids; a canceled one keeps its place,
 * and so do all, if each is as long as the longest. */
CleanTest(cache, takes_the_memory_that_it_holds)
{
    enum { COUNT = 1000, STRIDE = 300, STEP = 389, ROUNDS = 3 };
    for (uint32_t block_rows = 1; block_rows <= 8; block_rows *= 8)
        for (int kind = STOKER_CACHE_ENCODED; kind <= STOKER_CACHE_DECODED; kind++) {
            struct stk_cache cache = make((stoker_cache)kind, 1 << 20, COUNT, STRIDE, block_rows);
            const bool whole = block_rows > 1 || kind == STOKER_CACHE_DECODED;
            const uint64_t blocks = (COUNT + block_rows - 1) / block_rows;
            const uint8_t *next = cache.rows.base;
            for (uint64_t i = 0; i < blocks; i++) {
                const uint64_t id = i * STEP % blocks * block_rows;
                const size_t bytes = whole   ? stk_cache_block_rows(&cache, id) * STRIDE
                                     : i < 9 ? 65 + 64 * (i % 3)
                                             : STRIDE;
                cr_assert_eq(stk_cache_begin(&cache, id, bytes), next, "block %d", (int)i);
                stk_cache_cancel(&cache, id);
                cr_assert_eq(stk_cache_begin(&cache, id, bytes), next, "its place");
                next += whole ? bytes : bytes == STRIDE ? STRIDE : (bytes / 64 + 1) * 64;
                stk_cache_commit(&cache, id);
                cr_assert_eq(atomic_load(&stk_cache_counts(&cache)->taken_bytes),
                             (uint64_t)(next - (const uint8_t *)cache.rows.base));
            }
            cr_assert(stk_cache_holds_all(&cache, COUNT));
            for (uint64_t id = 0; id < COUNT; id++)
                cr_assert_eq(stk_cache_held(&cache, id), stk_cache_find(&cache, id));
            stk_cache_destroy(&cache);
        }
}

/* Whatever the longest is: the budget is for the bytes of those that come, of any id. */
CleanTest(cache, holds_as_many_short_samples_as_its_budget_has_room_for)
{
    enum { COUNT = 20000, STRIDE = 1 << 20, BYTES = 1000, PLACE = 1024 };
    for (uint64_t budget = 3000000; budget < 9000000; budget += 999983) {
        struct stk_cache cache = make(STOKER_CACHE_ENCODED, budget, COUNT, STRIDE, 1);
        uint64_t held = 0;
        cr_assert_leq(stk_cache_reserved_bytes(&cache), budget);
        for (uint64_t id = COUNT; id-- > 0;)
            if (stk_cache_begin(&cache, id, BYTES) != NULL) {
                stk_cache_commit(&cache, id);
                held++;
            }
        cr_assert_eq(held, cache.rows.bytes / PLACE);
        cr_assert_eq(atomic_load(&stk_cache_counts(&cache)->held_rows), held);
        cr_assert_gt((held + 1) * PLACE + 12 * COUNT + STK_HUGE_PAGE_BYTES + 3 * 4096, budget);
        for (uint64_t id = 0; id < COUNT; id++)
            cr_assert_eq(stk_cache_find(&cache, id) != NULL, id >= COUNT - held);
        stk_cache_destroy(&cache);
    }
}

CleanTest(cache, a_sample_that_has_grown_gets_no_other_place)
{
    struct stk_cache cache = make(STOKER_CACHE_ENCODED, 1 << 20, 100, 1000, 1);
    cr_assert_not_null(stk_cache_begin(&cache, 5, 100));
    stk_cache_cancel(&cache, 5);
    cr_assert_null(stk_cache_begin(&cache, 5, 101));
    cr_assert_not_null(stk_cache_begin(&cache, 5, 99));
    stk_cache_commit(&cache, 5);
    cr_assert_eq(atomic_load(&stk_cache_counts(&cache)->coming_bytes), 0);
    stk_cache_destroy(&cache);
}

CleanTest(cache, each_failed_mapping_leaves_nothing)
{
    const struct stk_cache_options options = { .kind = STOKER_CACHE_ENCODED,
                                               .budget_bytes = 1 << 20,
                                               .count = 100,
                                               .stride_bytes = 100,
                                               .block_rows = 1 };
    for (uint64_t nth = 1; nth <= 3; nth++) {
        struct stk_cache cache;
        stk_fault_arm(STK_FAULT_MEMORY, nth);
        cr_assert_eq(stk_cache_init(&cache, &options), STOKER_ENOMEM);
        cr_assert(stk_fault_disarm());
        cr_assert_eq(stk_fault_live_bytes(), 0);
        stk_cache_destroy(&cache); /* all zero is allowed */
    }
}
