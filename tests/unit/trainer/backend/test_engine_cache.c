/* test_engine_cache.c - winners of benchmarks are found again; a full cache ignores more. */
#include "loader/base/fault.h"
#include "support/leaks.h"
#include "trainer/backend/cuda/engine/cache.h"

static void check(const struct stk_engine_cache *cache, const char *key, int64_t engine)
{
    struct stk_engine_choice found;
    cr_assert(stk_engine_cache_find(cache, key, &found), "%s", key);
    cr_assert_eq(found.engine, engine);
    cr_assert_eq(found.workspace_bytes, (uint64_t)engine * 1000);
}

CleanTest(engine_cache, finds_what_was_added_and_ignores_more_than_it_holds)
{
    struct stk_engine_cache *cache = NULL;
    struct stk_engine_choice found;
    char key[STK_ENGINE_KEY_BYTES];
    const struct stk_engine_failures none = { .engines = 0 };
    cr_assert_eq(stk_engine_cache_create(&cache, NULL), STOKER_OK);
    cr_assert_not(stk_engine_cache_find(cache, "conv 0", &found));
    for (int64_t i = 0; i < STK_ENGINE_CACHE_ENTRIES_MAX + 1; i++) {
        const struct stk_engine_choice choice = { .engine = i,
                                                  .workspace_bytes = (uint64_t)i * 1000,
                                                  .seconds = i == 0 ? 2.5e-6 : 0 };
        (void)snprintf(key, sizeof(key), "conv %d", (int)i);
        stk_engine_cache_add(cache, key, &choice, &none);
    }
    check(cache, "conv 0", 0);
    check(cache, "conv 17", 17);
    check(cache, "conv 4095", 4095);
    cr_assert_not(stk_engine_cache_find(cache, "conv 4096", &found));
    cr_assert_not(stk_engine_cache_find(cache, "conv", &found));
    cr_assert_eq(stk_engine_cache_entries(cache), STK_ENGINE_CACHE_ENTRIES_MAX);
    const char *const lines = stk_engine_cache_report(cache)->lines;
    cr_assert_eq(strstr(lines, "conv 0: engine 0, 2.5 us\nconv 1: engine 1\n"), lines, "%s", lines);
    cr_assert_lt(strlen(lines), (size_t)STK_ENGINE_LINES_BYTES);
    cr_assert_eq(lines[strlen(lines) - 1], '\n');
    stk_engine_cache_destroy(&cache);
}

/* A key of which no engine runs is no hit, and keeps those that failed; so does one whose engine
 * was replaced. */
CleanTest(engine_cache, keeps_what_failed_and_says_what_replaced_it)
{
    struct stk_engine_cache *cache = NULL;
    struct stk_engine_choice found;
    const struct stk_engine_choice choice = { .index = 3, .engine = 33, .workspace_bytes = 33000 };
    struct stk_engine_failures failures = { .engines = 5, .first = { .code = STOKER_EDEVICE } };
    (void)snprintf(failures.first.message, sizeof(failures.first.message), "engine 30 failed");
    cr_assert_eq(stk_engine_cache_create(&cache, NULL), STOKER_OK);
    cr_assert_eq(stk_engine_cache_failed(cache, "conv"), 0);
    stk_engine_cache_add(cache, "conv", NULL, &failures);
    cr_assert_not(stk_engine_cache_find(cache, "conv", &found));
    cr_assert_eq(stk_engine_cache_failed(cache, "conv"), 5);
    failures.engines = 7;
    stk_engine_cache_add(cache, "conv", &choice, &failures);
    check(cache, "conv", 33);
    cr_assert_eq(stk_engine_cache_failed(cache, "conv"), 7);
    cr_assert_eq(stk_engine_cache_entries(cache), 1);
    cr_assert_str_eq(stk_engine_cache_report(cache)->first,
                     "conv: engine 30 failed; no other engine runs");
    cr_assert_eq(stk_engine_cache_report(cache)->graphs, 2);
    failures.first.code = STOKER_OK; /* known before */
    stk_engine_cache_add(cache, "another", &choice, &failures);
    cr_assert_eq(stk_engine_cache_report(cache)->graphs, 2);
    stk_engine_cache_destroy(&cache);
}

Test(engine_cache, create_reports_a_failed_allocation)
{
    struct stk_engine_cache *cache = NULL;
    stk_fault_arm(STK_FAULT_MEMORY, 1);
    cr_assert_eq(stk_engine_cache_create(&cache, NULL), STOKER_ENOMEM);
    cr_assert(stk_fault_disarm());
    cr_assert_null(cache);
}
