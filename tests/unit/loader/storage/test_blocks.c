/* test_blocks.c - files of blocks: whoever reads them and in whichever order, each byte is the one
 * that was packed, or the sample is bad.
 */
#include <errno.h>

#include "loader/base/fault.h"
#include "loader/storage/blocks.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scripted_reader.h"
#include "support/sets/block_set.h"
#include "support/sweep.h"

static struct stk_block_set set;

/* What a run delivered. */
struct outcome {
    int rc;
    uint32_t seen[STK_BLOCK_ROWS]; /* times */
    uint64_t samples;
    stoker_stats stats;
    stoker_error error;
};

static void run(const stoker_loader_options *options, struct outcome *out)
{
    stoker_loader *loader = loader_of(set.dataset, options);
    stoker_batch batch = STOKER_BATCH_INIT;
    memset(out, 0, sizeof(*out));
    while ((out->rc = stoker_loader_next(loader, &batch, -1)) >= 0 && out->rc != STOKER_FINISHED) {
        if (out->rc == STOKER_EPOCH_END)
            continue;
        cr_assert(stk_block_set_matches(&batch), "wrong bytes");
        out->samples += batch.count;
        for (uint32_t i = 0; i < batch.count; i++)
            out->seen[batch.ids[i]]++;
        stoker_batch_release(&batch);
    }
    if (out->rc < 0)
        out->error = *stoker_loader_error(loader);
    out->stats = stats_of(loader);
    stoker_loader_destroy(&loader);
}

/* ---- bytes ---------------------------------------------------------------------- */

CleanTest(blocks, every_way_to_read_delivers_the_packed_bytes)
{
    static struct outcome outcome;
    cr_assert_eq(stk_block_set_make(&set), STOKER_OK);
    for (uint32_t i = 0; i < 3 * 2 * 3 * 2 * 2 * 2; i++) {
        const uint32_t ranks = 1 + i / 72;
        uint64_t samples = 0;
        for (uint32_t rank = 0; rank < ranks; rank++) {
            const stoker_loader_options options =
                stk_small_options(.num_workers = (int32_t[]){ 0, 1, 4 }[i % 3],
                                  .shuffle = i / 3 % 2 != 0,
                                  .cache =
                                      (stoker_cache[]){ STOKER_CACHE_NONE, STOKER_CACHE_ENCODED,
                                                        STOKER_CACHE_DECODED }[i / 6 % 3],
                                  .read_depth = (uint32_t[]){ 1, 50 }[i / 18 % 2],
                                  .block_memory_bytes = i / 36 % 2 != 0
                                                            ? STOKER_BYTES_AUTO
                                                            : 5 * ((STK_BLOCK_BYTES + 63) & ~63U),
                                  .rank = rank, .world_size = ranks);
            run(&options, &outcome);
            cr_assert_eq(outcome.rc, STOKER_FINISHED, "setting %u: %s", i, outcome.error.message);
            cr_assert_leq(outcome.stats.block_memory_bytes,
                          options.block_memory_bytes == STOKER_BYTES_AUTO ? 1 << 20 : 4096);
            cr_assert_eq(strcmp(outcome.stats.reader, "blocks"), 0);
            samples += outcome.samples;
        }
        cr_assert_eq(samples, 2 * STK_BLOCK_ROWS, "setting %u", i);
    }
    stk_block_set_free(&set);
}

/* In order, each block is read and unpacked once, whatever the number of workers and reads. */
CleanTest(blocks, each_block_is_unpacked_once_per_epoch)
{
    static struct outcome outcome;
    cr_assert_eq(stk_block_set_make(&set), STOKER_OK);
    for (uint32_t i = 0; i < 5 * 3; i++) {
        const stoker_loader_options options =
            stk_small_options(.num_workers = (int32_t[]){ 0, 1, 2, 4, 8 }[i % 5], .shuffle = false,
                              .read_depth = (uint32_t[]){ 1, 7, 100 }[i / 5], .epochs = 1,
                              .block_memory_bytes = i / 5 < 2 ? 40 * 320 : STOKER_BYTES_AUTO);
        run(&options, &outcome);
        cr_assert_eq(outcome.samples, STK_BLOCK_ROWS);
        cr_assert_eq(outcome.stats.blocks, STK_BLOCK_COUNT, "setting %u: %u", i,
                     (unsigned)outcome.stats.blocks);
        cr_assert_eq(outcome.stats.blocks_again, 0, "setting %u", i);
        cr_assert_eq(outcome.stats.block_bytes, set.stored_bytes);
        cr_assert_eq(outcome.stats.read_bytes, STK_BLOCK_UNPACKED);
    }
    stk_block_set_free(&set);
}

/* So is it in windows, within the memory of those that are in use: in each lane those of a window,
 * one that it shares with the next, and what is read ahead. */
CleanTest(blocks, each_block_of_a_window_is_unpacked_once_per_epoch)
{
    static struct outcome outcome;
    stk_block_set_write(&set, STK_BLOCK_WHOLE_BYTES);
    cr_assert_eq(stoker_dataset_create(&set.dataset, &stk_block_ops, &set, NULL), STOKER_OK);
    for (uint32_t i = 0; i < 4 * 3 * 3; i++) {
        const uint32_t window = (uint32_t[]){ 1, 3, 100 }[i / 4 % 3];
        const stoker_order order =
            stk_order_of(.kind = STOKER_ORDER_WINDOW, .lanes = 2, .window_blocks = window);
        const stoker_loader_options options =
            stk_small_options(.num_workers = (int32_t[]){ 0, 1, 2, 5 }[i % 4], .order = &order,
                              .read_depth = (uint32_t[]){ 1, 4, 9 }[i / 12], .epochs = 1,
                              .batch_size = 4, .prefetch_batches = 2,
                              .block_memory_bytes = 320 * (2 * (window + 1) + 2 * 6));
        run(&options, &outcome);
        cr_assert_eq(outcome.samples, STK_BLOCK_ROWS);
        cr_assert_eq(outcome.stats.blocks, set.blocks.count, "setting %u: %u", i,
                     (unsigned)outcome.stats.blocks);
        cr_assert_eq(outcome.stats.blocks_again, 0);
        cr_assert_eq(outcome.stats.block_bytes, set.stored_bytes);
    }
    stk_block_set_free(&set);
}

CleanTest(blocks, too_little_memory_is_refused)
{
    cr_assert_eq(stk_block_set_make(&set), STOKER_OK);
    for (uint64_t bytes = 0; bytes <= 5 * 320; bytes += 64) {
        const stoker_loader_options options =
            stk_small_options(.num_workers = 4, .block_memory_bytes = bytes);
        stoker_loader *loader = NULL;
        stoker_error error = { .message = "" };
        const int rc = stoker_loader_create(&loader, set.dataset, &options, &error);
        cr_assert_eq(rc, bytes < 5 * 320 ? STOKER_EINVAL : STOKER_OK, "%u: %s", (unsigned)bytes,
                     error.message);
        cr_assert(rc == STOKER_OK || strstr(error.message, "at least 1600") != NULL, "%s",
                  error.message);
        stoker_loader_destroy(&loader);
    }
    stk_block_set_free(&set);
}

CleanTest(blocks, one_sample_is_read_without_a_loader)
{
    cr_assert_eq(stk_block_set_make(&set), STOKER_OK);
    for (uint64_t id = 0; id < STK_BLOCK_ROWS; id++) {
        uint8_t bytes[STK_BLOCK_ROW_BYTES];
        stoker_row row = { .data = bytes, .bytes_max = sizeof(bytes) };
        cr_assert_eq(stoker_dataset_read(set.dataset, id, &row, NULL), STOKER_OK);
        for (uint32_t i = 0; i < sizeof(bytes); i++)
            cr_assert_eq(bytes[i], stk_block_byte(id, i));
    }
    stk_block_set_free(&set);
}

/* ---- damage --------------------------------------------------------------------- */

static void run_damaged(stoker_on_bad policy, uint32_t block, int32_t workers)
{
    static struct outcome outcome;
    const stoker_loader_options options =
        stk_small_options(.num_workers = workers, .on_bad_sample = policy, .epochs = 1,
                          .read_depth = 20);
    char says[32];
    (void)snprintf(says, sizeof(says), "block %u, ", block);
    run(&options, &outcome);
    if (policy == STOKER_ON_BAD_FAIL) {
        cr_assert_eq(outcome.rc, STOKER_ECORRUPT, "%s", outcome.error.message);
        cr_assert(strstr(outcome.error.message, says) != NULL &&
                      strncmp(outcome.error.message, "blocks: ", 8) == 0,
                  "%s", outcome.error.message);
        return;
    }
    cr_assert_eq(outcome.rc, STOKER_FINISHED, "%s", outcome.error.message);
    uint64_t bad = 0;
    for (uint32_t row = 0; row < STK_BLOCK_ROWS; row++) {
        const bool touches = stk_block_set_touches(row, block);
        bad += touches ? 1 : 0;
        cr_assert(touches ? outcome.seen[row] == 0
                          : outcome.seen[row] == 1 || policy == STOKER_ON_BAD_SUBSTITUTE,
                  "row %u", row);
    }
    cr_assert_geq(outcome.stats.bad_samples, bad);
    cr_assert_eq(outcome.samples, STK_BLOCK_ROWS - (policy == STOKER_ON_BAD_SKIP ? bad : 0));
}

CleanTest(blocks, a_damaged_block_makes_its_samples_bad)
{
    for (uint32_t block = 9; block < 12; block++) { /* of each codec */
        cr_assert_eq(stk_block_set_make(&set), STOKER_OK);
        stk_block_set_damage(&set, block);
        stoker_dataset_close(&set.dataset); /* with the file as it is now */
        cr_assert_eq(stoker_dataset_create(&set.dataset, &stk_block_ops, &set, NULL), STOKER_OK);
        for (int32_t workers = 0; workers < 4; workers += 3) {
            run_damaged(STOKER_ON_BAD_FAIL, block, workers);
            run_damaged(STOKER_ON_BAD_SKIP, block, workers);
            run_damaged(STOKER_ON_BAD_SUBSTITUTE, block, workers);
        }
        uint8_t bytes[STK_BLOCK_ROW_BYTES];
        stoker_row row = { .data = bytes, .bytes_max = sizeof(bytes) };
        stoker_error error = { .message = "" };
        const uint64_t id = (block * STK_BLOCK_BYTES + 100) / STK_BLOCK_ROW_BYTES;
        cr_assert_eq(stoker_dataset_read(set.dataset, id, &row, &error), STOKER_ECORRUPT, "%s",
                     error.message);
        stk_block_set_free(&set);
    }
}

/* ---- reads that fail ------------------------------------------------------------ */

static void run_script(const struct stk_script *script, int32_t workers, struct outcome *out)
{
    stk_script_install(script);
    const stoker_loader_options options =
        stk_small_options(.num_workers = workers, .reader = &stk_scripted_reader, .read_depth = 9,
                          .on_bad_sample = STOKER_ON_BAD_SKIP, .block_memory_bytes = 6 * 320);
    run(&options, out);
}

/* Whatever passes changes nothing: short reads, EINTR and EAGAIN, broken rings. */
CleanTest(blocks, failures_that_pass_change_nothing)
{
    static const struct stk_script_rule rules[] = {
        { .what = STK_SCRIPT_SHORT,
          .amount = 3,
          .file = STK_SCRIPT_ANY_FILE,
          .skip = 3,
          .times = 200 },
        { .what = STK_SCRIPT_ERRNO,
          .amount = EAGAIN,
          .file = STK_SCRIPT_ANY_FILE,
          .skip = 20,
          .times = 9 },
        { .what = STK_SCRIPT_ERRNO,
          .amount = EINTR,
          .file = STK_SCRIPT_ANY_FILE,
          .skip = 1,
          .times = 3 },
    };
    static struct outcome outcome;
    cr_assert_eq(stk_block_set_make(&set), STOKER_OK);
    for (uint32_t nth = 0; nth < 24; nth++)
        for (int32_t workers = 0; workers < 5; workers += 2) {
            const struct stk_script script = { .rules = rules,
                                               .rule_count = nth % 4,
                                               .shuffle_seed = nth,
                                               .reap_max = nth % 3,
                                               .fail_submit = nth % 5 == 1 ? nth : 0,
                                               .fail_reap = nth % 5 == 2 ? nth : 0 };
            run_script(&script, workers, &outcome);
            cr_assert_eq(outcome.rc, STOKER_FINISHED, "%u: %s", nth, outcome.error.message);
            cr_assert_eq(outcome.samples, 2 * STK_BLOCK_ROWS, "%u", nth);
            cr_assert_eq(outcome.stats.bad_samples, 0);
        }
    stk_block_set_free(&set);
}

/* Each read of stored bytes fails in its turn: its samples are bad in that epoch, and no other. */
CleanTest(blocks, each_read_that_fails_makes_samples_bad)
{
    static struct outcome outcome;
    cr_assert_eq(stk_block_set_make(&set), STOKER_OK);
    for (uint32_t nth = 0; nth < 60; nth++) {
        const struct stk_script_rule rule = { .what = nth % 3 == 0   ? STK_SCRIPT_EOF
                                                      : nth % 3 == 1 ? STK_SCRIPT_FLIP
                                                                     : STK_SCRIPT_ERRNO,
                                              .amount = EIO,
                                              .file = STK_SCRIPT_ANY_FILE,
                                              .skip = nth,
                                              .times = 1 };
        run_script(&(struct stk_script){ .rules = &rule, .rule_count = 1 }, (int32_t)(nth % 4),
                   &outcome);
        cr_assert_eq(outcome.rc, STOKER_FINISHED, "%u: %s", nth, outcome.error.message);
        /* With others a worker that asks later may read the block before the failure is seen. */
        cr_assert(outcome.stats.bad_samples >= 1 || nth % 4 > 1, "%u", nth);
        cr_assert_leq(outcome.stats.bad_samples, 9, "%u: %u", nth,
                      (unsigned)outcome.stats.bad_samples); /* of one block */
        cr_assert_eq(outcome.samples, 2 * STK_BLOCK_ROWS - outcome.stats.bad_samples);
    }
    stk_block_set_free(&set);
}

/* A version that has changed is no bad sample. */
CleanTest(blocks, a_changed_object_ends_the_run)
{
    static const struct stk_script_rule rule = {
        .what = STK_SCRIPT_ERRNO, .amount = ESTALE, .file = STK_SCRIPT_ANY_FILE, .skip = 5
    };
    static struct outcome outcome;
    cr_assert_eq(stk_block_set_make(&set), STOKER_OK);
    run_script(&(struct stk_script){ .rules = &rule, .rule_count = 1 }, 2, &outcome);
    cr_assert_eq(outcome.rc, STOKER_ECHANGED, "%s", outcome.error.message);
    stk_block_set_free(&set);
}

/* The kernel may still write to the blocks that a stuck ring loads: nobody gets their memory, and
 * nobody waits for them. */
Test(blocks, a_ring_that_keeps_its_reads_ends_the_run)
{
    static stoker_loader *kept[6]; /* within the leak checker's sight */
    static const struct stk_script_rule rule = { .what = STK_SCRIPT_STALL,
                                                 .file = STK_SCRIPT_ANY_FILE };
    cr_assert_eq(stk_block_set_make(&set), STOKER_OK);
    for (uint32_t i = 0; i < 6; i++) {
        stoker_batch batch = STOKER_BATCH_INIT;
        const stoker_loader_options options =
            stk_small_options(.reader = &stk_scripted_reader, .num_workers = (int32_t)(i % 3),
                              .read_depth = 8, .block_memory_bytes = (9 + i) * 320);
        stk_script_install(&(struct stk_script){
            .rules = &rule, .rule_count = 1, .fail_reap = 4, .fail_on = true });
        stoker_loader *loader = kept[i] = loader_of(set.dataset, &options);
        int rc;
        while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK) {
            cr_assert(stk_block_set_matches(&batch));
            stoker_batch_release(&batch);
        }
        cr_assert_eq(rc, STOKER_EIO, "%d", rc);
        cr_assert_geq(stk_script_counts().busy_closes, 1);
        stoker_loader_destroy(&loader);
    }
    cr_assert_not_null(kept[5]);
    stk_test_check_lost();
}

/* A consumer that never waits, and so leaves loads half done again and again. */
CleanTest(blocks, a_consumer_may_leave_at_any_time)
{
    static const struct stk_script_rule rule = { .what = STK_SCRIPT_SHORT,
                                                 .amount = 30,
                                                 .file = STK_SCRIPT_ANY_FILE };
    cr_assert_eq(stk_block_set_make(&set), STOKER_OK);
    for (int32_t workers = 0; workers < 3; workers++) {
        const stoker_loader_options options =
            stk_small_options(.reader = &stk_scripted_reader, .num_workers = workers,
                              .read_depth = 5, .block_memory_bytes = 4 * 320);
        stk_script_install(&(struct stk_script){ .rules = &rule, .rule_count = 1, .reap_max = 1 });
        stoker_loader *loader = loader_of(set.dataset, &options);
        stoker_batch batch = STOKER_BATCH_INIT;
        uint64_t samples = 0;
        for (int rc = 0; rc != STOKER_FINISHED;) {
            rc = stoker_loader_next(loader, &batch, 0);
            cr_assert(rc >= 0 || rc == STOKER_TIMEOUT, "%d", rc);
            if (rc != STOKER_OK)
                continue;
            cr_assert(stk_block_set_matches(&batch));
            samples += batch.count;
            stoker_batch_release(&batch);
        }
        cr_assert_eq(samples, 2 * STK_BLOCK_ROWS);
        stoker_loader_destroy(&loader);
    }
    stk_block_set_free(&set);
}

CleanTest(blocks, create_survives_each_failed_allocation)
{
    const stoker_loader_options options =
        stk_small_options(.num_workers = 2,
                          .reader = stoker_reader_pread()); /* what nothing replaces */
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    stoker_loader *loader = NULL;
    cr_assert_eq(stk_block_set_make(&set), STOKER_OK);
    while (stk_sweep_next(&sweep))
        sweep.rc = stoker_loader_create(&loader, set.dataset, &options, &sweep.error);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&set.dataset);
    sweep = (struct stk_sweep){ .kinds = STK_FAULT_MEMORY };
    while (stk_sweep_next(&sweep))
        sweep.rc = stoker_dataset_create(&set.dataset, &stk_block_ops, &set, &sweep.error);
    stk_block_set_free(&set);
}

/* ---- tables --------------------------------------------------------------------- */

CleanTest(blocks, an_impossible_table_is_refused)
{
    stk_block_set_write(&set, STK_BLOCK_BYTES);
    static const struct {
        const char *says;
        uint32_t block;
        size_t at;
        uint64_t value;
        size_t bytes;
    } rows[] = {
        { "begin at byte 0", 0, offsetof(stoker_block, first_byte), 1, 8 },
        { "unpack", 3, offsetof(stoker_block, first_byte), 2 * STK_BLOCK_BYTES, 8 },
        { "unpack", STK_BLOCK_COUNT, offsetof(stoker_block, first_byte), UINT64_C(1) << 40, 8 },
        { "2^30 bytes long", 4, offsetof(stoker_block, stored_bytes), 0, 4 },
        { "2^30 bytes long", 4, offsetof(stoker_block, stored_bytes), (1 << 30) + 1, 4 },
        { "codec", 5, offsetof(stoker_block, codec), 3, 4 },
        { "no codec", 6, offsetof(stoker_block, stored_bytes), 12, 4 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stoker_block *block = &set.each[rows[i].block];
        const stoker_block before = *block;
        stoker_error error = { .message = "" };
        memcpy((uint8_t *)block + rows[i].at, &rows[i].value, rows[i].bytes);
        cr_assert_eq(stoker_dataset_create(&set.dataset, &stk_block_ops, &set, &error),
                     STOKER_EINVAL, "row %zu", i);
        cr_assert_not_null(strstr(error.message, rows[i].says), "row %zu: %s", i, error.message);
        *block = before;
    }
    (void)close(set.fd);
}
