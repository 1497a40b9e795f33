/* test_regions.c - a part of an image has the pixels that the whole image has there.
 *
 * Method: libraries write files of every kind; every rectangle of small images and random ones of large images are
 * decoded and compared with decode_any().
 */
#include <criterion/criterion.h>

#include "loader/base/rng.h"
#include "loader/codec/jpeg/jpeg.h"
#include "loader/codec/png/png.h"
#include "loader/codec/webp/webp.h"
#include "support/leaks.h"
#include "support/region_run.h"

#ifdef STOKER_HAVE_JPEG
#include "support/jpeg_files.h"
#endif
#ifdef STOKER_HAVE_PNG
#include "support/picture.h"
#endif
#ifdef STOKER_HAVE_WEBP
#include "support/webp_files.h"
#endif

#if defined(STOKER_HAVE_JPEG) || defined(STOKER_HAVE_PNG) || defined(STOKER_HAVE_WEBP)
static stoker_codec *make_codec(const struct stk_image_kind *kind, uint32_t channels)
{
    stoker_codec *codec = NULL;
    const struct stk_image_options options = { .shape = { 1, 1, channels },
                                               .any_pixels_max = 1 << 22 };
    cr_assert_eq(stk_image_codec_create(&codec, kind, &options), STOKER_OK);
    return codec;
}

/* A rectangle of the image, of any size and scale. */
static stoker_region draw(stoker_size image, uint64_t seed)
{
    const uint64_t a = stk_mix64(seed), b = stk_mix64(seed ^ UINT64_C(0x9E3779B97F4A7C15));
    stoker_region wanted;
    wanted.height = 1 + (uint32_t)(a & 0xFFFF) % image.height;
    wanted.width = 1 + (uint32_t)(a >> 16 & 0xFFFF) % image.width;
    wanted.y = (uint32_t)(b & 0xFFFF) % (image.height - wanted.height + 1);
    wanted.x = (uint32_t)(b >> 16 & 0xFFFF) % (image.width - wanted.width + 1);
    wanted.eighths = 1 + (uint32_t)(a >> 40) % 10;
    wanted.eighths = wanted.eighths > 8 ? 8 : wanted.eighths;
    return wanted;
}

static void check_some(struct stk_region_run *run, uint64_t seed, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const stoker_region wanted = draw(run->image, seed * 1000 + i);
        stk_region_check(run, &wanted);
    }
}

#endif

#ifdef STOKER_HAVE_JPEG
static void check_jpeg(const struct stk_jpeg_kind *kind, uint32_t channels, uint32_t step)
{
    struct stk_jpeg_file file = stk_jpeg_write(kind);
    struct stk_region_run run =
        stk_region_open(make_codec(&stk_image_jpeg, channels), channels, file.at, file.size);
    stk_region_check_all(&run, step, false);
    stk_region_check_all(&run, 2 * step + 1, true);
    stk_region_close(&run);
    free(file.at);
}

static const int factors[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 }, { 4, 1 }, { 4, 2 } };
enum { FACTORS = sizeof(factors) / sizeof(factors[0]) };

CleanTest(codec_regions, every_rectangle_of_a_small_jpeg)
{
    static const uint32_t sides[][2] = { { 1, 1 }, { 3, 20 }, { 20, 3 }, { 17, 19 }, { 33, 35 } };
    for (size_t side = 0; side < sizeof(sides) / sizeof(sides[0]); side++)
        for (size_t f = 0; f < FACTORS; f++) {
            struct stk_jpeg_kind kind = { .height = sides[side][0],
                                          .width = sides[side][1],
                                          .channels = 3,
                                          .h_factor = factors[f][0],
                                          .v_factor = factors[f][1],
                                          .progressive = (side + f) % 3 == 1,
                                          .arithmetic = (side + f) % 5 == 1,
                                          .restart_rows = (side + f) % 2 };
            check_jpeg(&kind, 3, side == 4 ? 3 : 1);
        }
}

CleanTest(codec_regions, gray_and_ink_and_four_channels_and_few_pixels)
{
    static const uint32_t sides[][2] = { { 9, 18 }, { 25, 10 } };
    for (size_t side = 0; side < 2; side++)
        for (uint32_t stored = 1; stored <= 4; stored++)
            for (uint32_t channels = 1; channels <= 4; channels++) {
                if (stored == 2 || channels == 2)
                    continue;
                const struct stk_jpeg_kind kind = { .height = sides[side][0],
                                                    .width = sides[side][1],
                                                    .channels = stored,
                                                    .ycck = stored == 4 && side == 1,
                                                    .h_factor = stored == 3 ? 2 : 0,
                                                    .v_factor = stored == 3 ? 2 : 0 };
                check_jpeg(&kind, channels, 2);
            }
}

CleanTest(codec_regions, random_rectangles_of_large_jpegs)
{
    for (uint64_t seed = 0; seed < 48; seed++) {
        const struct stk_jpeg_kind kind = { .height = 150 + (uint32_t)(stk_mix64(seed) % 250),
                                            .width = 150 + (uint32_t)(stk_mix64(~seed) % 350),
                                            .channels = 3,
                                            .h_factor = factors[seed % FACTORS][0],
                                            .v_factor = factors[seed % FACTORS][1],
                                            .progressive = seed % 4 == 3,
                                            .arithmetic = seed % 11 == 5,
                                            .restart_rows = seed % 3 == 2 ? 2 : 0 };
        struct stk_jpeg_file file = stk_jpeg_write(&kind);
        struct stk_region_run run =
            stk_region_open(make_codec(&stk_image_jpeg, 3), 3, file.at, file.size);
        check_some(&run, seed, 60);
        stk_region_close(&run);
        free(file.at);
    }
}

/* libjpeg smooths the blocks of such a file with those around. */
CleanTest(codec_regions, rectangles_of_a_jpeg_without_its_last_scans)
{
    for (int f = 0; f < FACTORS; f++) {
        const struct stk_jpeg_kind kind = { .height = 61,
                                            .width = 83,
                                            .channels = 3,
                                            .h_factor = factors[f][0],
                                            .v_factor = factors[f][1],
                                            .progressive = true,
                                            .unfinished = true };
        struct stk_jpeg_file file = stk_jpeg_write(&kind);
        struct stk_region_run run =
            stk_region_open(make_codec(&stk_image_jpeg, 3), 3, file.at, file.size);
        check_some(&run, (uint64_t)f, 100);
        stk_region_close(&run);
        free(file.at);
    }
}

/* The parts are narrower than the image, or nothing is saved; the scale is the smallest of 1, 2, 4, 8 eighths. */
CleanTest(codec_regions, a_part_of_a_jpeg_is_a_part)
{
    const struct stk_jpeg_kind kind = {
        .height = 400, .width = 500, .channels = 3, .h_factor = 2, .v_factor = 2
    };
    static const uint32_t scales[] = { 0, 1, 2, 4, 4, 8, 8, 8, 8 };
    struct stk_jpeg_file file = stk_jpeg_write(&kind);
    struct stk_region_run run =
        stk_region_open(make_codec(&stk_image_jpeg, 3), 3, file.at, file.size);
    for (uint32_t e = 1; e <= 8; e++) {
        const stoker_region wanted = { 200, 240, 80, 100, e };
        stoker_region got;
        cr_assert_eq(stk_region_decode(&run, &wanted, &got), STOKER_OK);
        cr_assert_eq(got.eighths, scales[e]);
        cr_assert_eq(got.height, 80 * got.eighths / 8);
        cr_assert_leq(got.width, (100 * got.eighths + 7) / 8 + 4 + 16 + 4);
    }
    stk_region_close(&run);
    free(file.at);
}

CleanTest(codec_regions, a_rectangle_outside_of_the_image_is_refused)
{
    const struct stk_jpeg_kind kind = { .height = 10, .width = 20, .channels = 1 };
    static const stoker_region wrong[] = { { 0, 0, 11, 20, 8 }, { 0, 0, 10, 21, 8 },
                                           { 1, 0, 10, 20, 8 }, { 0, 1, 10, 20, 8 },
                                           { 0, 0, 0, 20, 8 },  { 0, 0, 10, 0, 8 },
                                           { 0, 0, 10, 20, 0 }, { 0, 0, 10, 20, 9 },
                                           { 10, 0, 1, 1, 8 },  { 0, UINT32_MAX, 10, 20, 8 } };
    struct stk_jpeg_file file = stk_jpeg_write(&kind);
    struct stk_region_run run =
        stk_region_open(make_codec(&stk_image_jpeg, 1), 1, file.at, file.size);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        stoker_region got;
        cr_assert_eq(stk_region_decode(&run, &wrong[i], &got), STOKER_EINVAL, "%zu", i);
    }
    const stoker_region all = { 0, 0, 10, 20, 8 };
    stoker_region got;
    run.pixels_bytes--;
    cr_assert_eq(stk_region_decode(&run, &all, &got), STOKER_ELIMIT);
    run.pixels_bytes++;
    stk_region_close(&run);
    free(file.at);
}

/* Offset of the n-th restart marker. */
static size_t find_restart(const struct stk_jpeg_file *file, int nth)
{
    for (size_t at = 2; at + 1 < file->size; at++)
        if (file->at[at] == 0xFF && file->at[at + 1] >= 0xD0 && file->at[at + 1] <= 0xD7 &&
            nth-- == 0)
            return at;
    cr_assert_fail("no such restart marker");
    return 0;
}

CleanTest(codec_regions, damage_in_the_rectangle_is_reported_and_below_it_is_not)
{
    const struct stk_jpeg_kind kind = {
        .height = 80, .width = 40, .channels = 3, .h_factor = 1, .v_factor = 1, .restart_rows = 1
    };
    struct stk_jpeg_file file = stk_jpeg_write(&kind);
    struct stk_region_run run =
        stk_region_open(make_codec(&stk_image_jpeg, 3), 3, file.at, file.size);
    const stoker_region above = { 0, 0, 16, 40, 8 }, across = { 40, 0, 16, 40, 8 };
    stoker_region got;
    file.at[find_restart(&file, 5) + 1] ^= 2; /* rows 48 to 55 begin with a wrong marker */
    cr_assert_eq(stk_region_decode(&run, &above, &got), STOKER_OK);
    cr_assert_eq(stk_region_decode(&run, &across, &got), STOKER_ECORRUPT);
    stk_region_close(&run);
    free(file.at);
}

/* A worker whose last image failed, or was left before its end, decodes the next like a fresh one. */
CleanTest(codec_regions, every_prefix_of_a_jpeg_is_refused)
{
    const struct stk_jpeg_kind kind = {
        .height = 40, .width = 24, .channels = 3, .h_factor = 2, .v_factor = 2
    };
    struct stk_jpeg_file file = stk_jpeg_write(&kind);
    struct stk_region_run run =
        stk_region_open(make_codec(&stk_image_jpeg, 3), 3, file.at, file.size);
    const stoker_region wanted = { 3, 5, 9, 11, 8 };
    const size_t size = run.size;
    for (run.size = 1; run.size < size; run.size++) {
        stoker_region got;
        cr_assert_eq(stk_region_decode(&run, &wanted, &got), STOKER_ETRUNCATED);
    }
    stk_region_check(&run, &wanted);
    stk_region_close(&run);
    free(file.at);
}
#endif

#ifdef STOKER_HAVE_PNG
static void check_png(const struct stk_picture *picture, uint32_t channels, bool full_only)
{
    static struct stk_file_bytes file;
    stk_picture_write(picture, &file);
    stoker_codec *codec = NULL;
    const struct stk_image_options options = { .shape = { 1, 1, channels },
                                               .any_pixels_max = 1 << 16,
                                               .full_only = full_only };
    cr_assert_eq(stk_image_codec_create(&codec, &stk_image_png, &options), STOKER_OK);
    struct stk_region_run run = stk_region_open(codec, channels, file.at, file.size);
    for (uint32_t y = 0; y < picture->height; y++)
        for (uint32_t bottom = y + 1; bottom <= picture->height; bottom++) {
            const stoker_region wanted = { y, picture->width / 3, bottom - y,
                                           (picture->width + 1) / 2, 1 + y % 8 };
            stk_region_check(&run, &wanted);
        }
    stk_region_close(&run);
}

CleanTest(codec_regions, every_run_of_rows_of_a_png_on_both_paths)
{
    static const uint8_t colours[] = { PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_RGB,
                                       PNG_COLOR_TYPE_RGB_ALPHA, PNG_COLOR_TYPE_PALETTE };
    static struct stk_picture picture;
    for (int how = 0; how < 16; how++) {
        memset(&picture, 0, sizeof(picture));
        picture.height = 31;
        picture.width = 1 + (uint32_t)how * 3;
        picture.depth = 8;
        picture.colour = colours[how % 4];
        picture.interlaced = how / 4 == 3;
        picture.filters = how / 4 == 2 ? PNG_FILTER_PAETH : PNG_ALL_FILTERS;
        stk_picture_paint(&picture, (uint64_t)how);
        static const uint32_t channels[] = { 1, 3, 4 };
        for (int c = 0; c < 3; c++)
            for (int full = 0; full < 2; full++)
                check_png(&picture, channels[c], full == 1);
    }
}

/* Only the rows of the region count: an Adler-32, and on the path of libpng a CRC, of later ones may be wrong. */
CleanTest(codec_regions, a_wrong_sum_of_a_png_is_seen_only_with_all_rows)
{
    static struct stk_picture picture = {
        .width = 20, .height = 20, .depth = 8, .colour = PNG_COLOR_TYPE_RGB
    };
    static struct stk_file_bytes file;
    picture.filters = PNG_ALL_FILTERS;
    stk_picture_paint(&picture, 1);
    stk_picture_write(&picture, &file);
    stoker_codec *codec = make_codec(&stk_image_png, 3);
    struct stk_region_run run = stk_region_open(codec, 3, file.at, file.size);
    file.at[file.size - 12 - 5] ^= 1; /* the last byte of IDAT's CRC, before IEND */
    const stoker_region part = { 2, 0, 10, 20, 8 }, all = { 0, 0, 20, 20, 8 };
    stoker_region got;
    stk_region_check(&run, &part);
    cr_assert_eq(stk_region_decode(&run, &all, &got), STOKER_ECORRUPT);
    stk_region_close(&run);
}
#endif

#ifdef STOKER_HAVE_WEBP
CleanTest(codec_regions, rectangles_of_webps)
{
    for (uint32_t how = 0; how < 24; how++) {
        const struct stk_webp_kind kind = { .height = how < 12 ? 1 + how * 2 : 40 + how * 5,
                                            .width = how < 12 ? 24 - how * 2 : 30 + how * 7,
                                            .lossless = how % 3 == 1,
                                            .alpha = how % 2 == 1 };
        static const uint32_t channels[] = { 1, 3, 4 };
        struct stk_webp_file file = stk_webp_write(&kind);
        for (int c = 0; c < 3; c++) {
            struct stk_region_run run = stk_region_open(make_codec(&stk_image_webp, channels[c]),
                                                        channels[c], file.at, file.size);
            if (how < 12)
                stk_region_check_all(&run, 2, false);
            check_some(&run, how, how < 12 ? 10 : 100);
            stk_region_close(&run);
        }
        free(file.at);
    }
}
#endif
