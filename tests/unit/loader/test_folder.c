/* test_folder.c - a loader over a folder of files that change under its hands: each row is
 * right, or reported bad with the file's name, with every reader.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "loader/api/loader.h"
#include "loader/base/fault.h"
#include "loader/reader/readers.h"
#include "support/files/folder_files.h"
#include "support/leaks.h"
#include "support/runs/scripted_reader.h"

enum { COUNT = 90, PER_CLASS = 9 };

static const stoker_reader *const readers[] = { &stk_reader_pread, &stk_reader_uring,
                                                &stk_scripted_reader };
enum { READERS = sizeof(readers) / sizeof(readers[0]) };

static bool works(const stoker_reader *reader)
{
    const stoker_reader_setup setup = { .directory = AT_FDCWD, .depth = 1 };
    void *ring = NULL;
    return reader->open(reader->self, &ring, &setup, NULL) == 0 && reader->close(ring, 0) == 0;
}

/* ---- the rows ---- */

static void check_rows_of(const struct stk_folder_set *set, const stoker_loader_options *options,
                          bool built_in)
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t rows = 0;
    cr_assert_eq(stoker_loader_create(&loader, set->dataset, options, NULL), STOKER_OK);
    if (built_in) /* without workers nothing is read yet */
        loader->pipeline.plan.reader = STK_READER_NAMED;
    for (int rc; (rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED;) {
        if (rc == STOKER_EPOCH_END)
            continue;
        cr_assert_eq(rc, STOKER_OK, "%s", stoker_loader_error(loader)->message);
        cr_assert(stk_folder_matches(set, &batch));
        rows += batch.count;
        stoker_batch_release(&batch);
    }
    cr_assert_eq(rows, options->epochs * set->count);
    stoker_loader_destroy(&loader);
}

static void check_rows(const struct stk_folder_set *set, const stoker_loader_options *options)
{
    check_rows_of(set, options, false);
}

/* That no setting changes them is test_determinism.c's. */
CleanTest(loader_folder, rows_are_the_files)
{
    for (int png = 0; png <= 1; png++) {
        struct stk_folder_set set;
        const stoker_loader_options options = stk_small_options();
        stk_folder_make(&set, COUNT, PER_CLASS, png == 1);
        check_rows(&set, &options);
        stk_folder_remove(&set);
    }
}

CleanTest(loader_folder, the_cache_holds_whole_files)
{
    for (int png = 0; png <= 1; png++)
        for (int cache = STOKER_CACHE_ENCODED; cache <= STOKER_CACHE_DECODED; cache++) {
            struct stk_folder_set set;
            stoker_loader *loader = NULL;
            static struct stk_run run;
            stoker_stats stats = { .struct_size = sizeof(stats) };
            struct stk_script_counts before;
            stk_folder_make(&set, COUNT, PER_CLASS, png == 1);
            stoker_loader_options options =
                stk_small_options(.reader = &stk_scripted_reader, .cache = (stoker_cache)cache,
                                  .prefetch_batches = 2, .epochs = STOKER_EPOCHS_ENDLESS);
            stk_script_install(&(struct stk_script){ 0 });
            cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
            memset(&run, 0, sizeof(run));
            stk_run_on(loader, &run, 24); /* four epochs */
            before = stk_script_counts();
            stk_run_on(loader, &run, 24);
            cr_assert_eq(stk_script_counts().reads, before.reads);
            cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
            const stoker_dataset_info *info = stoker_dataset_get_info(set.dataset);
            const uint64_t each =
                cache == STOKER_CACHE_ENCODED ? info->encoded_bytes_max : STK_FOLDER_ROW;
            cr_assert_eq(stats.cache_held_bytes, COUNT * each);
            stoker_loader_destroy(&loader);
            stk_folder_remove(&set);
        }
}

/* ---- files that are no longer what they were ---- */

enum damage {
    REMOVED,
    TRUNCATED,
    EMPTIED,
    GROWN,
    REPLACED,  /* by another of another length, with rename */
    SCRAMBLED, /* as long as before, but no image any more */
    LINKED,    /* out of the tree */
    A_FOLDER,
    A_PIPE,
    DAMAGES
};

/* Put `new` in the place of a file, which never is without a name: a worker may open it at any
 * moment. */
static void exchange(const char *path, const char *new)
{
    cr_assert_eq(renameat2(AT_FDCWD, new, AT_FDCWD, path, RENAME_EXCHANGE), 0);
    cr_assert_eq(unlink(new), 0);
}

static void do_damage(const struct stk_folder_set *set, uint64_t id, enum damage damage)
{
    char name[64];
    char path[512];
    char new[512];
    struct stat status;
    const uint8_t byte = 'x';
    stk_path_in(path, &set->directory, stk_folder_name(set, id, name));
    stk_path_in(new, &set->directory, "new");
    cr_assert_eq(stat(path, &status), 0);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    switch (damage) {
    case REMOVED:
        cr_assert_eq(unlink(path), 0);
        break;
    case TRUNCATED:
        cr_assert_eq(ftruncate(fd, status.st_size - 1), 0);
        break;
    case EMPTIED:
        cr_assert_eq(ftruncate(fd, 0), 0);
        break;
    case GROWN:
        cr_assert_eq(pwrite(fd, &byte, 1, status.st_size), 1);
        break;
    case REPLACED:
        stk_file_write(&set->directory, "new", "another", 7);
        cr_assert_eq(rename(new, path), 0);
        break;
    case SCRAMBLED:
        cr_assert_eq(pwrite(fd, &byte, 1, 1), 1);
        break;
    case LINKED:
        cr_assert_eq(symlink("/etc/passwd", new), 0);
        exchange(path, new);
        break;
    case A_FOLDER:
        cr_assert_eq(mkdir(new, 0755), 0);
        exchange(path, new);
        break;
    case A_PIPE:
        cr_assert_eq(mkfifo(new, 0644), 0);
        exchange(path, new);
        break;
    case DAMAGES:
        break;
    }
    close(fd);
}

static bool tells_right(int code, enum damage damage)
{
    switch (damage) {
    case REMOVED:
        return code == STOKER_ENOENT;
    case TRUNCATED:
    case EMPTIED:
    case GROWN:
    case REPLACED:
        return code == STOKER_ECHANGED;
    case SCRAMBLED:
        return code == STOKER_EMAGIC;
    case LINKED:
        return code == STOKER_EACCES;
    case A_FOLDER:
        return code == STOKER_EISDIR;
    case A_PIPE: /* not a pipe's bytes, whatever it is called */
        return code < 0;
    case DAMAGES:
        break;
    }
    return false;
}

static bool is_damaged(uint64_t id)
{
    return id % 9 == 4;
}

static void check_report(const struct stk_folder_set *set, const stoker_error *report,
                         enum damage damage)
{
    char name[64];
    cr_assert(is_damaged(report->sample));
    cr_assert(tells_right(report->code, damage), "damage %d: %s", (int)damage, report->message);
    cr_assert_str_eq(report->path, stk_folder_name(set, report->sample, name));
    cr_assert_not_null(strstr(report->message, name), "%s", report->message);
}

/* A run with a damage done before the epoch `when` (from its first batch on). Returns how the
 * run ended. */
static int run_with_damage(const struct stk_folder_set *set, const stoker_loader_options *options,
                           enum damage damage, uint64_t when, uint64_t *good)
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    bool done = false;
    int rc;
    *good = 0;
    cr_assert_eq(stoker_loader_create(&loader, set->dataset, options, NULL), STOKER_OK);
    while ((rc = stoker_loader_next(loader, &batch, -1)) >= 0 && rc != STOKER_FINISHED) {
        if (rc == STOKER_EPOCH_END)
            continue;
        cr_assert(stk_folder_matches(set, &batch), "damage %d", (int)damage);
        *good += batch.count;
        if (!done && batch.epoch == when) {
            for (uint64_t id = 0; id < set->count; id++)
                if (is_damaged(id))
                    do_damage(set, id, damage);
            done = true;
        }
        stoker_batch_release(&batch);
    }
    cr_assert(done);
    if (rc < 0) {
        check_report(set, stoker_loader_error(loader), damage);
    } else {
        stoker_error report;
        stoker_stats stats = { .struct_size = sizeof(stats) };
        uint64_t reports = 0;
        while (stoker_loader_bad_sample(loader, reports, &report) == STOKER_OK) {
            check_report(set, &report, damage);
            reports++;
        }
        cr_assert_eq(reports, COUNT / 9); /* one for each, however many epochs follow */
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        cr_assert_geq(stats.bad_samples, (options->epochs - when - 2) * (COUNT / 9));
        if (options->on_bad_sample == STOKER_ON_BAD_SUBSTITUTE)
            cr_assert_eq(*good, options->epochs * COUNT);
        else
            cr_assert_eq(*good + stats.bad_samples, options->epochs * COUNT);
    }
    stoker_loader_destroy(&loader);
    return rc;
}

static bool applies(const stoker_reader *reader, enum damage damage, bool png)
{
    return works(reader) && (damage != SCRAMBLED || png);
}

static void damage_mid_epoch(stoker_on_bad policy)
{
    for (size_t r = 0; r < READERS; r++)
        for (int damage = REMOVED; damage < DAMAGES; damage++)
            for (int32_t workers = 0; workers <= 2; workers += 2) {
                const bool png = (damage + (int)r) % 2 == 0 || damage == SCRAMBLED;
                if (!applies(readers[r], (enum damage)damage, png))
                    continue;
                struct stk_folder_set set;
                uint64_t good;
                stk_folder_make(&set, COUNT, PER_CLASS, png);
                stoker_loader_options options = stk_small_options();
                stk_script_install(&(struct stk_script){ 0 });
                options.reader = readers[r];
                options.num_workers = workers;
                options.on_bad_sample = policy;
                options.prefetch_batches = 2;
                options.epochs = 4;
                const int rc = run_with_damage(&set, &options, (enum damage)damage, 1, &good);
                cr_assert_eq(rc == STOKER_FINISHED, policy != STOKER_ON_BAD_FAIL);
                cr_assert_geq(good, COUNT);
                stk_folder_remove(&set);
            }
    stk_test_check_leaks();
}

Test(loader_folder, files_damaged_during_an_epoch_end_the_run)
{
    damage_mid_epoch(STOKER_ON_BAD_FAIL);
}

Test(loader_folder, files_damaged_during_an_epoch_are_skipped)
{
    damage_mid_epoch(STOKER_ON_BAD_SKIP);
}

Test(loader_folder, files_damaged_during_an_epoch_are_replaced)
{
    damage_mid_epoch(STOKER_ON_BAD_SUBSTITUTE);
}

/* The report depends neither on the reader nor on the number of workers. */
CleanTest(loader_folder, reports_are_the_same_by_every_route)
{
    struct stk_folder_set set;
    static stoker_error first[COUNT];
    uint32_t told = 0;
    stk_folder_make(&set, COUNT, PER_CLASS, true);
    for (uint64_t id = 4; id < COUNT; id += 9)
        do_damage(&set, id, (enum damage)(id / 9 % DAMAGES));
    for (size_t r = 0; r < READERS; r++)
        for (int32_t workers = 0; workers <= 3 && works(readers[r]); workers++) {
            stoker_loader *loader = NULL;
            static struct stk_run run;
            stoker_error report;
            stoker_loader_options options = stk_small_options();
            stk_script_install(&(struct stk_script){ .shuffle_seed = 7 });
            options.reader = readers[r];
            options.num_workers = workers;
            options.on_bad_sample = STOKER_ON_BAD_SKIP;
            options.epochs = 1;
            memset(&run, 0, sizeof(run));
            cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
            stk_run_on(loader, &run, UINT32_MAX);
            cr_assert_eq(run.samples, COUNT - COUNT / 9);
            uint32_t count = 0;
            for (; stoker_loader_bad_sample(loader, count, &report) == STOKER_OK; count++) {
                if (r == 0 && workers == 0)
                    first[told++] = report;
                cr_assert_str_eq(report.message, first[count].message);
                cr_assert_eq(report.code, first[count].code);
            }
            cr_assert_eq(count, told);
            stoker_loader_destroy(&loader);
        }
    cr_assert_eq(told, COUNT / 9);
    stk_folder_remove(&set);
}

/* ---- reads that misbehave ---- */

/* As a reader that may be replaced by plain calls, or as one of the caller's own, with workers,
 * too. */
static void check_under_script(const struct stk_folder_set *set, const struct stk_script_rule *rule,
                               bool built_in)
{
    for (int32_t workers = 0; workers <= (built_in ? 0 : 2); workers += 2) {
        stoker_loader_options options =
            stk_small_options(.reader = &stk_scripted_reader, .num_workers = workers);
        stk_script_install(&(struct stk_script){ .rules = rule, .rule_count = 1 });
        check_rows_of(set, &options, built_in);
        cr_assert_gt(stk_script_counts().hits[rule->what], 0);
    }
}

/* A short read is no end, at whatever length: the file is read again, or on by a reader that says
 * when it ends. */
CleanTest(loader_folder, short_reads_of_every_length_are_made_good)
{
    struct stk_folder_set set;
    stk_folder_make(&set, COUNT, PER_CLASS, false);
    for (uint64_t length = 0; length < STK_FOLDER_ROW; length++) {
        const struct stk_script_rule rule = { .what = STK_SCRIPT_SHORT,
                                              .amount = length,
                                              .file = STK_SCRIPT_ANY_FILE };
        check_under_script(&set, &rule, true);
        if (length > 0)
            check_under_script(&set, &rule, false);
    }
    stk_folder_remove(&set);
}

/* No descriptors for a while, or a stale name: it passes, or a plain open succeeds in the end. */
CleanTest(loader_folder, what_passes_is_tried_again)
{
    static const int errors[] = { EINTR, EAGAIN, ECANCELED, EMFILE, ENFILE, ESTALE };
    struct stk_folder_set set;
    stk_folder_make(&set, 20, PER_CLASS, false);
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        for (uint64_t times = 0; times <= 20; times += 10) { /* 0 = for ever */
            const struct stk_script_rule rule = { .what = STK_SCRIPT_ERRNO,
                                                  .amount = (uint64_t)errors[i],
                                                  .file = STK_SCRIPT_ANY_FILE,
                                                  .path = "c01/f00010.raw",
                                                  .times = times };
            check_under_script(&set, &rule, true);
            if (times > 0)
                check_under_script(&set, &rule, false);
        }
    stk_folder_remove(&set);
}

/* A process without a single free descriptor cannot open by system calls; io_uring's slots are no
 * descriptors. */
CleanTest(loader_folder, no_descriptors_left_is_reported)
{
    for (size_t r = 0; r < 2; r++) {
        struct stk_folder_set set;
        struct rlimit limit;
        stoker_loader *loader = NULL;
        static struct stk_run run;
        stoker_error report;
        if (!works(readers[r]))
            continue;
        stk_folder_make(&set, 20, PER_CLASS, false);
        stoker_loader_options options = stk_small_options(.reader = readers[r], .num_workers = 1,
                                                          .on_bad_sample = STOKER_ON_BAD_SKIP);
        cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
        cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
        const rlim_t before = limit.rlim_cur;
        limit.rlim_cur = 0;
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        memset(&run, 0, sizeof(run));
        stk_run_on(loader, &run, UINT32_MAX);
        limit.rlim_cur = before;
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        stoker_stats stats = { .struct_size = sizeof(stats) };
        uint32_t bad = 0;
        for (; stoker_loader_bad_sample(loader, bad, &report) == STOKER_OK; bad++)
            cr_assert_eq(report.code, STOKER_ENOFILE);
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        if (run.rc == STOKER_EBADSAMPLES) { /* none of the first or second epoch could be opened */
            cr_assert_eq(bad, 20);
        } else {
            cr_assert_eq(run.rc, STOKER_FINISHED);
            cr_assert_eq(run.samples + stats.bad_samples, 40);
        }
        if (readers[r] == &stk_reader_uring)
            cr_assert_eq(bad, 0);
        stoker_loader_destroy(&loader);
        stk_folder_remove(&set);
    }
}

/* A ring that breaks with whole files on their way: pread takes them over. */
CleanTest(loader_folder, a_ring_that_breaks_is_replaced)
{
    struct stk_folder_set set;
    stk_folder_make(&set, COUNT, PER_CLASS, true);
    for (uint64_t nth = 1; nth <= 4; nth++)
        for (int what = 0; what < 2; what++) {
            stoker_loader_options options =
                stk_small_options(.reader = &stk_scripted_reader, .num_workers = (int32_t)nth % 2);
            stk_script_install(&(struct stk_script){ .fail_submit = what == 0 ? nth : 0,
                                                     .fail_reap = what == 1 ? nth : 0 });
            check_rows(&set, &options);
        }
    stk_folder_remove(&set);
}

CleanTest(loader_folder, a_run_of_null_reads_goes_through)
{
    struct stk_folder_set set;
    static struct stk_run run;
    stk_folder_make(&set, COUNT, PER_CLASS, false);
    stoker_loader_options options = stk_small_options(.reader = &stk_reader_null);
    cr_assert_eq(stk_run(set.dataset, &options, &run), STOKER_FINISHED);
    cr_assert_eq(run.samples, 2 * COUNT);
    stk_folder_remove(&set);
}
