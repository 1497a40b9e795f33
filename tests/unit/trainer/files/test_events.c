/* test_events.c - the numbers of a run in files: event file, CSV, and the log that feeds
 * them.
 *
 * The golden bytes of the event file were made by a program of its own, in another language, and
 * read back as protobuf by TensorBoard's classes.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stoker/training_log.h>
#include <sys/resource.h>

#include "loader/base/fault.h"
#include "support/comma_locale.h"
#include "support/crc32c_by_bits.h"
#include "support/files/dataset_files.h"
#include "support/leaks.h"
#include "trainer/files/events.h"
#include "trainer/files/log_csv.h"

/* ---- files ---------------------------------------------------------------------- */

static struct stk_bytes contents(const char *path)
{
    struct stk_bytes bytes = { 0 };
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert_geq(fd, 0, "%s", path);
    const ssize_t size = read(fd, bytes.at, sizeof(bytes.at));
    cr_assert_geq(size, 0);
    cr_assert_lt((size_t)size, sizeof(bytes.at));
    bytes.size = (size_t)size;
    close(fd);
    return bytes;
}

static void check_text(const char *path, const char *expected)
{
    struct stk_bytes bytes = contents(path);
    bytes.at[bytes.size] = '\0';
    cr_assert_str_eq((const char *)bytes.at, expected);
}

static const uint8_t golden[] = {
    0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xA3, 0x7F, 0x4B, 0x22, 0x09, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0xF0, 0x3F, 0x1A, 0x0D, 0x62, 0x72, 0x61, 0x69, 0x6E, 0x2E, 0x45,
    0x76, 0x65, 0x6E, 0x74, 0x3A, 0x32, 0x86, 0xBF, 0x57, 0x7A, 0x21, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x01, 0x7B, 0xEC, 0xF6, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x40, 0x10, 0xAC, 0x02, 0x2A, 0x13, 0x0A, 0x11, 0x0A, 0x0A, 0x74, 0x72, 0x61, 0x69, 0x6E,
    0x2F, 0x6C, 0x6F, 0x73, 0x73, 0x15, 0x00, 0x00, 0x00, 0x3F, 0x18, 0x8B, 0x4D, 0x93
};

CleanTest(events, bytes_are_those_of_the_format)
{
    struct stk_directory directory = stk_directory_make();
    char path[512];
    static struct stk_events events;
    stoker_error error = { 0 };
    stk_path_in(path, &directory, "runs/first/deep");
    cr_assert_eq(stk_events_open(&events, path, 1.0, 0, &error), STOKER_OK, "%s", error.message);
    cr_assert_not_null(strstr(events.path, "/events.out.tfevents.0000000001."));
    cr_assert_eq(stk_events_scalar(&events, "train/loss", 300, 2.0, 0.5F, &error), STOKER_OK);
    cr_assert_eq(stk_events_close(&events, &error), STOKER_OK);
    cr_assert_eq(stk_events_close(&events, &error), STOKER_OK);
    const struct stk_bytes bytes = contents(events.path);
    cr_assert_eq(bytes.size, sizeof(golden));
    cr_assert_arr_eq(bytes.at, golden, sizeof(golden));
    stk_directory_remove(&directory);
}

CleanTest(events, a_second_run_in_the_same_second_is_another_file)
{
    struct stk_directory directory = stk_directory_make();
    static struct stk_events first, second;
    stoker_error error;
    cr_assert_eq(stk_events_open(&first, directory.path, 5.0, 0, &error), STOKER_OK);
    cr_assert_eq(stk_events_open(&second, directory.path, 5.5, 41, &error), STOKER_OK);
    cr_assert_str_neq(first.path, second.path);
    cr_assert_eq(stk_events_close(&first, &error), STOKER_OK);
    cr_assert_eq(stk_events_close(&second, &error), STOKER_OK);
    /* It continues after step 41: a START event, step 42, that voids what an older file has
     * there. */
    static const uint8_t start[] = { 0x10, 42, 0x3A, 2, 0x08, 0x01 };
    const struct stk_bytes bytes = contents(second.path);
    cr_assert_eq(bytes.size, 40 + 12 + 9 + sizeof(start) + 4);
    cr_assert_arr_eq(bytes.at + 40 + 12 + 9, start, sizeof(start));
    stk_directory_remove(&directory);
}

/* More than the buffer holds: each record whole, in order. */
CleanTest(events, many_scalars)
{
    enum { MANY = 1000 };
    struct stk_directory directory = stk_directory_make();
    static struct stk_events events;
    stoker_error error;
    cr_assert_eq(stk_events_open(&events, directory.path, 5.0, 0, &error), STOKER_OK);
    for (uint64_t step = 0; step < MANY; step++)
        cr_assert_eq(stk_events_scalar(&events, "loss", step, 5.0, (float)step, &error), STOKER_OK);
    cr_assert_eq(stk_events_close(&events, &error), STOKER_OK);
    FILE *file = fopen(events.path, "rb");
    cr_assert_not_null(file);
    uint8_t head[12], event[256];
    uint64_t records = 0;
    while (fread(head, 1, sizeof(head), file) == sizeof(head)) {
        const size_t bytes = (size_t)stk_load_le64(head);
        cr_assert_leq(bytes + 4, sizeof(event));
        cr_assert_eq(fread(event, 1, bytes + 4, file), bytes + 4);
        const uint32_t crc = stk_crc32c_by_bits(event, bytes);
        cr_assert_eq(stk_load_le32(event + bytes), ((crc >> 15) | (crc << 17)) + 0xA282EAD8U);
        float value;
        memcpy(&value, event + bytes - 4, sizeof(value));
        cr_assert(records == 0 || value == (float)(records - 1));
        records++;
    }
    cr_assert_eq(records, MANY + 1);
    fclose(file);
    stk_directory_remove(&directory);
}

CleanTest(events, write_errors_are_reported)
{
    struct stk_directory directory = stk_directory_make();
    static struct stk_events events;
    stoker_error error = { 0 };
    char path[512];
    stk_file_write(&directory, "file", "", 0);
    cr_assert_eq(stk_events_open(&events, stk_path_in(path, &directory, "file/x"), 5, 0, &error),
                 STOKER_ENOENT);
    cr_assert_eq(error.os_errno, ENOTDIR);
    cr_assert_eq(stk_events_close(&events, &error), STOKER_OK);
    stk_directory_remove(&directory);
}

static const char *const columns[] = { "loss", "accuracy" };

CleanTest(log_csv, rows_and_empty_fields)
{
    struct stk_directory directory = stk_directory_make();
    struct stk_log_csv log;
    stoker_error error;
    char path[512];
    stk_path_in(path, &directory, "log.csv");
    cr_assert_eq(stk_log_csv_open(&log, path, columns, 2, 0, &error), STOKER_OK);
    cr_assert_eq(stk_log_csv_row(&log, 1, (double[]){ 0.25, NAN }, 1, &error), STOKER_OK);
    check_text(path, "step,loss,accuracy\n1,0.25,\n"); /* at once */
    cr_assert_eq(stk_log_csv_row(&log, UINT64_MAX, (double[]){ INFINITY, -1e-9 }, 3, &error), 0);
    cr_assert_eq(stk_log_csv_row(&log, UINT64_MAX, (double[]){ -NAN, -INFINITY }, 3, &error), 0);
    cr_assert_eq(stk_log_csv_close(&log, &error), STOKER_OK);
    cr_assert_eq(stk_log_csv_close(&log, &error), STOKER_OK);
    check_text(path, "step,loss,accuracy\n1,0.25,\n18446744073709551615,inf,-1e-09\n"
                     "18446744073709551615,nan,-inf\n");
    stk_directory_remove(&directory);
}

/* Nobody reads it: an error, not a wait. Somebody does: the rows go there. */
CleanTest(log_csv, a_fifo_is_never_waited_for)
{
    struct stk_directory directory = stk_directory_make();
    struct stk_log_csv log;
    stoker_error error = { .message = "" };
    char path[512];
    char seen[64] = "";
    cr_assert_eq(mkfifo(stk_path_in(path, &directory, "fifo"), 0600), 0);
    cr_assert_lt(stk_log_csv_open(&log, path, columns, 2, 0, &error), 0);
    cr_assert_eq(error.os_errno, ENXIO, "%s", error.message);
    const int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    cr_assert_geq(reader, 0);
    cr_assert_eq(stk_log_csv_open(&log, path, columns, 2, 7, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_eq(stk_log_csv_row(&log, 8, (double[]){ 1, 2 }, 3, &error), STOKER_OK);
    cr_assert_eq(stk_log_csv_close(&log, &error), STOKER_OK);
    cr_assert_gt(read(reader, seen, sizeof(seen) - 1), 0);
    cr_assert_str_eq(seen, "step,loss,accuracy\n8,1,2\n");
    close(reader);
    stk_directory_remove(&directory);
}

CleanTest(log_csv, continuing_drops_repeated_and_cut_rows)
{
#define HEADER "step,loss,accuracy\n"
    static const struct {
        const char *before;
        const char *after; /* NULL = refused */
    } runs[] = {
        { "", HEADER },
        { "step,lo", HEADER },
        { HEADER, HEADER },
        { HEADER "1,2,3\n2,4,\n3,5,6\n", HEADER "1,2,3\n2,4,\n" },
        { HEADER "1,2,3\n2,4", HEADER "1,2,3\n" },
        { HEADER "1,2,3\n2,4,5", HEADER "1,2,3\n" },
        { HEADER "1,2,3\nrubbish\n2,1,1\n", HEADER "1,2,3\n" },
        { HEADER "1,2,3,4\n", HEADER },
        { "step,loss\n1,2\n", NULL },
        { "anything\n", NULL },
    };
    struct stk_directory directory = stk_directory_make();
    char path[512];
    stk_path_in(path, &directory, "log.csv");
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct stk_log_csv log;
        stoker_error error = { 0 };
        stk_file_write(&directory, "log.csv", runs[i].before, strlen(runs[i].before));
        const int rc = stk_log_csv_open(&log, path, columns, 2, 2, &error);
        cr_assert_eq(rc, runs[i].after == NULL ? STOKER_EMISMATCH : STOKER_OK, "%zu", i);
        cr_assert_eq(stk_log_csv_close(&log, &error), STOKER_OK);
        check_text(path, runs[i].after == NULL ? runs[i].before : runs[i].after);
    }
    stk_directory_remove(&directory);
}

/* A program that says setlocale(LC_ALL, "") may write 1,5: the log says 1.5, and its rows are read
 * so. */
CleanTest(log_csv, the_programs_locale_changes_nothing)
{
    struct stk_directory directory = stk_directory_make();
    struct stk_log_csv log;
    stoker_error error = { 0 };
    char path[512];
    if (!stk_comma_locale())
        cr_skip_test("no locale with a comma is available");
    stk_path_in(path, &directory, "log.csv");
    cr_assert_eq(stk_log_csv_open(&log, path, columns, 2, 0, &error), STOKER_OK);
    cr_assert_eq(stk_log_csv_row(&log, 1, (double[]){ 0.25, 2.5 }, 3, &error), STOKER_OK);
    cr_assert_eq(stk_log_csv_row(&log, 2, (double[]){ 4, 1e-3 }, 3, &error), STOKER_OK);
    cr_assert_eq(stk_log_csv_close(&log, &error), STOKER_OK);
    cr_assert_eq(stk_log_csv_open(&log, path, columns, 2, 2, &error), STOKER_OK);
    cr_assert_eq(stk_log_csv_close(&log, &error), STOKER_OK);
    check_text(path, HEADER "1,0.25,2.5\n2,4,0.001\n");
    cr_assert_eq(localeconv()->decimal_point[0], ',', "the program keeps its own");
    stk_directory_remove(&directory);
}

/* ---- the log -------------------------------------------------------------------- */

struct paths {
    char events[512], csv[512];
};

static struct paths paths_in(const struct stk_directory *directory)
{
    struct paths paths;
    (void)stk_path_in(paths.events, directory, "runs");
    (void)stk_path_in(paths.csv, directory, "log.csv");
    return paths;
}

static stoker_training_log_options options_for(const struct paths *paths)
{
    stoker_training_log_options options = STOKER_TRAINING_LOG_OPTIONS_INIT;
    options.events = paths->events;
    options.csv = paths->csv;
    options.columns = columns;
    options.column_count = 2;
    return options;
}

CleanTest(training_log, a_row_is_a_step_and_a_run_continues)
{
    struct stk_directory directory = stk_directory_make();
    const struct paths paths = paths_in(&directory);
    stoker_error error = { 0 };
    stoker_training_log_options options = options_for(&paths);
    stoker_training_log *log = NULL;
    cr_assert_eq(stoker_training_log_open(&log, &options, &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(stoker_training_log_scalar(log, "loss", 1, 2.5), STOKER_OK);
    cr_assert_eq(stoker_training_log_scalar(log, "accuracy", 1, 0.5), STOKER_OK);
    cr_assert_eq(stoker_training_log_scalar(log, "elsewhere", 1, 9), STOKER_OK);
    cr_assert_eq(stoker_training_log_scalar(log, "loss", 3, 1.5), STOKER_OK);
    cr_assert_eq(stoker_training_log_scalar(log, "loss", 2, 1.5), STOKER_EINVAL); /* back */
    cr_assert_eq(stoker_training_log_scalar(log, "", 4, 1.5), STOKER_EINVAL);
    cr_assert_eq(stoker_training_log_scalar(log, "a,b", 4, 1.5), STOKER_EINVAL);
    cr_assert_eq(stoker_training_log_close(&log, &error), STOKER_OK);
    cr_assert_null(log);
    check_text(paths.csv, "step,loss,accuracy\n1,2.5,0.5\n3,1.5,\n");

    options.first_step = 2; /* step 3 is done again */
    cr_assert_eq(stoker_training_log_open(&log, &options, &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(stoker_training_log_scalar(log, "loss", 4, 1), STOKER_OK);
    cr_assert_eq(stoker_training_log_close(&log, &error), STOKER_OK);
    check_text(paths.csv, "step,loss,accuracy\n1,2.5,0.5\n4,1,\n");
    cr_assert_eq(stoker_training_log_close(&log, &error), STOKER_OK);
    cr_assert_eq(stk_fault_live_bytes(), 0);
    stk_directory_remove(&directory);
}

CleanTest(training_log, options_are_checked)
{
    stoker_training_log *log = NULL;
    stoker_error error = { 0 };
    static const char *const bad[] = { "a\nb" };
    stoker_training_log_options options = STOKER_TRAINING_LOG_OPTIONS_INIT;
    options.columns = bad;
    options.column_count = 1;
    cr_assert_eq(stoker_training_log_open(&log, &options, &error), STOKER_EINVAL);
    options.column_count = STOKER_TRAINING_LOG_NAMES_MAX + 1;
    cr_assert_eq(stoker_training_log_open(&log, &options, &error), STOKER_EINVAL);
    options.column_count = 0;
    options.struct_size = 1;
    cr_assert_eq(stoker_training_log_open(&log, &options, &error), STOKER_EINVAL);
    options.struct_size = sizeof(options);
    cr_assert_eq(stoker_training_log_open(NULL, &options, &error), STOKER_EINVAL);
    cr_assert_null(log);
    cr_assert_eq(stoker_training_log_open(&log, &options, &error),
                 STOKER_OK); /* takes all, writes nothing */
    cr_assert_eq(stoker_training_log_scalar(log, "loss", 1, 1), STOKER_OK);
    cr_assert_eq(stoker_training_log_close(&log, NULL), STOKER_OK);
}

CleanTest(training_log, a_full_disk_is_reported_by_scalar_and_again_by_close)
{
    struct stk_directory directory = stk_directory_make();
    const struct paths paths = paths_in(&directory);
    stoker_error error = { 0 };
    stoker_training_log_options options = options_for(&paths);
    stoker_training_log *log = NULL;
    cr_assert_eq(stoker_training_log_open(&log, &options, &error), STOKER_OK);
    struct rlimit usual;
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &usual), 0);
    const struct rlimit tight = { 1, usual.rlim_max };
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const int rc = stoker_training_log_scalar(log, "loss", 1, 1);
    const int close_rc = stoker_training_log_close(&log, &error);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &usual), 0);
    cr_assert_eq(rc, STOKER_EIO);
    cr_assert_eq(close_rc, STOKER_EIO);
    cr_assert_eq(error.os_errno, EFBIG);
    cr_assert_not_null(strstr(error.path, "tfevents")); /* the first that failed */
    cr_assert_null(log);
    stk_directory_remove(&directory);
}

CleanTest(training_log, each_allocation_may_fail)
{
    struct stk_directory directory = stk_directory_make();
    const struct paths paths = paths_in(&directory);
    stoker_error error = { 0 };
    const stoker_training_log_options options = options_for(&paths);
    int rc = STOKER_ENOMEM;
    for (uint64_t nth = 1; rc == STOKER_ENOMEM; nth++) {
        cr_assert_lt(nth, 20);
        stoker_training_log *log = NULL;
        stk_fault_arm(STK_FAULT_ANY, nth);
        rc = stoker_training_log_open(&log, &options, &error);
        cr_assert_eq(rc == STOKER_OK, log != NULL);
        if (rc == STOKER_OK)
            rc = stoker_training_log_close(&log, &error);
        cr_assert_eq(stk_fault_disarm(), rc == STOKER_ENOMEM);
        cr_assert_eq(stk_fault_live_bytes(), 0);
    }
    cr_assert_eq(rc, STOKER_OK);
    stk_directory_remove(&directory);
}
