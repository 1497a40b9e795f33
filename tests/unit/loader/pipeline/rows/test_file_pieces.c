/* test_file_pieces.c - windows of tokens from pieces of files in memory are those that are read.
 *
 * Method: two files, one of several pieces, in the page cache, since they have just been written.
 * Where the file system cannot tell that (RWF_NOWAIT), nothing is held, and rows must be right all
 * the same.
 */
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "loader/pipeline/rows/file_pieces.h"
#include "support/files/token_directory.h"
#include "support/leaks.h"
#include "support/runs/scenario.h"

enum { TOKENS_LONG = 2500000, TOKENS_SHORT = 9000, LENGTH = 3000 };

TestSuite(file_pieces, .init = make_directory, .fini = remove_directory);

static void write_raw(const char *name, uint32_t seed, size_t tokens)
{
    uint16_t *file = malloc(tokens * sizeof(file[0]));
    cr_assert_not_null(file);
    for (size_t i = 0; i < tokens; i++)
        file[i] = (uint16_t)stk_mix64(seed + i);
    stk_file_write(&directory, name, (const uint8_t *)file, tokens * sizeof(file[0]));
    free(file);
}

/* Overlapping windows: some begin in one piece and end in the next. */
static stoker_dataset *open_both(void)
{
    char names[64];
    write_raw("a.bin", 1, TOKENS_LONG);
    write_raw("b.bin", 2, TOKENS_SHORT);
    (void)snprintf(names, sizeof(names), "*.bin?stored=uint16&length=%d&dtype=int32&fields=targets",
                   LENGTH);
    return open_names(names);
}

static bool is_warm(void)
{
    char path[512];
    uint8_t byte;
    struct iovec into = { .iov_base = &byte, .iov_len = 1 };
    (void)snprintf(path, sizeof(path), "%s/a.bin", directory.path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool warm = preadv2(fd, &into, 1, 0, RWF_NOWAIT) == 1;
    close(fd);
    return warm;
}

CleanTest(file_pieces, rows_are_those_that_are_read)
{
    static struct stk_run expected, found;
    stoker_dataset *dataset = open_both();
    stoker_loader_options options = stk_small_options(.epochs = 4);
    static const uint64_t budgets[] = { STOKER_BYTES_AUTO, 3 << 20 }; /* all pieces, and one */
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        options.shuffle = shuffle == 1;
        options.cache = STOKER_CACHE_NONE;
        options.memory_bytes = STOKER_BYTES_AUTO;
        options.num_workers = 0;
        cr_assert_eq(stk_run(dataset, &options, &expected), STOKER_FINISHED);
        options.cache = STOKER_CACHE_ENCODED;
        for (int i = 0; i < 6; i++) {
            options.num_workers = i / 2;
            options.memory_bytes = budgets[i % 2];
            cr_assert_eq(stk_run(dataset, &options, &found), STOKER_FINISHED);
            cr_assert(stk_runs_equal(&expected, &found), "shuffle %d, run %d", shuffle, i);
        }
    }
    stoker_dataset_close(&dataset);
}

/* In any order from the first epoch on, and in order from the second. */
CleanTest(file_pieces, each_byte_is_copied_once_and_nothing_is_read_again)
{
    static struct stk_run run;
    stoker_dataset *dataset = open_both();
    const uint64_t rows = stoker_dataset_get_info(dataset)->count;
    const bool warm = is_warm();
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        const stoker_loader_options options =
            stk_small_options(.epochs = 4, .shuffle = shuffle == 1, .cache = STOKER_CACHE_AUTO,
                              .num_workers = 0);
        stoker_loader *loader = loader_of(dataset, &options);
        stoker_stats stats = STOKER_STATS_INIT;
        memset(&run, 0, sizeof(run));
        stk_run_on(loader, &run, UINT32_MAX);
        cr_assert_eq(run.rc, STOKER_FINISHED);
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        cr_assert_eq(stats.cache, STOKER_CACHE_ENCODED);
        const uint64_t files = 2 * (TOKENS_LONG + TOKENS_SHORT);
        cr_assert_eq(stats.cache_hits, warm ? (shuffle == 1 ? 4 : 3) * rows : 0);
        cr_assert(!warm ||
                  (stats.cache_held_bytes >= files &&
                   stats.cache_held_bytes <= files + 3 * 2 * (LENGTH + 1) + 3 * STK_CACHE_LINE));
        stoker_loader_destroy(&loader);
    }
    stoker_dataset_close(&dataset);
}

/* Shuffled, so that it is found in a piece in the first epoch. */
CleanTest(file_pieces, a_bad_sample_is_named_as_if_it_were_read)
{
    enum { BAD = 123456 };
    static uint32_t tokens[400000];
    static struct stk_run run;
    tokens[BAD] = 0x80000000U; /* does not fit int32 */
    stk_file_write(&directory, "wide.bin", (const uint8_t *)tokens, sizeof(tokens));
    stoker_dataset *dataset =
        open_names("wide.bin?stored=uint32&length=100&dtype=int32&fields=targets");
    stoker_error errors[2];
    for (int pieces = 0; pieces < 2; pieces++) {
        const stoker_loader_options options =
            stk_small_options(.num_workers = 0,
                              .cache = pieces ? STOKER_CACHE_ENCODED : STOKER_CACHE_NONE);
        stoker_loader *loader = loader_of(dataset, &options);
        memset(&run, 0, sizeof(run));
        stk_run_on(loader, &run, UINT32_MAX);
        cr_assert_eq(run.rc, STOKER_EFORMAT);
        errors[pieces] = *stoker_loader_error(loader);
        stoker_loader_destroy(&loader);
    }
    cr_assert_str_eq(errors[1].message, errors[0].message);
    cr_assert_not_null(strstr(errors[1].path, "wide.bin"));
    cr_assert_eq(errors[1].offset, errors[0].offset);
    stoker_dataset_close(&dataset);
}

/* A piece whose end is missing is not held: its windows are read, and fail. */
CleanTest(file_pieces, a_file_that_got_shorter_is_noticed)
{
    static struct stk_run run;
    char path[512];
    stoker_dataset *dataset = open_both();
    const stoker_loader_options options =
        stk_small_options(.epochs = 4, .shuffle = false, .cache = STOKER_CACHE_AUTO);
    stoker_loader *loader = loader_of(dataset, &options);
    stk_run_on(loader, &run, 10);
    cr_assert_eq(run.rc, STOKER_OK);
    (void)snprintf(path, sizeof(path), "%s/a.bin", directory.path);
    cr_assert_eq(truncate(path, TOKENS_LONG), 0); /* half of it */
    stk_run_on(loader, &run, UINT32_MAX);
    cr_assert(run.rc == STOKER_ETRUNCATED || run.rc == STOKER_ECHANGED, "%d", run.rc);
    cr_assert_not_null(strstr(stoker_loader_error(loader)->path, "a.bin"));
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

/* ---- a data set whose file() says too much ------------------------------------------------ */

enum { LIE_ROW = 4096, LIE_ROWS = 8 };

/* The first file is said to be longer than a piece. */
static int lie_fds[2];
static bool lies;

static int lie_describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    out->count = LIE_ROWS; /* more bytes than the files have: ENCODED holds pieces */
    out->dtype = STOKER_DTYPE_UINT8;
    out->rank = 1;
    out->shape[0] = LIE_ROW;
    out->label_dtype = STOKER_DTYPE_NONE;
    out->file_count = 2;
    out->encoded_bytes_max = LIE_ROW;
    return STOKER_OK;
}

/* Samples lie in the second file; once lies is set, the last one lies far beyond the first. */
static int lie_locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                      stoker_error *error)
{
    (void)self;
    (void)error;
    for (uint32_t i = 0; i < count; i++) {
        const bool beyond = lies && ids[i] == LIE_ROWS - 1;
        out[i] = (stoker_part){ .extent = { .file = beyond ? 0 : 1,
                                            .offset = beyond ? STK_PIECE_BYTES : 0,
                                            .bytes = LIE_ROW } };
    }
    return STOKER_OK;
}

static int lie_file(const void *self, uint32_t number, stoker_file *out)
{
    (void)self;
    *out = (stoker_file){ .path = number == 0 ? "short" : "other",
                          .fd = lie_fds[number],
                          .size = number == 0 ? 2 * STK_PIECE_BYTES : LIE_ROW };
    return STOKER_OK;
}

/* Its sample would begin in the next file's piece. */
CleanTest(file_pieces, a_file_that_is_shorter_than_announced_is_not_continued_in_the_next)
{
    static const stoker_dataset_ops ops = { .struct_size = sizeof(ops),
                                            .name = "lie",
                                            .describe = lie_describe,
                                            .locate = lie_locate,
                                            .file = lie_file };
    static struct stk_run run;
    for (int i = 0; i < 2; i++) {
        char path[512];
        write_raw(i == 0 ? "short" : "other", 1, LIE_ROW / sizeof(uint16_t));
        (void)snprintf(path, sizeof(path), "%s/%s", directory.path, i == 0 ? "short" : "other");
        lie_fds[i] = open(path, O_RDONLY | O_CLOEXEC);
        cr_assert_geq(lie_fds[i], 0);
    }
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_create(&dataset, &ops, NULL, NULL), STOKER_OK);
    const stoker_loader_options options =
        stk_small_options(.shuffle = true, .epochs = 4, .batch_size = 1, .num_workers = 0,
                          .prefetch_batches = 2, .dtype = STOKER_DTYPE_NONE,
                          .cache = STOKER_CACHE_ENCODED);
    stoker_loader *loader = loader_of(dataset, &options);
    memset(&run, 0, sizeof(run));
    stk_run_on(loader, &run, 1); /* the second file's piece is held */
    cr_assert_eq(run.rc, STOKER_OK);
    lies = true;
    stk_run_on(loader, &run, UINT32_MAX);
    cr_assert_eq(run.rc, STOKER_ETRUNCATED, "%d", run.rc);
    cr_assert_not_null(strstr(stoker_loader_error(loader)->path, "short"));
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    close(lie_fds[0]);
    close(lie_fds[1]);
}
