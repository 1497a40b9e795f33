/* test_shards.c - shards are read as their description says, and accepted only as far as they can
 * be verified.
 *
 * Method: write shards byte by byte by the description (shard_files.h), read them back; then spoil
 * every part of one, with its checksums left wrong and with them made right.
 */
#include "datasets/shards/layout.h"
#include "loader/base/fault.h"
#include "loader/codec/zstd.h"
#include "loader/dataset/dataset.h"
#include "loader/reader/readers.h"
#include "support/files/png_sums.h"
#include "support/files/shard_files.h"
#include "support/leaks.h"
#include "support/sets/fields_of.h"
#include "support/sets/read_row.h"

enum { COUNT = 5, SHARDS = 3 };
#define FIELD(i) (STK_SHARD_TEST_INDEX_AT + 160 * (i))

static const char *const shard_names[SHARDS] = { "a.stk", "b.stk", "c.stk" };

static struct stk_directory make_set(uint32_t codecs)
{
    struct stk_directory directory = stk_directory_make();
    struct stk_shard_image image;
    for (uint32_t number = 0; number < SHARDS; number++) {
        stk_shard_image_make(&image, number, SHARDS, COUNT, codecs);
        stk_shard_image_write(&image, &directory, shard_names[number]);
    }
    return directory;
}

static stoker_dataset *open_good(const struct stk_directory *directory, const char *parameters)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_shard_test_open(&dataset, directory, parameters, &error), STOKER_OK, "%s",
                 error.message);
    return dataset;
}

/* Opening must fail so, and say this. */
static void open_bad(const struct stk_directory *directory, int code, const char *says)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    const int64_t live = stk_fault_live_bytes();
    const int rc = stk_shard_test_open(&dataset, directory, "", &error);
    cr_assert_eq(rc, code, "%s, not %s: %s", stoker_error_name(rc), stoker_error_name(code),
                 error.message);
    cr_assert_eq(error.code, rc);
    cr_assert_null(dataset);
    cr_assert_not_null(strstr(error.message, says), "\"%s\" is not in: %s", says, error.message);
    cr_assert_eq(stk_fault_live_bytes(), live);
}

/* ---- reading -------------------------------------------------------------------- */

static void check_rows(const stoker_dataset *dataset, uint64_t count)
{
    for (uint64_t id = 0; id < count; id++) {
        uint8_t row[STK_SHARD_TEST_ROW];
        uint8_t expected[STK_SHARD_TEST_ROW];
        stoker_label label = { .index = -1 };
        stoker_error error = { .message = "" };
        cr_assert_eq(stk_read_row(dataset, id, row, sizeof(row), &label, &error), STOKER_OK, "%s",
                     error.message);
        stk_shard_test_row(id, expected);
        cr_assert_arr_eq(row, expected, sizeof(row));
        cr_assert_eq(label.index, (int64_t)(id % 3));
    }
}

CleanTest(shards, read_as_described)
{
    const uint32_t codecs = stk_lz4_present() ? 2 : 1;
    const struct stk_directory directory = make_set(codecs);
    stoker_dataset *dataset = open_good(&directory, "");
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_eq(info->count, SHARDS * COUNT);
    cr_assert_eq(info->file_count, SHARDS);
    cr_assert(info->is_image);
    cr_assert_eq(info->shape[0], 4);
    cr_assert_eq(info->shape[1], 6);
    cr_assert_eq(info->shape[2], 1);
    cr_assert_eq(info->class_count, 3);
    cr_assert_str_eq(stoker_dataset_class_name(dataset, 1, 1), "bee");
    cr_assert_str_eq(stoker_dataset_class_name(dataset, 1, 2), "cat");
    check_rows(dataset, info->count);
    stoker_dataset_close(&dataset);

    /* A plain path is recognized; a question mark in it is no parameter. */
    stoker_error error = { .message = "" };
    cr_assert_eq(stoker_dataset_open(&dataset, directory.path, NULL, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_str_eq(stoker_dataset_name(dataset), "shards");
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* Two samples in each block, one in the last of each shard. */
CleanTest(shards, blocks_are_read_as_described)
{
    const struct stk_directory directory = stk_directory_make();
    struct stk_shard_image image;
    stoker_error error = { .message = "" };
    for (uint32_t number = 0; number < SHARDS; number++) {
        stk_shard_image_make_blocks(&image, number, SHARDS, COUNT, 2);
        stk_shard_image_write(&image, &directory, shard_names[number]);
    }
    stoker_dataset *dataset = open_good(&directory, "");
    check_rows(dataset, SHARDS * COUNT);
    const uint64_t blocks = stoker_dataset_get_info(dataset)->block_count;
    cr_assert_eq(blocks, 9);
    for (uint64_t i = 0; i < blocks; i++)
        cr_assert_eq(dataset->ops->block_first(dataset->self, i), i / 3 * COUNT + i % 3 * 2);
    stoker_dataset_close(&dataset);
    cr_assert_eq(stk_shard_test_open(&dataset, &directory, "?map=1", &error), STOKER_ENOTSUP);
    cr_assert_not_null(strstr(error.message, "without blocks"), "%s", error.message);

    /* Beside shards without blocks: all are read, but nobody knows the order of blocks. */
    stk_shard_image_make(&image, 1, SHARDS, COUNT, 1);
    stk_shard_image_write(&image, &directory, shard_names[1]);
    dataset = open_good(&directory, "");
    check_rows(dataset, SHARDS * COUNT);
    cr_assert_eq(stoker_dataset_get_info(dataset)->block_count, 0);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

CleanTest(shards, fields_are_read_as_described)
{
    static const char *const parameters[] = { "", "?map=1", "?map=1&verify=once" };
    struct stk_directory directory = stk_directory_make();
    struct stk_shard_image image;
    for (uint32_t number = 0; number < SHARDS; number++) {
        stk_shard_image_make_fields(&image, number, SHARDS, COUNT);
        stk_shard_image_write(&image, &directory, shard_names[number]);
    }
    for (uint32_t i = 0; i < 3 * SHARDS * COUNT; i++) {
        stoker_dataset *dataset = NULL;
        const uint32_t id = i % (SHARDS * COUNT);
        const int16_t pair[2] = { (int16_t)id, (int16_t) - (int)id };
        const int64_t label = id % 3;
        char text[4];
        memset(text, 'a' + (int)id, sizeof(text));
        dataset = open_good(&directory, parameters[i / (SHARDS * COUNT)]);
        const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
        cr_assert_eq(info->count, SHARDS * COUNT);
        cr_assert_eq(info->field_count, 3);
        cr_assert_eq(info->part_count, 2);
        cr_assert_str_eq(stoker_dataset_class_name(dataset, 2, 1), "bee");
        for (int turn = 0; turn < 2; turn++) { /* then from the mapping */
            struct stk_fields_of sample = stk_fields_read(dataset, id);
            uint64_t length = 0;
            const uint64_t at = id;
            stk_fields_check(dataset, &sample, "pair", pair, 0, sizeof(pair));
            stk_fields_check(dataset, &sample, "text", text, id % 4, id % 4);
            stk_fields_check(dataset, &sample, "label", &label, 0, sizeof(label));
            stk_fields_free(&sample);
            cr_assert_eq(stoker_dataset_lengths(dataset, 1, &at, 1, &length, NULL), STOKER_OK);
            cr_assert_eq(length, id % 4);
        }
        stoker_dataset_close(&dataset);
    }
    stk_directory_remove(&directory);
}

/* A word is a number of any type. */
CleanTest(shards, words_have_any_type)
{
    static const struct {
        stoker_dtype dtype;
        uint8_t bytes;
        uint64_t word;
        bool fits;
    } cases[] = { { STOKER_DTYPE_UINT8, 1, 0xFE, true },
                  { STOKER_DTYPE_UINT8, 1, 0x100, false },
                  { STOKER_DTYPE_INT16, 2, 0x8001, true },
                  { STOKER_DTYPE_INT32, 4, 0x80000001, true },
                  { STOKER_DTYPE_FLOAT32, 4, 0x1BF800000, false },
                  { STOKER_DTYPE_FLOAT64, 8, 0xBFF8000000000000, true } };
    const struct stk_directory directory = stk_directory_make();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stk_shard_image image;
        uint8_t due[8];
        stk_store_le64(due, cases[i].word);
        stk_shard_image_make(&image, 0, 1, COUNT, 1);
        stk_store_le64(image.at + 80, 0); /* no names */
        stk_store_le32(image.at + FIELD(1) + 72, 0);
        memcpy(image.at + FIELD(1), "score", 5);
        image.at[FIELD(1) + 65] = (uint8_t)cases[i].dtype;
        memcpy(stk_shard_image_label(&image, 2), due, sizeof(due));
        stk_shard_image_seal(&image);
        stk_shard_image_write(&image, &directory, "a.stk");
        if (!cases[i].fits) {
            open_bad(&directory, STOKER_EFORMAT, "cannot have");
            continue;
        }
        stoker_dataset *dataset = open_good(&directory, "");
        struct stk_fields_of sample = stk_fields_read(dataset, 2);
        stk_fields_check(dataset, &sample, "score", due, 0, cases[i].bytes);
        stk_fields_free(&sample);
        stoker_dataset_close(&dataset);
    }
    stk_directory_remove(&directory);
}

CleanTest(shards, a_sample_is_located_without_memory_or_search)
{
    const struct stk_directory directory = make_set(1);
    stoker_dataset *dataset = open_good(&directory, "");
    const uint64_t allocations = stk_fault_allocations();
    for (uint64_t id = 0; id < SHARDS * COUNT; id++) {
        stoker_part sample = { 0 };
        cr_assert_eq(stoker_dataset_locate(dataset, id, &sample, NULL), STOKER_OK);
        cr_assert_eq(sample.extent.file, id / COUNT);
        cr_assert_eq(sample.extent.offset, 4096 + STK_SHARD_TEST_ROW * (id % COUNT));
        cr_assert_eq(sample.extent.bytes, STK_SHARD_TEST_ROW);
        cr_assert_str_eq(sample.codec->name, "shard part");
        cr_assert_str_eq(stoker_dataset_stored_as(dataset, id), "raw");
    }
    cr_assert_eq(stk_fault_allocations(), allocations);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* Both readers deliver each row, in any order, with any number of workers. */
CleanTest(shards, loaders_deliver_each_row)
{
    const struct stk_directory directory = make_set(stk_lz4_present() ? 2 : 1);
    stoker_dataset *dataset = open_good(&directory, "");
    const stoker_reader *const readers[] = { NULL, &stk_reader_pread };
    for (int32_t workers = 0; workers <= 2; workers++) {
        for (int r = 0; r < 2; r++) {
            stoker_loader *loader = NULL;
            stoker_loader_options options =
                stk_default_options(.batch_size = 4, .shuffle = true, .num_workers = workers,
                                    .epochs = 1, .cache = STOKER_CACHE_NONE, .reader = readers[r]);
            stoker_batch batch = STOKER_BATCH_INIT;
            uint32_t seen = 0;
            cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
            while (stoker_loader_next(loader, &batch, -1) == STOKER_OK) {
                for (uint32_t i = 0; i < batch.count; i++) {
                    uint8_t expected[STK_SHARD_TEST_ROW];
                    stk_shard_test_row(batch.ids[i], expected);
                    cr_assert_arr_eq((const uint8_t *)batch.images.data + i * sizeof(expected),
                                     expected, sizeof(expected));
                    cr_assert_eq(((const int64_t *)batch.labels.data)[i],
                                 (int64_t)(batch.ids[i] % 3));
                    seen |= 1U << batch.ids[i];
                }
                stoker_batch_release(&batch);
            }
            cr_assert_null(stoker_loader_error(loader));
            cr_assert_eq(seen, (1U << (SHARDS * COUNT)) - 1);
            stoker_loader_destroy(&loader);
        }
    }
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* The blocks that O_DIRECT reads around a record are all in the file. */
CleanTest(shards, blocks_around_records_are_in_the_file)
{
    const struct stk_directory directory = make_set(1);
    stoker_dataset *dataset = open_good(&directory, "");
    char path[512];
    uint8_t *block = aligned_alloc(4096, 4096);
    cr_assert_not_null(block);
    const int direct =
        open(stk_path_in(path, &directory, shard_names[0]), O_RDONLY | O_DIRECT | O_CLOEXEC);
    const int fd = direct >= 0 ? direct : open(path, O_RDONLY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    for (uint64_t id = 0; id < COUNT; id++) {
        stoker_part sample = { 0 };
        uint8_t expected[STK_SHARD_TEST_ROW];
        cr_assert_eq(stoker_dataset_locate(dataset, id, &sample, NULL), STOKER_OK);
        const uint64_t from = sample.extent.offset & ~(uint64_t)4095;
        cr_assert_eq(pread(fd, block, 4096, (off_t)from), 4096);
        stk_shard_test_row(id, expected);
        cr_assert_arr_eq(block + (sample.extent.offset - from), expected, sizeof(expected));
    }
    close(fd);
    free(block);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* ---- sets ----------------------------------------------------------------------- */

static void remove_in(const struct stk_directory *directory, const char *name)
{
    char path[512];
    cr_assert_eq(unlink(stk_path_in(path, directory, name)), 0);
}

CleanTest(shards, missing_shards_are_noticed)
{
    for (int gone = 0; gone < SHARDS; gone++) {
        const struct stk_directory directory = make_set(1);
        remove_in(&directory, shard_names[gone]);
        open_bad(&directory, STOKER_EMISMATCH, gone == 1 ? "shards are missing" : "one is missing");
        stoker_dataset *dataset = open_good(&directory, "?partial=1");
        cr_assert_eq(stoker_dataset_get_info(dataset)->count, (SHARDS - 1) * COUNT);
        stoker_dataset_close(&dataset);
        stk_directory_remove(&directory);
    }
    struct stk_directory empty = stk_directory_make();
    open_bad(&empty, STOKER_EEMPTY, "*.stk");
    stk_directory_remove(&empty);
    open_bad(&empty, STOKER_ENOENT, "folder");
}

/* Of two shards that do not belong together both are named. */
CleanTest(shards, disagreement_names_both)
{
    static const struct {
        size_t at;
        uint8_t value;
        const char *says;
    } cases[] = { { FIELD(0) + 65, STOKER_DTYPE_INT8, "the fields" },
                  { FIELD(0) + 80, 6, "the fields" },
                  { FIELD(1) + 72, 4, "the fields" },
                  { 80, 11, "the fields" },
                  { 88, 1, "sets they were packed in" },
                  { 100, 4, "sets they were packed in" },
                  { 96, 2, "numbers" },
                  { 104, 9, "begin and end" } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct stk_directory directory = make_set(1);
        struct stk_shard_image image;
        stk_shard_image_make(&image, 1, SHARDS, COUNT, 1);
        image.at[cases[i].at] = cases[i].value;
        stk_shard_image_seal(&image);
        stk_shard_image_write(&image, &directory, shard_names[1]);
        open_bad(&directory, STOKER_EMISMATCH, cases[i].says);
        open_bad(&directory, STOKER_EMISMATCH, "a.stk");
        open_bad(&directory, STOKER_EMISMATCH, "b.stk");
        stk_directory_remove(&directory);
    }
    const struct stk_directory directory = make_set(1);
    struct stk_shard_image image;
    stk_shard_image_make(&image, 1, SHARDS, COUNT, 1);
    stk_shard_image_label(&image, COUNT)[0] = 'b'; /* the first class's name */
    stk_shard_image_seal(&image);
    stk_shard_image_write(&image, &directory, shard_names[1]);
    open_bad(&directory, STOKER_EMISMATCH, "names of the classes");
    stk_directory_remove(&directory);
}

/* The first and the last shard say so, whatever the files are called. */
CleanTest(shards, a_set_has_its_first_and_its_last_shard)
{
    static const struct {
        uint32_t number, shards;
        const char *says;
    } cases[] = { { 1, 2, "the first one is missing" }, { 0, 2, "the last one is missing" } };
    for (size_t i = 0; i < 2; i++) {
        const struct stk_directory directory = stk_directory_make();
        struct stk_shard_image image;
        stk_shard_image_make(&image, cases[i].number, cases[i].shards, COUNT, 1);
        stk_shard_image_write(&image, &directory, shard_names[0]);
        open_bad(&directory, STOKER_EMISMATCH, cases[i].says);
        stk_directory_remove(&directory);
    }
}

/* All samples of a shard may have been bad, but not those of all shards. */
CleanTest(shards, a_shard_may_be_empty)
{
    const struct stk_directory directory = stk_directory_make();
    struct stk_shard_image image;
    stk_shard_image_make(&image, 0, 2, 0, 1);
    stk_shard_image_write(&image, &directory, shard_names[1]);
    stk_shard_image_make(&image, 0, 1, 0, 1);
    stk_shard_image_write(&image, &directory, shard_names[0]);
    open_bad(&directory, STOKER_EMISMATCH, "sets they were packed in");
    char path[512];
    cr_assert_eq(unlink(stk_path_in(path, &directory, shard_names[1])), 0);
    open_bad(&directory, STOKER_EEMPTY, "no samples");
    stk_shard_image_make(&image, 0, 2, 0, 1);
    stk_shard_image_write(&image, &directory, shard_names[0]);
    stk_shard_image_make(&image, 1, 2, COUNT, 1);
    stk_store_le64(image.at + 104, 0); /* source_first */
    stk_shard_image_seal(&image);
    stk_shard_image_write(&image, &directory, shard_names[1]);
    stoker_dataset *dataset = open_good(&directory, "");
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, COUNT);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

/* Memory for records is taken by the longest of all shards, wherever it lies. */
CleanTest(shards, the_longest_record_is_that_of_all_shards)
{
    for (uint32_t number = 0; number < SHARDS; number++) {
        const struct stk_directory directory = make_set(1);
        struct stk_shard_image image;
        stk_shard_image_make(&image, number, SHARDS, COUNT, 1);
        stk_store_le64(image.at + 56, 100);
        stk_shard_image_seal(&image);
        stk_shard_image_write(&image, &directory, shard_names[number]);
        stoker_dataset *dataset = open_good(&directory, "");
        cr_assert_eq(stoker_dataset_get_info(dataset)->encoded_bytes_max, 100, "shard %u", number);
        stoker_dataset_close(&dataset);
        stk_directory_remove(&directory);
    }
}

/* ---- a record of an image --------------------------------------------------------- */

static uint8_t *put_chunk(uint8_t *to, const char *type, const uint8_t *body, uint32_t bytes)
{
    stk_png_put_be32(to, bytes);
    memcpy(to + 4, type, 4);
    memcpy(to + 8, body, bytes);
    stk_png_put_be32(to + 8 + bytes, stk_png_sum(to + 4, bytes + 4));
    return to + 12 + bytes;
}

/* The row as a PNG file, its rows neither filtered nor compressed. Returns its size. */
static uint32_t put_png(uint8_t *to, const uint8_t row[STK_SHARD_TEST_ROW])
{
    enum { HEIGHT = 4, WIDTH = 6, LINES = HEIGHT * (1 + WIDTH) };
    static const uint8_t header[13] = { 0, 0, 0, WIDTH, 0, 0, 0, HEIGHT, 8 };
    uint8_t body[7 + LINES + 4] = { 0x78, 0x01, 1, LINES, 0, (uint8_t)~LINES, 0xFF };
    uint32_t a = 1;
    uint32_t b = 0;
    for (size_t y = 0; y < HEIGHT; y++)
        memcpy(body + 7 + y * (1 + WIDTH) + 1, row + y * WIDTH, WIDTH);
    for (size_t i = 0; i < LINES; i++) {
        a = (a + body[7 + i]) % 65521;
        b = (b + a) % 65521;
    }
    stk_png_put_be32(body + 7 + LINES, b << 16 | a);
    memcpy(to, "\x89PNG\r\n\x1a\n", 8);
    uint8_t *end = put_chunk(to + 8, "IHDR", header, sizeof(header));
    end = put_chunk(end, "IDAT", body, sizeof(body));
    return (uint32_t)(put_chunk(end, "IEND", header, 0) - to);
}

/* Only one shard of three has an image: whichever it is, there is a decoder for it. */
CleanTest(shards, one_shard_needs_what_the_others_do_not)
{
    for (uint32_t number = 0; number < SHARDS; number++) {
        const struct stk_directory directory = make_set(1);
        struct stk_shard_image image;
        uint8_t row[STK_SHARD_TEST_ROW];
        stoker_dataset *dataset = NULL;
        stk_shard_image_make(&image, number, SHARDS, COUNT, 1);
        uint8_t png[128];
        stk_shard_test_row((uint64_t)number * COUNT + COUNT - 1, row);
        stk_shard_image_put(&image, COUNT - 1, 0, png, put_png(png, row), STK_SHARD_PNG);
        stk_shard_image_seal(&image);
        stk_shard_image_write(&image, &directory, shard_names[number]);
        const int rc = stk_shard_test_open(&dataset, &directory, "", NULL);
        if (rc == STOKER_ENOTSUP) {
            open_bad(&directory, STOKER_ENOTSUP, "built without libpng");
        } else {
            cr_assert_eq(rc, STOKER_OK);
            check_rows(dataset, (uint64_t)SHARDS * COUNT);
        }
        stoker_dataset_close(&dataset);
        stk_directory_remove(&directory);
    }
}

/* ---- records that are not what they were ---------------------------------------- */

static void flip(const struct stk_directory *directory, const char *name, uint64_t at, uint8_t mask)
{
    char path[512];
    uint8_t byte = 0;
    const int fd = open(stk_path_in(path, directory, name), O_RDWR | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    cr_assert_eq(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= mask;
    cr_assert_eq(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

CleanTest(shards, a_damaged_record_is_a_bad_sample_with_its_place)
{
    const struct stk_directory directory = make_set(1);
    flip(&directory, shard_names[1], 4096 + 2 * STK_SHARD_TEST_ROW + 3, 0x10);
    stoker_dataset *dataset = open_good(&directory, "");
    uint8_t row[STK_SHARD_TEST_ROW];
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_read_row(dataset, COUNT + 2, row, sizeof(row), NULL, &error), STOKER_ECORRUPT);
    cr_assert_eq(error.offset, 4096 + 2 * STK_SHARD_TEST_ROW);
    cr_assert_eq(error.sample, COUNT + 2);
    cr_assert_not_null(strstr(error.path, shard_names[1]));
    cr_assert_not_null(strstr(error.message, "checksum"));

    stoker_loader *loader = NULL;
    stoker_loader_options options =
        stk_default_options(.batch_size = 4, .epochs = 1, .on_bad_sample = STOKER_ON_BAD_SKIP);
    stoker_batch batch = STOKER_BATCH_INIT;
    uint32_t delivered = 0;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
    while (stoker_loader_next(loader, &batch, -1) == STOKER_OK) {
        delivered += batch.count;
        stoker_batch_release(&batch);
    }
    cr_assert_eq(delivered, SHARDS * COUNT - 1);
    cr_assert_eq(stoker_loader_bad_sample(loader, 0, &error), STOKER_OK);
    cr_assert_eq(error.code, STOKER_ECORRUPT);
    cr_assert_eq(error.sample, COUNT + 2);
    cr_assert_eq(error.offset, 4096 + 2 * STK_SHARD_TEST_ROW);
    cr_assert_eq(stoker_loader_bad_sample(loader, 1, &error), STOKER_EINVAL);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&directory);
}

CleanTest(shards, truncated_or_replaced_while_open)
{
    const struct stk_directory directory = make_set(1);
    stoker_dataset *dataset = open_good(&directory, "");
    char path[512];
    uint8_t row[STK_SHARD_TEST_ROW];
    stoker_error error = { .message = "" };
    cr_assert_eq(truncate(stk_path_in(path, &directory, shard_names[2]), 4096 + 30), 0);
    cr_assert_eq(stk_read_row(dataset, 2 * COUNT, row, sizeof(row), NULL, &error), STOKER_OK);
    cr_assert_eq(stk_read_row(dataset, 2 * COUNT + 1, row, sizeof(row), NULL, &error),
                 STOKER_ETRUNCATED);

    /* Another file under the name: the one that was opened is read on. */
    struct stk_shard_image image;
    char other[512];
    stk_shard_image_make(&image, 7, SHARDS, COUNT, 1);
    stk_shard_image_write(&image, &directory, "other");
    cr_assert_eq(rename(stk_path_in(other, &directory, "other"),
                        stk_path_in(path, &directory, shard_names[0])),
                 0);
    check_rows(dataset, COUNT);
    stoker_dataset_close(&dataset);

    /* One written over in place has other rows: none of them passes. */
    stk_shard_image_make(&image, 5, SHARDS, COUNT, 1);
    const struct stk_directory second = make_set(1);
    dataset = open_good(&second, "");
    stk_shard_image_write(&image, &second, shard_names[0]);
    for (uint64_t id = 0; id < COUNT; id++)
        cr_assert_eq(stk_read_row(dataset, id, row, sizeof(row), NULL, &error), STOKER_ECORRUPT);
    stoker_dataset_close(&dataset);
    stk_directory_remove(&second);
    stk_directory_remove(&directory);
}

/* ---- hostile shards ------------------------------------------------------------- */

/* Open a folder of one shard: an error that says why, or rows that are right or refused. Returns
 * whether it opened. */
static bool survives(const struct stk_directory *directory, uint32_t count)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    const int rc = stk_shard_test_open(&dataset, directory, "", &error);
    if (rc != STOKER_OK) {
        cr_assert_lt(rc, 0);
        cr_assert_eq(error.code, rc);
        cr_assert_gt(error.message[0], 0);
        cr_assert_null(dataset);
        return false;
    }
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, count);
    for (uint64_t id = 0; id < count; id++) {
        uint8_t row[STK_SHARD_TEST_ROW];
        uint8_t expected[STK_SHARD_TEST_ROW];
        stoker_label label;
        const int read = stk_read_row(dataset, id, row, sizeof(row), &label, &error);
        cr_assert(read == STOKER_OK || read == STOKER_ECORRUPT);
        if (read != STOKER_OK)
            continue;
        stk_shard_test_row(id, expected);
        cr_assert_arr_eq(row, expected, sizeof(row));
        cr_assert_eq(label.index, (int64_t)(id % 3));
    }
    stoker_dataset_close(&dataset);
    return true;
}

static void make_three(struct stk_shard_image *image, bool blocks)
{
    if (blocks)
        stk_shard_image_make_blocks(image, 0, 1, 3, 1);
    else
        stk_shard_image_make(image, 0, 1, 3, stk_lz4_present() ? 2 : 1);
}

static void flip_each_bit(bool blocks)
{
    const struct stk_directory directory = stk_directory_make();
    struct stk_shard_image image;
    uint32_t refused = 0;
    make_three(&image, blocks);
    stk_shard_image_write(&image, &directory, "a.stk");
    cr_assert(survives(&directory, 3));
    char path[512];
    const int fd = open(stk_path_in(path, &directory, "a.stk"), O_WRONLY | O_CLOEXEC);
    for (size_t at = 0; at < image.size; at++) {
        /* Each bit where something is, one a byte in the zeros between. */
        const bool zeros =
            (at >= 136 && at < 4088) || (at >= 4096 + 128 && at < 8192) || at >= 8192 + 552;
        for (unsigned bit = zeros ? at % 8 : 0; bit < (zeros ? at % 8 + 1 : 8); bit++) {
            const uint8_t byte = image.at[at] ^ (uint8_t)(1U << bit);
            cr_assert_eq(pwrite(fd, &byte, 1, (off_t)at), 1);
            const bool opened = survives(&directory, 3);
            refused += !opened;
            /* Header and index are summed, every byte of them. */
            cr_assert_eq(opened, at >= 4096 && at < 8192, "byte %zu bit %u", at, bit);
        }
        cr_assert_eq(pwrite(fd, image.at + at, 1, (off_t)at), 1);
    }
    close(fd);
    cr_assert_gt(refused, 8000);
    stk_directory_remove(&directory);
}

CleanTest(shards, every_flipped_bit_is_noticed_or_harmless)
{
    flip_each_bit(false);
}

CleanTest(shards, every_flipped_bit_of_blocks_is_noticed_or_harmless)
{
    flip_each_bit(true);
}

static void cut_at_each_byte(bool blocks)
{
    const struct stk_directory directory = stk_directory_make();
    struct stk_shard_image image;
    char path[512];
    make_three(&image, blocks);
    stk_shard_image_write(&image, &directory, "a.stk");
    for (size_t size = image.size; size-- > 0;) {
        cr_assert_eq(truncate(stk_path_in(path, &directory, "a.stk"), (off_t)size), 0);
        cr_assert_not(survives(&directory, 3), "%zu bytes", size);
    }
    make_three(&image, blocks);
    image.size += 8;
    stk_shard_image_write(&image, &directory, "a.stk");
    open_bad(&directory, STOKER_EOVERSIZE, "after the end");
    stk_directory_remove(&directory);
}

CleanTest(shards, every_prefix_is_refused)
{
    cut_at_each_byte(false);
    cut_at_each_byte(true);
}

/* Lies whose checksums are right: in a shard of rows, and in one of fields. */
struct lie {
    size_t at;
    uint8_t bytes; /* 1, 4 or 8 */
    uint64_t value;
    int code;
    const char *says;
};
#define PART(fields, i) (FIELD(fields) + 24 * (i))
#define LIE_PARTS       3
static const struct lie row_lies[] = {
    { 8, 4, 2, STOKER_ENOTSUP, "version" },
    { 8, 4, 4, STOKER_ENOTSUP, "version" },
    { 12, 4, 512, STOKER_EFORMAT, "bytes of another version" },
    { 16, 8, (uint64_t)1 << STK_SHARD_CODECS | 1, STOKER_ENOTSUP, "feature" },
    { 16, 8, (uint64_t)1 << 63 | 1, STOKER_ENOTSUP, "feature" },
    { 16, 8, 0, STOKER_EFORMAT, "codec that the header" },
    { 32, 8, 1 << 20, STOKER_ETRUNCATED, "shorter than its header says" },
    { 32, 8, 2 * 4096, STOKER_EOVERSIZE, "after the end" },
    { 40, 8, 0, STOKER_EFORMAT, "puts the index where" },
    { 40, 8, 4096, STOKER_EFORMAT, "puts the index where" },
    { 40, 8, UINT64_MAX - 4095, STOKER_EFORMAT, "puts the index where" },
    { 52, 4, 0, STOKER_EFORMAT, "alignment" },
    { 52, 4, 24, STOKER_EFORMAT, "alignment" },
    { 52, 4, 8192, STOKER_EFORMAT, "alignment" },
    { 56, 8, UINT64_MAX, STOKER_EFORMAT, "longest" },
    { 56, 8, 8, STOKER_EFORMAT, "too long" },
    { 64, 8, UINT64_MAX, STOKER_EFORMAT, "number of samples" },
    { 64, 8, UINT64_MAX / 32 + 2, STOKER_EFORMAT, "number of samples" },
    { 64, 8, 300, STOKER_EFORMAT, "puts the index where" },
    { 72, 4, 0, STOKER_EFORMAT, "number of fields" },
    { 72, 4, 129, STOKER_EFORMAT, "number of fields" },
    { 76, 4, 0, STOKER_EFORMAT, "number of fields" },
    { 76, 4, 3, STOKER_EFORMAT, "number of fields" },
    { 76, 4, 2, STOKER_EFORMAT, "fills no field" },
    { 80, 8, UINT64_MAX, STOKER_EFORMAT, "names" },
    { 80, 8, 8, STOKER_EFORMAT, "names" },
    { 80, 8, 13, STOKER_EFORMAT, "names" },
    { 96, 4, 1, STOKER_EFORMAT, "place in the set" },
    { 100, 4, 0, STOKER_EFORMAT, "place in the set" },
    { 104, 8, UINT64_MAX, STOKER_EFORMAT, "place in the set" },
    { 112, 8, 1, STOKER_EFORMAT, "place in the set" },
    { 120, 1, 1, STOKER_EFORMAT, "blocks" },
    { 136, 1, 1, STOKER_EFORMAT, "bytes of another version" },
    { 4091, 1, 1, STOKER_EFORMAT, "bytes of another version" },
    { FIELD(0), 1, 0, STOKER_EFORMAT, "must be 0" }, /* a name that ends before it begins */
    { FIELD(0), 1, ' ', STOKER_EINVAL, "a name has 1 to 63 bytes" },
    { FIELD(0) + 63, 1, 'x', STOKER_EFORMAT, "must be 0" },
    { FIELD(0) + 65, 1, 0, STOKER_EFORMAT, "shape" },
    { FIELD(0) + 65, 1, 99, STOKER_EFORMAT, "shape" },
    { FIELD(0) + 66, 1, 8, STOKER_EFORMAT, "shape" },
    { FIELD(0) + 66, 1, 2, STOKER_EFORMAT, "height, width and channels" },
    { FIELD(0) + 80, 8, UINT64_MAX, STOKER_EFORMAT, "shape" },
    { FIELD(0) + 80, 8, 0, STOKER_EFORMAT, "shape" },
    { FIELD(0) + 80, 8, (uint64_t)1 << 29, STOKER_EFORMAT, "shape" },
    { FIELD(0) + 80, 8, 5, STOKER_EFORMAT, "cannot be its field" },
    { FIELD(1) + 64, 1, 1, STOKER_EFORMAT, "more than one number" },
    { FIELD(1) + 65, 1, STOKER_DTYPE_UINT8, STOKER_EFORMAT, "names" },
    { FIELD(1) + 66, 1, 1, STOKER_EFORMAT, "shape" },
    { FIELD(1) + 72, 4, UINT32_MAX, STOKER_EFORMAT, "classes" },
    { FIELD(1) + 72, 4, 2, STOKER_EFORMAT, "cannot have" },
    { FIELD(1) + 72, 4, 0, STOKER_EFORMAT, "names" },
    { PART(2, 0), 8, 0, STOKER_EFORMAT, "overlaps" },
    { PART(2, 0), 8, 4097, STOKER_EFORMAT, "aligned" },
    { PART(2, 0), 8, 4096 + 8, STOKER_EFORMAT, "overlaps" },
    { PART(2, 2), 8, 4096 + 48 + 4, STOKER_EFORMAT, "aligned" },
    { PART(2, 2), 8, 8192, STOKER_EFORMAT, "not among the parts" },
    { PART(2, 2), 8, UINT64_MAX - 7, STOKER_EFORMAT, "not among the parts" },
    { PART(2, 0) + 8, 8, 0, STOKER_EFORMAT, "cannot be its field" },
    { PART(2, 0) + 8, 8, UINT64_MAX, STOKER_EFORMAT, "too long" },
    { PART(2, 0) + 8, 8, 23, STOKER_EFORMAT, "cannot be its field" },
    { PART(2, 0) + 20, 1, 9, STOKER_EFORMAT, "codec" },
    { PART(2, 0) + 20, 1, 2, STOKER_EFORMAT, "codec" },
    { PART(2, 0) + 21, 1, 1, STOKER_EFORMAT, "must be 0" },
    { PART(2, 0) + 23, 1, 1, STOKER_EFORMAT, "must be 0" },
    { PART(2, LIE_PARTS), 8, 3, STOKER_EFORMAT, "cannot have" },
    { PART(2, LIE_PARTS), 8, UINT64_MAX, STOKER_EFORMAT, "cannot have" },
};
static const struct lie field_lies[] = {
    { 72, 4, 2, STOKER_EFORMAT, "overlaps" }, /* the label counts as a part */
    { FIELD(0), 4, 0x74786574, STOKER_EINVAL, "have the name \"text\"" },
    { FIELD(0) + 64, 1, 9, STOKER_EINVAL, "kind 9 is unknown" },
    { FIELD(0) + 64, 1, 1, STOKER_EFORMAT, "height, width and channels" },
    { FIELD(0) + 67, 1, 4, STOKER_EFORMAT, "must be 0" },
    { FIELD(0) + 67, 1, 2, STOKER_EFORMAT, "no image files" },
    { FIELD(0) + 68, 4, 2, STOKER_EFORMAT, "not there" },
    { FIELD(0) + 68, 4, 1, STOKER_EFORMAT, "two fields of one part" },
    { FIELD(0) + 68, 4, UINT32_MAX, STOKER_EFORMAT, "more than one number" },
    { FIELD(0) + 76, 1, 1, STOKER_EFORMAT, "must be 0" },
    { FIELD(0) + 144, 1, 1, STOKER_EFORMAT, "must be 0" },
    { FIELD(1) + 80, 8, 1, STOKER_EFORMAT, "cannot be its field" },
    { PART(3, 0) + 8, 8, 3, STOKER_EFORMAT, "cannot be its field" },
    { PART(3, 2 * LIE_PARTS), 8, 3, STOKER_EFORMAT, "cannot have" },
};

/* In a shard of three blocks of one row: raw, LZ4 and Zstandard. */
#define BLOCK(i) (FIELD(2) + 24 * (i))
static const struct lie block_lies[] = {
    { 16, 8, 1 | 1 << 1 | 1 << 4, STOKER_EFORMAT, "has blocks, and has none" },
    { 16, 8, UINT64_C(1) << 32 | 1, STOKER_EFORMAT, "codec that the header" },
    { 56, 8, 73, STOKER_EFORMAT, "longest" },
    { 120, 8, 0, STOKER_EFORMAT, "has blocks, and has none" },
    { 120, 8, 4, STOKER_EFORMAT, "number of samples or blocks" },
    { 120, 8, UINT64_MAX, STOKER_EFORMAT, "number of samples or blocks" },
    { 128, 8, 0, STOKER_EFORMAT, "has blocks, and has none" },
    { 128, 8, 73, STOKER_EFORMAT, "do not unpack to the header's" },
    { 128, 8, 71, STOKER_EFORMAT, "cannot unpack to its bytes" },
    { BLOCK(0), 8, 0, STOKER_EFORMAT, "overlaps" },
    { BLOCK(0), 8, 4096 + 1, STOKER_EFORMAT, "overlaps" },
    { BLOCK(2), 8, 8192, STOKER_EFORMAT, "not among the blocks" },
    { BLOCK(2), 8, UINT64_MAX, STOKER_EFORMAT, "not among the blocks" },
    { BLOCK(0) + 8, 4, 0, STOKER_EFORMAT, "cannot unpack" },
    { BLOCK(0) + 8, 4, 23, STOKER_EFORMAT, "cannot unpack" },
    { BLOCK(2) + 8, 4, UINT32_MAX, STOKER_EFORMAT, "not among the blocks" },
    { BLOCK(2) + 12, 4, 0, STOKER_EFORMAT, "cannot unpack" },
    { BLOCK(2) + 12, 4, UINT32_MAX, STOKER_EFORMAT, "cannot unpack" },
    { BLOCK(2) + 12, 4, 23, STOKER_EFORMAT, "do not unpack to the header's" },
    { BLOCK(0) + 20, 1, 2, STOKER_EFORMAT, "codec that the header" },
    { BLOCK(0) + 20, 1, 9, STOKER_EFORMAT, "codec that the header" },
    { BLOCK(0) + 21, 1, 1, STOKER_EFORMAT, "must be 0" },
    { BLOCK(3) + 24, 8, 25, STOKER_EFORMAT, "does not lie in one block" },
    { BLOCK(3) + 24, 8, 23, STOKER_EFORMAT, "overlaps" },
    { BLOCK(3) + 48, 8, 49, STOKER_EFORMAT, "not among the parts" },
};

enum lying { ROWS, FIELDS, BLOCKS };

static void check_lies(const struct lie *lies, size_t count, enum lying of)
{
    const struct stk_directory directory = stk_directory_make();
    for (size_t i = 0; i < count; i++) {
        struct stk_shard_image image;
        uint8_t value[8];
        stk_store_le64(value, lies[i].value);
        if (of == FIELDS)
            stk_shard_image_make_fields(&image, 0, 1, LIE_PARTS);
        else if (of == BLOCKS)
            stk_shard_image_make_blocks(&image, 0, 1, LIE_PARTS, 1);
        else
            stk_shard_image_make(&image, 0, 1, LIE_PARTS, 1);
        memcpy(image.at + lies[i].at, value, lies[i].bytes);
        stk_shard_image_seal(&image);
        stk_shard_image_write(&image, &directory, "a.stk");
        open_bad(&directory, lies[i].code, lies[i].says);
    }
    stk_directory_remove(&directory);
}

/* Refused by the rules, before memory is taken. */
CleanTest(shards, lies_are_refused)
{
    check_lies(row_lies, sizeof(row_lies) / sizeof(row_lies[0]), ROWS);
    check_lies(field_lies, sizeof(field_lies) / sizeof(field_lies[0]), FIELDS);
    check_lies(block_lies, sizeof(block_lies) / sizeof(block_lies[0]), BLOCKS);
}

/* A huge index in a file of holes, and an LZ4 block that promises more than blocks can. */
CleanTest(shards, bombs_are_refused_before_memory_is_taken)
{
    const struct stk_directory directory = stk_directory_make();
    struct stk_shard_image image;
    char path[512];
    const uint64_t count = (uint64_t)1 << 30;
    const uint64_t index_bytes = (2 * 160 + count * 32 + 12 + 4095) & ~(uint64_t)4095;
    stk_shard_image_make(&image, 0, 1, 3, 1);
    stk_store_le64(image.at + 64, count);
    stk_store_le64(image.at + 112, count);
    stk_store_le64(image.at + 32, STK_SHARD_TEST_INDEX_AT + index_bytes);
    stk_store_le32(image.at + 4092, stk_crc32c_by_bits(image.at, 4092));
    stk_shard_image_write(&image, &directory, "a.stk");
    cr_assert_eq(truncate(stk_path_in(path, &directory, "a.stk"),
                          (off_t)(STK_SHARD_TEST_INDEX_AT + index_bytes)),
                 0);
    const uint64_t allocations = stk_fault_allocations();
    open_bad(&directory, STOKER_ELIMIT, "max_bytes");
    cr_assert_leq(stk_fault_allocations() - allocations, 8);

    if (stk_lz4_present()) {
        stk_shard_image_make(&image, 0, 1, 3, 2);
        stk_store_le64(image.at + FIELD(0) + 80, 1 << 20);
        for (uint32_t i = 0; i < 3; i++)
            stk_shard_image_part(&image, i, 0)[20] = STK_SHARD_LZ4;
        stk_shard_image_seal(&image);
        stk_shard_image_write(&image, &directory, "a.stk");
        open_bad(&directory, STOKER_EFORMAT, "cannot be its field");
    }
    stk_directory_remove(&directory);
}

/* ---- Zstandard ------------------------------------------------------------------ */

/* One shard whose records are frames, one behind the other. */
static void make_zstd(struct stk_shard_image *image)
{
    stk_shard_image_make(image, 0, 1, COUNT, 1);
    stk_shard_image_empty(image);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint8_t row[STK_SHARD_TEST_ROW];
        uint8_t frame[64];
        stk_shard_test_row(i, row);
        stk_shard_image_put(image, i, 0, frame,
                            (uint32_t)stk_zstd_pack(row, sizeof(row), 9, frame, sizeof(frame)), 4);
    }
    stk_shard_image_seal(image);
}

CleanTest(shards, zstandard_records_are_read_or_the_library_says_that_it_cannot)
{
    const struct stk_directory directory = stk_directory_make();
    struct stk_shard_image image;
    make_zstd(&image);
    stk_shard_image_write(&image, &directory, "a.stk");
    if (!stk_zstd_present()) {
        open_bad(&directory, STOKER_ENOTSUP, "built without libzstd");
        stk_directory_remove(&directory);
        return;
    }
    stoker_dataset *dataset = open_good(&directory, "");
    check_rows(dataset, COUNT);
    cr_assert_str_eq(stoker_dataset_stored_as(dataset, 1), "zstd");
    stoker_dataset_close(&dataset);

    /* A damaged frame with the right checksum, and a frame too short for its row. */
    image.at[4096] ^= 1;
    stk_shard_image_enter(&image, 0, 0, 4096, stk_load_le32(stk_shard_image_part(&image, 0, 0) + 8),
                          4);
    stk_shard_image_seal(&image);
    stk_shard_image_write(&image, &directory, "a.stk");
    dataset = open_good(&directory, "");
    uint8_t row[STK_SHARD_TEST_ROW];
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_read_row(dataset, 0, row, sizeof(row), NULL, &error), STOKER_ECORRUPT);
    cr_assert_not_null(strstr(error.message, "not a Zstandard frame"), "%s", error.message);
    cr_assert_eq(stk_read_row(dataset, 1, row, sizeof(row), NULL, &error), STOKER_OK);
    stoker_dataset_close(&dataset);
    stk_store_le64(image.at + FIELD(0) + 80, 1 << 22);
    stk_shard_image_seal(&image);
    stk_shard_image_write(&image, &directory, "a.stk");
    open_bad(&directory, STOKER_EFORMAT, "cannot be its field");
    stk_directory_remove(&directory);
}

/* ---- the layout both ways ------------------------------------------------------- */

static void check_stored(struct stk_shard_image *image)
{
    struct stk_shard_header header;
    struct stk_shard_field fields[3];
    uint8_t block[STK_SHARD_PAGE_BYTES];
    const char *what = NULL;
    cr_assert_eq(stk_shard_header_load(&header, image->at, image->size, &what), STOKER_OK, "%s",
                 what);
    stk_shard_header_store(block, &header);
    cr_assert_arr_eq(block, image->at, sizeof(block));
    for (uint32_t i = 0; i < header.field_count; i++) {
        const uint8_t *from = stk_shard_image_field(image, i);
        cr_assert_eq(stk_shard_field_load(&fields[i], from, &header, &what), STOKER_OK);
        stk_shard_field_store(block, &fields[i]);
        cr_assert_arr_eq(block, from, STK_SHARD_FIELD_BYTES);
    }
    uint64_t free_at = STK_SHARD_PAGE_BYTES;
    for (uint32_t i = 0; i < COUNT * header.part_count; i++) {
        struct stk_shard_part part;
        const uint32_t number = i % header.part_count;
        const uint8_t *from = stk_shard_image_part(image, i / header.part_count, number);
        cr_assert_eq(stk_shard_part_load(&part, from, &header, &fields[number], &free_at, &what),
                     STOKER_OK, "%s", what);
        stk_shard_part_store(block, &part);
        cr_assert_arr_eq(block, from, STK_SHARD_PART_BYTES);
    }
}

CleanTest(shards, what_is_stored_is_loaded)
{
    struct stk_shard_image image;
    struct stk_shard_header header;
    struct stk_shard_field field;
    const char *what = NULL;
    stk_shard_image_make_fields(&image, 2, SHARDS, COUNT);
    check_stored(&image);
    stk_shard_image_make(&image, 2, SHARDS, COUNT, 1);
    memset(stk_shard_image_field(&image, 0), 'n', STOKER_FIELD_NAME_BYTES - 1);
    check_stored(&image);

    /* A part may begin where the one before ends, but not a byte before that. */
    struct stk_shard_part touching;
    cr_assert_eq(stk_shard_header_load(&header, image.at, image.size, &what), STOKER_OK);
    cr_assert_eq(stk_shard_field_load(&field, stk_shard_image_field(&image, 0), &header, &what),
                 STOKER_OK);
    header.alignment = 1;
    for (uint64_t overlap = 0; overlap <= 1; overlap++) {
        uint64_t free_at = 4096 + STK_SHARD_TEST_ROW + overlap;
        cr_assert_eq(stk_shard_part_load(&touching, stk_shard_image_part(&image, 1, 0), &header,
                                         &field, &free_at, &what),
                     overlap == 0 ? STOKER_OK : STOKER_EFORMAT);
    }
    cr_assert_eq(stk_shard_alignment(1), 8);
    cr_assert_eq(stk_shard_alignment(784), 64);
    cr_assert_eq(stk_shard_alignment(196608), 4096);
}
