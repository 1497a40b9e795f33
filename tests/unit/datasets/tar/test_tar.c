/* test_tar.c - tar archives: what writers make of them is read right.
 *
 * Method: archives put together by hand, in memory.
 */
#include "support/leaks.h"
#include "support/sets/read_row.h"
#include "support/sets/refused_specs.h"
#include "support/sets/tar_reading.h"

static struct stk_archive archive; /* one per test: each runs in a process of its own */

/* ---- what is right -------------------------------------------------------------- */

CleanTest(tar, members_become_samples_by_key)
{
    stk_archive_needs_png();
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
    stk_archive_check_samples(&archive, "", 3);

    struct stk_tar_index index;
    cr_assert_eq(stk_archive_index(&index, &archive, false, NULL), STOKER_OK);
    cr_assert_eq(index.counts.members, 12);
    cr_assert_eq(index.counts.directories, 1);
    cr_assert_eq(index.counts.other_files, 3);
    cr_assert_eq(index.counts.keyless, 2);
    stk_tar_index_free(&index);
}

CleanTest(tar, samples_are_extents_of_the_archive)
{
    stk_archive_needs_png();
    stk_archive_sample(&archive, "a", 0, 10);
    stk_archive_sample(&archive, "b", 1, 11);
    stk_archive_end(&archive);
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stk_archive_open(&dataset, &archive, "", NULL), STOKER_OK);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    stoker_part sample;
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
}

static void add_long(struct stk_archive *to, const char *name, uint64_t id)
{
    char cut[101] = "";
    memcpy(cut, name, strnlen(name, 100));
    stk_archive_add(to, 'L', "././@LongLink", name, strlen(name) + 1);
    stk_archive_image(to, cut, id);
}

/* The PNG file of sample `id`. */
static void put_image(struct stk_bytes *png, uint64_t id)
{
    uint8_t row[STK_FOLDER_ROW];
    png->size = 0;
    stk_folder_row(id, row);
    stk_put_png(png, row, STK_FOLDER_ROW);
}

/* A member whose header the test has written. */
static void add_block(uint8_t block[STK_ARCHIVE_BLOCK], const void *bytes, size_t size)
{
    stk_archive_block(&archive, block);
    stk_archive_put(&archive, bytes, size);
    stk_archive_pad(&archive);
}

/* Sizes and names in all the ways there are. */
CleanTest(tar, every_dialect_is_read)
{
    stk_archive_needs_png();
    uint8_t block[STK_ARCHIVE_BLOCK];
    struct stk_bytes png = { 0 };
    char name[400];
    char records[600];

    /* 0: POSIX, with a prefix. */
    put_image(&png, 0);
    stk_archive_header(block, '0', "a.png", png.size);
    memcpy(block + 345, "some/prefix", 11);
    add_block(block, png.at, png.size);
    stk_archive_text(&archive, "some/prefix/a.cls", "10");

    /* 1: GNU, with a long name; the bytes in place of the POSIX prefix are not one. */
    memset(name, 'n', 300);
    memcpy(name + 300, "/b.png", 7);
    add_long(&archive, name, 1);
    memcpy(name + 300, "/b.cls", 7);
    stk_archive_add(&archive, 'L', "././@LongLink", name, strlen(name) + 1);
    stk_archive_header(block, '0', "cut", 2);
    memcpy(block + 257, "ustar  ", 8);
    memcpy(block + 345, "time", 4);
    add_block(block, "11", 2);

    /* 2: PAX, with a path and a size that the header lies about; X is what Solaris calls it. */
    put_image(&png, 2);
    (void)snprintf(records, sizeof(records), "14 path=c.png\n12 size=%03d\n16 comment=a=b=\n",
                   (int)png.size);
    stk_archive_records(&archive, 'g', "19 comment=for all\n");
    stk_archive_records(&archive, 'x', records);
    stk_archive_header(block, '0', "lie.png", 0);
    add_block(block, png.at, png.size);
    stk_archive_records(&archive, 'X', "14 path=c.cls\n");
    stk_archive_text(&archive, "lie.cls", "12");

    /* 3: the oldest dialect: no magic, type 0; sizes in base 256, and in octal with spaces. */
    put_image(&png, 3);
    stk_archive_header(block, '\0', "d.png", 0);
    memset(block + 257, 0, 255);
    memset(block + 124, 0, 12);
    block[124] = 0x80;
    block[135] = (uint8_t)png.size;
    add_block(block, png.at, png.size);
    stk_archive_header(block, '7', "d.cls", 2);
    memcpy(block + 124, "         2 \0", 12);
    add_block(block, "13", 2);
    stk_archive_add(&archive, '\0', "directory.png/", NULL, 0); /* recognized by its name */

    /* 4: GNU, with a short name and times in place of the prefix. */
    put_image(&png, 4);
    stk_archive_header(block, '0', "e.png", png.size);
    memcpy(block + 257, "ustar  ", 8);
    memcpy(block + 345, "14000000000", 11);
    add_block(block, png.at, png.size);
    stk_archive_text(&archive, "e.cls", "14");
    stk_archive_end(&archive);
    stk_archive_check_samples(&archive, "", 5);
}

/* Archives put together by cat, each with keys of its own; zeros up to any block size between and
 * behind them. */
CleanTest(tar, archives_may_follow_each_other_in_a_file)
{
    stk_archive_needs_png();
    static const size_t zeros[] = { 512, 1024, 10240, 200000 / 512 * 512 };
    static const uint8_t nothing[512];
    for (size_t i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++) {
        archive.size = 0;
        stk_archive_sample(&archive, "a", 0, 10);
        stk_archive_sample(&archive, "b", 1, 11);
        for (size_t at = 0; at < zeros[i]; at += 512)
            stk_archive_put(&archive, nothing, 512);
        stk_archive_sample(&archive, "a", 2, 12);
        stk_archive_sample(&archive, "c", 3, 13);
        stk_archive_put(&archive, nothing, 512);
        stk_archive_check_samples(&archive, "", 4);
        for (size_t at = 0; at < zeros[i]; at += 512)
            stk_archive_put(&archive, nothing, 512);
        stk_archive_put(&archive, nothing, 7);
        stk_archive_check_samples(&archive, "", 4);
    }
    archive.size = 0;
    stk_archive_sample(&archive, "a", 0, 10);
    stk_archive_end(&archive);
    stk_archive_sample(&archive, "b", 1, 11);
    archive.size -= 512; /* within a member: the second archive is cut */
    stk_archive_check_refused(&archive, "", STOKER_ETRUNCATED, "promises");
    stk_archive_check_samples(&archive, "?truncated=keep", 1);
}

CleanTest(tar, bytes_behind_the_end_that_are_no_archive_are_refused)
{
    stk_archive_needs_png();
    stk_archive_sample(&archive, "a", 0, 10);
    stk_archive_put(&archive, (uint8_t[512]){ 0 }, 512); /* one block of zeros will do */
    stk_archive_check_samples(&archive, "", 1);
    const size_t end = archive.size;
    stk_archive_put(&archive, "garbage", 7);
    char words[64];
    (void)snprintf(words, sizeof(words), "offset %zu: tar: the archive ends at byte %zu", end,
                   end - 512);
    stk_archive_check_refused(&archive, "", STOKER_EFORMAT, words);
    stk_archive_put(&archive, (uint8_t[1024]){ 0 }, 1024);
    stk_archive_check_refused(&archive, "", STOKER_EFORMAT, words);
    archive.size = end + 700;
    memset(archive.at + end, 0, 700);
    archive.at[end + 699] = 1;
    (void)snprintf(words, sizeof(words), "offset %zu: ", end + 699);
    stk_archive_check_refused(&archive, "", STOKER_EFORMAT, words);
}

CleanTest(tar, labels_may_be_missing_from_all)
{
    stk_archive_needs_png();
    stk_archive_image(&archive, "a.png", 0);
    stk_archive_image(&archive, "b.png", 1);
    stk_archive_text(&archive, "c.cls", "2"); /* a key without an image is no sample */
    stk_archive_end(&archive);
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stk_archive_open(&dataset, &archive, "", NULL), STOKER_OK);
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, 2);
    cr_assert_eq(stoker_dataset_get_info(dataset)->label_dtype, STOKER_DTYPE_NONE);
    cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, 0);
    stk_archive_check_row(dataset, 1, 1, 0);
    stoker_dataset_close(&dataset);
    stk_archive_check_refused(&archive, "?classes=3", STOKER_EINVAL, "classes");
    archive.size = 0;
    stk_archive_image(&archive, "a.png", 0);
    stk_archive_sample(&archive, "d", 2, 1);
    stk_archive_end(&archive);
    stk_archive_check_refused(&archive, "", STOKER_EMISMATCH, "a has none");
}

/* ---- labels --------------------------------------------------------------------- */

CleanTest(tar, a_label_is_a_decimal_number)
{
    stk_archive_needs_png();
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
            stk_archive_check_refused(&archive, rows[i].parameters, rows[i].code, "dir/a.cls");
            continue;
        }
        stoker_dataset *dataset = NULL;
        cr_assert_eq(stk_archive_open(&dataset, &archive, rows[i].parameters, NULL), STOKER_OK,
                     "%s", rows[i].text);
        cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, rows[i].classes);
        stk_archive_check_row(dataset, 0, 4, rows[i].label);
        stoker_dataset_close(&dataset);
    }
}

/* ---- images --------------------------------------------------------------------- */

/* The first readable image gives the shape; others of another shape are bad samples, and their
 * neighbors are right. */
CleanTest(tar, an_image_of_another_shape_is_a_bad_sample)
{
    stk_archive_needs_png();
    uint8_t row[STK_FOLDER_ROW];
    struct stk_bytes narrow = { 0 };
    stk_folder_row(9, row);
    stk_put_png(&narrow, row, 7);
    stk_archive_text(&archive, "0.png", "");
    stk_archive_text(&archive, "1.png", "no image");
    stk_archive_image(&archive, "2.png", 2);
    stk_archive_add(&archive, '0', "3.png", narrow.at, narrow.size);
    stk_archive_image(&archive, "4.jpg", 4); /* bytes choose the codec, not names */
    stk_archive_end(&archive);
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_archive_open(&dataset, &archive, "", &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(stoker_dataset_get_info(dataset)->count, 5);
    cr_assert(stoker_dataset_get_info(dataset)->sizes_differ);
    cr_assert_str_eq(
        stoker_dataset_get_info(dataset)->description,
        "3 of 5 image headers read: several sizes (sample 2 1x40, sample 3 1x7), gray");
    stk_archive_check_row(dataset, 2, 2, 0);
    stk_archive_check_row(dataset, 4, 4, 0);
    static const int codes[] = { STOKER_ETRUNCATED, STOKER_EMAGIC, 0, STOKER_EFORMAT };
    for (uint64_t id = 0; id < 4; id++)
        if (codes[id] != 0)
            cr_assert_eq(stk_read_row(dataset, id, row, sizeof(row), NULL, &error), codes[id],
                         "%d: %s", (int)id, error.message);
    stoker_dataset_close(&dataset);

    cr_assert_eq(stk_archive_open(&dataset, &archive, "?height=1&width=7&channels=3", NULL),
                 STOKER_OK);
    cr_assert_eq(stoker_dataset_field_bytes(dataset, 0), 21);
    cr_assert_eq(stk_read_row(dataset, 3, row, sizeof(row), NULL, NULL), STOKER_OK);
    cr_assert_lt(stk_read_row(dataset, 2, row, sizeof(row), NULL, NULL), 0);
    stoker_dataset_close(&dataset);

    stk_archive_check_refused(&archive, "?max_file_bytes=0", STOKER_EINVAL, "max_file_bytes");
    cr_assert_eq(stk_archive_open(&dataset, &archive,
                                  "?height=1&width=40&channels=1&max_file_bytes=80", &error),
                 STOKER_OK);
    cr_assert_eq(stk_read_row(dataset, 2, row, sizeof(row), NULL, &error), STOKER_ELIMIT);
    stoker_dataset_close(&dataset);
}

/* The same rule as for folders. */
CleanTest(tar, rows_are_gray_only_if_every_image_is)
{
    stk_archive_needs_png();
    uint8_t row[3 * STK_FOLDER_ROW];
    struct stk_bytes color = { 0 };
    stoker_dataset *dataset = NULL;
    stk_folder_row(9, row);
    stk_put_png_rgb(&color, row, STK_FOLDER_ROW);
    for (int i = 0; i < 1500; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "%04d.png", i);
        if (i == 2) /* it is not among the thousand that are looked at */
            stk_archive_add(&archive, '0', name, color.at, color.size);
        else
            stk_archive_image(&archive, name, (uint64_t)i);
    }
    stk_archive_end(&archive);
    static const struct {
        const char *parameters;
        size_t row_bytes;
        int code;
    } rows[] = { { "", STK_FOLDER_ROW, STOKER_EFORMAT },
                 { "?channels=1", STK_FOLDER_ROW, STOKER_OK },
                 { "?channels=3", 3 * STK_FOLDER_ROW, STOKER_OK } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_assert_eq(stk_archive_open(&dataset, &archive, rows[i].parameters, NULL), STOKER_OK);
        cr_assert_eq(stoker_dataset_field_bytes(dataset, 0), rows[i].row_bytes);
        cr_assert_eq(stk_read_row(dataset, 2, row, sizeof(row), NULL, NULL), rows[i].code);
        stoker_dataset_close(&dataset);
    }
    archive.size = 0;
    stk_archive_image(&archive, "a.png", 0);
    stk_archive_add(&archive, '0', "b.png", color.at, color.size);
    stk_archive_end(&archive);
    cr_assert_eq(stk_archive_open(&dataset, &archive, "", NULL), STOKER_OK);
    cr_assert_eq(stoker_dataset_field_bytes(dataset, 0), 3 * STK_FOLDER_ROW);
    stoker_dataset_close(&dataset);
}

/* ---- the spec --------------------------------------------------------------------- */

CleanTest(tar, a_plain_path_is_recognized_by_content)
{
    stk_archive_needs_png();
    const struct stk_directory directory = stk_directory_make();
    char path[512];
    stoker_dataset *dataset = NULL;
    stk_archive_sample(&archive, "a", 0, 10);
    stk_archive_sample(&archive, "b", 1, 11);
    stk_archive_end(&archive);
    static const char *const names[] = { "a.tar", "{0..9}", "what?height=1" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char spec[600];
        stk_file_write(&directory, names[i], archive.at, archive.size);
        cr_assert_eq(
            stoker_dataset_open(&dataset, stk_path_in(path, &directory, names[i]), NULL, NULL),
            STOKER_OK);
        cr_assert_str_eq(stoker_dataset_name(dataset), "tar");
        stoker_dataset_close(&dataset);
        (void)snprintf(spec, sizeof(spec), "tar:%s?classes=20&width=40", path);
        cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, NULL), STOKER_OK);
        cr_assert_eq(stoker_dataset_get_info(dataset)->class_count, 20);
        stoker_dataset_close(&dataset);
    }
    stk_directory_remove(&directory);
}

CleanTest(tar, the_spec_is_read_as_written)
{
    static const struct stk_refused_spec rows[] = {
        { "tar:", NULL, STOKER_ESPEC, NULL },
        { "tar:?classes=3", NULL, STOKER_ESPEC, NULL },
        { "tar:a?split=x", NULL, STOKER_EINVAL, "has no splits" },
        { "tar:a?truncated=maybe", NULL, STOKER_ESPEC, NULL },
        { "tar:a?classes=65537", NULL, STOKER_EINVAL, NULL },
        { "tar:a?channels=5", NULL, STOKER_EINVAL, NULL },
        { "tar:{a?channels=3", NULL, STOKER_ESPEC, NULL },
        { "tar:a", "train", STOKER_EINVAL, NULL },
        { "tar:missing-{0..3}", NULL, STOKER_ENOENT, NULL },
        { "tar:/", NULL, STOKER_EISDIR, NULL },
        { "tar:/dev/zero", NULL, STOKER_ENOTSUP, NULL },
    };
    stk_expect_refused(rows, sizeof(rows) / sizeof(rows[0]));
}
