/* test_runs.c - windows that lie side by side are read and widened together: what arrives is
 * what each has alone, at the ends of files and epochs, and where a window is bad.
 */
#include "support/files/token_files.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scripted_reader.h"

enum { ROW_BYTES = 4096, EPOCHS = 2, WIDE = 4 };

static struct stk_directory directory;

static void make_directory(void)
{
    directory = stk_directory_make();
    const struct stk_bytes a = stk_llmc_file(0, 403, 2), b = stk_llmc_file(1, 16, 2),
                           c = stk_llmc_file(2, 290, 2), wide = stk_llmc_file(3, 161, WIDE);
    stk_file_write(&directory, "s0.bin", a.at, a.size);
    stk_file_write(&directory, "s1.bin", b.at, b.size); /* too short for a window with targets */
    stk_file_write(&directory, "s2.bin", c.at, c.size);
    stk_file_write(&directory, "wide.bin", wide.at, wide.size);
    /* With multiple=16, windows of the second file begin at the offset at which those of the first
     * one end. */
    struct stk_bytes raw = { 0 };
    stk_put_tokens(&raw, 4, STK_LLMC_BYTES / 2 + 64, 2);
    stk_file_write(&directory, "m0.bin", raw.at, raw.size);
    stk_file_write(&directory, "m1.bin", a.at, a.size);
}

static void remove_directory(void)
{
    stk_directory_remove(&directory);
}

TestSuite(token_runs, .init = make_directory, .fini = remove_directory);

static stoker_dataset *open_names(const char *names)
{
    char spec[512];
    (void)snprintf(spec, sizeof(spec), "tokens:%s/%s", directory.path, names);
    return dataset_of(spec);
}

static stoker_loader_options in_order(uint32_t batch_size, int32_t workers)
{
    return stk_default_options(.batch_size = batch_size, .shuffle = false, .epochs = EPOCHS,
                               .num_workers = workers, .cache = STOKER_CACHE_NONE,
                               .device = STOKER_DEVICE_CPU);
}

/* Field `field` of a row of a batch is that of its sample, read alone. */
static void check_field(const stoker_dataset *dataset, const stoker_batch *batch, uint32_t row,
                        uint32_t field)
{
    static uint8_t room[ROW_BYTES];
    stoker_row rows[STOKER_FIELDS_MAX] = { 0 };
    stoker_error error = { 0 };
    size_t bytes = stoker_dataset_field_bytes(dataset, field);
    const stoker_field *found = &batch->fields[field];
    size_t at = row * bytes;
    rows[field] = (stoker_row){ .data = room, .bytes_max = bytes };
    cr_assert_leq(bytes, sizeof(room));
    cr_assert_eq(stoker_dataset_read(dataset, batch->ids[row], rows, &error), STOKER_OK, "%s",
                 error.message);
    if (found->offsets != NULL) {
        const size_t one = stoker_dtype_bytes(found->values.dtype);
        cr_assert_eq((uint64_t)(found->offsets[row + 1] - found->offsets[row]), rows[field].length);
        at = (size_t)found->offsets[row] * one;
        bytes = rows[field].length * one;
    }
    cr_assert_arr_eq((const uint8_t *)found->values.data + at, room, bytes);
}

/* All epochs, in order. Returns the number of reads. */
static uint64_t check_run(const stoker_dataset *dataset, const stoker_loader_options *options)
{
    const uint64_t count = stoker_dataset_get_info(dataset)->count;
    stoker_loader *loader = loader_of(dataset, options);
    uint64_t next = 0;
    for (int rc = 0; rc != STOKER_FINISHED;) {
        stoker_batch batch = STOKER_BATCH_INIT;
        rc = stoker_loader_next(loader, &batch, -1);
        if (rc > 0)
            continue;
        cr_assert_eq(rc, STOKER_OK, "%s", stoker_loader_error(loader)->message);
        for (uint32_t row = 0; row < batch.count; row++, next++) {
            cr_assert_eq(batch.ids[row], next % count);
            for (uint32_t field = 0; field < batch.field_count; field++)
                check_field(dataset, &batch, row, field);
        }
        stoker_batch_release(&batch);
    }
    cr_assert_eq(next, EPOCHS * count);
    stoker_stats stats = STOKER_STATS_INIT;
    stoker_loader_stats(loader, &stats);
    stoker_loader_destroy(&loader);
    return stats.reads;
}

/* ---- what arrives ------------------------------------------------------------------------ */

CleanTest(token_runs, arrive_as_each_window_alone)
{
    static const char *const specs[] = {
        "s*.bin?length=16",
        "s*.bin?length=16&dtype=int32",
        "s*.bin?length=16&fields=inputs,targets&dtype=int32",
        "s*.bin?length=16&fields=targets&dtype=int64",
        "s*.bin?length=7&fields=targets,inputs&dtype=int64",
        "s*.bin?length=50&fields=inputs,targets,positions,documents,max_seqlen&dtype=int32&eos=7",
        "s*.bin?length=16&stride=5&fields=inputs,targets&dtype=int32",
        "s*.bin?length=16&stride=19&fields=inputs,targets&dtype=int32",
        "s*.bin?length=33&fields=inputs,targets,cu_seqlens,document_ids&eos=7",
        "wide.bin?length=16&fields=inputs,targets&dtype=int32",
        "m*.bin?length=16&stored=uint16&multiple=16",
    };
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
        for (uint32_t way = 0; way < 4; way++) {
            char spec[256];
            (void)snprintf(spec, sizeof(spec), "%s%s", specs[i], way % 2 == 0 ? "" : "&map=1");
            stoker_dataset *dataset = open_names(spec);
            stoker_loader_options options = in_order(way < 2 ? 9 : 5, way < 2 ? 2 : 0);
            (void)check_run(dataset, &options);
            options.batch_size = 1;
            (void)check_run(dataset, &options);
            stoker_dataset_close(&dataset);
        }
}

CleanTest(token_runs, take_a_read_each)
{
    stoker_dataset *dataset = open_names("s0.bin?length=16&fields=inputs,targets&dtype=int32");
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, 25); /* batches of 8 8 8 1 */
    stoker_loader_options options = in_order(8, 0);
    cr_assert_eq(check_run(dataset, &options), EPOCHS * 4);
    options.reader = stoker_reader_pread();
    cr_assert_eq(check_run(dataset, &options), EPOCHS * 4);
    options.reader = &stk_scripted_reader;
    stk_script_install(&(struct stk_script){ .rule_count = 0 });
    cr_assert_eq(check_run(dataset, &options), EPOCHS * 4);
    stoker_dataset_close(&dataset);
    dataset = open_names("s0.bin?length=16");
    options.reader = NULL;
    cr_assert_eq(check_run(dataset, &options), EPOCHS * 4);
    stoker_dataset_close(&dataset);
    /* Windows with gaps between them are read one by one. */
    dataset = open_names("s0.bin?length=16&stride=18&fields=inputs,targets");
    cr_assert_eq(check_run(dataset, &options), EPOCHS * stoker_dataset_get_info(dataset)->count);
    stoker_dataset_close(&dataset);
}

static void write_raw(const char *name, uint32_t count)
{
    uint16_t *tokens = malloc(count * sizeof(*tokens));
    for (uint32_t i = 0; i < count; i++)
        tokens[i] = (uint16_t)(i * 40503U >> 4);
    stk_file_write(&directory, name, (const uint8_t *)tokens, count * sizeof(*tokens));
    free(tokens);
}

/* A batch longer than one read: all of its rows arrive, by several. */
CleanTest(token_runs, of_many_bytes_take_several_reads)
{
    enum { TOKENS = 300 * 512 + 1 };
    write_raw("large.bin", TOKENS);
    stoker_dataset *dataset = open_names("large.bin?length=512&fields=inputs,targets&dtype=int32&"
                                         "layout=raw&stored=uint16");
    stoker_loader_options options = in_order(300, 0);
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, 300);
    const uint64_t reads = check_run(dataset, &options);
    cr_assert(reads > EPOCHS && reads < EPOCHS * 50, "%llu reads", (unsigned long long)reads);
    stoker_dataset_close(&dataset);
}

/* ---- what is bad ------------------------------------------------------------------------- */

/* One epoch without bad samples. Checks the rows and returns a bit for each id that came, modulo
 * 64. */
static uint64_t ids_of(const stoker_dataset *dataset, stoker_loader_options options)
{
    uint64_t ids = 0;
    options.epochs = 1;
    options.on_bad_sample = STOKER_ON_BAD_SKIP;
    stoker_loader *loader = loader_of(dataset, &options);
    for (int rc = 0; rc != STOKER_FINISHED;) {
        stoker_batch batch = STOKER_BATCH_INIT;
        rc = stoker_loader_next(loader, &batch, -1);
        if (rc > 0)
            continue;
        cr_assert_eq(rc, STOKER_OK, "%s", stoker_loader_error(loader)->message);
        for (uint32_t row = 0; row < batch.count; row++) {
            ids |= UINT64_C(1) << batch.ids[row] % 64;
            for (uint32_t field = 0; field < batch.field_count; field++)
                check_field(dataset, &batch, row, field);
        }
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    return ids;
}

/* A token that int32 cannot hold, in the middle of a run: only its window is bad, and the next one,
 * whose targets begin one token early. */
CleanTest(token_runs, lose_only_the_bad_window)
{
    struct stk_bytes file = stk_llmc_file(3, 161, WIDE);
    file.at[STK_LLMC_BYTES + 48 * WIDE + 3] =
        0x80; /* the last target of window 2, the first input of window 3 */
    stk_file_write(&directory, "wide.bin", file.at, file.size);
    for (int way = 0; way < 2; way++) {
        stoker_dataset *dataset =
            open_names(way == 0 ? "wide.bin?length=16&fields=inputs,targets&dtype=int32"
                                : "wide.bin?length=16&fields=inputs,targets&dtype=int32&map=1");
        const uint64_t all = (UINT64_C(1) << stoker_dataset_get_info(dataset)->count) - 1;
        for (int32_t workers = 0; workers < 3; workers += 2)
            cr_assert_eq(ids_of(dataset, in_order(7, workers)), all & ~UINT64_C(0xC));
        stoker_loader_options options = in_order(7, 0);
        stoker_loader *loader = loader_of(dataset, &options);
        stoker_batch batch = STOKER_BATCH_INIT;
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_EFORMAT);
        cr_assert_eq(stoker_loader_error(loader)->sample, 2);
        cr_assert_not_null(strstr(stoker_loader_error(loader)->message, "does not fit"));
        stoker_loader_destroy(&loader);
        stoker_dataset_close(&dataset);
    }
}

/* A place of the file that cannot be read: the windows that touch it are bad, at their own offsets,
 * and no other of the run. */
CleanTest(token_runs, lose_only_the_windows_that_cannot_be_read)
{
    static const char *const specs[] = {
        "s0.bin?length=16&fields=inputs,targets&dtype=int32",
        "s0.bin?length=16",
    };
    static const uint64_t lost[] = { 0x60, 0x40 }; /* windows 5 and 6, or 6 */
    const struct stk_script_rule rule = { .what = STK_SCRIPT_ERRNO,
                                          .amount = EIO,
                                          .file = STK_SCRIPT_ANY_FILE,
                                          .offset = STK_LLMC_BYTES + 2 * 6 * 16,
                                          .bytes = 2 };
    for (size_t i = 0; i < 2; i++)
        for (int32_t workers = 0; workers < 3; workers += 2) {
            stoker_dataset *dataset = open_names(specs[i]);
            stoker_loader_options options = in_order(8, workers);
            options.reader = &stk_scripted_reader;
            options.read_depth = 2; /* the windows, each read again alone, wait for each other */
            stk_script_install(&(struct stk_script){ .rules = &rule, .rule_count = 1 });
            const uint64_t all = (UINT64_C(1) << stoker_dataset_get_info(dataset)->count) - 1;
            cr_assert_eq(ids_of(dataset, options), all & ~lost[i]);
            stoker_loader *loader = loader_of(dataset, &options);
            stoker_batch batch = STOKER_BATCH_INIT;
            cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_EIO);
            const uint64_t first = i == 0 ? 5 : 6;
            cr_assert_eq(stoker_loader_error(loader)->sample, first);
            cr_assert_eq(stoker_loader_error(loader)->offset, STK_LLMC_BYTES + 2 * 16 * first);
            stoker_loader_destroy(&loader);
            stoker_dataset_close(&dataset);
        }
}

/* Every read that is under way fails: all rows of all their runs are begun again, alone. The last
 * two windows can be read. */
CleanTest(token_runs, fail_together)
{
    enum { WINDOWS = 64 * 24, TOKENS = WINDOWS * 16 + 1 };
    static const char *const specs[] = {
        "raw.bin?length=16&fields=inputs,targets&dtype=int32&layout=raw&stored=uint16",
        "raw.bin?length=16&layout=raw&stored=uint16",
    };
    const struct stk_script_rule rule = { .what = STK_SCRIPT_ERRNO,
                                          .amount = EIO,
                                          .file = STK_SCRIPT_ANY_FILE,
                                          .bytes = 2 * (TOKENS - 33) };
    write_raw("raw.bin", TOKENS);
    for (size_t i = 0; i < 2; i++)
        for (int32_t workers = 0; workers < 3; workers++) {
            stoker_dataset *dataset = open_names(specs[i]);
            stoker_loader_options options = in_order(64, workers);
            options.reader = &stk_scripted_reader;
            stk_script_install(&(struct stk_script){ .rules = &rule, .rule_count = 1 });
            cr_assert_eq(ids_of(dataset, options), UINT64_C(3) << 62);
            stoker_dataset_close(&dataset);
        }
}
