/* test_made_samples.c - a data set whose make() fills all fields: what it draws depends on (seed, epoch, id) alone, and
 * its failures follow the policy.
 *
 *   "row"   8 x uint8, drawn          "text"  0..9 bytes, whose number is drawn, too          "label"  int64, the id
 */
#include <criterion/criterion.h>
#include <time.h>

#include "support/leaks.h"
#include "support/opened_loader.h"
#include "support/several_set.h"

enum { COUNT = 41, TEXT = 9 };

static uint64_t broken = UINT64_MAX;
static uint64_t overlong = UINT64_MAX;

static int describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out), .count = COUNT, .field_count = 3 };
    return STOKER_OK;
}

static int field_of(const void *self, uint32_t field, stoker_field_info *out)
{
    static const stoker_field_info fields[] = {
        { .name = "row", .dtype = STOKER_DTYPE_UINT8, .rank = 1, .shape = { 8 } },
        { .name = "text",
          .kind = STOKER_FIELD_BYTES,
          .dtype = STOKER_DTYPE_UINT8,
          .rank = 1,
          .shape = { TEXT },
          .varies = true },
        { .name = "label", .dtype = STOKER_DTYPE_INT64 },
    };
    (void)self;
    *out = fields[field];
    out->struct_size = sizeof(*out);
    out->part = STOKER_NO_PART;
    return STOKER_OK;
}

/* It blocks, as one that reads by itself does. */
static int make(const void *self, uint64_t id, stoker_row *rows, stoker_rng *rng,
                stoker_error *error)
{
    (void)self;
    const uint64_t drawn = stoker_rng_u64(rng);
    const uint64_t length = stoker_rng_below(rng, TEXT + 1);
    const int64_t label = (int64_t)id;
    nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
    if (id == broken) {
        (void)snprintf(error->message, sizeof(error->message), "it is gone");
        return STOKER_EIO;
    }
    memcpy(rows[0].data, &drawn, sizeof(drawn));
    memset(rows[1].data, (int)(drawn & 0xFF), length);
    rows[1].length = id == overlong ? TEXT + 1 : length;
    memcpy(rows[2].data, &label, sizeof(label));
    return STOKER_OK;
}

static stoker_dataset *open_made(void)
{
    static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                            .name = "made samples",
                                            .describe = describe,
                                            .field = field_of,
                                            .make = make };
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_create(&dataset, &ops, NULL, NULL), STOKER_OK);
    return dataset;
}

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

static struct seen run(const stoker_dataset *dataset, const stoker_loader_options *options,
                       uint32_t most, stoker_state *state)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    struct seen seen = { .rc = 0 };
    stoker_loader *loader = loader_of(dataset, options);
    for (uint32_t taken = 0; seen.rc >= 0 && seen.rc != STOKER_FINISHED && taken < most;) {
        seen.rc = stoker_loader_next(loader, &batch, 20000);
        if (seen.rc != STOKER_OK)
            continue;
        note(&seen, &batch);
        stoker_batch_release(&batch);
        taken++;
    }
    if (seen.rc < 0)
        seen.error = *stoker_loader_error(loader);
    if (state != NULL)
        cr_assert_eq(stoker_loader_state(loader, state), STOKER_OK);
    stoker_loader_destroy(&loader);
    return seen;
}

static stoker_loader_options made_options(void)
{
    stoker_loader_options options = stk_small_options();
    options.batch_size = 6;
    options.epochs = 2;
    options.num_workers = 0;
    options.shuffle = true;
    return options;
}

CleanTest(made_samples, are_the_same_with_any_workers_and_cache)
{
    static const int32_t workers[] = { 0, 1, 2, 5 };
    stoker_dataset *dataset = open_made();
    stoker_loader_options options = made_options();
    const struct seen expected = run(dataset, &options, UINT32_MAX, NULL);
    cr_assert_eq(expected.rc, STOKER_FINISHED);
    cr_assert_eq(expected.rows, 2 * COUNT);
    for (int w = 0; w < 4; w++)
        for (int cache = STOKER_CACHE_AUTO; cache <= STOKER_CACHE_DECODED; cache++) {
            options.num_workers = workers[w];
            options.cache = (stoker_cache)cache;
            const struct seen found = run(dataset, &options, UINT32_MAX, NULL);
            cr_assert_eq(found.rc, STOKER_FINISHED, "%s", found.error.message);
            cr_assert_eq(found.hash, expected.hash, "%d workers, cache %d", workers[w], cache);
            cr_assert_eq(found.rows, expected.rows);
        }
    options.seed++;
    cr_assert_neq(run(dataset, &options, UINT32_MAX, NULL).hash, expected.hash);
    stoker_dataset_close(&dataset);
}

CleanTest(made_samples, are_the_same_after_a_resume_at_any_batch)
{
    stoker_dataset *dataset = open_made();
    stoker_loader_options options = made_options();
    const struct seen expected = run(dataset, &options, UINT32_MAX, NULL);
    for (uint32_t stop = 0; stop <= 14; stop++) {
        stoker_state state;
        stoker_loader_options later = options;
        const struct seen before = run(dataset, &options, stop, &state);
        later.resume = &state;
        later.batch_size = 9;
        later.num_workers = 2;
        const struct seen after = run(dataset, &later, UINT32_MAX, NULL);
        cr_assert_eq(after.rc, STOKER_FINISHED, "%s", after.error.message);
        cr_assert_eq(before.rows + after.rows, expected.rows, "stop %u", stop);
        cr_assert_eq(before.hash + after.hash, expected.hash, "stop %u", stop);
    }
    stoker_dataset_close(&dataset);
}

CleanTest(made_samples, that_fail_follow_the_policy)
{
    stoker_dataset *dataset = open_made();
    stoker_loader_options options = made_options();
    broken = 17;
    for (int32_t workers = 0; workers <= 3; workers += 3) {
        options.num_workers = workers;
        options.on_bad_sample = STOKER_ON_BAD_FAIL;
        struct seen seen = run(dataset, &options, UINT32_MAX, NULL);
        cr_assert_eq(seen.rc, STOKER_EIO);
        cr_assert_eq(seen.error.sample, 17);
        cr_assert_not_null(strstr(seen.error.message, "it is gone"), "%s", seen.error.message);
        options.on_bad_sample = STOKER_ON_BAD_SKIP;
        seen = run(dataset, &options, UINT32_MAX, NULL);
        cr_assert_eq(seen.rc, STOKER_FINISHED, "%s", seen.error.message);
        cr_assert_eq(seen.rows, 2 * (COUNT - 1));
        options.on_bad_sample = STOKER_ON_BAD_SUBSTITUTE;
        seen = run(dataset, &options, UINT32_MAX, NULL);
        cr_assert_eq(seen.rc, STOKER_FINISHED, "%s", seen.error.message);
        cr_assert_eq(seen.rows, 2 * COUNT);
    }
    broken = UINT64_MAX;
    overlong = 3;
    options.on_bad_sample = STOKER_ON_BAD_FAIL;
    const struct seen seen = run(dataset, &options, UINT32_MAX, NULL);
    cr_assert_eq(seen.rc, STOKER_EFORMAT);
    cr_assert_not_null(strstr(seen.error.message, "\"text\": length 10, at most 9"), "%s",
                       seen.error.message);
    stoker_dataset_close(&dataset);
}

CleanTest(made_samples, may_be_viewed)
{
    static const uint64_t ids[] = { 7, 3, 40, 0, 7 };
    stoker_dataset *dataset = open_made();
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
