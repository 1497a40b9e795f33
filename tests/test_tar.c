/* test_tar.c - tar archives: what writers make of them is read, and what is wrong or means harm is
 * told.
 *
 * Method: archives put together by hand, in memory. Every prefix and every flipped bit of a small
 * one must give an error or samples that are right or bad; no flipped header goes unseen.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stoker/stoker.h>
#include <string.h>

#include "datasets/tar_index.h"
#include "leaks.h"
#include "loader/base/fault.h"
#include "tar_files.h"

#define MEMORY_BYTES ((uint64_t)1 << 20)

static struct stk_archive archive; /* of the test that runs: each is a process of its own */

/* ---- opening -------------------------------------------------------------------- */

static int open_archive(stoker_dataset **out, const struct stk_archive *from,
                        const char *parameters, stoker_error *error)
{
    const stoker_dataset_options options = { .max_bytes = MEMORY_BYTES, .error = error };
    struct stk_memory_file file = stk_memory_file(from->at, from->size);
    char spec[200];
    (void)snprintf(spec, sizeof(spec), "tar:%s%s", file.path, parameters);
    const int rc = stoker_dataset_open(out, spec, &options);
    close(file.fd);
    return rc;
}

/* The index alone: it tells what was stepped over. */
static int index_archive(struct stk_tar_index *out, const struct stk_archive *from,
                         bool keep_truncated, stoker_error *error)
{
    const struct stk_tar_wish wish = { .bytes_max = MEMORY_BYTES,
                                       .entries_max = 1000,
                                       .keep_truncated = keep_truncated };
    struct stk_memory_file file = stk_memory_file(from->at, from->size);
    struct stk_tar_pattern pattern;
    stk_tar_pattern_plain(&pattern, file.path, strlen(file.path));
    const int rc = stk_tar_index_build(out, &pattern, &wish, error);
    close(file.fd);
    return rc;
}

static void check_row(const stoker_dataset *dataset, uint64_t sample, uint64_t id, int64_t label)
{
    uint8_t row[STK_FOLDER_ROW];
    uint8_t expected[STK_FOLDER_ROW];
    stoker_label found = { .index = 0 };
    stoker_error error = { .message = "" };
    stk_folder_row(id, expected);
    cr_assert_eq(stoker_dataset_read(dataset, sample, row, sizeof(row), &found, &error), STOKER_OK,
                 "%s", error.message);
    cr_assert_arr_eq(row, expected, sizeof(row));
    cr_assert_eq(found.index, label);
}

/* Open the archive: samples 0.. are ids 0.., with labels 10 + id. */
static void check_samples(const struct stk_archive *from, const char *parameters, uint64_t count)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(open_archive(&dataset, from, parameters, &error), STOKER_OK, "%s", error.message);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_eq(info->count, count);
    cr_assert_eq(info->label_dtype, STOKER_INT64);
    cr_assert_eq(info->class_count, 10 + count);
    for (uint64_t id = 0; id < count; id++)
        check_row(dataset, id, id, 10 + (int64_t)id);
    stoker_dataset_close(&dataset);
}

static void check_refused(const struct stk_archive *from, const char *parameters, int code,
                          const char *told)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    const int rc = open_archive(&dataset, from, parameters, &error);
    cr_assert_eq(rc, code, "%s: %s", stoker_error_name(rc), error.message);
    cr_assert_null(dataset);
    cr_assert_eq(error.code, rc);
    cr_assert_not_null(strstr(error.message, told), "\"%s\" is not in: %s", told, error.message);
}

static void needs_png(void)
{
#ifndef STOKER_HAVE_PNG
    cr_skip_test("built without libpng");
#endif
}

/* ---- what is right -------------------------------------------------------------- */

Test(tar, members_become_samples_by_key)
{
    needs_png();
    stk_archive_add(&archive, '5', "train/", NULL, 0);
    stk_archive_sample(&archive, "train/a", 0, 10);
    stk_archive_text(&archive, "train/b.cls", "11\n"); /* label first, and another field between */
    stk_archive_text(&archive, "train/b.json", "{\"cls\": 3}");
    stk_archive_image(&archive, "train/b.PNG", 1);
    stk_archive_image(&archive, "./train/c.v1/d.png", 2); /* the directory may hold dots */
    stk_archive_text(&archive, "train/a.txt", "gone by");
    stk_archive_text(&archive, "train/c.v1/d.CLS", "12 \r\n");
    stk_archive_text(&archive, "README", "no key");
    stk_archive_text(&archive, "._a.png", "no key");
    stk_archive_image(&archive, "train/a.mask.png", 7); /* another field, not the image */
    stk_archive_end(&archive);
    check_samples(&archive, "", 3);

    struct stk_tar_index index;
    cr_assert_eq(index_archive(&index, &archive, false, NULL), STOKER_OK);
    cr_assert_eq(index.counts.members, 12);
    cr_assert_eq(index.counts.directories, 1);
    cr_assert_eq(index.counts.other_files, 3);
    cr_assert_eq(index.counts.keyless, 2);
    stk_tar_index_free(&index);
    stk_test_check_leaks();
}

Test(tar, samples_are_extents_of_the_archive)
{
    needs_png();
    stk_archive_sample(&archive, "a", 0, 10);
    stk_archive_sample(&archive, "b", 1, 11);
    stk_archive_end(&archive);
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_archive(&dataset, &archive, "", NULL), STOKER_OK);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    stoker_sample sample;
    cr_assert_str_eq(stoker_dataset_name(dataset), "tar");
    cr_assert_eq(info->file_count, 1);
    cr_assert_not(info->dense);
    cr_assert(info->is_image);
    cr_assert_eq(info->rank, 3);
    cr_assert_eq(info->shape[0], 1);
    cr_assert_eq(info->shape[1], STK_FOLDER_ROW);
    cr_assert_eq(info->shape[2], 1);
    cr_assert_eq(stoker_dataset_locate(dataset, 1, &sample, NULL), STOKER_OK);
    cr_assert_eq(sample.extent.offset, 5 * 512);
    cr_assert_eq(sample.extent.file, 0);
    cr_assert_null(sample.extent.path);
    cr_assert_eq(sample.extent.bytes, info->encoded_bytes_max);
    cr_assert_arr_eq(archive.at + sample.extent.offset, "\x89PNG", 4);
    stoker_dataset_close(&dataset);
    stk_test_check_leaks();
}

static void add_long(struct stk_archive *to, const char *name, uint64_t id)
{
    char cut[101] = "";
    memcpy(cut, name, strnlen(name, 100));
    stk_archive_add(to, 'L', "././@LongLink", name, strlen(name) + 1);
    stk_archive_image(to, cut, id);
}

static void add_records(struct stk_archive *to, char type, const char *records)
{
    stk_archive_add(to, type, "./PaxHeaders/x", records, strlen(records));
}

/* Sizes and names in all the ways there are. */
Test(tar, every_dialect_is_read)
{
    needs_png();
    uint8_t block[STK_ARCHIVE_BLOCK];
    uint8_t row[STK_FOLDER_ROW];
    struct stk_bytes png = { 0 };
    char name[400];
    char records[600];

    /* 0: POSIX, with a prefix. */
    stk_folder_row(0, row);
    stk_put_png(&png, row, STK_FOLDER_ROW);
    stk_archive_header(block, '0', "a.png", png.size);
    memcpy(block + 345, "some/prefix", 11);
    stk_archive_block(&archive, block);
    stk_archive_put(&archive, png.at, png.size);
    stk_archive_pad(&archive);
    stk_archive_text(&archive, "some/prefix/a.cls", "10");

    /* 1: GNU, with a long name; whatever stands where POSIX has a prefix is none. */
    memset(name, 'n', 300);
    memcpy(name + 300, "/b.png", 7);
    add_long(&archive, name, 1);
    memcpy(name + 300, "/b.cls", 7);
    stk_archive_add(&archive, 'L', "././@LongLink", name, strlen(name) + 1);
    stk_archive_header(block, '0', "cut", 2);
    memcpy(block + 257, "ustar  ", 8);
    memcpy(block + 345, "time", 4);
    stk_archive_block(&archive, block);
    stk_archive_put(&archive, "11", 2);
    stk_archive_pad(&archive);

    /* 2: PAX, with a path and a size that the header lies about; X is what Solaris calls it. */
    png.size = 0;
    stk_folder_row(2, row);
    stk_put_png(&png, row, STK_FOLDER_ROW);
    (void)snprintf(records, sizeof(records), "14 path=c.png\n12 size=%03d\n16 comment=a=b=\n",
                   (int)png.size);
    add_records(&archive, 'g', "19 comment=for all\n");
    add_records(&archive, 'x', records);
    stk_archive_header(block, '0', "lie.png", 0);
    stk_archive_block(&archive, block);
    stk_archive_put(&archive, png.at, png.size);
    stk_archive_pad(&archive);
    add_records(&archive, 'X', "14 path=c.cls\n");
    stk_archive_text(&archive, "lie.cls", "12");

    /* 3: the oldest dialect: no magic, type 0; sizes in base 256, and in octal with spaces. */
    png.size = 0;
    stk_folder_row(3, row);
    stk_put_png(&png, row, STK_FOLDER_ROW);
    stk_archive_header(block, '\0', "d.png", 0);
    memset(block + 257, 0, 255);
    memset(block + 124, 0, 12);
    block[124] = 0x80;
    block[135] = (uint8_t)png.size;
    stk_archive_block(&archive, block);
    stk_archive_put(&archive, png.at, png.size);
    stk_archive_pad(&archive);
    stk_archive_header(block, '7', "d.cls", 2);
    memcpy(block + 124, "         2 \0", 12);
    stk_archive_block(&archive, block);
    stk_archive_put(&archive, "13", 2);
    stk_archive_pad(&archive);
    stk_archive_add(&archive, '\0', "directory.png/", NULL, 0); /* told by its name */
    stk_archive_end(&archive);
    check_samples(&archive, "", 4);
    stk_test_check_leaks();
}

Test(tar, what_follows_the_end_is_not_looked_at)
{
    needs_png();
    stk_archive_sample(&archive, "a", 0, 10);
    stk_archive_put(&archive, (uint8_t[512]){ 0 }, 512); /* one block of zeros will do */
    stk_archive_put(&archive, "garbage", 7);
    check_samples(&archive, "", 1);
    stk_test_check_leaks();
}

Test(tar, labels_may_be_missing_from_all)
{
    needs_png();
    stk_archive_image(&archive, "a.png", 0);
    stk_archive_image(&archive, "b.png", 1);
    stk_archive_text(&archive, "c.cls", "2"); /* a key without an image is no sample */
    stk_archive_end(&archive);
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_archive(&dataset, &archive, "", NULL), STOKER_OK);
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, 2);
    cr_assert_eq(stoker_dataset_get_info(dataset)->label_dtype, STOKER_DTYPE_NONE);
    cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, 0);
    check_row(dataset, 1, 1, 0);
    stoker_dataset_close(&dataset);
    check_refused(&archive, "?classes=3", STOKER_EINVAL, "classes");
    archive.size = 0;
    stk_archive_image(&archive, "a.png", 0);
    stk_archive_sample(&archive, "d", 2, 1);
    stk_archive_end(&archive);
    check_refused(&archive, "", STOKER_EMISMATCH, "a has none");
    stk_test_check_leaks();
}

/* ---- labels --------------------------------------------------------------------- */

Test(tar, a_label_is_a_decimal_number)
{
    needs_png();
    static const struct {
        const char *text, *parameters;
        int64_t label;
        uint32_t classes;
        int code;
    } rows[] = {
        { "0", "", 0, 1, 0 },
        { "007", "", 7, 8, 0 },
        { "-1", "", -1, 0, 0 },
        { "65535\n", "", 65535, 65536, 0 },
        { "65536", "", 65536, 0, 0 },
        { "9223372036854775807", "", INT64_MAX, 0, 0 },
        { "-9223372036854775808", "", INT64_MIN, 0, 0 },
        { "9", "?classes=10", 9, 10, 0 },
        { "10", "?classes=10", 0, 0, STOKER_EFORMAT },
        { "-1", "?classes=10", 0, 0, STOKER_EFORMAT },
        { "9223372036854775808", "", 0, 0, STOKER_EFORMAT },
        { "-9223372036854775809", "", 0, 0, STOKER_EFORMAT },
        { "", "", 0, 0, STOKER_EFORMAT },
        { "-", "", 0, 0, STOKER_EFORMAT },
        { "\n", "", 0, 0, STOKER_EFORMAT },
        { " 3", "", 0, 0, STOKER_EFORMAT },
        { "3.5", "", 0, 0, STOKER_EFORMAT },
        { "3 4", "", 0, 0, STOKER_EFORMAT },
        { "cat", "", 0, 0, STOKER_EFORMAT },
        { "000000000000000000000000000000001", "", 0, 0, STOKER_EFORMAT },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        archive.size = 0;
        stk_archive_image(&archive, "dir/a.png", 4);
        stk_archive_text(&archive, "dir/a.cls", rows[i].text);
        stk_archive_end(&archive);
        if (rows[i].code != 0) {
            check_refused(&archive, rows[i].parameters, rows[i].code, "dir/a.cls");
            continue;
        }
        stoker_dataset *dataset = NULL;
        cr_assert_eq(open_archive(&dataset, &archive, rows[i].parameters, NULL), STOKER_OK, "%s",
                     rows[i].text);
        cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, rows[i].classes);
        check_row(dataset, 0, 4, rows[i].label);
        stoker_dataset_close(&dataset);
    }
    stk_test_check_leaks();
}

/* ---- images --------------------------------------------------------------------- */

/* The first image that is one tells the shape; others are bad samples, those around them right. */
Test(tar, an_image_of_another_shape_is_a_bad_sample)
{
    needs_png();
    uint8_t row[STK_FOLDER_ROW];
    struct stk_bytes narrow = { 0 };
    stk_folder_row(9, row);
    stk_put_png(&narrow, row, 7);
    stk_archive_text(&archive, "0.png", "");
    stk_archive_text(&archive, "1.png", "no image");
    stk_archive_image(&archive, "2.png", 2);
    stk_archive_add(&archive, '0', "3.png", narrow.at, narrow.size);
    stk_archive_image(&archive, "4.jpg", 4); /* bytes tell the codec, not names */
    stk_archive_end(&archive);
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(open_archive(&dataset, &archive, "", &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, 5);
    check_row(dataset, 2, 2, 0);
    check_row(dataset, 4, 4, 0);
    static const int codes[] = { STOKER_ETRUNCATED, STOKER_EMAGIC, 0, STOKER_EFORMAT };
    for (uint64_t id = 0; id < 4; id++)
        if (codes[id] != 0)
            cr_assert_eq(stoker_dataset_read(dataset, id, row, sizeof(row), NULL, &error),
                         codes[id], "%d: %s", (int)id, error.message);
    stoker_dataset_close(&dataset);

    cr_assert_eq(open_archive(&dataset, &archive, "?height=1&width=7&channels=3", NULL), STOKER_OK);
    cr_assert_eq(stoker_dataset_row_bytes(dataset), 21);
    cr_assert_eq(stoker_dataset_read(dataset, 3, row, sizeof(row), NULL, NULL), STOKER_OK);
    cr_assert_lt(stoker_dataset_read(dataset, 2, row, sizeof(row), NULL, NULL), 0);
    stoker_dataset_close(&dataset);

    check_refused(&archive, "?max_file_bytes=0", STOKER_EINVAL, "max_file_bytes");
    cr_assert_eq(
        open_archive(&dataset, &archive, "?height=1&width=40&channels=1&max_file_bytes=80", &error),
        STOKER_OK);
    cr_assert_eq(stoker_dataset_read(dataset, 2, row, sizeof(row), NULL, &error), STOKER_ELIMIT);
    stoker_dataset_close(&dataset);
    stk_test_check_leaks();
}

/* ---- what means harm, or lies --------------------------------------------------- */

Test(tar, what_is_no_plain_file_is_counted_and_stepped_over)
{
    needs_png();
    static const char *const strays[] = { "/etc/a.png", "../b.png",      "x/../c.png",
                                          "x/..",       "./../../d.png", ".//../e.png" };
    uint8_t block[STK_ARCHIVE_BLOCK];
    stk_archive_sample(&archive, "a", 0, 10);
    for (size_t i = 0; i < sizeof(strays) / sizeof(strays[0]); i++)
        stk_archive_image(&archive, strays[i], 50);
    for (char type = '1'; type <= '6'; type++) {
        if (type == '5')
            continue;
        stk_archive_header(block, type, "link.png", 4096); /* has no bytes, whatever it says */
        memcpy(block + 157, "/etc/passwd", 12);
        stk_archive_block(&archive, block);
    }
    stk_archive_add(&archive, 'K', "././@LongLink", "/etc/passwd", 12);
    stk_archive_add(&archive, '2', "b.png", NULL, 0);
    stk_archive_add(&archive, 'V', "volume.png", NULL, 0);
    stk_archive_add(&archive, 'S', "sparse.png", "bytes", 5);
    add_records(&archive, 'x', "22 GNU.sparse.major=1\n");
    stk_archive_image(&archive, "sparse2.png", 51);
    stk_archive_sample(&archive, "b..c", 1, 11); /* dots, but no way out; key "b", field ".c.png" */
    stk_archive_sample(&archive, "d", 1, 11);
    stk_archive_end(&archive);
    check_samples(&archive, "", 2);

    struct stk_tar_index index;
    cr_assert_eq(index_archive(&index, &archive, false, NULL), STOKER_OK);
    cr_assert_eq(index.counts.strays, 6);
    cr_assert_eq(index.counts.links, 3);
    cr_assert_eq(index.counts.devices, 3);
    cr_assert_eq(index.counts.unknown, 3);
    cr_assert_eq(index.counts.other_files, 2);
    stk_tar_index_free(&index);

    archive.size = 0;
    stk_archive_add(&archive, '2', "b.png", NULL, 0);
    stk_archive_image(&archive, "/b.png", 0);
    stk_archive_end(&archive);
    check_refused(&archive, "", STOKER_EEMPTY, "1 links, 0 devices, 1 stray names");
    stk_test_check_leaks();
}

Test(tar, a_field_twice_is_an_error_that_names_both)
{
    needs_png();
    static const struct {
        const char *first, *second;
    } rows[] = { { "x/a.png", "x/a.png" }, { "x/a.png", "./x/a.PNG" }, { "x/a.png", "x/a.jpg" } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char told[64];
        archive.size = 0;
        stk_archive_image(&archive, rows[i].first, 0);
        stk_archive_image(&archive, "x/b.png", 1);
        stk_archive_image(&archive, rows[i].second, 2);
        stk_archive_end(&archive);
        check_refused(&archive, "", STOKER_EFORMAT, ".png is at byte 512");
        (void)snprintf(told, sizeof(told), "offset %d", 5 * 512);
        check_refused(&archive, "", STOKER_EFORMAT, told);
        check_refused(&archive, "", STOKER_EFORMAT, strstr(rows[i].second, "x/a."));
    }
    archive.size = 0;
    stk_archive_sample(&archive, "a", 0, 1);
    stk_archive_text(&archive, "a.cls", "1");
    stk_archive_end(&archive);
    check_refused(&archive, "", STOKER_EFORMAT, "another .cls is at byte 1536");
    stk_test_check_leaks();
}

Test(tar, sizes_and_records_that_lie_are_refused)
{
    static const struct {
        const char *what;
        char type;
        uint8_t size[12];
        const char *body;
        int code;
    } rows[] = {
        { "2^36 - 1", '0', "777777777777", "", STOKER_ETRUNCATED },
        { "2^63", '0', { 0x80, 0, 0, 0, 0x80 }, "", STOKER_EFORMAT },
        { "2^63 - 1",
          '0',
          { 0x80, 0, 0, 0, 0x7F, 255, 255, 255, 255, 255, 255, 255 },
          "",
          STOKER_ETRUNCATED },
        { "2^64", '0', { 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 }, "", STOKER_EFORMAT },
        { "-1",
          '0',
          { 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255 },
          "",
          STOKER_EFORMAT },
        { "base 256, 81", '0', { 0x81 }, "", STOKER_EFORMAT },
        { "an 8", '0', "00000000008", "", STOKER_EFORMAT },
        { "hexadecimal", '0', "0x000000001", "", STOKER_EFORMAT },
        { "a number, then more", '0', "0000001 1", "", STOKER_EFORMAT },
        { "minus", '0', "-0000000001", "", STOKER_EFORMAT },
        { "a long name of 4098", 'L', "00000010002", "", STOKER_ETRUNCATED },
        { "a long name of 2^33", 'L', "77777777777", "", STOKER_ETRUNCATED },
        { "records of 2^33", 'x', "77777777777", "", STOKER_ETRUNCATED },
        { "a record too long", 'x', "00000000015", "99 path=a.png\n", STOKER_EFORMAT },
        { "a record too short", 'x', "00000000016", "13 path=a.png\n", STOKER_EFORMAT },
        { "a record of nothing", 'x', "00000000004", "0 =\n", STOKER_EFORMAT },
        { "a record without =", 'x', "00000000010", "8 patha\n", STOKER_EFORMAT },
        { "no length", 'x', "00000000011", " path=abc", STOKER_EFORMAT },
        { "an empty path", 'x', "00000000011", "8 path=\n\n", STOKER_EFORMAT },
        { "size 2^63", 'x', "00000000034", "28 size=9223372036854775808\n", STOKER_EFORMAT },
        { "size abc", 'x', "00000000014", "12 size=abc\n", STOKER_EFORMAT },
        { "size minus", 'x', "00000000013", "11 size=-1\n", STOKER_EFORMAT },
        { "size nothing", 'x', "00000000010", "8 size=\n", STOKER_EFORMAT },
        { "size for all", 'g', "00000000012", "10 size=1\n", STOKER_ENOTSUP },
        { "path for all", 'g', "00000000012", "10 path=a\n", STOKER_ENOTSUP },
        { "size behind the end", 'x', "00000000016", "14 size=99999\n", STOKER_ETRUNCATED },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t block[STK_ARCHIVE_BLOCK];
        archive.size = 0;
        stk_archive_header(block, rows[i].type, "a.png", 0);
        memcpy(block + 124, rows[i].size, 12);
        stk_archive_block(&archive, block);
        stk_archive_put(&archive, rows[i].body, strlen(rows[i].body));
        stk_archive_pad(&archive);
        stk_archive_add(&archive, '0', "b.png", NULL, 0);
        stk_archive_end(&archive);
        stoker_dataset *dataset = NULL;
        stoker_error error = { .message = "" };
        const int rc = open_archive(&dataset, &archive, "", &error);
        cr_assert_eq(rc, rows[i].code, "%s: %s", rows[i].what, error.message);
        cr_assert_null(dataset);
        cr_assert_eq(error.code, rc);
    }
    stk_test_check_leaks();
}

Test(tar, names_are_bounded)
{
    needs_png();
    static char name[4200];
    static char records[70000];
    memset(name, 'n', sizeof(name));
    memcpy(name + 4092, ".png", 5);
    stk_archive_add(&archive, 'L', "long", name, 4097);
    stk_archive_image(&archive, "cut", 0);
    stk_archive_end(&archive);
    stoker_dataset *dataset = NULL;
    cr_assert_eq(open_archive(&dataset, &archive, "", NULL), STOKER_OK);
    check_row(dataset, 0, 0, 0);
    stoker_dataset_close(&dataset);

    archive.size = 0;
    memcpy(name + 4092, "n.png", 6);
    stk_archive_add(&archive, 'L', "long", name, 4098);
    stk_archive_image(&archive, "cut", 0);
    stk_archive_end(&archive);
    check_refused(&archive, "", STOKER_ELIMIT, "at most 4096");

    archive.size = 0;
    (void)snprintf(records, sizeof(records), "4108 path=%.4097s\n", name);
    stk_archive_add(&archive, 'x', "records", records, 4108);
    stk_archive_image(&archive, "cut", 0);
    stk_archive_end(&archive);
    check_refused(&archive, "", STOKER_ELIMIT, "at most 4096");

    archive.size = 0;
    stk_archive_add(&archive, 'x', "records", records, 65537);
    stk_archive_end(&archive);
    check_refused(&archive, "", STOKER_ELIMIT, "at most 65536");

    archive.size = 0;
    stk_archive_add(&archive, '0', "", NULL, 0);
    stk_archive_end(&archive);
    check_refused(&archive, "", STOKER_EFORMAT, "without a name");
    stk_test_check_leaks();
}

static void check_spec_refused(const char *spec, int code)
{
    stoker_error error = { .message = "" };
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_open(&dataset, spec, &(stoker_dataset_options){ .error = &error }),
                 code, "%s", error.message);
    cr_assert_eq(stk_fault_live_bytes(), 0);
}

/* A million headers of nothing, and sizes near 2^63 in a file that is huge, too, but empty. */
Test(tar, bombs_are_refused, .timeout = 60)
{
    enum { HEADERS = 1000000, AT_ONCE = 500 };
    static struct stk_archive many;
    struct stk_memory_file file = stk_memory_file("", 0);
    char spec[100];
    for (int i = 0; i < AT_ONCE; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "%d.cls", i);
        stk_archive_add(&many, '5', name, NULL, 0);
    }
    for (int i = 0; i < HEADERS / AT_ONCE / 10; i++) /* a tenth of them in pages, the rest a hole */
        cr_assert_eq(pwrite(file.fd, many.at, many.size, (off_t)((size_t)i * many.size)),
                     (ssize_t)many.size);
    cr_assert_eq(ftruncate(file.fd, (off_t)HEADERS * 512), 0);
    (void)snprintf(spec, sizeof(spec), "tar:%s?max_entries=5000", file.path);
    check_spec_refused(spec, STOKER_ELIMIT);
    (void)snprintf(spec, sizeof(spec), "tar:%s", file.path); /* bounded by the file, not by us */
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL), STOKER_EEMPTY);

    uint8_t block[STK_ARCHIVE_BLOCK];
    static const char types[] = "0LxgSV";
    for (const char *type = types; *type != '\0'; type++) {
        stk_archive_header(block, *type, "a.png", 0);
        memcpy(block + 124, "\x80\0\0\0\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12);
        stk_archive_sum(block);
        cr_assert_eq(pwrite(file.fd, block, sizeof(block), 0), (ssize_t)sizeof(block));
        check_spec_refused(spec, STOKER_ETRUNCATED);
        memcpy(block + 124, "\x80\0\0\0\x80\0\0\0\0\0\0", 12);
        stk_archive_sum(block);
        cr_assert_eq(pwrite(file.fd, block, sizeof(block), 0), (ssize_t)sizeof(block));
        check_spec_refused(spec, STOKER_EFORMAT);
        if (*type == '0' || *type == 'S' || *type == 'V')
            continue;
        stk_archive_header(block, *type, "a.png", (uint64_t)HEADERS * 256); /* it is that long */
        stk_archive_sum(block);
        cr_assert_eq(pwrite(file.fd, block, sizeof(block), 0), (ssize_t)sizeof(block));
        check_spec_refused(spec, STOKER_ELIMIT);
    }
    close(file.fd);
    stk_test_check_leaks();
}

Test(tar, the_index_keeps_to_its_memory)
{
    needs_png();
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    for (int i = 0; i < 200; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "%d.png", i);
        stk_archive_image(&archive, name, (uint64_t)i);
    }
    stk_archive_end(&archive);
    struct stk_memory_file file = stk_memory_file(archive.at, archive.size);
    char spec[64];
    (void)snprintf(spec, sizeof(spec), "tar:%s", file.path);
    int refused = 0;
    for (uint64_t max_bytes = 1; dataset == NULL; max_bytes *= 2) {
        const stoker_dataset_options options = { .max_bytes = max_bytes, .error = &error };
        const int rc = stoker_dataset_open(&dataset, spec, &options);
        cr_assert(rc == STOKER_OK || rc == STOKER_ELIMIT, "%s", error.message);
        refused += rc == STOKER_ELIMIT ? 1 : 0;
        cr_assert_leq(max_bytes, 1 << 17);
    }
    cr_assert_gt(refused, 8);
    for (uint64_t id = 0; id < 200; id++)
        check_row(dataset, id, id, 0);
    stoker_dataset_close(&dataset);
    close(file.fd);
    stk_test_check_leaks();
}

/* ---- damage --------------------------------------------------------------------- */

/* Two samples, 5 KiB. */
static void small_archive(void)
{
    archive.size = 0;
    stk_archive_sample(&archive, "a", 0, 10);
    stk_archive_sample(&archive, "b", 1, 11);
    stk_archive_end(&archive);
}

Test(tar, every_prefix_is_an_error_or_the_whole_samples_before_it, .timeout = 60)
{
    needs_png();
    small_archive();
    const size_t whole = archive.size;
    for (size_t size = 0; size < whole; size++) {
        archive.size = size;
        stoker_dataset *dataset = NULL;
        stoker_error error = { .message = "" };
        const bool ends = size >= 9 * 512; /* one block of zeros is there */
        const int rc = open_archive(&dataset, &archive, "", &error);
        cr_assert_eq(rc, ends ? STOKER_OK : STOKER_ETRUNCATED, "%zu: %s", size, error.message);
        stoker_dataset_close(&dataset);

        const int kept = open_archive(&dataset, &archive, "?truncated=keep", &error);
        const uint64_t samples = (size >= 3 * 512 + 2 ? 1U : 0U) + (size >= 7 * 512 + 2 ? 1U : 0U);
        cr_assert_eq(kept, samples == 0 ? STOKER_EEMPTY : STOKER_OK, "%zu: %s", size,
                     error.message);
        if (samples == 0)
            continue;
        cr_assert_eq(stoker_dataset_get_info(dataset)->count, samples, "%zu", size);
        for (uint64_t id = 0; id < samples; id++)
            check_row(dataset, id, id, 10 + (int64_t)id);
        stoker_dataset_close(&dataset);
    }
    stk_test_check_leaks();
}

Test(tar, a_kept_archive_tells_what_it_lost)
{
    needs_png();
    struct stk_tar_index index;
    small_archive();
    archive.size = 6 * 512; /* the label of b is gone */
    cr_assert_eq(index_archive(&index, &archive, true, NULL), STOKER_OK);
    cr_assert_eq(index.count, 1);
    cr_assert_eq(index.counts.cut, 1);
    cr_assert_eq(index.counts.cut_samples, 1);
    stk_tar_index_free(&index);
    small_archive();
    archive.at[4 * 512] ^= 1; /* damage is not kept */
    cr_assert_eq(index_archive(&index, &archive, true, NULL), STOKER_ECORRUPT);
    stk_test_check_leaks();
}

/* Where the first image lies about its size, all of them are bad; where it claims to have
 * colours, the other gray one becomes coloured. */
static void check_right_or_bad(const stoker_dataset *dataset, size_t bit)
{
    static uint8_t row[1 << 20];
    if (stoker_dataset_row_bytes(dataset) > sizeof(row))
        return;
    for (uint64_t id = 0; id < 2; id++) {
        uint8_t expected[STK_FOLDER_ROW];
        stk_folder_row(id, expected);
        if (stoker_dataset_read(dataset, id, row, sizeof(row), NULL, NULL) != STOKER_OK)
            continue;
        const size_t channels = stoker_dataset_row_bytes(dataset) / sizeof(expected);
        cr_assert_eq(stoker_dataset_row_bytes(dataset), channels * sizeof(expected));
        for (size_t at = 0; at < sizeof(expected); at++)
            cr_assert_eq(row[at * channels], expected[at], "bit %zu", bit);
    }
}

/* A flipped bit in a header is always seen, as is one in an image; one in a label is another
 * label, or none; one in the padding changes nothing. */
Test(tar, every_flipped_bit_is_seen_or_harmless, .timeout = 100)
{
    needs_png();
    small_archive();
    unsigned opened = 0;
    for (size_t bit = 0; bit < archive.size * 8; bit++) {
        const size_t block = bit / 8 / 512;
        const bool padding = block > 7 || ((block == 3 || block == 7) && bit / 8 % 512 >= 8);
        stoker_dataset *dataset = NULL;
        if (padding && bit % 61 != 0) /* all alike */
            continue;
        archive.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
        const int rc = open_archive(&dataset, &archive, "", NULL);
        archive.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
        cr_assert_eq(rc == STOKER_OK, dataset != NULL);
        if (block == 0 || block == 2 || block == 4 || block == 6) {
            /* The sum itself may be written in several ways: spaces in front, or zeros behind. */
            const size_t at = bit / 8 % 512;
            cr_assert(rc != STOKER_OK || (at >= 148 && at < 156), "bit %zu", bit);
        }
        if (dataset == NULL)
            continue;
        opened++;
        cr_assert_eq(stoker_dataset_get_info(dataset)->count, 2);
        check_right_or_bad(dataset, bit);
        stoker_dataset_close(&dataset);
    }
    cr_assert_gt(opened, 2 * 300 * 8); /* the padding of the images alone is more */
    stk_test_check_leaks();
}

Test(tar, what_is_no_archive_is_told)
{
    archive.size = 0;
    check_refused(&archive, "", STOKER_ETRUNCATED, "zeros");
    stk_archive_put(&archive, (uint8_t[1024]){ 0 }, 1024);
    check_refused(&archive, "", STOKER_EEMPTY, "0 members");
    memcpy(archive.at, "\x1F\x8B\x08", 3);
    check_refused(&archive, "", STOKER_EMAGIC, "gzip");
    memcpy(archive.at, "text", 4);
    check_refused(&archive, "", STOKER_EMAGIC, "tar");
    stk_test_check_leaks();
}

/* ---- many archives -------------------------------------------------------------- */

Test(tar, braces_stand_for_names)
{
    static const struct {
        const char *text, *first, *last;
        uint32_t count;
        int code;
    } rows[] = {
        { "a.tar", "a.tar", "a.tar", 1, 0 },
        { "x-{000..099}.tar", "x-000.tar", "x-099.tar", 100, 0 },
        { "x-{8..11}.tar", "x-8.tar", "x-11.tar", 4, 0 },
        { "{08..11}", "08", "11", 4, 0 },
        { "{8..0011}", "0008", "0011", 4, 0 },
        { "{0..0}", "0", "0", 1, 0 },
        { "{a,bc,d}/{1..2}.tar", "a/1.tar", "d/2.tar", 6, 0 },
        { "{a}", "a", "a", 1, 0 },
        { "{0..65535}", "0", "65535", 65536, 0 },
        { "{0..9}{0..9}{0..9}{0..9}", "0000", "9999", 10000, 0 },
        { "{0..65536}", NULL, NULL, 0, STOKER_ELIMIT },
        { "{0..999999999999999999}", NULL, NULL, 0, STOKER_ELIMIT },
        { "{0..255}{0..256}", NULL, NULL, 0, STOKER_ELIMIT },
        { "{a}{a}{a}{a}{a}", NULL, NULL, 0, STOKER_ELIMIT },
        { "{0..9999999999999999999}", NULL, NULL, 0, STOKER_ESPEC },
        { "{9..0}", NULL, NULL, 0, STOKER_ESPEC },
        { "{..9}", NULL, NULL, 0, STOKER_ESPEC },
        { "{0..}", NULL, NULL, 0, STOKER_ESPEC },
        { "{a..z}", NULL, NULL, 0, STOKER_ESPEC },
        { "{0...9}", NULL, NULL, 0, STOKER_ESPEC },
        { "{}", NULL, NULL, 0, STOKER_ESPEC },
        { "{a,}", NULL, NULL, 0, STOKER_ESPEC },
        { "{,a}", NULL, NULL, 0, STOKER_ESPEC },
        { "{a", NULL, NULL, 0, STOKER_ESPEC },
        { "a}", NULL, NULL, 0, STOKER_ESPEC },
        { "{a{b}}", NULL, NULL, 0, STOKER_ESPEC },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stk_tar_pattern pattern;
        stoker_error error = { .message = "" };
        char name[32];
        const int rc = stk_tar_pattern_parse(&pattern, rows[i].text, strlen(rows[i].text), &error);
        cr_assert_eq(rc, rows[i].code, "%s: %s", rows[i].text, error.message);
        if (rc != STOKER_OK)
            continue;
        cr_assert_eq(pattern.name_count, rows[i].count, "%s", rows[i].text);
        cr_assert_gt(stk_tar_pattern_name(&pattern, 0, name, sizeof(name)), 0);
        cr_assert_str_eq(name, rows[i].first);
        const size_t bytes = stk_tar_pattern_name(&pattern, rows[i].count - 1, name, sizeof(name));
        cr_assert_str_eq(name, rows[i].last);
        cr_assert_eq(bytes, strlen(name));
        cr_assert_eq(stk_tar_pattern_name(&pattern, rows[i].count - 1, name, bytes + 1), bytes);
        for (size_t few = 0; few <= bytes; few++)
            cr_assert_eq(stk_tar_pattern_name(&pattern, rows[i].count - 1, name, few), 0);
    }
    stk_test_check_leaks();
}

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

/* EACH samples, labelled with the number of their archive if there are so many classes. */
static void write_labelled(const struct stk_directory *directory, int file, int classes)
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

Test(tar, several_archives_are_one_set_by_every_reader, .timeout = 60)
{
    needs_png();
    static const stoker_reader *const readers[] = { &stoker_reader_pread, NULL };
    static struct stk_run runs[2];
    const struct stk_directory directory = stk_directory_make();
    stoker_error error = { .message = "" };
    stoker_dataset *dataset = NULL;
    char spec[600];
    write_archives(&directory);
    (void)snprintf(spec, sizeof(spec), "tar:%s/t-{00..02}.tar", directory.path);
    cr_assert_eq(stoker_dataset_open(&dataset, spec, &(stoker_dataset_options){ .error = &error }),
                 STOKER_OK, "%s", error.message);
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, ARCHIVES * EACH);
    cr_assert_eq(stoker_dataset_get_info(dataset)->file_count, ARCHIVES);
    for (uint64_t id = 0; id < ARCHIVES * EACH; id++)
        check_row(dataset, id, id, (int64_t)id % 7);
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
    cr_assert_eq(stoker_dataset_open(&dataset, spec, &(stoker_dataset_options){ .error = &error }),
                 STOKER_ENOENT);
    cr_assert_not_null(strstr(error.message, "t-03.tar"));
    stk_directory_remove(&directory);
    stk_test_check_leaks();
}

/* Archives are indexed side by side. What holds for all of them together is counted in their
 * order all the same: which archive has a member too many, or the first label that others lack. */
Test(tar, what_holds_for_all_archives_is_told_as_if_one_came_after_the_other)
{
    const struct stk_directory directory = stk_directory_make();
    const struct stk_tar_wish wishes[] = {
        { .bytes_max = MEMORY_BYTES, .entries_max = 2 * 20 * EACH },
        { .bytes_max = MEMORY_BYTES, .entries_max = 2 * 13 * EACH + 5 },
        { .bytes_max = 4000, .entries_max = 1000 },
        { .bytes_max = MEMORY_BYTES, .entries_max = 1000, .class_count = 15 },
    };
    static const int codes[] = { STOKER_OK, STOKER_ELIMIT, STOKER_ELIMIT, STOKER_EFORMAT };
    struct stk_tar_pattern pattern;
    struct stk_tar_index index;
    char text[600];
    for (int file = 0; file < 20; file++)
        write_labelled(&directory, file, 20);
    (void)snprintf(text, sizeof(text), "%s/t-{00..19}.tar", directory.path);
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_tar_pattern_parse(&pattern, text, strlen(text), &error), STOKER_OK);
    for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
        char first[sizeof(error.message)] = "";
        for (int round = 0; round < 20; round++) {
            cr_assert_eq(stk_tar_index_build(&index, &pattern, &wishes[i], &error), codes[i],
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
    write_labelled(&directory, 6, 0);
    write_labelled(&directory, 11, 0);
    for (int round = 0; round < 20; round++) {
        cr_assert_eq(stk_tar_index_build(&index, &pattern, &wishes[0], &error), STOKER_EMISMATCH);
        cr_assert_not_null(strstr(error.message, "t-06.tar"), "%s", error.message);
    }
    stk_directory_remove(&directory);
    stk_test_check_leaks();
}

Test(tar, a_plain_path_is_recognised_whatever_its_name)
{
    needs_png();
    const struct stk_directory directory = stk_directory_make();
    char path[512];
    stoker_dataset *dataset = NULL;
    small_archive();
    static const char *const names[] = { "a.tar", "{0..9}", "what?height=1" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char spec[600];
        stk_file_write(&directory, names[i], archive.at, archive.size);
        cr_assert_eq(stoker_dataset_open(&dataset, stk_path_in(path, &directory, names[i]), NULL),
                     STOKER_OK);
        cr_assert_str_eq(stoker_dataset_name(dataset), "tar");
        stoker_dataset_close(&dataset);
        (void)snprintf(spec, sizeof(spec), "tar:%s?classes=20&width=40", path);
        cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL), STOKER_OK);
        cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, 20);
        stoker_dataset_close(&dataset);
    }
    stk_directory_remove(&directory);
    stk_test_check_leaks();
}

Test(tar, the_spec_is_read_as_written)
{
    static const struct {
        const char *spec, *split;
        int code;
    } rows[] = {
        { "tar:", NULL, STOKER_ESPEC },
        { "tar:?classes=3", NULL, STOKER_ESPEC },
        { "tar:a?split=x", NULL, STOKER_ESPEC },
        { "tar:a?truncated=maybe", NULL, STOKER_ESPEC },
        { "tar:a?classes=65537", NULL, STOKER_EINVAL },
        { "tar:a?channels=5", NULL, STOKER_EINVAL },
        { "tar:{a?channels=3", NULL, STOKER_ESPEC },
        { "tar:a", "train", STOKER_EINVAL },
        { "tar:missing-{0..3}", NULL, STOKER_ENOENT },
        { "tar:/", NULL, STOKER_EISDIR },
        { "tar:/dev/zero", NULL, STOKER_ENOTSUP },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        stoker_error error = { 0 };
        stoker_dataset *dataset = NULL;
        const stoker_dataset_options options = { .split = rows[i].split, .error = &error };
        cr_assert_eq(stoker_dataset_open(&dataset, rows[i].spec, &options), rows[i].code, "%s: %s",
                     rows[i].spec, error.message);
        cr_assert_eq(error.code, rows[i].code);
    }
    stk_test_check_leaks();
}
