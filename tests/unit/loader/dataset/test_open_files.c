/* test_open_files.c - data sets whose files stay open: cut, rewritten, replaced or removed while an
 * epoch runs. What is still there is right, what is not is reported with its file and place, and a
 * file that has changed ends the run, at the latest with the epoch in which it was read.
 *
 * Method: all rows are remembered before; whatever a loader delivers afterwards must be one of
 * them, or the epoch must not come to its end.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "support/files/reader_file.h"
#include "support/files/tar_files.h"
#include "support/leaks.h"
#include "support/runs/memory_limit.h"
#include "support/sets/read_row.h"

enum { COUNT = 96, FILES = 3, EACH = COUNT / FILES, CIFAR_ROW = 3072, NPY_ROW = 40, EPOCHS = 4 };

enum damage {
    CUT,
    EMPTIED,
    OVERWRITTEN,
    DISGUISED, /* overwritten, and the time of the write set back */
    REGROWN,
    REPLACED,
    REMOVED,
    LINKED, /* given another name, and then another mode */
    DAMAGES
};

static bool changes_file(enum damage damage)
{
    return damage <= REGROWN;
}

/* A data set and one file of it that is going to be damaged. */
struct set {
    const char *name;
    struct stk_directory directory;
    stoker_dataset *dataset;
    char victim[512];
    uint8_t *rows;
    int64_t labels[COUNT];
    size_t row_bytes;
};

/* ---- sets ----------------------------------------------------------------------- */

static void write_tar(struct set *set, char *spec, size_t bytes)
{
    static struct stk_archive archive;
    for (int file = 0; file < FILES; file++) {
        char name[32];
        archive.size = 0;
        for (int id = file * EACH; id < (file + 1) * EACH; id++) {
            (void)snprintf(name, sizeof(name), "%d", id);
            stk_archive_sample(&archive, name, (uint64_t)id, id % 7);
        }
        stk_archive_end(&archive);
        (void)snprintf(name, sizeof(name), "%d.tar", file);
        stk_file_write(&set->directory, name, archive.at, archive.size);
    }
    (void)snprintf(spec, bytes, "tar:%s/{0..2}.tar", set->directory.path);
    (void)stk_path_in(set->victim, &set->directory, "1.tar");
}

static void write_cifar(struct set *set, char *spec, size_t bytes)
{
    static uint8_t records[COUNT * (2 + CIFAR_ROW)];
    for (size_t id = 0; id < COUNT; id++)
        for (uint32_t at = 0; at < 2 + CIFAR_ROW; at++)
            records[id * (2 + CIFAR_ROW) + at] =
                at < 2 ? (uint8_t)(id % 20) : stk_set_byte(id, at - 2);
    stk_file_write(&set->directory, "train.bin", records, sizeof(records));
    (void)snprintf(spec, bytes, "cifar:%s", set->directory.path);
    (void)stk_path_in(set->victim, &set->directory, "train.bin");
}

static void write_npy(struct set *set, char *spec, size_t bytes)
{
    static uint8_t array[128 + COUNT * NPY_ROW];
    char text[119];
    const int length =
        snprintf(text, sizeof(text), "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d)}",
                 COUNT, NPY_ROW);
    memcpy(array, "\x93NUMPY\x01\x00\x76\x00", 10);
    memset(array + 10, ' ', 118);
    memcpy(array + 10, text, (size_t)length);
    array[127] = '\n';
    for (size_t id = 0; id < COUNT; id++)
        for (uint32_t at = 0; at < NPY_ROW; at++)
            array[128 + id * NPY_ROW + at] = stk_set_byte(id, at);
    stk_file_write(&set->directory, "x.npy", array, sizeof(array));
    (void)stk_path_in(set->victim, &set->directory, "x.npy");
    (void)snprintf(spec, bytes, "npy:%s", set->victim);
}

static void remember(struct set *set)
{
    set->row_bytes = stoker_dataset_field_bytes(set->dataset, 0);
    set->rows = malloc(COUNT * set->row_bytes);
    cr_assert_not_null(set->rows);
    for (uint64_t id = 0; id < COUNT; id++) {
        stoker_label label = { .index = 0 };
        cr_assert_eq(stk_read_row(set->dataset, id, set->rows + id * set->row_bytes, set->row_bytes,
                                  &label, NULL),
                     STOKER_OK);
        set->labels[id] = label.index;
    }
}

static void open_set(struct set *set, void (*write)(struct set *, char *, size_t))
{
    char spec[600];
    stoker_error error = { .message = "" };
    set->directory = stk_directory_make();
    write(set, spec, sizeof(spec));
    /* As if written long ago: the clock of files has ticks of some milliseconds. */
    const struct timespec times[2] = { { .tv_sec = 1500000000 }, { .tv_sec = 1500000000 } };
    cr_assert_eq(utimensat(AT_FDCWD, set->victim, times, 0), 0);
    cr_assert_eq(stoker_dataset_open(&set->dataset, spec, NULL, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_eq(stoker_dataset_get_info(set->dataset)->count, COUNT);
    remember(set);
}

static void close_set(struct set *set)
{
    stoker_dataset_close(&set->dataset);
    stk_directory_remove(&set->directory);
    free(set->rows);
}

/* ---- damage --------------------------------------------------------------------- */

static off_t size_of_victim(const struct set *set)
{
    struct stat status;
    cr_assert_eq(stat(set->victim, &status), 0);
    return status.st_size;
}

/* Every second byte becomes another one. */
static void overwrite(const char *path, off_t size)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    uint8_t *bytes = malloc((size_t)size);
    cr_assert(fd >= 0 && bytes != NULL);
    cr_assert_eq(pread(fd, bytes, (size_t)size, 0), size);
    for (off_t at = 0; at < size; at += 2)
        bytes[at] ^= 1U;
    cr_assert_eq(pwrite(fd, bytes, (size_t)size, 0), size);
    free(bytes);
    close(fd);
}

/* ctime is now what it was only within one tick of the clock of files. */
static void disguise(const char *path)
{
    struct stat before, status;
    cr_assert_eq(stat(path, &before), 0);
    const struct timespec times[2] = { before.st_atim, before.st_mtim };
    overwrite(path, before.st_size);
    do {
        cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
        cr_assert_eq(stat(path, &status), 0);
    } while (status.st_ctim.tv_sec == before.st_ctim.tv_sec &&
             status.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
}

/* Returns the end of the file as readers see it that have it open. */
static uint64_t do_damage(const struct set *set, enum damage damage)
{
    char other[512];
    const off_t size = size_of_victim(set);
    switch (damage) {
    case CUT:
        cr_assert_eq(truncate(set->victim, size / 2 + 3), 0);
        return (uint64_t)size / 2 + 3;
    case EMPTIED:
        cr_assert_eq(truncate(set->victim, 0), 0);
        return 0;
    case OVERWRITTEN:
        overwrite(set->victim, size);
        return (uint64_t)size;
    case DISGUISED:
        disguise(set->victim);
        return (uint64_t)size;
    case REGROWN:
        cr_assert_eq(truncate(set->victim, size / 2), 0);
        cr_assert_eq(truncate(set->victim, size), 0);
        return (uint64_t)size / 2; /* behind it there is nothing that was there */
    case REPLACED:
        stk_file_write(&set->directory, "other", "another file", 12);
        cr_assert_eq(rename(stk_path_in(other, &set->directory, "other"), set->victim), 0);
        return UINT64_MAX;
    case LINKED:
        cr_assert_eq(link(set->victim, stk_path_in(other, &set->directory, "other")), 0);
        cr_assert_eq(chmod(other, 0640), 0);
        return UINT64_MAX;
    default:
        cr_assert_eq(unlink(set->victim), 0);
        return UINT64_MAX;
    }
}

/* ---- runs ----------------------------------------------------------------------- */

static bool matches(const struct set *set, const stoker_batch *batch)
{
    const uint8_t *rows = batch->images.data;
    const int64_t *labels = batch->labels.data;
    for (uint32_t row = 0; row < batch->count; row++) {
        const uint64_t id = batch->ids[row];
        if (memcmp(rows + row * set->row_bytes, set->rows + id * set->row_bytes, set->row_bytes) !=
                0 ||
            (labels != NULL && labels[row] != set->labels[id]))
            return false;
    }
    return true;
}

/* A sample that was lost is one whose bytes are gone, and the report names its file. */
static void check_report(const struct set *set, const stoker_error *report, uint64_t end)
{
    stoker_part sample;
    cr_assert_eq(stoker_dataset_locate(set->dataset, report->sample, &sample, NULL), STOKER_OK);
    cr_assert_eq(report->code, STOKER_ETRUNCATED, "%s: %s", set->name, report->message);
    cr_assert_gt(sample.extent.offset + sample.extent.bytes, end);
    cr_assert_not_null(strstr(set->victim, report->path), "%s", report->message);
}

/* What the run reported: each loss a true one, and the change of the file. */
static void check_end(const struct set *set, const stoker_loader *loader, int rc,
                      const stoker_loader_options *options, enum damage damage, uint64_t end)
{
    stoker_error report;
    const stoker_error *error = stoker_loader_error(loader);
    if (!changes_file(damage)) {
        cr_assert_eq(rc, STOKER_FINISHED, "%s: %s", set->name, error == NULL ? "" : error->message);
        return;
    }
    cr_assert_lt(rc, 0, "%s, damage %d, workers %d, cache %d, on_bad_sample %d", set->name,
                 (int)damage, options->num_workers, (int)options->cache,
                 (int)options->on_bad_sample);
    cr_assert_not_null(strstr(set->victim, error->path), "%s", error->message);
    if ((damage == OVERWRITTEN || damage == DISGUISED) &&
        options->on_bad_sample != STOKER_ON_BAD_FAIL)
        cr_assert_eq(rc, STOKER_ECHANGED);
    /* Of a file of which nothing is left, the epoch may end before its other samples are read. */
    if (damage <= EMPTIED)
        cr_assert(rc == STOKER_ECHANGED || rc == STOKER_ETRUNCATED || rc == STOKER_EBADSAMPLES,
                  "%s", error->message);
    for (uint64_t i = 0; stoker_loader_bad_sample(loader, i, &report) == STOKER_OK; i++)
        if (damage <= EMPTIED)
            check_report(set, &report, end);
}

/* Nor is one sample read from a changed file, or another loader made. */
static void check_single_reads(const struct set *set, enum damage damage)
{
    stoker_loader *loader = NULL;
    stoker_error error;
    const stoker_loader_options options = stk_small_options();
    const uint64_t id = COUNT / 2; /* lies in the victim */
    uint8_t *row = malloc(set->row_bytes);
    cr_assert_not_null(row);
    const int rc = stk_read_row(set->dataset, id, row, set->row_bytes, NULL, &error);
    if (damage == OVERWRITTEN || damage == DISGUISED || damage == REGROWN)
        cr_assert_eq(rc, STOKER_ECHANGED);
    else
        cr_assert_eq(rc == STOKER_OK, !changes_file(damage));
    free(row);
    cr_assert_eq(stoker_loader_create(&loader, set->dataset, &options, NULL),
                 changes_file(damage) ? STOKER_ECHANGED : STOKER_OK);
    stoker_loader_destroy(&loader);
}

static void run(const struct set *set, stoker_loader_options options, enum damage damage)
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t end = UINT64_MAX;
    bool wrong = false; /* a row of the epoch that is delivered */
    int rc;
    cr_assert_eq(stoker_loader_create(&loader, set->dataset, &options, NULL), STOKER_OK);
    while ((rc = stoker_loader_next(loader, &batch, -1)) >= 0 && rc != STOKER_FINISHED) {
        if (rc == STOKER_EPOCH_END) {
            cr_assert_not(wrong, "%s, damage %d, workers %d, cache %d", set->name, (int)damage,
                          options.num_workers, (int)options.cache);
            continue;
        }
        wrong = wrong || !matches(set, &batch);
        cr_assert(!wrong || changes_file(damage));
        if (batch.epoch == 1 && batch.index == 1)
            end = do_damage(set, damage);
        stoker_batch_release(&batch);
    }
    check_end(set, loader, rc, &options, damage, end);
    stoker_loader_destroy(&loader);
    check_single_reads(set, damage);
}

/* With the cache, half of the samples have a place there: the others are read in every epoch. */
static void damage_each_way(const char *name, void (*write)(struct set *, char *, size_t))
{
    const stoker_reader *const readers[] = { stoker_reader_uring(), stoker_reader_pread() };
    for (int r = 0; r < 2; r++)
        for (int damage = CUT; damage < DAMAGES && stk_test_reader_works(readers[r]); damage++)
            for (int32_t workers = 0; workers <= 2; workers += 2)
                for (int way = 0; way < 6; way++) {
                    struct set set = { .name = name };
                    stoker_loader_options options = stk_small_options();
                    open_set(&set, write);
                    options.reader = readers[r];
                    options.num_workers = workers;
                    options.cache = way < 3  ? STOKER_CACHE_NONE
                                    : r == 0 ? STOKER_CACHE_ENCODED
                                             : STOKER_CACHE_DECODED;
                    options.prefetch_batches = 2;
                    stk_limit_cache(set.dataset, &options, COUNT / 2 * set.row_bytes);
                    options.epochs = EPOCHS;
                    options.on_bad_sample = (stoker_on_bad)(way % 3);
                    run(&set, options, (enum damage)damage);
                    close_set(&set);
                }
    stk_test_check_leaks();
}

Test(loader_open_files, tar)
{
#ifndef STOKER_HAVE_PNG
    cr_skip_test("built without libpng");
#endif
    damage_each_way("tar", write_tar);
}

Test(loader_open_files, cifar)
{
    damage_each_way("cifar", write_cifar);
}

Test(loader_open_files, npy)
{
    damage_each_way("npy", write_npy);
}

/* Half of the samples are cached, and no read of the others succeeds any more: the reads that fail
 * have the file checked. */
Test(loader_open_files, emptied_between_two_epochs)
{
    struct set set = { .name = "cifar" };
    stoker_loader_options options = stk_small_options();
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    uint32_t ends = 0;
    int rc;
    open_set(&set, write_cifar);
    options.num_workers = 0; /* reads nothing ahead */
    options.cache = STOKER_CACHE_ENCODED;
    options.prefetch_batches = 2;
    stk_limit_cache(set.dataset, &options, COUNT / 2 * set.row_bytes);
    options.epochs = EPOCHS;
    options.on_bad_sample = STOKER_ON_BAD_SKIP;
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
    while ((rc = stoker_loader_next(loader, &batch, -1)) >= 0 && rc != STOKER_FINISHED) {
        if (rc == STOKER_OK)
            stoker_batch_release(&batch);
        else if (rc == STOKER_EPOCH_END && ++ends == 2)
            (void)do_damage(&set, EMPTIED);
    }
    cr_assert_eq(rc, STOKER_ECHANGED, "%s", stoker_error_name(rc));
    cr_assert_eq(ends, 2);
    stoker_loader_destroy(&loader);
    close_set(&set);
    stk_test_check_leaks();
}
