/* test_own.c - every byte that a loader delivers comes from the caller's own reader, whatever goes
 * wrong: what lies in the files is not what their rows are.
 *
 *   file: row ^ MASK ──▶ scripted reader (misbehaves by its script) ──▶ ^ MASK ──▶ row
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "loader/base/struct_size.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scenario.h"
#include "support/runs/scripted_reader.h"
#include "support/sets/read_row.h"

enum { COUNT = 64, ROW = 48, MASK = 0x5A, NAME_BYTES = 16 };

/* ---- a set of masked rows: in one file, or each in a file of its own ---- */

static struct masked_set {
    bool whole;  /* files of their own */
    bool remote; /* no descriptor: the reader has the bytes */
    FILE *file;
    char directory[64];
    int directory_fd;
    char names[COUNT][NAME_BYTES];
    stoker_dataset *dataset;
} set;

static int describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                  .count = COUNT,
                                  .dtype = STOKER_DTYPE_UINT8,
                                  .rank = 1,
                                  .shape = { ROW },
                                  .encoded_bytes_max = ROW,
                                  .file_count = set.whole ? 0 : 1,
                                  .has_paths = set.whole,
                                  .directory = set.whole ? set.directory_fd : AT_FDCWD };
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)self;
    (void)error;
    for (uint32_t i = 0; i < count; i++)
        out[i] = (stoker_part){ .extent = { .bytes = ROW,
                                            .path = set.whole ? set.names[ids[i]] : NULL,
                                            .offset = set.whole ? 0 : ids[i] * ROW } };
    return STOKER_OK;
}

static int file_of(const void *self, uint32_t file, stoker_file *out)
{
    (void)self;
    (void)file;
    *out = (stoker_file){ .path = "masked", .fd = set.remote ? -1 : fileno(set.file) };
    return STOKER_OK;
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "masked",
                                        .describe = describe,
                                        .locate = locate,
                                        .file = file_of };

static void masked_row(uint64_t id, uint8_t row[ROW])
{
    for (uint32_t at = 0; at < ROW; at++)
        row[at] = stk_set_byte(id, at) ^ MASK;
}

static void write_files(void)
{
    uint8_t row[ROW];
    (void)strcpy(set.directory, P_tmpdir "/stoker-test-XXXXXX");
    cr_assert_not_null(mkdtemp(set.directory));
    set.directory_fd = open(set.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(set.directory_fd, 0);
    for (uint32_t id = 0; id < COUNT; id++) {
        (void)snprintf(set.names[id], NAME_BYTES, "%u", id);
        const int fd = openat(set.directory_fd, set.names[id], O_WRONLY | O_CREAT, 0600);
        masked_row(id, row);
        cr_assert_eq(write(fd, row, ROW), ROW);
        close(fd);
    }
}

static void open_set(bool whole)
{
    uint8_t row[ROW];
    set.whole = whole;
    set.file = tmpfile();
    cr_assert_not_null(set.file);
    for (uint32_t id = 0; id < COUNT; id++) {
        masked_row(id, row);
        cr_assert_eq(fwrite(row, 1, ROW, set.file), ROW);
    }
    cr_assert_eq(fflush(set.file), 0);
    if (whole)
        write_files();
    cr_assert_eq(stoker_dataset_create(&set.dataset, &ops, NULL, NULL), STOKER_OK);
}

static void close_set(void)
{
    stoker_dataset_close(&set.dataset);
    fclose(set.file);
    for (uint32_t id = 0; set.whole && id < COUNT; id++)
        (void)unlinkat(set.directory_fd, set.names[id], 0);
    if (set.whole) {
        close(set.directory_fd);
        (void)rmdir(set.directory);
    }
}

/* ---- the reader that unmasks ---- */

static int unmasking_reap(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    const int count = stk_scripted_reap(ring, done, max, wait_ns);
    for (int i = 0; i < count; i++)
        for (int32_t at = 0; at < done[i]->result; at++)
            ((uint8_t *)done[i]->buffer)[at] ^= MASK;
    return count;
}

static const stoker_reader unmasking = { .struct_size = sizeof(stoker_reader),
                                         .name = "unmasking",
                                         .open = stk_scripted_open,
                                         .submit = stk_scripted_submit,
                                         .reap = unmasking_reap,
                                         .close = stk_scripted_close };

struct outcome {
    int rc;
    uint64_t good, wrong;
    stoker_stats stats;
    stoker_error error;
};

static bool row_is_right(const stoker_batch *batch, uint32_t row)
{
    const uint8_t *bytes = (const uint8_t *)batch->images.data + (size_t)row * ROW;
    for (uint32_t at = 0; at < ROW; at++)
        if (bytes[at] != stk_set_byte(batch->ids[row], at))
            return false;
    return true;
}

/* Two epochs through the reader, as its script says. */
static struct outcome play(const stoker_reader *reader, const struct stk_script *script,
                           int32_t workers, stoker_cache cache, stoker_on_bad on_bad)
{
    struct outcome outcome = { .stats = { .struct_size = sizeof(stoker_stats) } };
    stoker_loader_options options = stk_small_options(.reader = reader, .num_workers = workers,
                                                      .cache = cache, .on_bad_sample = on_bad);
    stoker_batch batch = STOKER_BATCH_INIT;
    stk_script_install(script);
    stoker_loader *loader = loader_of(set.dataset, &options);
    while ((outcome.rc = stoker_loader_next(loader, &batch, -1)) >= 0 &&
           outcome.rc != STOKER_FINISHED) {
        if (outcome.rc != STOKER_OK)
            continue;
        for (uint32_t row = 0; row < batch.count; row++)
            *(row_is_right(&batch, row) ? &outcome.good : &outcome.wrong) += 1;
        stoker_batch_release(&batch);
    }
    cr_assert_eq(stoker_loader_stats(loader, &outcome.stats), STOKER_OK);
    if (outcome.rc < 0)
        outcome.error = *stoker_loader_error(loader);
    stoker_loader_destroy(&loader);
    return outcome;
}

/* With this script every row comes, and is right. */
static void expect_all(const struct stk_script *script)
{
    for (int whole = 0; whole < 2; whole++) {
        open_set(whole == 1);
        for (int32_t workers = 0; workers <= 2; workers++)
            for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++) {
                const struct outcome outcome =
                    play(&unmasking, script, workers, (stoker_cache)cache, STOKER_ON_BAD_FAIL);
                cr_assert_eq(outcome.rc, STOKER_FINISHED, "whole %d workers %d cache %d: %s", whole,
                             workers, cache, outcome.error.message);
                cr_assert_eq(outcome.wrong, 0);
                cr_assert_eq(outcome.good, 2 * COUNT);
                cr_assert_str_eq(outcome.stats.reader, "unmasking");
                cr_assert_str_eq(outcome.stats.reader_reason, "given in the options");
            }
        close_set();
    }
    stk_test_check_leaks();
}

/* ---- */

/* More often than a built-in reader is asked again before plain pread takes its place. */
Test(reader_own, reads_that_would_wait_are_asked_for_again_by_the_same_reader)
{
    const struct stk_script_rule rule = { .what = STK_SCRIPT_ERRNO,
                                          .amount = EAGAIN,
                                          .file = 0,
                                          .offset = 7 * ROW,
                                          .bytes = ROW,
                                          .times = 100 };
    const struct stk_script_rule named = {
        .what = STK_SCRIPT_ERRNO, .amount = EINTR, .path = "7", .times = 100
    };
    const struct stk_script_rule rules[] = { rule, named };
    expect_all(&(struct stk_script){ .rules = rules, .rule_count = 2 });
}

CleanTest(reader_own, a_read_that_never_ends_well_is_an_error)
{
    for (int whole = 0; whole < 2; whole++)
        for (int32_t workers = 0; workers <= 1; workers++) {
            const struct stk_script_rule rules[] = {
                { .what = STK_SCRIPT_ERRNO, .amount = EAGAIN, .file = 0, .bytes = 1 },
                { .what = STK_SCRIPT_ERRNO, .amount = EAGAIN, .path = "0" },
            };
            const struct stk_script script = { .rules = rules, .rule_count = 2 };
            open_set(whole == 1);
            struct outcome outcome =
                play(&unmasking, &script, workers, STOKER_CACHE_NONE, STOKER_ON_BAD_FAIL);
            cr_assert_eq(outcome.rc, STOKER_EIO);
            cr_assert_eq(outcome.error.os_errno, EAGAIN);
            cr_assert_eq(outcome.error.sample, 0);
            cr_assert_eq(outcome.wrong, 0);
            outcome = play(&unmasking, &script, workers, STOKER_CACHE_NONE, STOKER_ON_BAD_SKIP);
            cr_assert_eq(outcome.rc, STOKER_FINISHED);
            cr_assert_eq(outcome.good, 2 * (COUNT - 1));
            cr_assert_eq(outcome.wrong, 0);
            cr_assert_eq(outcome.stats.bad_samples, 2);
            cr_assert_eq(outcome.stats.read_retries, 2 * 129); /* bounded, no spinning */
            close_set();
        }
}

/* Its low 32 bits are EAGAIN, which would be asked for again. */
CleanTest(reader_own, a_result_that_is_no_errno_is_eio)
{
    static const int64_t amounts[] = { INT64_C(1) << 31, (INT64_C(1) << 32) + EAGAIN, INT64_MAX };
    for (int whole = 0; whole < 2; whole++)
        for (int32_t workers = 0; workers <= 1; workers++)
            for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
                const struct stk_script_rule rule = { .what = STK_SCRIPT_ERRNO,
                                                      .amount = (uint64_t)amounts[i],
                                                      .file = STK_SCRIPT_ANY_FILE };
                const struct stk_script script = { .rules = &rule, .rule_count = 1 };
                open_set(whole == 1);
                const struct outcome outcome =
                    play(&unmasking, &script, workers, STOKER_CACHE_NONE, STOKER_ON_BAD_FAIL);
                cr_assert_eq(outcome.rc, STOKER_EIO);
                cr_assert_eq(outcome.error.os_errno, EIO);
                cr_assert_eq(outcome.stats.read_retries, 0);
                close_set();
            }
}

Test(reader_own, short_counts_are_continued_by_the_same_reader)
{
    for (uint64_t length = 1; length < ROW; length += 7) {
        const struct stk_script_rule rule = { .what = STK_SCRIPT_SHORT,
                                              .amount = length,
                                              .file = STK_SCRIPT_ANY_FILE };
        expect_all(&(struct stk_script){ .rules = &rule, .rule_count = 1 });
    }
}

/* One that is shorter, and one that is longer than it was. */
CleanTest(reader_own, a_whole_file_that_comes_in_parts_is_known_to_have_changed)
{
    const struct stk_script_rule rule = { .what = STK_SCRIPT_SHORT,
                                          .amount = 11,
                                          .file = STK_SCRIPT_ANY_FILE };
    const struct stk_script script = { .rules = &rule, .rule_count = 1 };
    open_set(true);
    for (int32_t workers = 0; workers <= 1; workers++)
        for (off_t bytes = 0; bytes <= ROW + 1; bytes += ROW / 2 + 1) {
            char path[128];
            (void)snprintf(path, sizeof(path), "%s/9", set.directory);
            cr_assert_eq(truncate(path, bytes == ROW + 2 ? ROW + 9 : bytes), 0);
            const struct outcome outcome =
                play(&unmasking, &script, workers, STOKER_CACHE_NONE, STOKER_ON_BAD_FAIL);
            cr_assert_eq(outcome.rc, STOKER_ECHANGED);
            cr_assert_eq(outcome.error.sample, 9);
        }
    close_set();
}

Test(reader_own, a_ring_that_breaks_is_opened_again_by_the_same_reader)
{
    for (uint64_t nth = 1; nth <= 5; nth++) {
        expect_all(&(struct stk_script){ .fail_submit = nth });
        expect_all(&(struct stk_script){ .fail_reap = nth });
    }
}

/* Always, or when it is opened again. */
CleanTest(reader_own, a_ring_that_breaks_for_good_ends_the_run)
{
    open_set(false);
    for (int32_t workers = 0; workers <= 2; workers++)
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++)
            for (int how = 0; how < (workers < 2 ? 3 : 2); how++) /* two may open in any order */
                for (int on_bad = STOKER_ON_BAD_FAIL; on_bad <= STOKER_ON_BAD_SUBSTITUTE;
                     on_bad++) {
                    const struct stk_script script = {
                        .fail_submit = how == 0 ? 1 : 0,
                        .fail_reap = how > 0 ? 1 : 0,
                        .fail_open = how == 2 ? (uint64_t)(workers == 0 ? 2 : workers + 1) : 0,
                        .fail_on = true
                    };
                    const struct outcome outcome = play(&unmasking, &script, workers,
                                                        (stoker_cache)cache, (stoker_on_bad)on_bad);
                    cr_assert_eq(outcome.rc, STOKER_EIO, "workers %d how %d: rc %d", workers, how,
                                 outcome.rc);
                    cr_assert_not_null(strstr(outcome.error.message, "the ring of reader"), "%s",
                                       outcome.error.message);
                    cr_assert_eq(outcome.wrong, 0);
                }
    close_set();
}

/* Its reads are the ring's for good then, and so are their buffers. */
Test(reader_own, a_broken_ring_that_keeps_its_reads_ends_the_run)
{
    static stoker_loader *kept[4]; /* within the leak checker's sight */
    uint32_t runs = 0;
    open_set(false);
    for (int32_t workers = 0; workers <= 1; workers++)
        for (int32_t timeout_ms = -1; timeout_ms <= 20000; timeout_ms += 20001) {
            const struct stk_script_rule rule = { .what = STK_SCRIPT_STALL,
                                                  .file = STK_SCRIPT_ANY_FILE,
                                                  .skip = 8 };
            stoker_loader_options options = stk_small_options();
            stoker_batch batch = STOKER_BATCH_INIT;
            options.reader = &unmasking;
            options.num_workers = workers;
            options.read_depth = 8;
            options.batch_size = 4;
            stk_script_install(&(struct stk_script){ .rules = &rule,
                                                     .rule_count = 1,
                                                     .fail_submit = 3,
                                                     .fail_on = true,
                                                     .reap_max = 1 });
            stoker_loader *loader = loader_of(set.dataset, &options);
            kept[runs++] = loader;
            int rc;
            while ((rc = stoker_loader_next(loader, &batch, timeout_ms)) == STOKER_OK) {
                for (uint32_t row = 0; row < batch.count; row++)
                    cr_assert(row_is_right(&batch, row));
                stoker_batch_release(&batch);
            }
            cr_assert_eq(rc, STOKER_EIO);
            cr_assert_geq(stk_script_counts().busy_closes, 1);
            stoker_loader_destroy(&loader);
        }
    cr_assert_not_null(kept[3]);
    stoker_dataset_close(&set.dataset);
    stk_test_check_lost();
}

/* ---- readers that break their word, or keep less than others ---- */

static _Atomic uint32_t boasts;

static int boasting_reap(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    const int count = unmasking_reap(ring, done, max, wait_ns);
    if (count > 0 && atomic_fetch_add(&boasts, 1U) == 2)
        done[0]->result = (int32_t)done[0]->bytes + 3;
    return count;
}

CleanTest(reader_own, more_bytes_than_were_asked_for_are_an_error)
{
    stoker_reader boasting = unmasking;
    boasting.reap = boasting_reap;
    for (int whole = 0; whole < 2; whole++) {
        open_set(whole == 1);
        for (int32_t workers = 0; workers <= 1; workers++) {
            boasts = 0;
            const struct outcome outcome = play(&boasting, &(struct stk_script){ .reap_max = 2 },
                                                workers, STOKER_CACHE_NONE, STOKER_ON_BAD_FAIL);
            cr_assert_eq(outcome.rc, STOKER_EIO);
            cr_assert_not_null(strstr(outcome.error.message, "the reader reports"), "%s",
                               outcome.error.message);
            cr_assert_eq(outcome.wrong, 0);
        }
        close_set();
    }
}

/* The bytes are elsewhere: there is no descriptor, and this reader needs no ring for one read at a
 * time. */
static stoker_read *asked[STOKER_READ_DEPTH_MAX];
static uint32_t asked_count;

static int remote_open(void *self, void **ring, const stoker_reader_setup *setup,
                       stoker_error *error)
{
    (void)self;
    (void)ring;
    cr_assert_not_null(error);
    cr_assert_eq(setup->files[0].fd, -1);
    return STOKER_OK;
}

static int remote_submit(void *ring, stoker_read *const *reads, uint32_t count)
{
    cr_assert_null(ring);
    for (uint32_t i = 0; i < count; i++)
        asked[asked_count++] = reads[i];
    return STOKER_OK;
}

static int remote_reap(void *ring, stoker_read **done, uint32_t max, int64_t wait_ns)
{
    uint32_t count = 0;
    (void)ring;
    (void)wait_ns;
    for (; count < max && asked_count > 0; count++) {
        stoker_read *read = done[count] = asked[--asked_count];
        for (uint32_t at = 0; at < read->bytes; at++)
            ((uint8_t *)read->buffer)[at] =
                stk_set_byte((read->offset + at) / ROW, (uint32_t)((read->offset + at) % ROW));
        read->result = (int32_t)read->bytes;
    }
    return (int)count;
}

static int remote_close(void *ring, int64_t wait_ns)
{
    (void)wait_ns;
    cr_assert_null(ring);
    return STOKER_OK;
}

CleanTest(reader_own, files_without_a_descriptor_are_read_by_it_alone)
{
    const stoker_reader remote = { .struct_size = sizeof(stoker_reader),
                                   .name = "remote",
                                   .open = remote_open,
                                   .submit = remote_submit,
                                   .reap = remote_reap,
                                   .close = remote_close };
    uint8_t row[ROW];
    stoker_error error = { .code = 0 };
    set.remote = true;
    open_set(false);
    for (int32_t workers = 0; workers <= 1; workers++) {
        const struct outcome outcome = play(&remote, &(struct stk_script){ .reap_max = 0 }, workers,
                                            STOKER_CACHE_NONE, STOKER_ON_BAD_FAIL);
        cr_assert_eq(outcome.rc, STOKER_FINISHED);
        cr_assert_eq(outcome.good, 2 * COUNT);
    }
    stoker_loader *loader = NULL;
    stoker_loader_options options = stk_small_options();
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, &error), STOKER_ENOTSUP);
    cr_assert_not_null(strstr(error.message, "options.reader"), "%s", error.message);
    cr_assert_eq(stk_read_row(set.dataset, 0, row, ROW, NULL, &error), STOKER_ENOTSUP);
    close_set();
}

/* What an older, shorter table lacks is NULL in the loader's copy; a table of another kind is
 * refused. */
CleanTest(reader_own, a_table_of_functions_has_its_size)
{
    static const size_t refused[] = { 0, sizeof(size_t), sizeof(stoker_reader) - 1,
                                      STK_STRUCT_BYTES_MAX + 1 };
    open_set(false);
    for (size_t i = 0; i <= sizeof(refused) / sizeof(refused[0]); i++) {
        stoker_loader *loader = NULL;
        stoker_error error = { .code = 0 };
        stoker_reader reader = unmasking;
        stoker_loader_options options = stk_small_options(.reader = &reader);
        if (i < sizeof(refused) / sizeof(refused[0]))
            reader.struct_size = refused[i];
        else
            reader.reap = NULL;
        cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, &error), STOKER_EINVAL);
        cr_assert_not_null(strstr(error.message, "reader: "), "%s", error.message);
    }
    close_set();
}
