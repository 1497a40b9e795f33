/* test_several.c - samples of several parts and fields: each field is right whichever way its part
 * comes, and all of a sample share one fate.
 */
#include <errno.h>

#include "loader/base/fault.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scripted_reader.h"
#include "support/sets/several_set.h"

struct seen {
    uint64_t hash;
    uint64_t rows;
    int rc;
    stoker_error error;
};

static uint64_t hash_batch(uint64_t hash, const stoker_batch *batch)
{
    hash = stk_hash_bytes(hash, batch->ids, batch->count * sizeof(batch->ids[0]));
    for (uint32_t row = 0; row < batch->count; row++)
        for (uint32_t field = 0; field < SEVERAL_FIELDS; field++) {
            static const uint32_t entry[] = { SEVERAL_IMAGE, 4, 8, 1, 8, 8 };
            uint64_t length;
            const uint8_t *at = stk_field_row(batch, field, row, &length);
            const bool varies = field == 1 || field == 3;
            hash = stk_hash_bytes(hash, at, entry[field] * (varies ? length : 1));
        }
    return hash;
}

/* Run to the end. Every row is compared with the truth. */
static struct seen run(const stoker_dataset *dataset, const stoker_loader_options *options)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    struct seen seen = { .rc = 0 };
    stoker_loader *loader = loader_of(dataset, options);
    while (seen.rc >= 0 && seen.rc != STOKER_FINISHED) {
        seen.rc = stoker_loader_next(loader, &batch, 20000);
        if (seen.rc != STOKER_OK)
            continue;
        cr_assert_eq(several_wrong(&batch, 0), SEVERAL_FIELDS);
        seen.hash = hash_batch(seen.hash, &batch);
        seen.rows += batch.count;
        stoker_batch_release(&batch);
    }
    if (seen.rc < 0)
        seen.error = *stoker_loader_error(loader);
    stoker_loader_destroy(&loader);
    return seen;
}

static stoker_loader_options several_options(void)
{
    return stk_small_options(.batch_size = 7, .epochs = 3, .num_workers = 0);
}

static void expect_same(const struct seen *a, const struct seen *b, const char *where, int number)
{
    cr_assert_eq(b->rc, a->rc, "%s %d: %s", where, number, b->error.message);
    cr_assert_eq(b->rows, a->rows, "%s %d", where, number);
    cr_assert_eq(b->hash, a->hash, "%s %d", where, number);
}

/* That no setting changes them is test_determinism.c's. */
CleanTest(several, every_field_is_right_on_every_way)
{
    struct several_set set;
    const stoker_loader_options options = several_options();
    cr_assert(several_make(&set));
    for (int i = 0; i < 2; i++) {
        set.in_memory = i == 1;
        cr_assert_eq(run(set.dataset, &options).rows, 3 * SEVERAL_COUNT);
    }
    several_remove(&set);
}

CleanTest(several, a_cache_is_read_once_and_the_route_is_named)
{
    struct several_set set;
    stoker_loader_options options = several_options();
    cr_assert(several_make(&set));
    for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++) {
        stoker_stats stats = { .struct_size = sizeof(stats) };
        stoker_batch batch = STOKER_BATCH_INIT;
        options.cache = (stoker_cache)cache;
        options.epochs = 5;
        options.prefetch_batches = 2;
        stoker_loader *loader = loader_of(set.dataset, &options);
        for (int rc; (rc = stoker_loader_next(loader, &batch, 20000)) != STOKER_FINISHED;)
            if (rc == STOKER_OK)
                stoker_batch_release(&batch);
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        cr_assert_eq(memcmp(stats.route, "read_decode: read, decoded", 26), 0, "%s", stats.route);
        uint64_t parts = 0;
        for (uint64_t id = 0; id < SEVERAL_COUNT; id++)
            parts += several_words(id) > 0 ? 3 : 2;
        cr_assert_eq(stats.reads, (cache == STOKER_CACHE_NONE ? 5 : 1) * parts);
        stoker_loader_destroy(&loader);
    }
    several_remove(&set);
}

/* ---- bad samples ---- */

CleanTest(several, the_error_names_the_field_and_the_file)
{
    struct several_set set;
    stoker_loader_options options = several_options();
    cr_assert(several_make(&set));
    for (int32_t workers = 0; workers <= 3; workers++) {
        options.num_workers = workers;
        set.broken_pair = 17;
        set.broken_image = SEVERAL_NOTHING_BROKEN;
        struct seen seen = run(set.dataset, &options);
        cr_assert_eq(seen.rc, STOKER_EFORMAT);
        cr_assert_eq(seen.error.sample, 17);
        cr_assert_eq(seen.error.offset, 17 * SEVERAL_SAMPLE + SEVERAL_IMAGE);
        cr_assert_str_eq(seen.error.path, "images and pairs");
        cr_assert_not_null(strstr(seen.error.message, "field \"box\""), "%s", seen.error.message);
        set.broken_image = 17; /* the lowest part counts, whichever comes first */
        seen = run(set.dataset, &options);
        cr_assert_eq(seen.rc, STOKER_ECORRUPT);
        cr_assert_not_null(strstr(seen.error.message, "field \"image\": a broken image"), "%s",
                           seen.error.message);
    }
    several_remove(&set);
}

CleanTest(several, a_bad_part_makes_the_sample_bad)
{
    struct several_set set;
    stoker_loader_options options = several_options();
    cr_assert(several_make(&set));
    for (int bad = 0; bad < 3; bad++)
        for (int policy = STOKER_ON_BAD_SKIP; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++) {
            set.broken_image = bad != 1 ? 5 : SEVERAL_NOTHING_BROKEN;
            set.broken_pair = bad != 0 ? 40 : SEVERAL_NOTHING_BROKEN;
            options.on_bad_sample = (stoker_on_bad)policy;
            const struct seen seen = run(set.dataset, &options);
            const uint64_t bad_rows = bad == 2 ? 6 : 3;
            cr_assert_eq(seen.rows,
                         3 * SEVERAL_COUNT - (policy == STOKER_ON_BAD_SKIP ? bad_rows : 0));
        }
    several_remove(&set);
}

/* ---- reads that fail ---- */

CleanTest(several, any_read_may_fail_once)
{
    struct several_set set;
    stoker_loader_options options = several_options();
    cr_assert(several_make(&set));
    options.epochs = 1;
    const struct seen expected = run(set.dataset, &options);
    options.reader = &stk_scripted_reader;
    for (int32_t workers = 0; workers <= 2; workers += 2)
        for (int policy = STOKER_ON_BAD_FAIL; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++)
            for (uint64_t nth = 0;; nth++) {
                const struct stk_script_rule rule = { .what = STK_SCRIPT_ERRNO,
                                                      .amount = EIO,
                                                      .file = STK_SCRIPT_ANY_FILE,
                                                      .skip = nth,
                                                      .times = 1 };
                stk_script_install(&(struct stk_script){
                    .rules = &rule, .rule_count = 1, .shuffle_seed = nth + 1 });
                options.num_workers = workers;
                options.on_bad_sample = (stoker_on_bad)policy;
                const struct seen found = run(set.dataset, &options);
                if (stk_script_counts().hits[STK_SCRIPT_ERRNO] == 0) {
                    cr_assert_gt(nth, 2 * SEVERAL_COUNT);
                    expect_same(&expected, &found, "no failure", workers);
                    break;
                }
                cr_assert_eq(found.rc, policy == STOKER_ON_BAD_FAIL ? STOKER_EIO : STOKER_FINISHED);
                if (policy == STOKER_ON_BAD_FAIL)
                    cr_assert_not_null(strstr(found.error.message, "field \""));
                else
                    cr_assert_eq(found.rows,
                                 SEVERAL_COUNT - (policy == STOKER_ON_BAD_SKIP ? 1 : 0));
            }
    several_remove(&set);
}

CleanTest(several, short_reads_and_a_broken_ring_change_nothing)
{
    struct several_set set;
    stoker_loader_options options = several_options();
    static const struct stk_script_rule rules[] = {
        { .what = STK_SCRIPT_SHORT, .amount = 5, .file = 0, .times = 40 },
        { .what = STK_SCRIPT_ERRNO, .amount = EINTR, .file = 1, .times = 20 },
    };
    cr_assert(several_make(&set));
    const struct seen expected = run(set.dataset, &options);
    options.reader = &stk_scripted_reader;
    for (int32_t workers = 0; workers <= 2; workers++)
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++) {
            stk_script_install(&(struct stk_script){ .rules = rules,
                                                     .rule_count = 2,
                                                     .shuffle_seed = 9,
                                                     .fail_submit = 3,
                                                     .fail_reap = 5 });
            options.num_workers = workers;
            options.cache = (stoker_cache)cache;
            const struct seen found = run(set.dataset, &options);
            expect_same(&expected, &found, "workers", workers);
        }
    several_remove(&set);
}

CleanTest(several, a_ring_that_stays_broken_ends_the_run)
{
    struct several_set set;
    stoker_loader_options options = several_options();
    cr_assert(several_make(&set));
    options.reader = &stk_scripted_reader;
    options.on_bad_sample = STOKER_ON_BAD_SUBSTITUTE;
    for (int32_t workers = 0; workers <= 2; workers++) {
        stk_script_install(&(struct stk_script){ .fail_reap = 2, .fail_on = true });
        options.num_workers = workers;
        const struct seen found = run(set.dataset, &options);
        cr_assert_eq(found.rc, STOKER_EIO, "%s", stoker_error_name(found.rc));
    }
    several_remove(&set);
}

/* ---- memory ---- */

CleanTest(several, any_allocation_of_create_may_fail)
{
    struct several_set set;
    stoker_loader_options options = several_options();
    cr_assert(several_make(&set));
    options.num_workers = 2;
    const int64_t live = stk_fault_live_bytes();
    const struct seen expected = run(set.dataset, &options);
    for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++)
        for (uint64_t nth = 1;; nth++) {
            stoker_loader *loader = NULL;
            options.cache = (stoker_cache)cache;
            stk_fault_arm(STK_FAULT_MEMORY, nth);
            const int rc = stoker_loader_create(&loader, set.dataset, &options, NULL);
            const bool reached = stk_fault_disarm();
            cr_assert(rc == STOKER_OK || (reached && rc == STOKER_ENOMEM));
            stoker_loader_destroy(&loader);
            cr_assert_eq(stk_fault_live_bytes(), live, "cache %d nth %d", cache, (int)nth);
            if (!reached)
                break;
        }
    const struct seen found = run(set.dataset, &options);
    expect_same(&expected, &found, "after", 0);
    several_remove(&set);
}
