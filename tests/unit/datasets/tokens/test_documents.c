/* test_documents.c - documents: of token files, one by one and packed: every token of every
 * document is there once.
 *
 * Method: the tokens of a file are known, and each document ends at STK_EOS, so the documents are
 * found here by walking over them. Rows that are packed hold these documents, each once.
 */
#include "support/files/token_directory.h"
#include "support/leaks.h"
#include "support/sets/read_row.h"
#include "support/sets/refused_specs.h"

enum { TOKENS = 500, ROW = 32, LONGEST = 9 };

TestSuite(documents, .init = make_directory, .fini = remove_directory);

static stoker_dataset *open_with(const char *format, const char *names)
{
    char spec[512];
    char within[400];
    (void)snprintf(within, sizeof(within), "%.200s/%s", directory.path, names);
    (void)snprintf(spec, sizeof(spec), format, within);
    return dataset_of(spec);
}

/* The next document of a file: its length, from token *at on. */
static uint32_t next_length(uint32_t seed, uint32_t at, uint32_t count)
{
    uint32_t end = at;
    while (end < count && stk_token(seed, end) != STK_EOS)
        end++;
    return (end < count ? end + 1 : count) - at;
}

static void expect_documents(const stoker_dataset *documents, uint32_t files, uint32_t count)
{
    uint64_t id = 0;
    stoker_error error = { .message = "" };
    for (uint32_t seed = 0; seed < files; seed++)
        for (uint32_t at = 0; at < count; id++) {
            const uint32_t due = next_length(seed, at, count);
            uint16_t tokens[LONGEST];
            uint64_t length = 0;
            stoker_row row = { .data = tokens, .bytes_max = sizeof(tokens) };
            cr_assert_lt(id, stoker_dataset_get_info(documents)->count);
            cr_assert_eq(stoker_dataset_lengths(documents, 0, &id, 1, &length, &error), STOKER_OK);
            cr_assert_eq(length, due);
            cr_assert_eq(stoker_dataset_read(documents, id, &row, &error), STOKER_OK, "%s",
                         error.message);
            cr_assert_eq(row.length, due);
            for (uint32_t i = 0; i < due; i++)
                cr_assert_eq(tokens[i], (uint16_t)stk_token(seed, at + i));
            at += due;
        }
    cr_assert_eq(id, stoker_dataset_get_info(documents)->count);
}

CleanTest(documents, are_the_samples)
{
    write_llmc("a0.bin", 0, TOKENS, 2);
    write_llmc("a1.bin", 1, TOKENS, 2);
    stoker_dataset *documents = open_with("documents:%s?eos=7", "a*.bin");
    expect_documents(documents, 2, TOKENS);
    stoker_dataset_close(&documents);
}

CleanTest(documents, are_found_by_an_index)
{
    stk_megatron_write(&directory, "m0", 0, TOKENS);
    stk_megatron_write(&directory, "m1", 1, TOKENS);
    stoker_dataset *documents = open_with("documents:%s", "m*.bin");
    expect_documents(documents, 2, TOKENS);
    stoker_dataset_close(&documents);
}

/* The loader's rows of all documents, in order. */
static void expect_rows_of_loader(const stoker_dataset *documents, const uint64_t *lengths)
{
    const uint64_t count = stoker_dataset_get_info(documents)->count;
    stoker_loader_options options =
        stk_default_options(.batch_size = (uint32_t)count, .num_workers = 0);
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader *loader = loader_of(documents, &options);
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    const int64_t *offsets = batch.fields[0].offsets;
    const uint16_t *tokens = batch.fields[0].values.data;
    for (uint64_t d = 0, first = 0; d < count; first += lengths[d++]) {
        cr_assert_eq(offsets[d + 1] - offsets[d], (int64_t)lengths[d]);
        for (uint64_t i = 0; i < lengths[d]; i++)
            cr_assert_eq(tokens[offsets[d] + (int64_t)i], first + i);
    }
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
}

/* Numbers of documents in all windows: token t lies in document owner[t]. */
static void expect_ids(const stoker_dataset *windows, const int64_t *owner)
{
    for (uint64_t id = 0; id < stoker_dataset_get_info(windows)->count; id++) {
        uint16_t tokens[2];
        int64_t ids[2];
        int32_t numbers[2];
        stoker_row rows[3] = { { .data = tokens, .bytes_max = sizeof(tokens) },
                               { .data = ids, .bytes_max = sizeof(ids) },
                               { .data = numbers, .bytes_max = sizeof(numbers) } };
        cr_assert_eq(stoker_dataset_read(windows, id, rows, NULL), STOKER_OK);
        cr_assert_eq(ids[0], owner[tokens[0]]);
        cr_assert_eq(ids[1], owner[tokens[1]]);
        cr_assert_eq(numbers[0], 0);
        cr_assert_eq(numbers[1], ids[0] != ids[1]); /* empty ones between them do not count */
    }
}

enum { PAIRS = 2, DOCUMENTS = 4, SEQUENCES = 4 }; /* the most in a file */

struct megatron_case {
    uint32_t lengths[SEQUENCES];
    uint64_t sequences, documents, bounds[DOCUMENTS + 1];
};

/* Files of these documents, whose tokens are 0, 1, ... in both; the lengths of all documents, and
 * whose each token is. */
static void write_megatron(const struct megatron_case *each, uint64_t *lengths, int64_t *owner)
{
    uint16_t words[64];
    uint32_t tokens = 0;
    const struct stk_bytes index =
        stk_megatron_index_of(each->lengths, each->sequences, each->bounds, each->documents);
    for (uint64_t d = 0; d < PAIRS * each->documents; d++) {
        const uint64_t *bounds = each->bounds + d % each->documents;
        lengths[d] = 0;
        for (uint64_t s = bounds[0]; s < bounds[1]; s++)
            lengths[d] += each->lengths[s];
        for (uint64_t i = 0; i < lengths[d]; i++, tokens++) {
            words[tokens] = (uint16_t)tokens;
            owner[tokens] = (int64_t)d;
        }
    }
    stk_file_write(&directory, "e0.bin", words, tokens);
    stk_file_write(&directory, "e1.bin", words + tokens / PAIRS, tokens);
    stk_file_write(&directory, "e0.idx", index.at, index.size);
    stk_file_write(&directory, "e1.idx", index.at, index.size);
}

/* What an X.idx calls a document is one, with or without tokens, so numbers are Megatron's. */
CleanTest(documents, keep_their_numbers_beside_empty_ones)
{
    static const struct megatron_case cases[] = {
        { { 3, 2, 1 }, 3, 3, { 0, 1, 2, 3 } }, { { 3, 0, 2 }, 3, 3, { 0, 1, 2, 3 } },
        { { 0, 2 }, 2, 2, { 0, 1, 2 } },       { { 2, 0 }, 2, 2, { 0, 1, 2 } },
        { { 2, 1, 0, 3 }, 4, 2, { 0, 2, 4 } }, { { 2, 0, 0, 1 }, 4, 4, { 0, 1, 2, 3, 4 } },
        { { 2, 1 }, 2, 4, { 0, 0, 1, 1, 2 } }, /* without a sequence, too */
        { { 2, 1 }, 2, 4, { 0, 1, 2, 2, 2 } },
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        uint64_t lengths[PAIRS * DOCUMENTS];
        int64_t owner[64];
        write_megatron(&cases[c], lengths, owner);
        stoker_dataset *set = open_with("documents:%s", "e*.idx");
        cr_assert_eq(stoker_dataset_get_info(set)->count, PAIRS * cases[c].documents, "case %zu",
                     c);
        expect_rows_of_loader(set, lengths);
        stoker_dataset_close(&set);
        set =
            open_with("tokens:%s?length=2&stride=1&fields=tokens,document_ids,documents", "e*.idx");
        expect_ids(set, owner);
        stoker_dataset_close(&set);
    }
}

/* More files than stay open: documents of the others are read, too, by loaders and when they are
 * packed. */
CleanTest(documents, of_many_files_are_read)
{
    enum { FILES = 300, FEW = 20 };
    for (uint32_t seed = 0; seed < FILES; seed++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "%03u.bin", seed);
        write_llmc(name, seed, FEW, 2);
    }
    stoker_dataset *documents = open_with("documents:%s?eos=7", "*.bin");
    cr_assert_lt(stoker_dataset_get_info(documents)->file_count, FILES);
    expect_documents(documents, FILES, FEW);
    stoker_dataset *packed = open_with("packed:32:(documents:%s?eos=7)", "*.bin");
    uint64_t sum = 0;
    uint64_t due = 0;
    for (uint32_t seed = 0; seed < FILES; seed++)
        for (uint32_t i = 0; i < FEW; i++)
            due += (uint16_t)stk_token(seed, i);
    for (uint64_t id = 0; id < stoker_dataset_get_info(packed)->count; id++) {
        uint16_t row[ROW];
        cr_assert_eq(stk_read_row(packed, id, row, sizeof(row), NULL, NULL), STOKER_OK);
        for (uint32_t i = 0; i < ROW; i++)
            sum += row[i];
    }
    cr_assert_eq(sum, due);
    stoker_dataset_close(&documents);
    stoker_dataset_close(&packed);
}

/* The document that begins at row[0]: its index among all, or the number of all. */
static uint32_t find_document(const uint16_t *row, uint32_t length, const uint8_t *seen)
{
    uint32_t index = 0;
    for (uint32_t seed = 0; seed < 2; seed++)
        for (uint32_t at = 0; at < TOKENS; index++) {
            const uint32_t own = next_length(seed, at, TOKENS);
            bool same = own == length && seen[index] == 0;
            for (uint32_t i = 0; same && i < own; i++)
                same = row[i] == (uint16_t)stk_token(seed, at + i);
            if (same)
                return index;
            at += own;
        }
    return UINT32_MAX;
}

CleanTest(documents, packed_are_all_there_once)
{
    write_llmc("p0.bin", 0, TOKENS, 2);
    write_llmc("p1.bin", 1, TOKENS, 2);
    stoker_dataset *documents = open_with("documents:%s?eos=7", "p*.bin");
    stoker_dataset *packed = open_with("packed:32:(documents:%s?eos=7)?block=64", "p*.bin");
    const uint64_t count = stoker_dataset_get_info(documents)->count;
    uint8_t *seen = calloc(count, 1);
    uint64_t found = 0;
    for (uint64_t id = 0; id < stoker_dataset_get_info(packed)->count; id++) {
        uint16_t row[ROW];
        int32_t starts[ROW + 1];
        stoker_row rows[2] = { { .data = row, .bytes_max = sizeof(row) },
                               { .data = starts, .bytes_max = sizeof(starts) } };
        cr_assert_eq(stoker_dataset_read(packed, id, rows, NULL), STOKER_OK);
        for (uint64_t i = 0; i + 1 < rows[1].length; i++, found++) {
            const uint32_t index =
                find_document(row + starts[i], (uint32_t)(starts[i + 1] - starts[i]), seen);
            cr_assert_lt(index, count, "row %u", (unsigned)id);
            seen[index] = 1;
        }
    }
    cr_assert_eq(found, count);
    free(seen);
    stoker_dataset_close(&documents);
    stoker_dataset_close(&packed);
}

CleanTest(documents, specs_that_are_none_are_refused)
{
    char spec[3][512];
    write_llmc("r.bin", 0, TOKENS, 2);
    (void)snprintf(spec[0], 512, "documents:%s/r.bin", directory.path);
    (void)snprintf(spec[1], 512, "documents:%s/r.bin?eos=x", directory.path);
    (void)snprintf(spec[2], 512, "documents:%s/r.bin?eos=7&layout=zip", directory.path);
    const struct stk_refused_spec rows[] = {
        { spec[0], NULL, STOKER_ESPEC, NULL }, /* nothing says where documents end */
        { spec[1], NULL, STOKER_ESPEC, "eos" },
        { spec[2], NULL, STOKER_ESPEC, "layout" },
        { "documents:/nosuch/x.bin?eos=7", NULL, STOKER_ENOENT, NULL },
        { "documents:", NULL, STOKER_ESPEC, NULL },
    };
    stk_expect_refused(rows, sizeof(rows) / sizeof(rows[0]));
}

CleanTest(documents, opening_survives_each_allocation_failure)
{
    char spec[512];
    bool reached = true;
    write_llmc("f.bin", 0, TOKENS, 2);
    (void)snprintf(spec, sizeof(spec), "documents:%s/f.bin?eos=7", directory.path);
    for (uint64_t nth = 1; reached; nth++) {
        stoker_dataset *documents = NULL;
        stoker_error error = { .message = "" };
        cr_assert_lt(nth, 200);
        stk_fault_arm(STK_FAULT_MEMORY, nth);
        const int rc = stoker_dataset_open(&documents, spec, NULL, &error);
        reached = stk_fault_disarm();
        if (reached && rc != STOKER_OK)
            cr_assert_eq(rc, STOKER_ENOMEM, "%s", error.message);
        stoker_dataset_close(&documents);
        cr_assert_eq(stk_fault_live_bytes(), 0);
    }
}

/* Files beyond those that stay open are opened for each document: another one with the name is
 * refused. */
CleanTest(documents, a_file_that_is_opened_again_must_be_the_same)
{
    enum { FILES = 257 };
    char name[32], path[512];
    uint16_t tokens[LONGEST];
    stoker_error error = { .message = "" };
    stoker_row row = { .data = tokens, .bytes_max = sizeof(tokens) };
    for (uint32_t file = 0; file < FILES; file++) {
        (void)snprintf(name, sizeof(name), "t%03u.bin", file);
        write_llmc(name, file, 30, 2);
    }
    stoker_dataset *documents = open_with("documents:%s?eos=7", "t*.bin");
    const uint64_t last = stoker_dataset_get_info(documents)->count - 1;
    cr_assert_eq(stoker_dataset_read(documents, last, &row, &error), STOKER_OK, "%s",
                 error.message);
    const struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    cr_assert_eq(utimensat(AT_FDCWD, stk_path_in(path, &directory, name), times, 0), 0);
    cr_assert_eq(stoker_dataset_read(documents, last, &row, &error), STOKER_ECHANGED);
    cr_assert_not_null(strstr(error.message, name));
    stoker_dataset_close(&documents);
}
