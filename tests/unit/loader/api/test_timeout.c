/* test_timeout.c - where next itself makes the rows, timeout_ms holds between them: with rows that
 * are made from nothing, rows that are read and decoded, and a hand beside workers. Nothing is lost
 * by a time-out.
 */
#include <time.h>

#include "support/files/reader_file.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/sets/one_file_set.h"

enum { COUNT = STK_ONE_FILE_SAMPLES, ROW = STK_ONE_FILE_ROW_BYTES, ROW_MS = 5 };

/* ---- a set whose rows take their time -------------------------------------------- */

static struct slow_set {
    struct stk_one_file_set file; /* first: its functions take it for the set */
    stoker_codec codec;
    bool drawn; /* there are no bytes */
    FILE *bytes;
    stoker_dataset *dataset;
} set;

static _Atomic uint32_t decoded;

static int decode(const void *self, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    void *row = out->rows[0].data;
    const size_t row_bytes = out->rows[0].bytes_max;
    (void)self;
    (void)scratch;
    (void)error;
    nanosleep(&(struct timespec){ .tv_nsec = ROW_MS * 1000000 }, NULL);
    for (uint32_t at = 0; at < row_bytes; at++)
        ((uint8_t *)row)[at] = in->size == 0 ? stk_test_byte(in->sample * ROW + at) : in->bytes[at];
    decoded++;
    return STOKER_OK;
}

static int describe(const void *self, stoker_dataset_info *out)
{
    const int rc = stk_one_file_describe(self, out);
    if (set.drawn)
        out->encoded_bytes_max = out->file_count = 0;
    return rc;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    const int rc = stk_one_file_locate(self, ids, count, out, error);
    for (uint32_t i = 0; set.drawn && i < count; i++)
        out[i].extent = (stoker_extent){ 0 };
    return rc;
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "slow",
                                        .describe = describe,
                                        .locate = locate,
                                        .file = stk_one_file_file };

static void open_set(bool drawn)
{
    set.drawn = drawn;
    set.codec =
        (stoker_codec){ .struct_size = sizeof(stoker_codec), .name = "slow", .decode = decode };
    set.bytes = stk_test_file((uint64_t)COUNT * ROW);
    cr_assert_not_null(set.bytes);
    set.file =
        (struct stk_one_file_set){ .path = "slow", .fd = fileno(set.bytes), .codec = &set.codec };
    cr_assert_eq(stoker_dataset_create(&set.dataset, &ops, &set, NULL), STOKER_OK);
}

static void close_set(void)
{
    stoker_dataset_close(&set.dataset);
    fclose(set.bytes);
    stk_test_check_leaks();
}

static void check_batch(const stoker_batch *batch)
{
    const uint8_t *bytes = batch->images.data;
    for (uint32_t row = 0; row < batch->count; row++)
        cr_assert(stk_test_bytes_match(bytes + (size_t)row * ROW, batch->ids[row] * ROW, ROW));
}

/* One epoch in one batch, without workers; the time-outs that there were. */
static uint32_t time_out(int32_t timeout_ms, stoker_cache cache)
{
    uint32_t timeouts = 0;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader_options options =
        stk_default_options(.num_workers = 0, .batch_size = COUNT, .epochs = 1, .shuffle = true,
                            .cache = cache, .prefetch_batches = 2);
    decoded = 0;
    stoker_loader *loader = loader_of(set.dataset, &options);
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, timeout_ms)) == STOKER_TIMEOUT) {
        cr_assert_lt(decoded, COUNT);
        cr_assert_gt(decoded, timeouts); /* each call gets further */
        timeouts++;
    }
    cr_assert_eq(rc, STOKER_OK);
    cr_assert_eq(batch.count, COUNT);
    cr_assert_eq(decoded, COUNT);
    check_batch(&batch);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    return timeouts;
}

Test(timeout, other_numbers_are_refused)
{
    open_set(false);
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader_options options = stk_default_options(.batch_size = 1);
    stoker_loader *loader = loader_of(set.dataset, &options);
    cr_assert_eq(stoker_loader_next(loader, &batch, -2), STOKER_EINVAL);
    cr_assert_eq(stoker_loader_next(loader, &batch, INT32_MIN), STOKER_EINVAL);
    cr_assert_str_eq(stoker_loader_error(loader)->message,
                     "stoker_loader_next: timeout_ms is below -1");
    cr_assert_eq(stoker_loader_next(loader, NULL, -1), STOKER_EINVAL);
    batch.struct_size = 3;
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_EINVAL);
    cr_assert_neq(strstr(stoker_loader_error(loader)->message, "struct_size"), NULL);
    batch = (stoker_batch)STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK); /* the loader is unharmed */
    cr_assert_null(stoker_loader_error(loader));
    const stoker_batch first = batch;
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_EINVAL);
    cr_assert_neq(strstr(stoker_loader_error(loader)->message, "still lent"), NULL);
    cr_assert_arr_eq(&batch, &first, sizeof(batch)); /* it was not overwritten */
    stoker_batch_release(&batch);
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    close_set();
}

Test(timeout, next_without_workers_returns_between_rows)
{
    for (int drawn = 0; drawn < 2; drawn++) {
        open_set(drawn == 1);
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++) {
            cr_assert_eq(time_out(-1, (stoker_cache)cache), 0);
            cr_assert_geq(time_out(0, (stoker_cache)cache), COUNT / 2);
            cr_assert_geq(time_out(3 * ROW_MS, (stoker_cache)cache), 2);
        }
        close_set();
    }
}

/* Small batches: the time is looked at between those that are prefetched, too. */
Test(timeout, batches_made_ahead_do_not_prolong_a_call)
{
    open_set(false);
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader_options options =
        stk_default_options(.num_workers = 0, .batch_size = 1, .epochs = 1,
                            .cache = STOKER_CACHE_NONE, .prefetch_batches = 64);
    decoded = 0;
    stoker_loader *loader = loader_of(set.dataset, &options);
    uint32_t before = 0, batches = 0;
    for (int rc; (rc = stoker_loader_next(loader, &batch, 0)) != STOKER_EPOCH_END;) {
        cr_assert(rc == STOKER_OK || rc == STOKER_TIMEOUT);
        cr_assert_leq(decoded, before + 2);
        before = decoded;
        if (rc != STOKER_OK)
            continue;
        check_batch(&batch);
        stoker_batch_release(&batch);
        batches++;
    }
    cr_assert_eq(batches, COUNT);
    stoker_loader_destroy(&loader);
    close_set();
}
