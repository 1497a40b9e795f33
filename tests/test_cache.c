/* test_cache.c - rows have a place or none, one loader at a time, and stay once they are in. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>

#include "leaks.h"
#include "loader/base/fault.h"
#include "loader/cache/cache.h"

static struct stk_cache make(stoker_cache kind, uint64_t budget_bytes, uint64_t count,
                             size_t stride_bytes, uint32_t block_rows)
{
    const struct stk_cache_options options = { .kind = kind,
                                               .budget_bytes = budget_bytes,
                                               .count = count,
                                               .stride_bytes = stride_bytes,
                                               .block_rows = block_rows };
    struct stk_cache cache;
    cr_assert_eq(stk_cache_init(&cache, &options), 0);
    return cache;
}

Test(cache, a_row_is_seen_only_once_it_is_committed)
{
    struct stk_cache cache = make(STOKER_CACHE_DECODED, 1 << 20, 100, 10, 1);
    cr_assert_null(stk_cache_find(&cache, 7));
    cr_assert(stk_cache_begin(&cache, 7));
    cr_assert_null(stk_cache_find(&cache, 7));
    cr_assert_not(stk_cache_begin(&cache, 7), "two loaders of one row");
    cr_assert(stk_cache_begin(&cache, 8), "neighbours are not bound together");
    memset(stk_cache_row(&cache, 7), 77, 10);
    stk_cache_commit(&cache, 7, 10);
    const uint8_t *row = stk_cache_find(&cache, 7);
    cr_assert_not_null(row);
    cr_assert_eq(row[9], 77);
    cr_assert_not(stk_cache_begin(&cache, 7), "loaded twice");
    cr_assert_eq(atomic_load(&cache.held_bytes), 10);
    stk_cache_destroy(&cache);
    stk_test_check_leaks();
}

Test(cache, holds_all_once_each_block_is_committed)
{
    struct stk_cache cache = make(STOKER_CACHE_DECODED, 1 << 20, 10, 10, 4);
    for (uint64_t id = 0; id < 10; id += 4) {
        cr_assert_not(stk_cache_holds_all(&cache, 10));
        cr_assert(stk_cache_begin(&cache, id));
        stk_cache_cancel(&cache, id);
        cr_assert(stk_cache_begin(&cache, id));
        stk_cache_commit(&cache, id, 40);
    }
    cr_assert(stk_cache_holds_all(&cache, 10));
    cr_assert_not(stk_cache_holds_all(&cache, 11));
    stk_cache_destroy(&cache);
    cr_assert_not(stk_cache_holds_all(&cache, 0));
    stk_test_check_leaks();
}

Test(cache, after_a_cancel_another_may_try)
{
    struct stk_cache cache = make(STOKER_CACHE_ENCODED, 1 << 20, 100, 10, 4);
    cr_assert(stk_cache_begin(&cache, 5));
    cr_assert_not(stk_cache_begin(&cache, 6), "the same block");
    stk_cache_cancel(&cache, 5);
    cr_assert_null(stk_cache_find(&cache, 5));
    cr_assert(stk_cache_begin(&cache, 6));
    stk_cache_commit(&cache, 6, 40);
    for (uint64_t id = 4; id < 8; id++)
        cr_assert_not_null(stk_cache_find(&cache, id));
    cr_assert_null(stk_cache_find(&cache, 3));
    cr_assert_null(stk_cache_find(&cache, 8));
    stk_cache_destroy(&cache);
    stk_test_check_leaks();
}

/* Every budget from nothing to more than enough, every block size. */
Test(cache, takes_what_the_budget_allows_in_whole_blocks)
{
    enum { COUNT = 37, STRIDE = 10 };
    for (uint32_t block_rows = 1; block_rows <= 64; block_rows *= 2)
        for (uint64_t budget = 0; budget < 500; budget++) {
            struct stk_cache cache = make(STOKER_CACHE_DECODED, budget, COUNT, STRIDE, block_rows);
            uint64_t fits = budget / STRIDE < COUNT ? budget / STRIDE : COUNT;
            if (fits < COUNT)
                fits = fits / block_rows * block_rows;
            cr_assert_eq(cache.capacity, fits);
            cr_assert_eq(cache.kind, fits > 0 ? STOKER_CACHE_DECODED : STOKER_CACHE_NONE);
            cr_assert_not(stk_cache_begin(&cache, fits), "no place for sample %llu",
                          (unsigned long long)fits);
            cr_assert_null(stk_cache_find(&cache, fits));
            if (fits > 0) {
                const uint64_t first = stk_cache_block_first(&cache, fits - 1);
                cr_assert_eq(first + stk_cache_block_rows(&cache, fits - 1), fits);
                cr_assert(stk_cache_begin(&cache, fits - 1));
            }
            stk_cache_destroy(&cache);
        }
    stk_test_check_leaks();
}

Test(cache, none_holds_nothing)
{
    struct stk_cache cache = make(STOKER_CACHE_NONE, 1 << 20, 10, 10, 1);
    cr_assert_eq(stk_cache_reserved_bytes(&cache), 0);
    cr_assert_not(stk_cache_begin(&cache, 0));
    stk_cache_destroy(&cache);
    stk_test_check_leaks();
}

Test(cache, reserves_what_stats_tell)
{
    struct stk_cache cache = make(STOKER_CACHE_ENCODED, 1 << 20, 1000, 100, 1);
    cr_assert_eq((int64_t)stk_cache_reserved_bytes(&cache), stk_fault_live_bytes());
    cr_assert_geq(stk_cache_reserved_bytes(&cache), 100000U + 4000U + 1000U);
    stk_cache_destroy(&cache);
    stk_test_check_leaks();
}

Test(cache, each_failed_mapping_leaves_nothing)
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
    stk_test_check_leaks();
}
