/* test_cache.c - each mapping of create fails in its turn: a cache that was only a wish is
 * done without, one that was asked for is not.
 */
#include "loader/base/fault.h"
#include "support/leaks.h"
#include "support/runs/scenario.h"

static struct stk_run expected;

/* Create with the nth allocation failing; what comes up delivers the right batches. Reports the
 * cache in use, or what create answered. */
static int cache_with_fault(const stoker_dataset *dataset, const stoker_loader_options *options,
                            uint64_t nth, bool *reached)
{
    static struct stk_run found;
    stoker_loader *loader = NULL;
    stoker_stats stats = { .struct_size = sizeof(stats) };
    stk_fault_arm(STK_FAULT_MEMORY, nth);
    const int rc = stoker_loader_create(&loader, dataset, options, NULL);
    *reached = stk_fault_disarm();
    if (rc != STOKER_OK)
        return rc;
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    found = (struct stk_run){ 0 };
    stk_run_on(loader, &found, UINT32_MAX);
    cr_assert(stk_runs_equal(&expected, &found), "nth %d", (int)nth);
    cr_assert_eq(stats.cache_bytes > 0, stats.cache != STOKER_CACHE_NONE);
    stoker_loader_destroy(&loader);
    return (int)stats.cache;
}

/* How many of the faults led to a loader without its cache. */
static int count_wishes(const stoker_dataset *dataset, const stoker_loader_options *options)
{
    int wishes = 0;
    bool reached = true;
    for (uint64_t nth = 1; reached; nth++) {
        const int found = cache_with_fault(dataset, options, nth, &reached);
        if (reached && found == STOKER_CACHE_NONE)
            wishes++;
        else if (reached)
            cr_assert_eq(found, STOKER_ENOMEM, "nth %d: %d", (int)nth, found);
        else
            cr_assert_eq(found, STOKER_CACHE_DECODED);
    }
    return wishes;
}

CleanTest(fault_cache, is_done_without_only_if_nobody_asked_for_it)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, 40, 3, 3, 0));
    stoker_loader_options options =
        stk_small_options(.reader = stoker_reader_pread(), .num_workers = 1);
    cr_assert_eq(stk_run(set.dataset, &options, &expected), STOKER_FINISHED);
    options.cache = STOKER_CACHE_AUTO;
    cr_assert_eq(count_wishes(set.dataset, &options), 2, "rows, and their words");
    options.cache = STOKER_CACHE_DECODED;
    cr_assert_eq(count_wishes(set.dataset, &options), 0);
    stk_file_set_remove(&set);
}
