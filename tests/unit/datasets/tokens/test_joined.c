/* test_joined.c - the form JOINED: cu_seqlens of a batch laid end to end, as attention of
 * variable length takes it. */
#include "support/files/token_files.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"

enum { LENGTH = 16, BATCH = 5 };

static struct stk_directory directory;

static void make_directory(void)
{
    directory = stk_directory_make();
    const struct stk_bytes file = stk_llmc_file(0, 403, 2);
    stk_file_write(&directory, "a.bin", file.at, file.size);
    stk_megatron_write(&directory, "m", 4, 400);
}

static void remove_directory(void)
{
    stk_directory_remove(&directory);
}

TestSuite(token_joined, .init = make_directory, .fini = remove_directory);

static stoker_dataset *open_format(const char *before, const char *after)
{
    char spec[512];
    (void)snprintf(spec, sizeof(spec), "%s%s/%s", before, directory.path, after);
    return dataset_of(spec);
}

/* Fields: tokens, positions, cu_seqlens. A document begins where a position is 0; padding, whose
 * positions are 0 too, is one sequence. */
static void check_batch(const stoker_batch *batch, bool padded)
{
    const int32_t *positions = batch->fields[1].values.data, *ends = batch->fields[2].values.data;
    const uint16_t *tokens = batch->fields[0].values.data;
    const uint64_t count = batch->fields[2].values.shape[0];
    uint64_t next = 0;
    cr_assert_eq(batch->fields[2].values.rank, 1);
    for (uint32_t at = 0; at < batch->count * LENGTH; at++) {
        const bool padding = padded && tokens[at] == 0;
        const bool begins = at % LENGTH == 0 || (positions[at] == 0 && !padding) ||
                            (padding && tokens[at - 1] != 0);
        if (at % LENGTH == 0)
            cr_assert_eq((uint64_t)batch->fields[2].offsets[at / LENGTH], next);
        if (begins)
            cr_assert_eq(ends[next++], (int32_t)at);
    }
    cr_assert_eq(ends[next++], (int32_t)(batch->count * LENGTH));
    cr_assert_eq(next, count);
    cr_assert_eq((uint64_t)batch->fields[2].offsets[batch->count], next - 1);
}

static void check_all(const stoker_dataset *dataset, bool shuffle, bool padded)
{
    stoker_field_options field = STOKER_FIELD_OPTIONS_INIT;
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    uint64_t rows = 0;
    field.name = "cu_seqlens";
    field.form = STOKER_FIELD_FORM_JOINED;
    options.fields = &field;
    options.field_count = 1;
    options.batch_size = BATCH;
    options.shuffle = shuffle;
    options.epochs = 1;
    options.device = STOKER_DEVICE_CPU;
    stoker_loader *loader = loader_of(dataset, &options);
    for (int rc = 0; rc != STOKER_FINISHED;) {
        stoker_batch batch = STOKER_BATCH_INIT;
        rc = stoker_loader_next(loader, &batch, -1);
        if (rc > 0)
            continue;
        cr_assert_eq(rc, STOKER_OK, "%s", stoker_loader_error(loader)->message);
        check_batch(&batch, padded);
        rows += batch.count;
        stoker_batch_release(&batch);
    }
    cr_assert_eq(rows, stoker_dataset_get_info(dataset)->count);
    stoker_loader_destroy(&loader);
}

CleanTest(token_joined, windows_and_packed_rows_are_laid_end_to_end)
{
    stoker_dataset *windows =
        open_format("tokens:", "a.bin?length=16&fields=tokens,positions,cu_seqlens&eos=7");
    char after[64];
    (void)snprintf(after, sizeof(after), "m.idx)?fields=tokens,positions,cu_seqlens");
    stoker_dataset *packed = open_format("packed:16:(documents:", after);
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        check_all(windows, shuffle, false);
        check_all(packed, shuffle, true);
    }
    stoker_dataset_close(&windows);
    stoker_dataset_close(&packed);
}

static void expect_refusal(const stoker_dataset *dataset, const char *name, stoker_dtype dtype,
                           int code, const char *says)
{
    stoker_field_options field = STOKER_FIELD_OPTIONS_INIT;
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    stoker_loader *loader = NULL;
    stoker_error error = { 0 };
    field.name = name;
    field.form = STOKER_FIELD_FORM_JOINED;
    field.dtype = dtype;
    options.fields = &field;
    options.field_count = 1;
    options.batch_size = BATCH;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), code, "%s",
                 error.message);
    cr_assert_not_null(strstr(error.message, says), "%s", error.message);
}

CleanTest(token_joined, what_cannot_be_joined_is_refused)
{
    stoker_dataset *windows =
        open_format("tokens:", "a.bin?length=16&fields=tokens,positions,cu_seqlens&eos=7");
    expect_refusal(windows, "positions", STOKER_DTYPE_NONE, STOKER_EINVAL, "does not vary");
    expect_refusal(windows, "cu_seqlens", STOKER_DTYPE_FLOAT32, STOKER_EINVAL, "int32 or int64");
    stoker_dataset_close(&windows);
    stoker_dataset *documents = open_format("documents:", "m.idx");
    expect_refusal(documents, "tokens", STOKER_DTYPE_NONE, STOKER_EINVAL, "JOINED");
    stoker_dataset_close(&documents);
}
