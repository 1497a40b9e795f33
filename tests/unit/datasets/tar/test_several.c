/* test_several.c - many archives are one data set: their samples in one order,
 * and what holds for all of them together.
 */
#include "loader/reader/readers.h"
#include "support/leaks.h"
#include "support/sets/tar_reading.h"

static struct stk_archive archive; /* one per test: each runs in a process of its own */

enum { ARCHIVES = 3, EACH = 20 };

/* ARCHIVES of EACH samples: ids one after the other, labels id % 7, the same keys in each. */
static void write_archives(const struct stk_directory *directory)
{
    for (int file = 0; file < ARCHIVES; file++) {
        char name[32];
        archive.size = 0;
        for (int i = 0; i < EACH; i++) {
            const int id = file * EACH + i;
            (void)snprintf(name, sizeof(name), "%05d", i);
            stk_archive_sample(&archive, name, (uint64_t)id, id % 7);
        }
        stk_archive_end(&archive);
        (void)snprintf(name, sizeof(name), "t-%02d.tar", file);
        stk_file_write(directory, name, archive.at, archive.size);
    }
}

/* EACH samples, labeled with the number of their archive if there are enough classes. */
static void write_labeled(const struct stk_directory *directory, int file, int classes)
{
    char name[32];
    archive.size = 0;
    for (int id = 0; id < EACH; id++) {
        (void)snprintf(name, sizeof(name), "%d.png", id);
        stk_archive_image(&archive, name, (uint64_t)id);
        (void)snprintf(name, sizeof(name), file < classes ? "%d.cls" : "%d.txt", id);
        char text[8];
        (void)snprintf(text, sizeof(text), "%d", file);
        stk_archive_text(&archive, name, text);
    }
    stk_archive_end(&archive);
    (void)snprintf(name, sizeof(name), "t-%02d.tar", file);
    stk_file_write(directory, name, archive.at, archive.size);
}

CleanTest(tar_several, several_archives_are_one_set_by_every_reader)
{
    stk_archive_needs_png();
    static const stoker_reader *const readers[] = { &stk_reader_pread, NULL };
    static struct stk_run runs[2];
    const struct stk_directory directory = stk_directory_make();
    stoker_error error = { .message = "" };
    stoker_dataset *dataset = NULL;
    char spec[600];
    write_archives(&directory);
    (void)snprintf(spec, sizeof(spec), "tar:%s/t-{00..02}.tar", directory.path);
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, ARCHIVES * EACH);
    cr_assert_eq(stoker_dataset_get_info(dataset)->file_count, ARCHIVES);
    for (uint64_t id = 0; id < ARCHIVES * EACH; id++)
        stk_archive_check_row(dataset, id, id, (int64_t)id % 7);
    stoker_loader_options options = stk_small_options();
    for (int i = 0; i < 2; i++) {
        options.reader = readers[i];
        options.num_workers = i * 3;
        cr_assert_eq(stk_run(dataset, &options, &runs[i]), STOKER_FINISHED);
    }
    cr_assert_eq(runs[0].samples, 2 * ARCHIVES * EACH);
    cr_assert(stk_runs_equal(&runs[0], &runs[1]));
    stoker_dataset_close(&dataset);

    (void)snprintf(spec, sizeof(spec), "tar:%s/t-{00..03}.tar", directory.path);
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, &error), STOKER_ENOENT);
    cr_assert_not_null(strstr(error.message, "t-03.tar"));
    stk_directory_remove(&directory);
}

/* Archives are indexed side by side. What holds for all of them together is counted in their
 * order all the same: which archive has a member too many, or the first label that others lack. */
CleanTest(tar_several, archives_report_as_one_after_the_other)
{
    const struct stk_directory directory = stk_directory_make();
    const struct stk_tar_wish wishes[] = {
        { STK_ARCHIVE_IMAGES, .bytes_max = STK_ARCHIVE_MEMORY_BYTES, .entries_max = 2 * 20 * EACH },
        { STK_ARCHIVE_IMAGES, .bytes_max = STK_ARCHIVE_MEMORY_BYTES,
          .entries_max = 2 * 13 * EACH + 5 },
        { STK_ARCHIVE_IMAGES, .bytes_max = 4000, .entries_max = 1000 },
        { STK_ARCHIVE_IMAGES, .bytes_max = STK_ARCHIVE_MEMORY_BYTES, .entries_max = 1000,
          .class_count = 15 },
    };
    static const int codes[] = { STOKER_OK, STOKER_ELIMIT, STOKER_ELIMIT, STOKER_EFORMAT };
    struct stk_name_list names;
    struct stk_tar_index index;
    char text[600];
    for (int file = 0; file < 20; file++)
        write_labeled(&directory, file, 20);
    (void)snprintf(text, sizeof(text), "%s/t-{00..19}.tar", directory.path);
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_name_list_make(&names, &stk_storage_local, "tar", text, strlen(text), &error),
                 STOKER_OK);
    for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
        char first[sizeof(error.message)] = "";
        for (int round = 0; round < 20; round++) {
            cr_assert_eq(stk_tar_index_build(&index, &names, &wishes[i], &error), codes[i],
                         "case %d: %s", (int)i, error.message);
            if (round == 0)
                memcpy(first, error.message, sizeof(first));
            cr_assert(codes[i] == STOKER_OK || strcmp(first, error.message) == 0, "%s or %s", first,
                      error.message);
            if (codes[i] == STOKER_OK)
                cr_assert_eq(index.count, 20 * EACH);
            stk_tar_index_free(&index);
        }
        if (i == 1)
            cr_assert_not_null(strstr(first, "t-13.tar"), "%s", first);
        if (i == 3) /* labels are the archives' numbers */
            cr_assert_not_null(strstr(first, "t-15.tar"), "%s", first);
    }
    write_labeled(&directory, 6, 0);
    write_labeled(&directory, 11, 0);
    for (int round = 0; round < 20; round++) {
        cr_assert_eq(stk_tar_index_build(&index, &names, &wishes[0], &error), STOKER_EMISMATCH);
        cr_assert_not_null(strstr(error.message, "t-06.tar"), "%s", error.message);
    }
    stk_name_list_free(&names);
    stk_directory_remove(&directory);
}
