/* test_damage.c - token files that lie, are cut off or change: an error with file and
 * offset, and nothing is lost.
 *
 * Method: one lie at a time in a good header, every prefix, every flipped bit, every allocation.
 */
#include "loader/base/fault.h"
#include "support/files/npy_bytes.h"
#include "support/files/token_directory.h"
#include "support/leaks.h"
#include "support/sets/refused_specs.h"

enum { LENGTH = 16 };

TestSuite(tokens_damage, .init = make_directory, .fini = remove_directory);

static uint64_t count_of(const stoker_dataset *dataset)
{
    return stoker_dataset_get_info(dataset)->count;
}

/* ---- hostile files ---------------------------------------------------------------------- */

/* Write `file` as NAME, open it, and expect an error at an offset. */
static void expect_bad(const char *name, const struct stk_bytes *file, const char *open_as,
                       int code, uint64_t offset, const char *says)
{
    char spec[512];
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    stk_file_write(&directory, name, file->at, file->size);
    cr_assert_eq(stoker_dataset_open(&dataset, spec_of(spec, open_as), NULL, &error), code, "%s",
                 error.message);
    cr_assert_eq(error.offset, offset, "%s", error.message);
    cr_assert_not_null(strstr(error.message, says), "%s", error.message);
    cr_assert_not_null(strstr(error.path, name), "%s", error.path);
    cr_assert_null(dataset);
}

CleanTest(tokens_damage, a_header_of_llm_c_that_lies_is_refused)
{
    static const struct {
        uint32_t at, value;
        int code;
        uint64_t offset;
        const char *says;
    } rows[] = {
        { 0, 20240519, STOKER_EMAGIC, 0, "stored=uint16" },
        { 0, 20240522, STOKER_ENOTSUP, 0, "evaluations" },
        { 4, 2, STOKER_EFORMAT, 4, "version 2" },
        { 4, 7, STOKER_EFORMAT, 4, "version 7" },
        { 8, 101, STOKER_ETRUNCATED, 1224, "promises 1226 bytes" },
        { 8, 99, STOKER_EOVERSIZE, 1222, "promises 1222" },
        { 8, 0x80000000U, STOKER_EFORMAT, 8, "negative" },
        { 0, 20240801, STOKER_EFORMAT, 4, "version 1" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stk_bytes file = stk_llmc_file(0, 100, 2);
        stk_store_le32(file.at + rows[i].at, rows[i].value);
        expect_bad("bad.bin", &file, "bad.bin?length=10", rows[i].code, rows[i].offset,
                   rows[i].says);
    }
}

CleanTest(tokens_damage, an_index_of_megatron_that_lies_is_refused)
{
    /* Sequences of stk_megatron_index(4, 100): lengths from 34 on, then offsets, then documents. */
    struct stk_bytes good = stk_megatron_index(4, 100);
    const uint64_t sequences = stk_load_le64(good.at + 18);
    const uint64_t offsets = 34 + 4 * sequences, documents = offsets + 8 * sequences;
    const struct {
        uint64_t at, value;
        size_t bytes;
        int code;
        const char *says, *file;
        uint64_t offset;
    } rows[] = {
        { 8, 1, 1, STOKER_EMAGIC, "MMIDIDX", "m.idx", 0 },
        { 9, 2, 8, STOKER_EFORMAT, "version 2", "m.idx", 9 },
        { 17, 6, 1, STOKER_EFORMAT, "no integer", "m.idx", 17 },
        { 17, 99, 1, STOKER_EFORMAT, "no integer", "m.idx", 17 },
        { 18, UINT64_MAX, 8, STOKER_ETRUNCATED, "promises", "m.idx", good.size },
        { 18, sequences + 1, 8, STOKER_ETRUNCATED, "promises", "m.idx", good.size },
        { 26, 0, 8, STOKER_EFORMAT, "documents is empty", "m.idx", 26 },
        { 26, 1, 8, STOKER_EOVERSIZE, "with modes", "m.idx", documents + 8 },
        { 34, 0xFFFFFFFF, 4, STOKER_EFORMAT, "negative length", "m.idx", 34 },
        { 34, 1000, 4, STOKER_EFORMAT, "beyond the file", "m.idx", 34 },
        { offsets + 8, 0, 8, STOKER_EFORMAT, "does not begin where", "m.idx", offsets + 8 },
        { offsets + 8, UINT64_MAX, 8, STOKER_EFORMAT, "does not begin where", "m.idx",
          offsets + 8 },
        { offsets - 4, 0xFFFFFFFF, 4, STOKER_EFORMAT, "negative length", "m.idx", offsets - 4 },
        { documents - 8, UINT64_MAX, 8, STOKER_EFORMAT, "beyond 2^64", "m.idx", documents - 8 },
        { documents, 1, 8, STOKER_EFORMAT, "do not ascend", "m.idx", documents },
        { documents + 16, 1U << 31, 8, STOKER_EFORMAT, "do not ascend", "m.idx", documents + 16 },
        { documents + 16, 0, 8, STOKER_EFORMAT, "do not ascend", "m.idx", documents + 16 },
    };
    stk_megatron_write(&directory, "m", 4, 100);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stk_bytes file = good;
        memcpy(file.at + rows[i].at, &rows[i].value, rows[i].bytes);
        expect_bad(rows[i].file, &file, "m.idx?length=10&fields=tokens,document_ids", rows[i].code,
                   rows[i].offset, rows[i].says);
    }
    stk_file_write(&directory, "m.idx", good.at, good.size);
    struct stk_bytes bin = { .size = 198 };
    expect_bad("m.bin", &bin, "m.idx?length=10", STOKER_ETRUNCATED, 198, "promises 200 bytes");
    bin.size = 201;
    expect_bad("m.bin", &bin, "m.idx?length=10", STOKER_EOVERSIZE, 200, "promises 200");
}

CleanTest(tokens_damage, odd_files_are_refused)
{
    struct stk_bytes file = { .size = 101 };
    expect_bad("r.bin", &file, "r.bin?length=10&stored=uint16", STOKER_ETRUNCATED, 101,
               "no whole number of tokens");
    expect_bad("r.bin", &file, "r.bin?length=10", STOKER_EMAGIC, 0, "stored=uint16");
    file.size = 0;
    expect_bad("r.bin", &file, "r.bin?length=10&stored=uint16", STOKER_EEMPTY, STOKER_NO_OFFSET,
               "no tokens");
    struct stk_bytes elements = { .size = 64 }, npy = { 0 };
    stk_put_npy(&npy, "<f4", "(16,)", elements.at, 64);
    expect_bad("x.npy", &npy, "x.npy?length=10", STOKER_ENOTSUP, STOKER_NO_OFFSET, "integers");
    npy.size = 0;
    stk_put_npy(&npy, ">u4", "(16,)", elements.at, 64);
    expect_bad("x.npy", &npy, "x.npy?length=10", STOKER_ENOTSUP, STOKER_NO_OFFSET, "little-endian");
    npy.size = 0;
    stk_put_npy(&npy, "<u4", "(4, 4)", elements.at, 64);
    expect_bad("x.npy", &npy, "x.npy?length=10", STOKER_EFORMAT, STOKER_NO_OFFSET, "one axis");
    write_llmc("a.bin", 0, 100, 2);
    const struct stk_bytes wide = stk_llmc_file(0, 100, 4);
    expect_bad("b.bin", &wide, "{a,b}.bin?length=10", STOKER_EMISMATCH, STOKER_NO_OFFSET,
               "tokens of uint32, but the first file's are uint16");
}

CleanTest(tokens_damage, specs_that_name_nothing_are_refused)
{
    char specs[20][512];
    static const struct {
        const char *names, *split;
        int code;
        const char *says;
    } rows[] = {
        { "a.bin?length=0", NULL, STOKER_EINVAL, "length" },
        { "a.bin?length=200", NULL, STOKER_EEMPTY, "window of 200 tokens" },
        { "a.bin?length=10&multiple=11", NULL, STOKER_EEMPTY, "multiple" },
        { "a.bin?fields=positions,tokens", NULL, STOKER_ESPEC, "first field" },
        { "a.bin?fields=tokens,tokens", NULL, STOKER_ESPEC, "twice" },
        { "a.bin?fields=tokens,words", NULL, STOKER_ESPEC, "max_seqlen" },
        { "a.bin?length=9&fields=tokens,positions", NULL, STOKER_ESPEC, "eos=TOKEN" },
        { "a.bin?length=9&eos=70000", NULL, STOKER_EINVAL, "eos 70000 is no uint16" },
        { "a.bin?length=9&eos=-1", NULL, STOKER_ESPEC, "is no token" },
        { "a.bin?length=9&dtype=float32", NULL, STOKER_ETYPE, "uint16 cannot become float32" },
        { "a.bin?length=9&stored=float32", NULL, STOKER_ESPEC, "integers" },
        { "a.bin?length=9&layout=gguf", NULL, STOKER_ESPEC, "layout" },
        { "a.bin?length=9", "test", STOKER_EINVAL, "needs test=" },
        { "a.bin?length=9&test=0.1", "val", STOKER_EINVAL, "train and test" },
        { "a.bin?length=9&test=1.5", NULL, STOKER_ESPEC, "share" },
        { "a.bin?length=9&test=100", NULL, STOKER_EINVAL, "100 of 100" },
        { "b*.bin?length=9", NULL, STOKER_EEMPTY, "no file has such a name" },
        { "{a,b.bin?length=9", NULL, STOKER_ESPEC, "tokens: " },
        { "missing.bin?length=9", NULL, STOKER_ENOENT, "missing.bin" },
    };
    enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
    struct stk_refused_spec refused[ROWS];
    write_llmc("a.bin", 0, 100, 2);
    for (size_t i = 0; i < ROWS; i++)
        refused[i] = (struct stk_refused_spec){ spec_of(specs[i], rows[i].names), rows[i].split,
                                                rows[i].code, rows[i].says };
    stk_expect_refused(refused, ROWS);
}

/* Open NAME with these bytes: an error with a message, or a set that reads. Returns true if it
 * opened. */
static bool open_bytes(const char *name, const uint8_t *bytes, size_t size, const char *open_as)
{
    char spec[512];
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    stk_file_write(&directory, name, bytes, size);
    const int rc = stoker_dataset_open(&dataset, spec_of(spec, open_as), NULL, &error);
    cr_assert_eq(rc == STOKER_OK, dataset != NULL);
    cr_assert(rc == STOKER_OK || (error.code == rc && error.message[0] != '\0'));
    for (uint64_t id = 0; dataset != NULL && id < count_of(dataset); id++) {
        uint8_t row[64];
        stoker_row rows[STOKER_FIELDS_MAX] = { { .data = row, .bytes_max = sizeof(row) } };
        cr_assert_eq(stoker_dataset_read(dataset, id, rows, &error), STOKER_OK);
    }
    stoker_dataset_close(&dataset);
    return rc == STOKER_OK;
}

/* Open m.idx with these bytes, its documents packed: an error with a message, or rows that are
 * read. Returns true if it opened. */
static bool open_packed(const uint8_t *bytes, size_t size)
{
    char spec[512];
    stoker_error error = { 0 };
    stoker_dataset *dataset = NULL;
    stk_file_write(&directory, "m.idx", bytes, size);
    (void)snprintf(spec, sizeof(spec), "packed:6:(documents:%s/m.idx)?long=split", directory.path);
    const int rc = stoker_dataset_open(&dataset, spec, NULL, &error);
    cr_assert_eq(rc == STOKER_OK, dataset != NULL);
    cr_assert(rc == STOKER_OK || (error.code == rc && error.message[0] != '\0'));
    for (uint64_t id = 0; dataset != NULL && id < count_of(dataset); id++) {
        uint8_t row[64];
        stoker_row rows[STOKER_FIELDS_MAX] = { { .data = row, .bytes_max = sizeof(row) } };
        cr_assert_eq(stoker_dataset_read(dataset, id, rows, &error), STOKER_OK);
    }
    stoker_dataset_close(&dataset);
    return rc == STOKER_OK;
}

CleanTest(tokens_damage, packed_documents_are_refused_or_read)
{
    struct stk_bytes index = stk_megatron_index(4, 20);
    uint32_t opened = 0;
    stk_megatron_write(&directory, "m", 4, 20);
    cr_assert(open_packed(index.at, index.size));
    for (size_t size = 0; size < index.size; size += size < 34 ? 5 : 3)
        cr_assert_not(open_packed(index.at, size), "%d", (int)size);
    for (size_t bit = 0; bit < index.size * 8; bit += 7) {
        index.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
        opened += open_packed(index.at, index.size) ? 1 : 0;
        index.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    cr_assert_lt(opened, 12, "%d", (int)opened);
}

/* Every prefix is refused, and so is every flipped bit of the header but for those that llm.c does
 * not use. */
CleanTest(tokens_damage, prefixes_and_flipped_bits_are_refused_or_read)
{
    struct stk_bytes llmc = stk_llmc_file(0, 20, 2), index = stk_megatron_index(4, 20);
    const char *const by_index = "m.idx?length=5&fields=tokens,document_ids";
    uint32_t opened = 0;
    stk_megatron_write(&directory, "m", 4, 20);
    for (size_t size = 0; size < llmc.size; size += size < 12 || size > 1060 ? 1 : 131)
        cr_assert_not(open_bytes("a.bin", llmc.at, size, "a.bin?length=5"), "%d", (int)size);
    for (size_t size = 0; size < index.size; size += size < 34 ? 1 : 3)
        cr_assert_not(open_bytes("m.idx", index.at, size, by_index), "%d", (int)size);
    for (size_t bit = 0; bit < (size_t)12 * 8; bit++) {
        llmc.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
        cr_assert_not(open_bytes("a.bin", llmc.at, llmc.size, "a.bin?length=5"), "%d", (int)bit);
        llmc.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    /* Behind the header every seventh bit: each bit of a number comes once in seven numbers. */
    for (size_t bit = 0; bit < index.size * 8; bit += bit < (size_t)34 * 8 ? 2 : 7) {
        index.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
        opened += open_bytes("m.idx", index.at, index.size, by_index) ? 1 : 0;
        index.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    /* int16 instead of uint16, and documents that begin at another sequence, are as good. */
    cr_assert_lt(opened, 12, "%d", (int)opened);
    cr_assert(open_bytes("a.bin", llmc.at, llmc.size, "a.bin?length=5"));
    cr_assert(open_bytes("m.idx", index.at, index.size, by_index));
}

/* A file whose memory is short in a thread is opened again by the first one: then the set opens all
 * the same. */
static void fail_each_allocation(const char *names)
{
    char spec[512];
    bool reached = true;
    uint64_t nth = 0, refused = 0;
    while (reached) {
        stoker_dataset *dataset = NULL;
        stoker_error error = { 0 };
        stk_fault_arm(STK_FAULT_MEMORY, ++nth);
        const int rc = stoker_dataset_open(&dataset, spec_of(spec, names), NULL, &error);
        reached = stk_fault_disarm();
        cr_assert_lt(nth, 100);
        cr_assert(reached || dataset != NULL, "%s", error.message);
        if (dataset == NULL) {
            refused++;
            cr_assert_eq(rc, STOKER_ENOMEM, "allocation %d: %s", (int)nth, error.message);
            cr_assert_eq(error.code, STOKER_ENOMEM);
        }
        stoker_dataset_close(&dataset);
        cr_assert_eq(stk_fault_live_bytes(), 0, "allocation %d", (int)nth);
    }
    cr_assert_gt(refused, 8);
    cr_assert_gt(refused, nth - 6, "%d of %d", (int)refused, (int)nth);
}

CleanTest(tokens_damage, each_allocation_may_fail)
{
    write_llmc("a.bin", 4, 600, 2);
    write_llmc("b.bin", 4, 600, 2);
    stk_megatron_write(&directory, "m", 4, 600);
    fail_each_allocation("{a,b}.bin?length=16&fields=tokens,document_ids&eos=7");
    fail_each_allocation("*.idx?length=16&fields=tokens,document_ids&map=1");
}

/* A file that was cut or written to since it was opened ends the run with its name. */
CleanTest(tokens_damage, a_file_that_changes_is_noticed)
{
    write_llmc("a.bin", 4, 600, 2);
    stoker_dataset *dataset = open_names("a.bin?length=16&fields=inputs,targets");
    uint16_t row[LENGTH];
    stoker_error error = { 0 };
    stoker_row rows[STOKER_FIELDS_MAX] = { { .data = row, .bytes_max = sizeof(row) } };
    cr_assert_eq(stoker_dataset_read(dataset, 30, rows, &error), STOKER_OK);
    write_llmc("a.bin", 5, 300, 2);
    cr_assert_eq(stoker_dataset_read(dataset, 30, rows, &error), STOKER_ETRUNCATED);
    cr_assert_not_null(strstr(error.path, "a.bin"));
    cr_assert_eq(stoker_dataset_read(dataset, 3, rows, &error), STOKER_ECHANGED);
    stoker_dataset_close(&dataset);
}

/* Files beyond those that stay open are opened for each window: the last one without its last
 * byte. */
CleanTest(tokens_damage, a_byte_less_in_a_file_that_is_opened_again_is_noticed)
{
    enum { FILES = 257, WINDOWS = 2 * FILES };
    struct stk_bytes last = { 0 };
    char name[32];
    for (uint32_t file = 0; file < FILES; file++) {
        (void)snprintf(name, sizeof(name), "t%03u.bin", file);
        last = stk_llmc_file(file, 2 * LENGTH, 2);
        stk_file_write(&directory, name, last.at, last.size);
    }
    stoker_dataset *dataset = open_names("t*.bin?length=16");
    stk_file_write(&directory, name, last.at, last.size - 1);
    stoker_loader_options options =
        stk_default_options(.epochs = 1, .num_workers = 1, .on_bad_sample = STOKER_ON_BAD_SKIP);
    for (int pread = 0; pread <= 1; pread++) {
        stoker_error report = { 0 };
        stoker_stats stats = STOKER_STATS_INIT;
        stoker_batch batch = STOKER_BATCH_INIT;
        options.reader = pread != 0 ? stoker_reader_pread() : NULL;
        stoker_loader *loader = loader_of(dataset, &options);
        for (int rc; (rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED;) {
            cr_assert_geq(rc, 0);
            stoker_batch_release(&batch);
        }
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        cr_assert_eq(stats.samples, WINDOWS - 1);
        cr_assert_eq(stoker_loader_bad_sample(loader, 0, &report), STOKER_OK);
        cr_assert_eq(report.code, STOKER_ETRUNCATED, "%s", report.message);
        cr_assert_eq(report.sample, WINDOWS - 1);
        stoker_loader_destroy(&loader);
    }
    stoker_dataset_close(&dataset);
}
