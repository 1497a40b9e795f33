/* test_made_samples.c - a data set whose make() fills all fields: its draws depend on the seed, and
 * its failures follow the policy.
 */
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/sets/drawn_set.h"
#include "support/sets/several_set.h"

enum { COUNT = STK_DRAWN_COUNT };

static struct stk_drawn_set set;

struct seen {
    uint64_t hash;
    uint64_t rows;
    int rc;
    stoker_error error;
};

/* One hash of every row, whatever the batches: (epoch, id, row, text, label). */
static void note(struct seen *seen, const stoker_batch *batch)
{
    cr_assert_eq(batch->field_count, 3);
    for (uint32_t row = 0; row < batch->count; row++) {
        uint64_t length;
        const uint8_t *at = stk_field_row(batch, 0, row, &length);
        uint64_t hash = stk_hash_bytes(batch->epoch * COUNT + batch->ids[row], at, 8);
        const uint8_t first = at[0];
        at = stk_field_row(batch, 1, row, &length);
        for (uint64_t i = 0; i < length; i++)
            cr_assert_eq(at[i], first);
        hash = stk_hash_bytes(hash, &length, sizeof(length));
        cr_assert_eq(((const int64_t *)batch->fields[2].values.data)[row],
                     (int64_t)batch->ids[row]);
        seen->hash += hash;
        seen->rows++;
    }
}

static struct seen run(const stoker_dataset *dataset, const stoker_loader_options *options)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    struct seen seen = { .rc = 0 };
    stoker_loader *loader = loader_of(dataset, options);
    while (seen.rc >= 0 && seen.rc != STOKER_FINISHED) {
        seen.rc = stoker_loader_next(loader, &batch, 20000);
        if (seen.rc != STOKER_OK)
            continue;
        note(&seen, &batch);
        stoker_batch_release(&batch);
    }
    if (seen.rc < 0)
        seen.error = *stoker_loader_error(loader);
    stoker_loader_destroy(&loader);
    return seen;
}

static stoker_loader_options made_options(void)
{
    return stk_small_options(.batch_size = 6, .epochs = 2, .num_workers = 0, .shuffle = true);
}

/* That nothing else changes them is test_determinism.c's. */
CleanTest(made_samples, depend_on_the_seed)
{
    stoker_dataset *dataset = stk_drawn_open(&set);
    stoker_loader_options options = made_options();
    const struct seen expected = run(dataset, &options);
    cr_assert_eq(expected.rc, STOKER_FINISHED);
    cr_assert_eq(expected.rows, 2 * COUNT);
    cr_assert_eq(run(dataset, &options).hash, expected.hash);
    options.seed++;
    cr_assert_neq(run(dataset, &options).hash, expected.hash);
    stoker_dataset_close(&dataset);
}

CleanTest(made_samples, that_fail_follow_the_policy)
{
    stoker_dataset *dataset = stk_drawn_open(&set);
    stoker_loader_options options = made_options();
    set.broken = 17;
    for (int32_t workers = 0; workers <= 3; workers += 3) {
        options.num_workers = workers;
        options.on_bad_sample = STOKER_ON_BAD_FAIL;
        struct seen seen = run(dataset, &options);
        cr_assert_eq(seen.rc, STOKER_EIO);
        cr_assert_eq(seen.error.sample, 17);
        cr_assert_not_null(strstr(seen.error.message, "it is gone"), "%s", seen.error.message);
        options.on_bad_sample = STOKER_ON_BAD_SKIP;
        seen = run(dataset, &options);
        cr_assert_eq(seen.rc, STOKER_FINISHED, "%s", seen.error.message);
        cr_assert_eq(seen.rows, 2 * (COUNT - 1));
        options.on_bad_sample = STOKER_ON_BAD_SUBSTITUTE;
        seen = run(dataset, &options);
        cr_assert_eq(seen.rc, STOKER_FINISHED, "%s", seen.error.message);
        cr_assert_eq(seen.rows, 2 * COUNT);
    }
    set.broken = UINT64_MAX;
    set.overlong = 3;
    options.on_bad_sample = STOKER_ON_BAD_FAIL;
    const struct seen seen = run(dataset, &options);
    cr_assert_eq(seen.rc, STOKER_EFORMAT);
    cr_assert_not_null(strstr(seen.error.message, "\"text\": length 10, at most 9"), "%s",
                       seen.error.message);
    stoker_dataset_close(&dataset);
}

/* What is not the sample's fault ends the run, whatever the policy. */
CleanTest(made_samples, out_of_memory_is_no_bad_sample)
{
    static const struct {
        int code, rc;
        int32_t workers;
    } cases[] = { { STOKER_ENOMEM, STOKER_ENOMEM, 0 },
                  { STOKER_ENOMEM, STOKER_ENOMEM, 3 },
                  { STOKER_INTERRUPTED, STOKER_EINVAL, 3 } };
    stoker_dataset *dataset = stk_drawn_open(&set);
    stoker_loader_options options = made_options();
    set.broken = 17;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int policy = STOKER_ON_BAD_FAIL; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++) {
            options.num_workers = cases[i].workers;
            options.on_bad_sample = (stoker_on_bad)policy;
            set.code = cases[i].code;
            const struct seen seen = run(dataset, &options);
            cr_assert_eq(seen.rc, cases[i].rc, "case %zu: %d", i, seen.rc);
            cr_assert_eq(seen.error.sample, 17);
            cr_assert_not_null(strstr(seen.error.message, "make(): it is gone"));
        }
    stoker_dataset_close(&dataset);
}

/* next() returns before the rest of the batch is made, and later calls deliver all of it. */
CleanTest(made_samples, that_are_interrupted_are_made_later)
{
    stoker_dataset *dataset = stk_drawn_open(&set);
    stoker_loader_options options = made_options();
    stoker_batch batch = STOKER_BATCH_INIT;
    const struct seen expected = run(dataset, &options);
    for (int policy = STOKER_ON_BAD_FAIL; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++) {
        uint32_t failures = 3, interrupts = 0;
        struct seen seen = { .rc = 0 };
        options.on_bad_sample = (stoker_on_bad)policy;
        set.broken = 17;
        set.code = STOKER_INTERRUPTED;
        set.failures = &failures;
        stoker_loader *loader = loader_of(dataset, &options);
        while ((seen.rc = stoker_loader_next(loader, &batch, 20000)) != STOKER_FINISHED) {
            interrupts += seen.rc == STOKER_INTERRUPTED;
            cr_assert_eq(interrupts + failures, 3); /* each ends a call at once */
            cr_assert_geq(seen.rc, 0);
            if (seen.rc == STOKER_OK) {
                note(&seen, &batch);
                stoker_batch_release(&batch);
            }
        }
        cr_assert_eq(interrupts, 3);
        cr_assert_eq(seen.rows, expected.rows);
        cr_assert_eq(seen.hash, expected.hash);
        stoker_loader_destroy(&loader);
    }
    set.failures = NULL;
    stoker_row rows[3] = { { .data = NULL } };
    cr_assert_eq(stoker_dataset_read(dataset, 17, rows, NULL), STOKER_EINVAL);
    stoker_dataset_close(&dataset);
}

/* Each epoch may make other rows, so there is no cache: by design, not for want of memory. */
CleanTest(made_samples, miss_no_cache)
{
    stoker_dataset *dataset = stk_drawn_open(&set);
    stoker_loader_options options = made_options();
    stoker_stats stats = STOKER_STATS_INIT;
    options.cache = STOKER_CACHE_AUTO;
    stoker_loader *loader = loader_of(dataset, &options);
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_eq(stats.cache, STOKER_CACHE_NONE);
    cr_assert_str_empty(stats.cache_reason);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

CleanTest(made_samples, may_be_viewed)
{
    static const uint64_t ids[] = { 7, 3, 40, 0, 7 };
    stoker_dataset *dataset = stk_drawn_open(&set);
    stoker_dataset *view = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(stoker_dataset_select(&view, dataset, ids, 5, &error), STOKER_OK, "%s",
                 error.message);
    stoker_dataset_close(&dataset);
    stoker_loader_options options = made_options();
    options.shuffle = false;
    options.batch_size = 5;
    options.epochs = 1;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader *loader = loader_of(view, &options);
    cr_assert_eq(stoker_loader_next(loader, &batch, 20000), STOKER_OK);
    cr_assert_eq(batch.count, 5);
    for (uint32_t row = 0; row < 5; row++)
        cr_assert_eq(((const int64_t *)batch.fields[2].values.data)[row], (int64_t)ids[row]);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&view);
}
