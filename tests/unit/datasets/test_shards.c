/* test_shards.c - shards are read as their description says, and accepted only as far as they can
 * be verified.
 *
 * Method: write shards byte by byte by the description (shard_files.h), read them back; then spoil
 * every part of one, with its checksums left wrong and with them made right.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "datasets/shards/layout.h"
#include "loader/base/fault.h"
#include "loader/codec/zstd.h"
#include "loader/reader/readers.h"
#include "support/leaks.h"
#include "support/png_sums.h"
#include "support/shard_files.h"

enum { COUNT = 5, SHARDS = 3 };

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
        cr_assert_eq(stoker_dataset_read(dataset, id, row, sizeof(row), &label, &error), STOKER_OK,
                     "%s", error.message);
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
    cr_assert_str_eq(stoker_dataset_class_name(dataset, 1), "bee");
    cr_assert_str_eq(stoker_dataset_class_name(dataset, 2), "cat");
    check_rows(dataset, info->count);
    stoker_dataset_close(&dataset);

    /* A plain path is recognised; a question mark in it is no parameter. */
    stoker_error error = { .message = "" };
    cr_assert_eq(stoker_dataset_open(&dataset, directory.path, NULL, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_str_eq(stoker_dataset_name(dataset), "shards");
    stoker_dataset_close(&dataset);
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
        cr_assert_str_eq(sample.codec->name, "shard record");
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
            stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
            stoker_batch batch = STOKER_BATCH_INIT;
            uint32_t seen = 0;
            options.batch_size = 4;
            options.shuffle = true;
            options.num_workers = workers;
            options.epochs = 1;
            options.cache = STOKER_CACHE_NONE;
            options.reader = readers[r];
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
    open_bad(&empty, STOKER_ENOENT, "shards");
}

/* Of two shards that do not belong together both are named. */
CleanTest(shards, disagreement_names_both)
{
    static const struct {
        size_t at;
        uint8_t value;
        const char *says;
    } cases[] = { { 52, STOKER_DTYPE_INT8, "element types" },
                  { 64, 2, "shapes" },
                  { 56, 4, "labels" },
                  { 152, 1, "sets they were packed in" },
                  { 160, 7, "numbers" },
                  { 128, 9, "begin and end" },
                  { 136, 9, "begin and end" } };
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
    stk_shard_image_entry(&image, COUNT)[0] = 'b'; /* the first class's name */
    stk_shard_image_seal(&image);
    stk_shard_image_write(&image, &directory, shard_names[1]);
    open_bad(&directory, STOKER_EMISMATCH, "names of the classes");
    stk_directory_remove(&directory);
}

/* A set continues behind its last shard, or begins with a sample that is not its first. */
CleanTest(shards, a_set_starts_and_ends_at_marked_shards)
{
    struct stk_directory directory = make_set(1);
    struct stk_shard_image image;
    stk_shard_image_make(&image, 1, SHARDS, COUNT, 1);
    stk_store_le32(image.at + 16, STK_SHARD_LAST);
    stk_shard_image_seal(&image);
    stk_shard_image_write(&image, &directory, shard_names[1]);
    open_bad(&directory, STOKER_EMISMATCH, "numbers");
    open_bad(&directory, STOKER_EMISMATCH, shard_names[2]);
    stk_directory_remove(&directory);

    directory = stk_directory_make();
    stk_shard_image_make(&image, 0, 1, COUNT, 1);
    stk_store_le64(image.at + 128, 1); /* first */
    stk_store_le64(image.at + 136, 1); /* source_first */
    stk_shard_image_seal(&image);
    stk_shard_image_write(&image, &directory, shard_names[0]);
    open_bad(&directory, STOKER_EMISMATCH, "the first one is missing");
    stk_directory_remove(&directory);
}

/* Memory for records is taken by the longest of all shards, wherever it lies. */
CleanTest(shards, the_longest_record_is_that_of_all_shards)
{
    for (uint32_t number = 0; number < SHARDS; number++) {
        const struct stk_directory directory = make_set(1);
        struct stk_shard_image image;
        stk_shard_image_make(&image, number, SHARDS, COUNT, 1);
        stk_store_le32(image.at + 60, 100);
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
        uint8_t *entry = stk_shard_image_entry(&image, COUNT - 1); /* nothing lies behind it */
        uint8_t *record = image.at + stk_load_le64(entry);
        stk_shard_test_row((uint64_t)number * COUNT + COUNT - 1, row);
        const uint32_t bytes = put_png(record, row);
        stk_store_le32(entry + 8, bytes);
        stk_store_le32(entry + 12, stk_crc32c_by_bits(record, bytes));
        entry[16] = STK_SHARD_PNG;
        stk_store_le32(image.at + 12, 1U << STK_SHARD_RAW | 1U << STK_SHARD_PNG);
        stk_store_le32(image.at + 60, bytes);
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
    cr_assert_eq(stoker_dataset_read(dataset, COUNT + 2, row, sizeof(row), NULL, &error),
                 STOKER_ECORRUPT);
    cr_assert_eq(error.offset, 4096 + 2 * STK_SHARD_TEST_ROW);
    cr_assert_eq(error.sample, COUNT + 2);
    cr_assert_not_null(strstr(error.path, shard_names[1]));
    cr_assert_not_null(strstr(error.message, "checksum"));

    stoker_loader *loader = NULL;
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    stoker_batch batch = STOKER_BATCH_INIT;
    uint32_t delivered = 0;
    options.batch_size = 4;
    options.epochs = 1;
    options.on_bad_sample = STOKER_ON_BAD_SKIP;
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
    cr_assert_eq(stoker_dataset_read(dataset, 2 * COUNT, row, sizeof(row), NULL, &error),
                 STOKER_OK);
    cr_assert_eq(stoker_dataset_read(dataset, 2 * COUNT + 1, row, sizeof(row), NULL, &error),
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
        cr_assert_eq(stoker_dataset_read(dataset, id, row, sizeof(row), NULL, &error),
                     STOKER_ECORRUPT);
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
        const int read = stoker_dataset_read(dataset, id, row, sizeof(row), &label, &error);
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

CleanTest(shards, every_flipped_bit_is_noticed_or_harmless)
{
    const struct stk_directory directory = stk_directory_make();
    struct stk_shard_image image;
    uint32_t refused = 0;
    stk_shard_image_make(&image, 0, 1, 3, stk_lz4_present() ? 2 : 1);
    stk_shard_image_write(&image, &directory, "a.stk");
    cr_assert(survives(&directory, 3));
    char path[512];
    const int fd = open(stk_path_in(path, &directory, "a.stk"), O_WRONLY | O_CLOEXEC);
    for (size_t at = 0; at < image.size; at++) {
        /* Each bit where something is, one a byte in the zeros between. */
        const bool zeros =
            (at >= 256 && at < 4088) || (at >= 4096 + 128 && at < 8192) || at >= 8192 + 4 * 32;
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

CleanTest(shards, every_prefix_is_refused)
{
    const struct stk_directory directory = stk_directory_make();
    struct stk_shard_image image;
    char path[512];
    stk_shard_image_make(&image, 0, 1, 3, 1);
    stk_shard_image_write(&image, &directory, "a.stk");
    for (size_t size = image.size; size-- > 0;) {
        cr_assert_eq(truncate(stk_path_in(path, &directory, "a.stk"), (off_t)size), 0);
        cr_assert_not(survives(&directory, 3), "%zu bytes", size);
    }
    stk_shard_image_make(&image, 0, 1, 3, 1);
    image.size += 8;
    stk_shard_image_write(&image, &directory, "a.stk");
    open_bad(&directory, STOKER_EOVERSIZE, "after the end");
    stk_directory_remove(&directory);
}

/* Lies whose checksums are right. */
enum { ENTRY = STK_SHARD_TEST_INDEX_AT };
static const struct {
    size_t at;
    uint8_t bytes; /* 1, 4 or 8 */
    uint64_t value;
    int code;
    const char *says;
} lies[] = {
    { 8, 4, 3, STOKER_ENOTSUP, "version" },
    { 12, 4, 0x41, STOKER_ENOTSUP, "feature" },
    { 12, 4, 0x21, STOKER_EFORMAT, "fields" }, /* a name, which is missing */
    { 240, 4, 'e', STOKER_EFORMAT, "fields" }, /* one that is not announced */
    { 12, 4, 0, STOKER_EFORMAT, "codec that the header" },
    { 20, 4, 512, STOKER_EFORMAT, "fields" },
    { 24, 8, 0, STOKER_EFORMAT, "number of records" },
    { 24, 8, UINT64_MAX, STOKER_EFORMAT, "number of records" },
    { 24, 8, UINT64_MAX / 32 + 2, STOKER_EFORMAT, "number of records" },
    { 24, 8, 300, STOKER_EFORMAT, "puts the index where" },
    { 32, 8, 1 << 20, STOKER_ETRUNCATED, "shorter than its header says" },
    { 40, 8, 0, STOKER_EFORMAT, "puts the index where" },
    { 40, 8, UINT64_MAX - 4095, STOKER_EFORMAT, "puts the index where" },
    { 48, 4, 0, STOKER_EFORMAT, "alignment" },
    { 48, 4, 24, STOKER_EFORMAT, "alignment" },
    { 48, 4, 8192, STOKER_EFORMAT, "alignment" },
    { 52, 1, 0, STOKER_EFORMAT, "shape" },
    { 52, 1, 99, STOKER_EFORMAT, "shape" },
    { 53, 1, 8, STOKER_EFORMAT, "shape" },
    { 54, 1, STOKER_DTYPE_INT8, STOKER_EFORMAT, "labels" },
    { 54, 1, STOKER_DTYPE_FLOAT32, STOKER_EFORMAT, "without labels" },
    { 55, 1, 2, STOKER_EFORMAT, "fields" },
    { 56, 4, UINT32_MAX, STOKER_EFORMAT, "classes" },
    { 56, 4, 2, STOKER_EFORMAT, "no class" },
    { 60, 4, 0, STOKER_EFORMAT, "longest" },
    { 60, 4, UINT32_MAX, STOKER_EFORMAT, "longest" },
    { 60, 4, 8, STOKER_EFORMAT, "too long" },
    { 64, 8, UINT64_MAX, STOKER_EFORMAT, "shape" },
    { 64, 8, 0, STOKER_EFORMAT, "shape" },
    { 64, 8, (uint64_t)1 << 29, STOKER_EFORMAT, "shape" },
    { 64, 8, 5, STOKER_EFORMAT, "cannot be a row" },
    { 128, 8, UINT64_MAX, STOKER_EFORMAT, "place in the set" },
    { 144, 8, 1, STOKER_EFORMAT, "place in the set" },
    { 168, 4, UINT32_MAX, STOKER_EFORMAT, "classes" },
    { 168, 4, 8, STOKER_EFORMAT, "names" },
    { 168, 4, 13, STOKER_EFORMAT, "names" },
    { 172, 4, 1, STOKER_EFORMAT, "fields" },
    { 3000, 1, 1, STOKER_EFORMAT, "fields" },
    { ENTRY, 8, 0, STOKER_EFORMAT, "overlaps" },
    { ENTRY, 8, 4097, STOKER_EFORMAT, "aligned" },
    { ENTRY, 8, 4096 + 8, STOKER_EFORMAT, "overlaps" },
    { ENTRY + 64, 8, 4096 + 48 + 4, STOKER_EFORMAT, "aligned" },
    { ENTRY + 64, 8, 8192, STOKER_EFORMAT, "not among the records" },
    { ENTRY + 64, 8, UINT64_MAX - 7, STOKER_EFORMAT, "not among the records" },
    { ENTRY + 8, 4, 0, STOKER_EFORMAT, "empty" },
    { ENTRY + 8, 4, UINT32_MAX, STOKER_EFORMAT, "too long" },
    { ENTRY + 8, 4, 23, STOKER_EFORMAT, "cannot be a row" },
    { ENTRY + 16, 1, 9, STOKER_EFORMAT, "codec" },
    { ENTRY + 17, 1, 1, STOKER_EFORMAT, "must be 0" },
    { ENTRY + 20, 4, 1, STOKER_EFORMAT, "must be 0" },
    { ENTRY + 24, 8, 3, STOKER_EFORMAT, "no class" },
    { ENTRY + 24, 8, UINT64_MAX, STOKER_EFORMAT, "no class" },
};

/* The name of the rows is that of the field, whatever they are called without one. */
CleanTest(shards, rows_may_have_a_name)
{
    static const struct {
        const char *name;
        size_t bytes;
        int code;
    } cases[] = { { "emb", 3, STOKER_OK },
                  { "two words", 9, STOKER_EINVAL },
                  { "nul\0more", 8, STOKER_EFORMAT },
                  { "label", 5, STOKER_EINVAL } };
    const struct stk_directory directory = stk_directory_make();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stk_shard_image image;
        stk_shard_image_make(&image, 0, 1, 3, 1);
        stk_store_le32(image.at + 12, 0x21);
        memcpy(image.at + 240, cases[i].name, cases[i].bytes);
        stk_shard_image_seal(&image);
        stk_shard_image_write(&image, &directory, "a.stk");
        stoker_dataset *dataset = NULL;
        char spec[600];
        (void)snprintf(spec, sizeof(spec), "shards:%s", directory.path);
        cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, NULL), cases[i].code, "%s",
                     cases[i].name);
        if (dataset == NULL)
            continue;
        const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
        cr_assert_eq(info->field_count, 2);
        cr_assert_str_eq(stoker_dataset_field(dataset, 0)->name, "emb");
        cr_assert_str_eq(stoker_dataset_field(dataset, 1)->name, "label");
        cr_assert_eq(info->class_count, 3);
        uint8_t row[STK_SHARD_TEST_ROW], due[STK_SHARD_TEST_ROW];
        stoker_label label;
        stk_shard_test_row(2, due);
        cr_assert_eq(stoker_dataset_read(dataset, 2, row, sizeof(row), &label, NULL), STOKER_OK);
        cr_assert_arr_eq(row, due, sizeof(row));
        cr_assert_eq(label.index, 2);
        stoker_dataset_close(&dataset);
    }
    stk_directory_remove(&directory);
}

/* Refused by the rules, before memory is taken. */
CleanTest(shards, lies_are_refused)
{
    const struct stk_directory directory = stk_directory_make();
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        struct stk_shard_image image;
        uint8_t value[8];
        stk_store_le64(value, lies[i].value);
        stk_shard_image_make(&image, 0, 1, 3, 1);
        memcpy(image.at + lies[i].at, value, lies[i].bytes);
        stk_shard_image_seal(&image);
        stk_shard_image_write(&image, &directory, "a.stk");
        open_bad(&directory, lies[i].code, lies[i].says);
    }
    stk_directory_remove(&directory);
}

/* A huge index in a file of holes, and an LZ4 block that promises more than blocks can. */
CleanTest(shards, bombs_are_refused_before_memory_is_taken)
{
    const struct stk_directory directory = stk_directory_make();
    struct stk_shard_image image;
    char path[512];
    const uint64_t count = (uint64_t)1 << 30;
    const uint64_t index_bytes = (count * 32 + 12 + 4095) & ~(uint64_t)4095;
    stk_shard_image_make(&image, 0, 1, 3, 1);
    stk_store_le64(image.at + 24, count);
    stk_store_le64(image.at + 144, count);
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
        stk_store_le64(image.at + 64, 1 << 20);
        stk_store_le32(image.at + 12, 2);
        for (uint32_t i = 0; i < 3; i++)
            stk_shard_image_entry(&image, i)[16] = STK_SHARD_LZ4;
        stk_shard_image_seal(&image);
        stk_shard_image_write(&image, &directory, "a.stk");
        open_bad(&directory, STOKER_EFORMAT, "cannot be a row");
    }
    stk_directory_remove(&directory);
}

/* ---- Zstandard ------------------------------------------------------------------ */

/* One shard whose records are frames, one behind the other. */
static void make_zstd(struct stk_shard_image *image)
{
    uint32_t used = 4096;
    stk_shard_image_make(image, 0, 1, COUNT, 1);
    memset(image->at + used, 0, STK_SHARD_TEST_INDEX_AT - used);
    stk_store_le32(image->at + 12, 1U << 4);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint8_t row[STK_SHARD_TEST_ROW];
        uint8_t *entry = stk_shard_image_entry(image, i);
        stk_shard_test_row(i, row);
        const uint32_t bytes = (uint32_t)stk_zstd_pack(row, sizeof(row), 9, image->at + used, 64);
        stk_store_le64(entry, used);
        stk_store_le32(entry + 8, bytes);
        stk_store_le32(entry + 12, stk_crc32c_by_bits(image->at + used, bytes));
        entry[16] = 4;
        used += (bytes + 7) / 8 * 8;
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
    stk_store_le32(
        stk_shard_image_entry(&image, 0) + 12,
        stk_crc32c_by_bits(image.at + 4096, stk_load_le32(stk_shard_image_entry(&image, 0) + 8)));
    stk_shard_image_seal(&image);
    stk_shard_image_write(&image, &directory, "a.stk");
    dataset = open_good(&directory, "");
    uint8_t row[STK_SHARD_TEST_ROW];
    stoker_error error = { .message = "" };
    cr_assert_eq(stoker_dataset_read(dataset, 0, row, sizeof(row), NULL, &error), STOKER_ECORRUPT);
    cr_assert_not_null(strstr(error.message, "not a Zstandard frame"), "%s", error.message);
    cr_assert_eq(stoker_dataset_read(dataset, 1, row, sizeof(row), NULL, &error), STOKER_OK);
    stoker_dataset_close(&dataset);
    stk_store_le64(image.at + 64, 1 << 22);
    stk_shard_image_seal(&image);
    stk_shard_image_write(&image, &directory, "a.stk");
    open_bad(&directory, STOKER_EFORMAT, "cannot be a row");
    stk_directory_remove(&directory);
}

/* ---- the layout both ways ------------------------------------------------------- */

CleanTest(shards, what_is_stored_is_loaded)
{
    struct stk_shard_image image;
    struct stk_shard_header header;
    uint8_t block[STK_SHARD_BLOCK_BYTES];
    const char *what = NULL;
    stk_shard_image_make(&image, 2, SHARDS, COUNT, 1);
    for (size_t i = 0; i < STK_SHARD_RESUME_BYTES; i++)
        image.at[176 + i] = (uint8_t)(i + 1);
    stk_store_le32(image.at + 12, stk_load_le32(image.at + 12) | 0x20);
    memset(image.at + 240, 'n', STOKER_FIELD_NAME_BYTES - 1);
    stk_shard_image_seal(&image);
    cr_assert_eq(stk_shard_header_load(&header, image.at, image.size, &what), STOKER_OK, "%s",
                 what);
    stk_shard_header_store(block, &header);
    cr_assert_arr_eq(block, image.at, sizeof(block));
    uint64_t free_at = STK_SHARD_BLOCK_BYTES;
    for (uint32_t i = 0; i < COUNT; i++) {
        struct stk_shard_entry entry;
        const uint8_t *from = stk_shard_image_entry(&image, i);
        cr_assert_eq(
            stk_shard_entry_load(&entry, from, &header, STK_SHARD_TEST_ROW, &free_at, &what),
            STOKER_OK, "%s", what);
        stk_shard_entry_store(block, &entry, header.label_dtype);
        cr_assert_arr_eq(block, from, STK_SHARD_ENTRY_BYTES);
    }
    cr_assert_eq(free_at, 4096 + COUNT * STK_SHARD_TEST_ROW);

    /* A record may begin where the one before ends, but not a byte before that. */
    struct stk_shard_entry touching;
    header.alignment = 1;
    free_at = 4096 + STK_SHARD_TEST_ROW;
    for (int overlap = 0; overlap <= 1; overlap++, free_at = 4096 + STK_SHARD_TEST_ROW + 1)
        cr_assert_eq(stk_shard_entry_load(&touching, stk_shard_image_entry(&image, 1), &header,
                                          STK_SHARD_TEST_ROW, &free_at, &what),
                     overlap == 0 ? STOKER_OK : STOKER_EFORMAT);
    cr_assert_eq(stk_shard_alignment(1), 8);
    cr_assert_eq(stk_shard_alignment(784), 64);
    cr_assert_eq(stk_shard_alignment(196608), 4096);
}
