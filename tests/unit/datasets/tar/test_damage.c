/* test_damage.c - tar archives that lie, mean harm or are broken are reported as such.
 *
 * Every prefix and every flipped bit of a small archive must give an error or samples that are
 * right or bad; no flipped header goes unseen.
 */
#include "loader/base/fault.h"
#include "support/leaks.h"
#include "support/sets/read_row.h"
#include "support/sets/tar_reading.h"

static struct stk_archive archive; /* one per test: each runs in a process of its own */

/* ---- what means harm, or lies --------------------------------------------------- */

CleanTest(tar_damage, what_is_no_plain_file_is_counted_and_stepped_over)
{
    stk_archive_needs_png();
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
    stk_archive_records(&archive, 'x', "22 GNU.sparse.major=1\n");
    stk_archive_image(&archive, "sparse2.png", 51);
    stk_archive_sample(&archive, "b..c", 1, 11); /* dots, but no way out; key "b", field ".c.png" */
    stk_archive_sample(&archive, "d", 1, 11);
    stk_archive_end(&archive);
    stk_archive_check_samples(&archive, "", 2);

    struct stk_tar_index index;
    cr_assert_eq(stk_archive_index(&index, &archive, false, NULL), STOKER_OK);
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
    stk_archive_check_refused(&archive, "", STOKER_EEMPTY, "1 links, 0 devices, 1 stray names");
}

CleanTest(tar_damage, a_field_twice_is_an_error_that_names_both)
{
    stk_archive_needs_png();
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
        stk_archive_check_refused(&archive, "", STOKER_EFORMAT, ".png is at byte 512");
        (void)snprintf(told, sizeof(told), "offset %d", 5 * 512);
        stk_archive_check_refused(&archive, "", STOKER_EFORMAT, told);
        stk_archive_check_refused(&archive, "", STOKER_EFORMAT, strstr(rows[i].second, "x/a."));
    }
    archive.size = 0;
    stk_archive_sample(&archive, "a", 0, 1);
    stk_archive_text(&archive, "a.cls", "1");
    stk_archive_end(&archive);
    stk_archive_check_refused(&archive, "", STOKER_EFORMAT, "another .cls is at byte 1536");
}

CleanTest(tar_damage, sizes_and_records_that_lie_are_refused)
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
        const int rc = stk_archive_open(&dataset, &archive, "", &error);
        cr_assert_eq(rc, rows[i].code, "%s: %s", rows[i].what, error.message);
        cr_assert_null(dataset);
        cr_assert_eq(error.code, rc);
    }
}

CleanTest(tar_damage, names_are_bounded)
{
    stk_archive_needs_png();
    static char name[4200];
    static char records[70000];
    memset(name, 'n', sizeof(name));
    memcpy(name + 4092, ".png", 5);
    stk_archive_add(&archive, 'L', "long", name, 4097);
    stk_archive_image(&archive, "cut", 0);
    stk_archive_end(&archive);
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stk_archive_open(&dataset, &archive, "", NULL), STOKER_OK);
    stk_archive_check_row(dataset, 0, 0, 0);
    stoker_dataset_close(&dataset);

    archive.size = 0;
    memcpy(name + 4092, "n.png", 6);
    stk_archive_add(&archive, 'L', "long", name, 4098);
    stk_archive_image(&archive, "cut", 0);
    stk_archive_end(&archive);
    stk_archive_check_refused(&archive, "", STOKER_ELIMIT, "at most 4096");

    archive.size = 0;
    (void)snprintf(records, sizeof(records), "4108 path=%.4097s\n", name);
    stk_archive_add(&archive, 'x', "records", records, 4108);
    stk_archive_image(&archive, "cut", 0);
    stk_archive_end(&archive);
    stk_archive_check_refused(&archive, "", STOKER_ELIMIT, "at most 4096");

    archive.size = 0;
    stk_archive_add(&archive, 'x', "records", records, 65537);
    stk_archive_end(&archive);
    stk_archive_check_refused(&archive, "", STOKER_ELIMIT, "at most 65536");

    archive.size = 0;
    stk_archive_add(&archive, '0', "", NULL, 0);
    stk_archive_end(&archive);
    stk_archive_check_refused(&archive, "", STOKER_EFORMAT, "without a name");
}

static void check_spec_refused(const char *spec, int code)
{
    stoker_error error = { .message = "" };
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, &error), code, "%s", error.message);
    cr_assert_eq(stk_fault_live_bytes(), 0);
}

/* A million headers of nothing, and sizes near 2^63 in a file that is huge, too, but empty. */
CleanTest(tar_damage, bombs_are_refused)
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
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, NULL), STOKER_EEMPTY);

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
}

CleanTest(tar_damage, the_index_keeps_to_its_memory)
{
    stk_archive_needs_png();
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
        const stoker_dataset_options options = { .struct_size = sizeof(stoker_dataset_options),
                                                 .max_bytes = max_bytes };
        const int rc = stoker_dataset_open(&dataset, spec, &options, &error);
        cr_assert(rc == STOKER_OK || rc == STOKER_ELIMIT, "%s", error.message);
        refused += rc == STOKER_ELIMIT ? 1 : 0;
        cr_assert_leq(max_bytes, 1 << 17);
    }
    cr_assert_gt(refused, 8);
    for (uint64_t id = 0; id < 200; id++)
        stk_archive_check_row(dataset, id, id, 0);
    stoker_dataset_close(&dataset);
    close(file.fd);
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

CleanTest(tar_damage, every_prefix_is_an_error_or_the_whole_samples_before_it)
{
    stk_archive_needs_png();
    small_archive();
    const size_t whole = archive.size;
    for (size_t size = 0; size < whole; size++) {
        archive.size = size;
        stoker_dataset *dataset = NULL;
        stoker_error error = { .message = "" };
        const bool ends = size >= 9 * 512; /* one block of zeros is there */
        const int rc = stk_archive_open(&dataset, &archive, "", &error);
        cr_assert_eq(rc, ends ? STOKER_OK : STOKER_ETRUNCATED, "%zu: %s", size, error.message);
        stoker_dataset_close(&dataset);

        const int kept = stk_archive_open(&dataset, &archive, "?truncated=keep", &error);
        const uint64_t samples = (size >= 3 * 512 + 2 ? 1U : 0U) + (size >= 7 * 512 + 2 ? 1U : 0U);
        cr_assert_eq(kept, samples == 0 ? STOKER_EEMPTY : STOKER_OK, "%zu: %s", size,
                     error.message);
        if (samples == 0)
            continue;
        cr_assert_eq(stoker_dataset_get_info(dataset)->count, samples, "%zu", size);
        for (uint64_t id = 0; id < samples; id++)
            stk_archive_check_row(dataset, id, id, 10 + (int64_t)id);
        stoker_dataset_close(&dataset);
    }
}

CleanTest(tar_damage, a_kept_archive_reports_what_it_lost)
{
    stk_archive_needs_png();
    struct stk_tar_index index;
    small_archive();
    archive.size = 6 * 512; /* the label of b is gone */
    cr_assert_eq(stk_archive_index(&index, &archive, true, NULL), STOKER_OK);
    cr_assert_eq(index.count, 1);
    cr_assert_eq(index.counts.cut, 1);
    cr_assert_eq(index.counts.cut_samples, 1);
    stk_tar_index_free(&index);
    archive.size = 0; /* the key that lost a member is not the one that began last */
    stk_archive_image(&archive, "a.png", 1);
    stk_archive_sample(&archive, "b", 0, 10);
    stk_archive_text(&archive, "b.txt", "b");
    stk_archive_text(&archive, "a.txt", "a");
    stk_archive_check_samples(&archive, "?fields=image,txt,cls&truncated=keep", 1);
    small_archive();
    archive.at[4 * 512] ^= 1; /* damage is not kept */
    cr_assert_eq(stk_archive_index(&index, &archive, true, NULL), STOKER_ECORRUPT);
}

/* Where the first image lies about its size, all of them are bad; where it claims to have
 * colors, the other gray one becomes colored. */
static void check_right_or_bad(const stoker_dataset *dataset, size_t bit)
{
    static uint8_t row[1 << 20];
    if (stoker_dataset_field_bytes(dataset, 0) > sizeof(row))
        return;
    for (uint64_t id = 0; id < 2; id++) {
        uint8_t expected[STK_FOLDER_ROW];
        stk_folder_row(id, expected);
        if (stk_read_row(dataset, id, row, sizeof(row), NULL, NULL) != STOKER_OK)
            continue;
        const size_t channels = stoker_dataset_field_bytes(dataset, 0) / sizeof(expected);
        cr_assert_eq(stoker_dataset_field_bytes(dataset, 0), channels * sizeof(expected));
        for (size_t at = 0; at < sizeof(expected); at++)
            cr_assert_eq(row[at * channels], expected[at], "bit %zu", bit);
    }
}

/* A flipped bit in a header is always seen, as is one in an image; one in a label is another
 * label, or none; one in the padding changes nothing. */
CleanTest(tar_damage, every_flipped_bit_is_seen_or_harmless)
{
    stk_archive_needs_png();
    small_archive();
    unsigned opened = 0;
    for (size_t bit = 0; bit < archive.size * 8; bit++) {
        const size_t block = bit / 8 / 512;
        const bool padding = block > 7 || ((block == 3 || block == 7) && bit / 8 % 512 >= 8);
        stoker_dataset *dataset = NULL;
        if (padding && bit % 61 != 0) /* all alike */
            continue;
        archive.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
        const int rc = stk_archive_open(&dataset, &archive, "", NULL);
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
}

CleanTest(tar_damage, other_files_are_refused)
{
    archive.size = 0;
    stk_archive_check_refused(&archive, "", STOKER_ETRUNCATED, "zeros");
    stk_archive_put(&archive, (uint8_t[1024]){ 0 }, 1024);
    stk_archive_check_refused(&archive, "", STOKER_EEMPTY, "0 members");
    memcpy(archive.at, "\x1F\x8B\x08", 3);
    stk_archive_check_refused(&archive, "", STOKER_EMAGIC, "gzip");
    memcpy(archive.at, "text", 4);
    stk_archive_check_refused(&archive, "", STOKER_EMAGIC, "tar");
}
