/* test_jpeg.c - JPEG files become the rows that libjpeg makes of them, or are refused.
 *
 * Method: libjpeg writes small files of every kind and reads them back in its plainest way; the
 * codec must agree to the byte.
 */
#include "loader/codec/jpeg/jpeg.h"

#include "loader/base/fault.h"
#include "support/leaks.h"

#ifndef STOKER_HAVE_JPEG

CleanTest(codec_jpeg, a_build_without_libjpeg_says_so)
{
    stoker_codec *codec = NULL;
    const struct stk_image_options options = { .shape = { 1, 1, 1 } };
    cr_assert_eq(stk_image_codec_create(&codec, &stk_image_jpeg, &options), STOKER_ENOTSUP);
    cr_assert_null(codec);
}

#else

#include "support/files/jpeg_files.h"
#include "support/runs/image_run.h"

static struct stk_image_run open_path(uint32_t height, uint32_t width, uint32_t channels,
                                      bool full_only)
{
    const struct stk_image_options options = { .shape = { height, width, channels },
                                               .full_only = full_only };
    return stk_image_run_open(&stk_image_jpeg, &options);
}

static struct stk_image_run open_decoder(uint32_t height, uint32_t width, uint32_t channels)
{
    return open_path(height, width, channels, false);
}

static void check_kind(const struct stk_jpeg_kind *kind)
{
    static const uint32_t row_channels[] = { 1, 3, 4 };
    struct stk_jpeg_file file = stk_jpeg_write(kind);
    for (size_t c = 0; c < 3; c++) {
        struct stk_image_run decoder = open_decoder(kind->height, kind->width, row_channels[c]);
        uint8_t *expected = malloc(decoder.run.row_bytes);
        cr_assert_not_null(expected);
        stk_jpeg_expect(&file, row_channels[c], expected);
        for (int again = 0; again < 2; again++) {
            memset(decoder.run.row, 0xA5, decoder.run.row_bytes);
            cr_assert_eq(stk_codec_run(&decoder.run, file.at, file.size), STOKER_OK, "%s",
                         decoder.run.error.message);
            cr_assert_arr_eq(decoder.run.row, expected, decoder.run.row_bytes,
                             "%ux%ux%u, factors %d %d, %s, to %u", kind->height, kind->width,
                             kind->channels, kind->h_factor, kind->v_factor,
                             kind->progressive ? "progressive" : "baseline", row_channels[c]);
        }
        free(expected);
        stk_image_run_close(&decoder);
    }
    free(file.at);
}

CleanTest(codec_jpeg, every_kind_becomes_what_libjpeg_makes_of_it)
{
    static const uint32_t sides[] = { 1, 2, 7, 8, 9, 16, 17, 33, 70 };
    static const int factors[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 }, { 4, 1 }, { 4, 2 } };
    for (size_t h = 0; h < sizeof(sides) / sizeof(sides[0]); h++)
        for (size_t w = 0; w < sizeof(sides) / sizeof(sides[0]); w++)
            for (uint32_t sort = 0; sort < 8; sort++) {
                struct stk_jpeg_kind kind = { .height = sides[h],
                                              .width = sides[w],
                                              .channels = 1,
                                              .progressive = (sort & 1) != 0,
                                              .arithmetic = (sort & 2) != 0,
                                              .restart_rows = (sort & 4) != 0 ? 1 : 0 };
                check_kind(&kind);
                kind.channels = 3;
                kind.h_factor = factors[(h + w + sort) % 6][0];
                kind.v_factor = factors[(h + w + sort) % 6][1];
                check_kind(&kind);
                kind.channels = 4;
                kind.v_factor = kind.h_factor == 4 ? 1 : kind.v_factor; /* ten blocks at most */
                kind.ycck = (h + w) % 2 == 1;
                check_kind(&kind);
            }
}

/* Pillow 13's convert("L") gives these; the file's own rounding may be 1 off. */
CleanTest(codec_jpeg, gray_from_color_is_the_luma_of_bt_601)
{
    static const struct {
        uint8_t color[3];
        uint8_t gray;
    } known[] = {
        { { 0, 0, 255 }, 29 },    { { 255, 0, 0 }, 76 },    { { 0, 255, 0 }, 150 },
        { { 255, 255, 0 }, 226 }, { { 255, 0, 255 }, 105 }, { { 10, 200, 30 }, 124 },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const struct stk_jpeg_kind kind = {
            8, 8, .channels = 3, .h_factor = 1, .v_factor = 1, .solid = known[i].color
        };
        struct stk_jpeg_file file = stk_jpeg_write(&kind);
        struct stk_image_run decoder = open_decoder(8, 8, 1);
        cr_assert_eq(stk_codec_run(&decoder.run, file.at, file.size), STOKER_OK);
        cr_assert_leq(abs(decoder.run.row[9] - known[i].gray), 1, "color %zu: %u", i,
                      decoder.run.row[9]);
        stk_image_run_close(&decoder);
        free(file.at);
    }
}

/* Stored inverted, as Adobe does; Pillow 13's convert("RGB") and convert("L") give these. */
CleanTest(codec_jpeg, cmyk_becomes_what_pillow_makes_of_it)
{
    static const struct {
        uint8_t inks[4];
        uint8_t rgb[3];
        uint8_t gray;
    } known[] = {
        { { 255, 255, 255, 255 }, { 255, 255, 255 }, 255 },
        { { 255, 0, 0, 255 }, { 255, 0, 0 }, 76 },
        { { 200, 100, 50, 180 }, { 141, 71, 35 }, 88 },
        { { 17, 34, 68, 136 }, { 9, 18, 36 }, 17 },
        { { 90, 80, 70, 0 }, { 0, 0, 0 }, 0 },
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const struct stk_jpeg_kind kind = { 8, 8, .channels = 4, .solid = known[i].inks };
        struct stk_jpeg_file file = stk_jpeg_write(&kind);
        struct stk_image_run color = open_decoder(8, 8, 3);
        struct stk_image_run gray = open_decoder(8, 8, 1);
        cr_assert_eq(stk_codec_run(&color.run, file.at, file.size), STOKER_OK);
        cr_assert_eq(stk_codec_run(&gray.run, file.at, file.size), STOKER_OK);
        cr_assert_arr_eq(color.run.row + 27, known[i].rgb, 3, "%zu: %u %u %u", i, color.run.row[27],
                         color.run.row[28], color.run.row[29]);
        cr_assert_eq(gray.run.row[9], known[i].gray, "%zu: %u", i, gray.run.row[9]);
        stk_image_run_close(&color);
        stk_image_run_close(&gray);
        free(file.at);
    }
}

CleanTest(codec_jpeg, files_of_two_components_are_refused)
{
    struct stk_jpeg_file file = stk_jpeg_write(&(struct stk_jpeg_kind){ 7, 6, .channels = 2 });
    struct stk_image_run decoder = open_decoder(7, 6, 1);
    cr_assert_eq(stk_codec_run(&decoder.run, file.at, file.size), STOKER_EFORMAT);
    cr_assert_not_null(strstr(decoder.run.error.message, "2 components"));
    free(file.at);
    stk_image_run_close(&decoder);
}

/* Our decoder of codes declines damage, or reads it as libjpeg does. */
CleanTest(codec_jpeg, a_flipped_bit_gives_what_libjpeg_alone_gives)
{
    static const struct stk_jpeg_kind kinds[] = {
        { .height = 33, .width = 40, .channels = 1 },
        { .height = 40, .width = 33, .channels = 3, .h_factor = 2, .v_factor = 2 },
        { .height = 40,
          .width = 33,
          .channels = 3,
          .h_factor = 2,
          .v_factor = 1,
          .restart_rows = 1 },
    };
    for (size_t k = 0; k < 3; k++) {
        struct stk_jpeg_file file = stk_jpeg_write(&kinds[k]);
        struct stk_image_run ours = open_path(kinds[k].height, kinds[k].width, 3, false);
        struct stk_image_run alone = open_path(kinds[k].height, kinds[k].width, 3, true);
        for (size_t bit = 0; bit < 8 * file.size; bit++) {
            file.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
            memset(ours.run.row, 0xA5, ours.run.row_bytes);
            memset(alone.run.row, 0xA5, alone.run.row_bytes);
            const int rc = stk_codec_run(&alone.run, file.at, file.size);
            cr_assert_eq(stk_codec_run(&ours.run, file.at, file.size), rc, "bit %zu: %s", bit,
                         ours.run.error.message);
            if (rc == STOKER_OK)
                cr_assert(memcmp(ours.run.row, alone.run.row, ours.run.row_bytes) == 0,
                          "kind %zu, bit %zu", k, bit);
            file.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
        }
        stk_image_run_close(&ours);
        stk_image_run_close(&alone);
        free(file.at);
    }
}

CleanTest(codec_jpeg, a_file_without_tables_does_not_find_those_of_another)
{
    const struct stk_jpeg_kind kind = { .height = 16, .width = 16, .channels = 1 };
    struct stk_jpeg_kind bare = kind;
    bare.no_tables = true;
    struct stk_jpeg_file whole = stk_jpeg_write(&kind);
    struct stk_jpeg_file part = stk_jpeg_write(&bare);
    struct stk_image_run decoder = open_decoder(16, 16, 1);
    cr_assert_eq(stk_image_run_alike(&decoder, whole.at, whole.size), STOKER_OK);
    cr_assert_eq(stk_image_run_alike(&decoder, part.at, part.size), STOKER_ECORRUPT);
    cr_assert_eq(stk_image_run_alike(&decoder, whole.at, whole.size), STOKER_OK);
    stk_image_run_close(&decoder);
    free(whole.at);
    free(part.at);
}

/* ---- warnings ---- */

static size_t find_marker(const struct stk_jpeg_file *file, uint8_t marker)
{
    for (size_t at = 2; at + 1 < file->size; at++)
        if (file->at[at] == 0xFF && file->at[at + 1] == marker)
            return at;
    cr_assert_fail("no marker %02x", marker);
    return 0;
}

static void insert(struct stk_jpeg_file *file, size_t at, const char *bytes, size_t size)
{
    uint8_t *longer = malloc(file->size + size);
    cr_assert_not_null(longer);
    memcpy(longer, file->at, at);
    memcpy(longer + at, bytes, size);
    memcpy(longer + at + size, file->at + at, file->size - at);
    free(file->at);
    file->at = longer;
    file->size += size;
}

/* Decode with and without warnings_fail: the codes that must come, and the same rows. */
static void check_warning(struct stk_jpeg_file *file, int accepting, int failing, const char *says)
{
    for (int fails = 0; fails < 2; fails++) {
        stoker_codec *codec = NULL;
        const struct stk_image_options options = { .shape = { 32, 32, 3 },
                                                   .warnings_fail = fails == 1 };
        cr_assert_eq(stk_image_codec_create(&codec, &stk_image_jpeg, &options), STOKER_OK);
        struct stk_codec_run run = stk_codec_run_open(codec, (size_t)32 * 32 * 3);
        const int rc = stk_codec_run(&run, file->at, file->size);
        cr_assert_eq(rc, fails == 1 ? failing : accepting, "%s, fails %d: %d, %s", says, fails, rc,
                     run.error.message);
        if (rc != STOKER_OK)
            cr_assert_not_null(strstr(run.error.message, says), "%s", run.error.message);
        stk_codec_run_close(&run);
        stk_image_codec_destroy(&codec);
    }
    free(file->at);
}

static const struct stk_jpeg_kind warned_kind = {
    .height = 32, .width = 32, .channels = 3, .h_factor = 1, .v_factor = 1, .restart_rows = 1
};

CleanTest(codec_jpeg, harmless_warnings_are_accepted_unless_they_are_to_fail)
{
    enum { EOI = 0xD9, RST1 = 0xD1, APP0 = 0xE0, APP14 = 0xEE };
    struct stk_jpeg_file file = stk_jpeg_write(&warned_kind);
    /* libjpeg has taken up to eight bytes ahead, of which it does not speak. */
    insert(&file, find_marker(&file, EOI), "these bytes belong to nothing", 29);
    check_warning(&file, STOKER_OK, STOKER_ECORRUPT, "extraneous bytes");

    file = stk_jpeg_write(&warned_kind);
    insert(&file, find_marker(&file, RST1), "these bytes belong to nothing", 29);
    check_warning(&file, STOKER_OK, STOKER_ECORRUPT, "extraneous bytes");

    file = stk_jpeg_write(&warned_kind);
    file.at[find_marker(&file, APP0) + 9] = 7; /* JFIF 7.1 */
    check_warning(&file, STOKER_OK, STOKER_ECORRUPT, "JFIF revision");

    file = stk_jpeg_write(&warned_kind);
    insert(&file, 2,
           "\xFF\xEE\x00\x0E"
           "Adobe\x00\x64\x00\x00\x00\x00\x09",
           16);
    file.at[find_marker(&file, APP0) + 4] = 'X'; /* not JFIF, which would settle the colors */
    check_warning(&file, STOKER_OK, STOKER_ECORRUPT, "Adobe color transform");

    file = stk_jpeg_write(&warned_kind);
    file.at[find_marker(&file, 0xDA) + 4 + 7 + 1] = 62; /* SOS: the end of the spectrum */
    check_warning(&file, STOKER_OK, STOKER_ECORRUPT, "SOS parameters");
}

CleanTest(codec_jpeg, warnings_of_damage_always_fail)
{
    struct stk_jpeg_file file = stk_jpeg_write(&warned_kind);
    const size_t restart = find_marker(&file, 0xD1);
    memcpy(file.at + restart - 2, "\xFF\xD1", 2); /* the data before it ends too early */
    check_warning(&file, STOKER_ECORRUPT, STOKER_ECORRUPT, "libjpeg");

    file = stk_jpeg_write(&warned_kind);
    file.at[find_marker(&file, 0xD1) + 1] = 0xD5;
    check_warning(&file, STOKER_ECORRUPT, STOKER_ECORRUPT, "instead of RST");

    file = stk_jpeg_write(&warned_kind);
    const size_t scan = find_marker(&file, 0xDA) + 14;
    memmove(file.at + scan + 20, file.at + file.size - 2, 2);
    file.size = scan + 22;
    check_warning(&file, STOKER_ECORRUPT, STOKER_ECORRUPT, "premature end");
}

/* ---- bombs ---- */

/* Where the frame header's body begins. */
static size_t find_frame(const struct stk_jpeg_file *file)
{
    for (size_t at = 2; at + 9 < file->size; at++)
        if (file->at[at] == 0xFF && file->at[at + 1] >= 0xC0 && file->at[at + 1] <= 0xC2)
            return at + 4;
    cr_assert_fail("no frame header");
    return 0;
}

CleanTest(codec_jpeg, huge_dimensions_are_refused_before_memory_is_taken)
{
    const struct stk_jpeg_kind kind = {
        .height = 17, .width = 10, .channels = 3, .h_factor = 1, .v_factor = 1, .progressive = true
    };
    struct stk_jpeg_file file = stk_jpeg_write(&kind);
    struct stk_image_run decoder = open_decoder(17, 10, 3);
    const uint64_t allocations = stk_fault_allocations();
    const size_t frame = find_frame(&file);
    const uint8_t huge[] = { 62994 >> 8, 62994 & 0xFF, 65284 >> 8, 65284 & 0xFF };
    memcpy(file.at + frame + 1, huge, 4);
    cr_assert_eq(stk_codec_run(&decoder.run, file.at, file.size), STOKER_ELIMIT);
    memset(file.at + frame + 1, 0, 4);
    cr_assert_eq(stk_codec_run(&decoder.run, file.at, file.size), STOKER_EFORMAT);
    cr_assert_eq(stk_fault_allocations(), allocations);
    free(file.at);
    stk_image_run_close(&decoder);
}

/* The last scan of a progressive file, a thousand times. */
CleanTest(codec_jpeg, a_thousand_scans_are_refused)
{
    const struct stk_jpeg_kind kind = {
        .height = 256, .width = 256, .channels = 1, .progressive = true
    };
    struct stk_jpeg_file file = stk_jpeg_write(&kind);
    size_t scan = file.size - 2;
    while (scan > 0 && (file.at[scan] != 0xFF || file.at[scan + 1] != 0xDA))
        scan--;
    cr_assert_gt(scan, 0);
    const size_t scan_bytes = file.size - 2 - scan;
    uint8_t *bomb = malloc(file.size + 1000 * scan_bytes);
    cr_assert_not_null(bomb);
    memcpy(bomb, file.at, scan);
    for (size_t i = 0; i < 1000; i++)
        memcpy(bomb + scan + i * scan_bytes, file.at + scan, scan_bytes);
    memcpy(bomb + scan + 1000 * scan_bytes, "\xFF\xD9", 2);
    struct stk_image_run decoder = open_decoder(256, 256, 1);
    const uint64_t allocations = stk_fault_allocations();
    cr_assert_eq(stk_codec_run(&decoder.run, bomb, scan + 1000 * scan_bytes + 2), STOKER_ELIMIT);
    cr_assert_eq(stk_fault_allocations(), allocations);
    cr_assert_not_null(strstr(decoder.run.error.message, "scans"));
    cr_assert_eq(stk_codec_run(&decoder.run, file.at, file.size), STOKER_OK);
    stk_image_run_close(&decoder);
    free(bomb);
    free(file.at);
}

#endif
