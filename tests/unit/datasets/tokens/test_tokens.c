/* test_tokens.c - token files: windows, fields, documents and orders, and what is wrong with a file
 * is reported.
 *
 * Method: files of each layout whose token i is known. What a window must hold is computed here,
 * token by token. The order of llm.c is its published rule, written down once more.
 */
#include "datasets/tokens/stream.h"
#include "support/files/npy_bytes.h"
#include "support/files/token_directory.h"
#include "support/leaks.h"
#include "support/sets/read_row.h"

enum { TOKENS = 1000, LENGTH = 16 };

TestSuite(tokens, .init = make_directory, .fini = remove_directory);

static uint64_t count_of(const stoker_dataset *dataset)
{
    return stoker_dataset_get_info(dataset)->count;
}

/* Field `field` of a sample; the others are not asked for. Returns its length, if it varies. */
static uint64_t read_field(const stoker_dataset *dataset, uint64_t id, uint32_t field, void *out,
                           size_t bytes)
{
    stoker_row rows[STOKER_FIELDS_MAX] = { 0 };
    stoker_error error = { 0 };
    cr_assert_eq(stoker_dataset_field_bytes(dataset, field), bytes);
    rows[field] = (stoker_row){ .data = out, .bytes_max = bytes };
    cr_assert_eq(stoker_dataset_read(dataset, id, rows, &error), STOKER_OK, "%s", error.message);
    return rows[field].length;
}

/* ---- windows and types ------------------------------------------------------------------ */

CleanTest(tokens, windows_follow_each_other_and_the_rest_is_reported)
{
    write_llmc("a.bin", 0, TOKENS, 2);
    stoker_dataset *dataset = open_names("a.bin?length=16");
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_str_eq(stoker_dataset_name(dataset), "tokens");
    cr_assert_eq(info->count, TOKENS / LENGTH);
    cr_assert_eq(info->dtype, STOKER_DTYPE_UINT16);
    cr_assert(info->dense);
    cr_assert_not_null(strstr(info->description, "8 tokens at the ends of files in none"), "%s",
                       info->description);
    for (uint64_t id = 0; id < info->count; id++) {
        uint16_t row[LENGTH];
        read_field(dataset, id, 0, row, sizeof(row));
        for (uint64_t i = 0; i < LENGTH; i++)
            cr_assert_eq(row[i], stk_token(0, id * LENGTH + i));
    }
    stoker_dataset_close(&dataset);
}

/* A mapped file whose windows follow each other is rows in memory; a window of two fields is a part
 * in memory. */
CleanTest(tokens, mapped_files_have_the_same_windows)
{
    write_llmc("a.bin", 0, TOKENS, 2);
    stoker_dataset *rows = open_names("a.bin?length=16&map=1&test=0.5&split=test");
    stoker_dataset *parts = open_names("a.bin?length=16&map=1&fields=inputs,targets");
    const uint16_t *memory = stoker_dataset_get_info(rows)->rows;
    cr_assert_not_null(memory);
    cr_assert_null(stoker_dataset_get_info(parts)->rows);
    cr_assert_eq(count_of(rows), TOKENS / 2 / LENGTH);
    for (uint64_t i = 0; i < count_of(rows) * LENGTH; i++)
        cr_assert_eq(memory[i], stk_token(0, TOKENS / 2 + i));
    for (uint64_t id = 0; id < count_of(parts); id++) {
        uint16_t row[LENGTH];
        read_field(parts, id, 1, row, sizeof(row));
        for (uint64_t i = 0; i < LENGTH; i++)
            cr_assert_eq(row[i], stk_token(0, id * LENGTH + i + 1));
    }
    stoker_dataset_close(&rows);
    stoker_dataset_close(&parts);
}

/* Inputs and targets of both widened types come from one read. */
CleanTest(tokens, targets_are_the_inputs_shifted_by_one)
{
    static const struct {
        const char *names;
        size_t stored, delivered;
    } rows[] = {
        { "a.bin?length=16&fields=inputs,targets", 2, 2 },
        { "a.bin?length=16&fields=inputs,targets&dtype=int32", 2, 4 },
        { "a.bin?length=16&fields=inputs,targets&dtype=int64", 2, 8 },
        { "b.bin?length=16&fields=inputs,targets&dtype=int32", 4, 4 },
        { "b.bin?length=16&fields=inputs,targets&dtype=int64&stride=5", 4, 8 },
    };
    write_llmc("a.bin", 1, 500, 2);
    write_llmc("b.bin", 1, 500, 4);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stoker_dataset *dataset = open_names(rows[i].names);
        const uint64_t stride = strstr(rows[i].names, "stride") != NULL ? 5 : LENGTH;
        cr_assert_eq(count_of(dataset), (500 - LENGTH - 1) / stride + 1);
        for (uint64_t id = 0; id < count_of(dataset); id++)
            for (uint32_t field = 0; field < 2; field++) {
                uint8_t row[LENGTH * 8];
                read_field(dataset, id, field, row, LENGTH * rows[i].delivered);
                for (uint64_t at = 0; at < LENGTH; at++) {
                    uint64_t token = 0;
                    memcpy(&token, row + at * rows[i].delivered, rows[i].delivered);
                    cr_assert_eq(token, stk_token(1, id * stride + at + field), "%s",
                                 rows[i].names);
                }
            }
        stoker_part part;
        cr_assert_eq(stoker_dataset_locate(dataset, 1, &part, NULL), STOKER_OK);
        cr_assert_eq(part.extent.bytes, (LENGTH + 1) * rows[i].stored);
        stoker_dataset_close(&dataset);
    }
}

CleanTest(tokens, each_layout_and_element_type_is_read)
{
    static const struct {
        const char *descr;
        size_t width;
    } arrays[] = { { "|u1", 1 }, { "<u2", 2 }, { "<i2", 2 }, { "<u4", 4 },
                   { "<i4", 4 }, { "<u8", 8 }, { "<i8", 8 } };
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++) {
        struct stk_bytes file = { 0 }, tokens = { 0 };
        stk_put_tokens(&tokens, 0, 100, arrays[i].width);
        stk_put_npy(&file, arrays[i].descr, "(100,)", tokens.at, tokens.size);
        stk_file_write(&directory, "x.npy", file.at, file.size);
        stoker_dataset *dataset = open_names("x.npy?length=10&dtype=int64");
        int64_t row[10];
        read_field(dataset, 3, 0, row, sizeof(row));
        for (uint64_t at = 0; at < 10; at++)
            cr_assert_eq(row[at], stk_token(0, 30 + at) & (arrays[i].width == 1 ? 255 : 65535));
        stoker_dataset_close(&dataset);
    }
    struct stk_bytes raw = { 0 };
    stk_put_tokens(&raw, 2, 100, 4);
    stk_file_write(&directory, "raw.bin", raw.at, raw.size);
    stoker_dataset *dataset = open_names("raw.bin?length=10&stored=uint32");
    uint32_t row[10];
    read_field(dataset, 9, 0, row, sizeof(row));
    cr_assert_eq(row[9], stk_token(2, 99));
    stoker_dataset_close(&dataset);
    stk_megatron_write(&directory, "m", 3, 100);
    const char *const names[] = { "m.bin?length=10", "m.idx?length=10",
                                  "m.bin?length=10&layout=megatron" };
    for (size_t i = 0; i < 3; i++) {
        uint16_t window[10];
        dataset = open_names(names[i]);
        cr_assert_eq(count_of(dataset), 10);
        read_field(dataset, 9, 0, window, sizeof(window));
        cr_assert_eq(window[0], stk_token(3, 90));
        stoker_dataset_close(&dataset);
    }
}

CleanTest(tokens, a_token_that_does_not_fit_makes_the_sample_bad)
{
    struct stk_bytes raw = { 0 };
    stk_put_tokens(&raw, 2, 40, 4);
    raw.at[4 * 25 + 3] = 0x80;
    stk_file_write(&directory, "raw.bin", raw.at, raw.size);
    stoker_dataset *dataset = open_names("raw.bin?length=10&stored=uint32&dtype=int32");
    int32_t row[10];
    stoker_error error = { 0 };
    cr_assert_eq(stk_read_row(dataset, 1, row, sizeof(row), NULL, &error), STOKER_OK);
    cr_assert_eq(stk_read_row(dataset, 2, row, sizeof(row), NULL, &error), STOKER_EFORMAT);
    cr_assert_not_null(strstr(error.message, "does not fit int32"), "%s", error.message);
    stoker_dataset_close(&dataset);
}

/* Longer than the blocks in which tokens are widened. */
CleanTest(tokens, windows_of_many_blocks_are_widened)
{
    static const char *const names[] = { "a.bin?length=333&dtype=int64",
                                         "b.bin?length=333&dtype=int64" };
    write_llmc("a.bin", 0, TOKENS, 2);
    write_llmc("b.bin", 0, 700, 4);
    for (size_t i = 0; i < 2; i++) {
        stoker_dataset *dataset = open_names(names[i]);
        int64_t row[333];
        read_field(dataset, 1, 0, row, sizeof(row));
        for (uint64_t at = 0; at < 333; at++)
            cr_assert_eq(row[at], stk_token(0, 333 + at));
        stoker_dataset_close(&dataset);
    }
}

/* ---- several files ---------------------------------------------------------------------- */

CleanTest(tokens, windows_lie_in_one_file_in_the_order_of_the_names)
{
    write_llmc("s_10.bin", 3, 50, 2);
    write_llmc("s_9.bin", 2, 45, 2);
    write_llmc("s_1.bin", 1, 15, 2);
    static const struct {
        const char *names;
        uint32_t seeds[3];
    } rows[] = { { "s_*.bin?length=16", { 1, 3, 2 } },
                 { "s_{9,1,10}.bin?length=16", { 2, 1, 3 } },
                 { "s_{1,1?,9}.bin?length=16", { 0, 0, 0 } } };
    for (size_t i = 0; i < 2; i++) {
        stoker_dataset *dataset = open_names(rows[i].names);
        uint64_t id = 0;
        cr_assert_eq(count_of(dataset), 0 + 3 + 2);
        for (uint32_t file = 0; file < 3; file++) {
            const uint32_t seed = rows[i].seeds[file];
            const uint64_t windows = seed == 1 ? 0 : seed == 2 ? 2 : 3;
            for (uint64_t window = 0; window < windows; window++, id++) {
                uint16_t row[LENGTH];
                read_field(dataset, id, 0, row, sizeof(row));
                cr_assert_eq(row[0], stk_token(seed, window * LENGTH));
                cr_assert_eq(row[15], stk_token(seed, window * LENGTH + 15));
            }
        }
        stoker_dataset_close(&dataset);
    }
}

CleanTest(tokens, the_last_tokens_are_the_test_side)
{
    write_llmc("a.bin", 1, 500, 2);
    write_llmc("b.bin", 2, 500, 2);
    static const struct {
        const char *names;
        uint64_t count, first, seed;
    } rows[] = {
        { "{a,b}.bin?length=10&test=0.1", 90, 0, 1 },
        { "{a,b}.bin?length=10&test=0.1&split=test", 10, 400, 2 },
        { "{a,b}.bin?length=10&test=605&split=test", 10 + 50, 395, 1 },
        { "{a,b}.bin?length=10&test=605", 39, 0, 1 },
        { "a.bin?length=10&test=0.125&split=test", 6, 438, 1 }, /* 62 of 500 */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stoker_dataset *dataset = open_names(rows[i].names);
        uint16_t row[10];
        cr_assert_eq(count_of(dataset), rows[i].count, "%s: %d", rows[i].names,
                     (int)count_of(dataset));
        read_field(dataset, 0, 0, row, sizeof(row));
        cr_assert_eq(row[0], stk_token((uint32_t)rows[i].seed, rows[i].first));
        stoker_dataset_close(&dataset);
    }
}

/* ---- documents -------------------------------------------------------------------------- */

/* What the fields of a window must be, from the tokens of its file. */
struct expected {
    int32_t positions[LENGTH], documents[LENGTH], cu_seqlens[LENGTH + 1], max_seqlen;
    int64_t document_ids[LENGTH];
    uint64_t cu_length;
};

static void expect(struct expected *out, uint32_t seed, uint64_t first)
{
    int32_t position = 0, count = 0;
    int64_t document = 0;
    *out = (struct expected){ .max_seqlen = 0 };
    for (uint64_t i = 0; i < first; i++)
        document += stk_token(seed, i) == STK_EOS ? 1 : 0;
    for (uint64_t i = 0; i < LENGTH; i++) {
        out->positions[i] = position++;
        out->documents[i] = count;
        out->document_ids[i] = document;
        out->max_seqlen = position > out->max_seqlen ? position : out->max_seqlen;
        if (stk_token(seed, first + i) != STK_EOS)
            continue;
        position = 0;
        document++;
        if (i + 1 < LENGTH)
            out->cu_seqlens[++count] = (int32_t)i + 1;
    }
    out->cu_seqlens[++count] = LENGTH;
    out->cu_length = (uint64_t)count + 1;
}

/* By a scan of each window, by an index made of all tokens, and by Megatron's. */
CleanTest(tokens, fields_of_documents_agree_however_they_are_found)
{
#define FIELDS "&length=16&stride=7&fields=tokens,positions,documents,cu_seqlens,max_seqlen"
    static const char *const rows[] = { "a.bin?eos=7" FIELDS, "a.bin?eos=7" FIELDS ",document_ids",
                                        "m.bin?layout=megatron" FIELDS ",document_ids" };
    write_llmc("a.bin", 4, 600, 2);
    stk_megatron_write(&directory, "m", 4, 600);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stoker_dataset *dataset = open_names(rows[i]);
        for (uint64_t id = 0; id < count_of(dataset); id++) {
            struct expected wanted, got = { .max_seqlen = 0 };
            expect(&wanted, 4, id * 7);
            read_field(dataset, id, 1, got.positions, sizeof(got.positions));
            read_field(dataset, id, 2, got.documents, sizeof(got.documents));
            got.cu_length = read_field(dataset, id, 3, got.cu_seqlens, sizeof(got.cu_seqlens));
            read_field(dataset, id, 4, &got.max_seqlen, sizeof(got.max_seqlen));
            cr_assert_arr_eq(got.positions, wanted.positions, sizeof(got.positions));
            cr_assert_arr_eq(got.documents, wanted.documents, sizeof(got.documents));
            cr_assert_eq(got.cu_length, wanted.cu_length);
            cr_assert_arr_eq(got.cu_seqlens, wanted.cu_seqlens, wanted.cu_length * 4);
            cr_assert_eq(got.max_seqlen, wanted.max_seqlen);
            if (i == 0)
                continue;
            read_field(dataset, id, 5, got.document_ids, sizeof(got.document_ids));
            cr_assert_arr_eq(got.document_ids, wanted.document_ids, sizeof(got.document_ids));
        }
        stoker_dataset_close(&dataset);
    }
}

CleanTest(tokens, a_window_has_parts_of_up_to_documents_max_documents)
{
    struct expected wanted;
    char names[128];
    write_llmc("a.bin", 4, 600, 2);
    for (uint64_t id = 0; id < 20; id++) {
        expect(&wanted, 4, id * LENGTH);
        const uint32_t documents = (uint32_t)wanted.cu_length - 1;
        for (uint32_t most = documents > 1 ? documents - 1 : 1; most <= documents; most++) {
            int32_t ends[LENGTH + 1];
            stoker_error error = { .message = "" };
            stoker_row rows[STOKER_FIELDS_MAX] = { 0 };
            (void)snprintf(names, sizeof(names),
                           "a.bin?length=16&eos=7&fields=tokens,cu_seqlens&documents_max=%u", most);
            stoker_dataset *dataset = open_names(names);
            rows[1] =
                (stoker_row){ .data = ends, .bytes_max = stoker_dataset_field_bytes(dataset, 1) };
            const int rc = stoker_dataset_read(dataset, id, rows, &error);
            cr_assert_eq(rc, most == documents ? STOKER_OK : STOKER_ELIMIT, "%s", error.message);
            stoker_dataset_close(&dataset);
        }
    }
}

static struct stk_tokens open_stream(const char *names, int64_t eos, int64_t bos)
{
    char path[512];
    struct stk_tokens tokens;
    stoker_error error = { 0 };
    (void)stk_path_in(path, &directory, names);
    const struct stk_tokens_wish wish = { .storage = &stk_storage_local,
                                          .names = path,
                                          .name_bytes = strlen(path),
                                          .eos = eos,
                                          .bos = bos,
                                          .format = "tokens" };
    cr_assert_eq(stk_tokens_open(&tokens, &wish, &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(stk_tokens_find_documents(&tokens, 1 << 20, &error), STOKER_OK, "%s",
                 error.message);
    return tokens;
}

/* Each document in order is the tokens up to the next mark; all together they are all tokens. */
static void check_documents(const struct stk_tokens *tokens, bool by_bos)
{
    uint64_t number = 0;
    for (uint64_t i = 0; i < tokens->document_count; i++) {
        const struct stk_token_range range = stk_tokens_document(tokens, i);
        const struct stk_token_file *file = &tokens->files[range.file];
        uint16_t words[TOKENS];
        stoker_error error = { 0 };
        cr_assert_eq(file->first + range.offset, number);
        cr_assert_eq(stk_tokens_read(tokens, &range, words, &error), STOKER_OK);
        const uint64_t inner = by_bos ? 1 : 0;
        for (uint64_t at = inner; at + 1 - inner < range.length; at++)
            cr_assert_neq(words[at], STK_EOS);
        if (by_bos && range.offset > 0)
            cr_assert_eq(words[0], STK_EOS);
        if (!by_bos && range.offset + range.length < file->count)
            cr_assert_eq(words[range.length - 1], STK_EOS);
        cr_assert_eq(stk_tokens_document_of(tokens, number), i);
        cr_assert_eq(stk_tokens_document_of(tokens, number + range.length - 1), i);
        number += range.length;
    }
    cr_assert_eq(number, tokens->count);
}

CleanTest(tokens, the_index_has_each_document_once)
{
    write_llmc("a.bin", 4, 600, 2);
    write_llmc("b.bin", 5, 77, 2);
    stk_megatron_write(&directory, "m1", 4, 600);
    stk_megatron_write(&directory, "m2", 5, 77);
    struct stk_tokens marked = open_stream("{a,b}.bin", STK_EOS, STK_TOKENS_NONE);
    struct stk_tokens indexed = open_stream("m*.idx", STK_TOKENS_NONE, STK_TOKENS_NONE);
    struct stk_tokens begun = open_stream("{a,b}.bin", STK_TOKENS_NONE, STK_EOS);
    check_documents(&marked, false);
    check_documents(&indexed, false);
    check_documents(&begun, true);
    cr_assert_eq(marked.document_count, indexed.document_count);
    cr_assert_arr_eq(marked.starts, indexed.starts, (marked.document_count + 1) * 8);
    stk_tokens_close(&marked);
    stk_tokens_close(&indexed);
    stk_tokens_close(&begun);
}

/* Files that Megatron's builder wrote: tests/golden/make_tokens_golden.py. The second has two
 * sequences to a document, and modes; the fourth document of both is empty. */
CleanTest(tokens, files_of_megatron_itself_have_its_documents)
{
    static const uint32_t lengths[] = { 5, 1, 40, 0, 17, 2, 100, 33 };
    static const char *const names[] = { "uint16", "int32" };
    for (size_t i = 0; i < 2; i++) {
        char path[512];
        uint64_t number = 0;
        struct stk_tokens tokens;
        stoker_error error = { 0 };
        (void)snprintf(path, sizeof(path), STOKER_TEST_SOURCES "/tests/golden/tokens/%s.idx",
                       names[i]);
        const struct stk_tokens_wish wish = { .storage = &stk_storage_local,
                                              .names = path,
                                              .name_bytes = strlen(path),
                                              .eos = STK_TOKENS_NONE,
                                              .bos = STK_TOKENS_NONE,
                                              .format = "tokens" };
        cr_assert_eq(stk_tokens_open(&tokens, &wish, &error), STOKER_OK, "%s", error.message);
        cr_assert_str_eq(stoker_dtype_name(tokens.dtype), names[i]);
        cr_assert_eq(stk_tokens_find_documents(&tokens, 1 << 20, &error), STOKER_OK, "%s",
                     error.message);
        cr_assert_eq(tokens.document_count, sizeof(lengths) / sizeof(lengths[0]));
        for (uint64_t document = 0; document < tokens.document_count; document++) {
            uint8_t words[100 * 4];
            const struct stk_token_range range = stk_tokens_document(&tokens, document);
            cr_assert_eq(range.length, lengths[document]);
            cr_assert_eq(stk_tokens_read(&tokens, &range, words, &error), STOKER_OK);
            for (uint64_t at = 0; at < range.length; at++, number++) {
                uint32_t token = 0;
                memcpy(&token, words + at * tokens.token_bytes, tokens.token_bytes);
                cr_assert_eq(token, number * 7919 % 50000);
            }
        }
        cr_assert_eq(number, tokens.count);
        stk_tokens_close(&tokens);
    }
}

/* ---- orders ----------------------------------------------------------------------------- */

/* llm.c's loader: a step of rank r reads B x T + 1 tokens from (step x ranks + r) x B x T on; a
 * shard has (2 x tokens - 2) / (2 x ranks x B x T) steps, and the next one begins after them. */
enum { B = 3, T = 8, RANKS = 2, SHARDS = 3 };
static const uint32_t shard_tokens[SHARDS] = { 400, 145, 97 };

static void check_llmc_rank(const stoker_dataset *dataset, uint32_t rank)
{
    stoker_loader_options options =
        stk_default_options(.batch_size = B, .shuffle = false, .epochs = 1, .rank = rank,
                            .world_size = RANKS, .deal = STOKER_DEAL_BATCHES,
                            .device = STOKER_DEVICE_CPU);
    stoker_loader *loader = loader_of(dataset, &options);
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        const uint64_t steps = (2 * (uint64_t)shard_tokens[shard] - 2) / (2 * RANKS * B * T);
        for (uint64_t step = 0; step < steps; step++) {
            stoker_batch batch = STOKER_BATCH_INIT;
            const uint64_t begin = (step * RANKS + rank) * B * T;
            cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK, "%s",
                         stoker_loader_error(loader)->message);
            cr_assert_eq(batch.count, B);
            const int32_t *inputs = batch.fields[0].values.data;
            const int32_t *targets = batch.fields[1].values.data;
            for (uint64_t i = 0; i < B * T; i++) {
                cr_assert_eq(inputs[i], (int32_t)stk_token(shard, begin + i));
                cr_assert_eq(targets[i], (int32_t)stk_token(shard, begin + i + 1));
            }
            stoker_batch_release(&batch);
        }
    }
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_EPOCH_END);
    stoker_loader_destroy(&loader);
}

CleanTest(tokens, the_order_is_that_of_llm_c_on_any_rank)
{
    char spec[512];
    write_llmc("s0.bin", 0, shard_tokens[0], 2);
    write_llmc("s1.bin", 1, shard_tokens[1], 2);
    write_llmc("s2.bin", 2, shard_tokens[2], 2);
    (void)snprintf(spec, sizeof(spec),
                   "tokens:%s/s*.bin?length=%d&fields=inputs,targets&dtype=int32&multiple=%d",
                   directory.path, T, RANKS * B);
    stoker_dataset *dataset = dataset_of(spec);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        check_llmc_rank(dataset, rank);
    stoker_dataset_close(&dataset);
}

/* nanoGPT draws offsets in [0, n - T): with a stride of 1 these are the samples. */
CleanTest(tokens, a_stride_of_one_has_the_windows_of_nanogpt)
{
    write_llmc("a.bin", 0, 100, 2);
    stoker_dataset *dataset = open_names("a.bin?length=16&stride=1&fields=inputs,targets");
    cr_assert_eq(count_of(dataset), 100 - LENGTH);
    uint16_t row[LENGTH];
    read_field(dataset, 99 - LENGTH, 1, row, sizeof(row));
    cr_assert_eq(row[LENGTH - 1], stk_token(0, 99));
    stoker_dataset_close(&dataset);
}

/* ---- more files than stay open ---------------------------------------------------------- */

enum { FILES = STK_TOKENS_OPEN_MAX + 44 };

static uint32_t open_descriptors(void)
{
    uint32_t count = 0;
    for (int fd = 0; fd < 4 * FILES; fd++)
        count += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return count;
}

/* Each window of an epoch in order, by either reader, kept in memory or not. */
static void check_many(const stoker_dataset *dataset, const stoker_reader *reader,
                       stoker_cache cache)
{
    stoker_loader_options options =
        stk_default_options(.batch_size = 25, .shuffle = false, .epochs = 2, .num_workers = 2,
                            .reader = reader, .cache = cache, .device = STOKER_DEVICE_CPU);
    stoker_loader *loader = loader_of(dataset, &options);
    for (uint32_t number = 0; number < 2 * 2 * FILES;) {
        stoker_batch batch = STOKER_BATCH_INIT;
        const int rc = stoker_loader_next(loader, &batch, -1);
        if (rc == STOKER_EPOCH_END)
            continue;
        cr_assert_eq(rc, STOKER_OK, "%s", stoker_loader_error(loader)->message);
        const uint16_t *tokens = batch.fields[0].values.data;
        for (uint32_t row = 0; row < batch.count; row++, number++) {
            const uint32_t id = number % (2 * FILES);
            for (uint32_t i = 0; i < LENGTH; i++)
                cr_assert_eq(tokens[row * LENGTH + i],
                             (uint16_t)stk_token(id / 2, id % 2 * LENGTH + i));
        }
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
}

CleanTest(tokens, more_files_than_stay_open_are_read)
{
    static const char *const names[] = { "n*.bin?length=16",
                                         "n*.bin?length=16&fields=inputs,targets",
                                         "n*.bin?length=16&fields=inputs,targets&map=1" };
    for (uint32_t i = 0; i < FILES; i++) {
        char name[32];
        struct stk_bytes file = stk_llmc_file(i, 2 * LENGTH + 1, 2);
        (void)snprintf(name, sizeof(name), "n%04u.bin", i);
        stk_file_write(&directory, name, file.at, file.size);
    }
    for (size_t i = 0; i < 3; i++) {
        const uint32_t before = open_descriptors();
        stoker_dataset *dataset = open_names(names[i]);
        cr_assert_eq(open_descriptors() - before, STK_TOKENS_OPEN_MAX);
        cr_assert_eq(count_of(dataset), 2 * FILES);
        uint16_t row[LENGTH];
        read_field(dataset, 2 * FILES - 1, 0, row, sizeof(row));
        cr_assert_eq(row[3], (uint16_t)stk_token(FILES - 1, LENGTH + 3));
        check_many(dataset, stoker_reader_pread(), STOKER_CACHE_NONE);
        check_many(dataset, NULL, STOKER_CACHE_NONE);
        check_many(dataset, NULL, i == 0 ? STOKER_CACHE_ENCODED : STOKER_CACHE_DECODED);
        stoker_dataset_close(&dataset);
    }
}

/* A closed file that got shorter: the window that it lost is bad, with the file's name and the
 * offset. */
CleanTest(tokens, a_file_that_is_not_open_and_gets_shorter_is_noticed)
{
    for (uint32_t i = 0; i < FILES; i++) {
        char name[32];
        struct stk_bytes file = stk_llmc_file(i, LENGTH, 2);
        (void)snprintf(name, sizeof(name), "n%04u.bin", i);
        stk_file_write(&directory, name, file.at, file.size);
    }
    stoker_dataset *dataset = open_names("n*.bin?length=16");
    const struct stk_bytes shorter = stk_llmc_file(FILES - 1, LENGTH - 1, 2);
    char last[32];
    (void)snprintf(last, sizeof(last), "n%04u.bin", FILES - 1);
    stk_file_write(&directory, last, shorter.at, shorter.size);
    uint16_t row[LENGTH];
    stoker_error error = { 0 };
    cr_assert_eq(stk_read_row(dataset, FILES - 1, row, sizeof(row), NULL, &error),
                 STOKER_ETRUNCATED);
    cr_assert_not_null(strstr(error.path, last));
    cr_assert_eq(error.offset, STK_LLMC_BYTES);
    stoker_loader_options options =
        stk_default_options(.batch_size = FILES, .device = STOKER_DEVICE_CPU);
    stoker_loader *loader = loader_of(dataset, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_ETRUNCATED);
    cr_assert_not_null(strstr(stoker_loader_error(loader)->message, last), "%s",
                       stoker_loader_error(loader)->message);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}
