/* test_regions.c - a part of an image has the pixels that the whole image has there.
 *
 * Method: libraries write files of every kind; every rectangle of small images and random ones of
 * large images are decoded and compared with the whole image, and a file with a flipped bit is
 * refused by both or by none.
 */
#include "loader/base/rng.h"
#include "loader/codec/jpeg/jpeg.h"
#include "loader/codec/jpeg/places.h"
#include "loader/codec/png/png.h"
#include "loader/codec/webp/webp.h"
#include "support/leaks.h"
#include "support/runs/region_run.h"

#ifdef STOKER_HAVE_JPEG
#include "support/files/jpeg_files.h"
#endif
#ifdef STOKER_HAVE_PNG
#include "support/files/png_chunks.h"
#endif
#ifdef STOKER_HAVE_WEBP
#include "support/files/webp_files.h"
#endif

#if defined(STOKER_HAVE_JPEG) || defined(STOKER_HAVE_PNG) || defined(STOKER_HAVE_WEBP)
static stoker_codec *make_path(const struct stk_image_kind *kind, uint32_t channels, bool full_only)
{
    stoker_codec *codec = NULL;
    const struct stk_image_options options = { .shape = { 1, 1, channels },
                                               .any_pixels_max = 1 << 22,
                                               .full_only = full_only };
    cr_assert_eq(stk_image_codec_create(&codec, kind, &options), STOKER_OK);
    return codec;
}

static stoker_codec *make_codec(const struct stk_image_kind *kind, uint32_t channels)
{
    return make_path(kind, channels, false);
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
        const bool noted = !kind.progressive && !kind.arithmetic && STOKER_OWN_DECODERS;
        cr_assert_eq(run.known_runs > 50, noted, "%llu", (unsigned long long)seed);
        for (size_t room = 40; room < file.size;
             room *= 2) { /* the finest step, and coarser ones */
            stk_region_renote(&run, room);
            check_some(&run, ~seed + room, 12);
        }
        stk_region_close(&run);
        free(file.at);
    }
}

#if STOKER_OWN_DECODERS
/* With another DC value in its places, the pixels are others: the codes are read from there. */
CleanTest(codec_regions, a_region_is_read_from_the_places_in_the_notes)
{
    const struct stk_jpeg_kind kind = { .height = 200, .width = 200, .channels = 1 };
    const stoker_region wanted = { 100, 100, 50, 50, 8 };
    struct stk_jpeg_file file = stk_jpeg_write(&kind);
    struct stk_region_run run =
        stk_region_open(make_codec(&stk_image_jpeg, 1), 1, file.at, file.size);
    stoker_region got;
    cr_assert_eq(stk_region_decode_once(&run, &run.notes, &wanted, &got), STOKER_OK);
    struct stk_jpeg_places *places = run.notes.room;
    uint8_t *before = malloc(run.pixels_bytes);
    const size_t bytes = (size_t)got.height * got.width;
    cr_assert_not_null(before);
    memcpy(before, run.pixels, bytes);
    run.notes.known = places;
    run.notes.known_bytes = run.notes.noted_bytes;
    cr_assert_eq(stk_region_decode_once(&run, &run.notes, &wanted, &got), STOKER_OK);
    cr_assert_arr_eq(run.pixels, before, bytes);
    for (uint32_t i = 0; i < (uint32_t)places->across * places->rows; i++)
        places->place[i].dc[0] = (int16_t)(places->place[i].dc[0] / 2 + 9);
    cr_assert_eq(stk_region_decode_once(&run, &run.notes, &wanted, &got), STOKER_OK);
    cr_assert_neq(memcmp(run.pixels, before, bytes), 0);
    free(before);
    stk_region_close(&run);
    free(file.at);
}
#endif

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

/* The parts are narrower than the image, or nothing is saved; the scale is the smallest of 1, 2, 4,
 * 8 eighths. */
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

static const struct stk_jpeg_kind damaged_jpegs[] = {
    { .height = 40, .width = 33, .channels = 1 },
    { .height = 40, .width = 24, .channels = 3, .h_factor = 2, .v_factor = 2 },
    { .height = 35, .width = 20, .channels = 3, .h_factor = 2, .v_factor = 1, .restart_rows = 1 },
    { .height = 20, .width = 16, .channels = 4, .ycck = true, .h_factor = 1, .v_factor = 1 },
    { .height = 33, .width = 16, .channels = 3, .h_factor = 1, .v_factor = 2, .arithmetic = true },
    { .height = 20, .width = 16, .channels = 3, .h_factor = 2, .v_factor = 2, .progressive = true },
};

/* Wherever the damage lies, a file is good or bad for every rectangle and scale alike; and a file
 * that ends too early is bad, even with an end marker. */
CleanTest(codec_regions, a_damaged_jpeg_is_bad_for_every_rectangle)
{
    static const uint32_t channels[] = { 1, 3, 3, 1, 3, 4 };
    for (size_t k = 0; k < sizeof(damaged_jpegs) / sizeof(damaged_jpegs[0]); k++)
        for (int full = 0; full < 2; full++) {
            struct stk_jpeg_file file = stk_jpeg_write(&damaged_jpegs[k]);
            struct stk_region_run run =
                stk_region_open(make_path(&stk_image_jpeg, channels[k], full == 1), channels[k],
                                file.at, file.size);
            cr_assert_gt(stk_region_check_flips(&run, file.at, full == 0 ? 1 : 7), 30);
            for (size_t cut = 3; cut < 40; cut += 4) {
                run.size = file.size - cut;
                uint8_t *end = file.at + run.size - 2, kept[2];
                memcpy(kept, end, 2);
                memcpy(end, "\xFF\xD9", 2);
                const int rc = stk_region_check_damaged(&run);
                cr_assert(rc == STOKER_ECORRUPT || damaged_jpegs[k].progressive ||
                              damaged_jpegs[k].arithmetic || cut < 8,
                          "kind %zu, %zu bytes cut: %d", k, cut, rc);
                memcpy(end, kept, 2);
            }
            stk_region_close(&run);
            free(file.at);
        }
}

/* A worker whose last image failed, or was left before its end, decodes the next like a fresh
 * one. */
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
    static const uint8_t colors[] = { PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_RGB,
                                      PNG_COLOR_TYPE_RGB_ALPHA, PNG_COLOR_TYPE_PALETTE };
    static struct stk_picture picture;
    for (int how = 0; how < 16; how++) {
        memset(&picture, 0, sizeof(picture));
        picture.height = 31;
        picture.width = 1 + (uint32_t)how * 3;
        picture.depth = 8;
        picture.color = colors[how % 4];
        picture.interlaced = how / 4 == 3;
        picture.filters = how / 4 == 2 ? PNG_FILTER_PAETH : PNG_ALL_FILTERS;
        stk_picture_paint(&picture, (uint64_t)how);
        static const uint32_t channels[] = { 1, 3, 4 };
        for (int c = 0; c < 3; c++)
            for (int full = 0; full < 2; full++)
                check_png(&picture, channels[c], full == 1);
    }
}

/* All of a PNG file is under a checksum; with the sums put right its contents may be wrong, such as
 * Adler-32. */
CleanTest(codec_regions, a_damaged_png_is_bad_for_every_rectangle)
{
    static const struct {
        uint8_t color, depth;
        bool interlaced, values;
        uint32_t channels;
    } kinds[] = {
        { PNG_COLOR_TYPE_GRAY, 8, false, false, 1 },
        { PNG_COLOR_TYPE_RGB, 8, false, false, 3 },
        { PNG_COLOR_TYPE_RGB_ALPHA, 8, false, false, 4 },
        { PNG_COLOR_TYPE_RGB_ALPHA, 8, false, false, 1 },
        { PNG_COLOR_TYPE_PALETTE, 4, false, false, 3 },
        { PNG_COLOR_TYPE_PALETTE, 8, false, true, 1 },
        { PNG_COLOR_TYPE_RGB, 16, false, false, 3 },
        { PNG_COLOR_TYPE_GRAY_ALPHA, 8, true, false, 4 },
    };
    static struct stk_picture picture;
    static struct stk_file_bytes file, changed;
    for (size_t k = 0; k < 2 * sizeof(kinds) / sizeof(kinds[0]); k++) {
        picture = (struct stk_picture){ .width = 5,
                                        .height = 7,
                                        .color = kinds[k / 2].color,
                                        .depth = kinds[k / 2].depth,
                                        .interlaced = kinds[k / 2].interlaced,
                                        .filters = PNG_ALL_FILTERS };
        stk_picture_paint(&picture, k);
        stk_picture_write(&picture, &file);
        const struct stk_image_options options = { .shape = { 1, 1, kinds[k / 2].channels },
                                                   .any_pixels_max = 1 << 16,
                                                   .values = kinds[k / 2].values,
                                                   .full_only = k % 2 == 1 };
        stoker_codec *codec = NULL;
        cr_assert_eq(stk_image_codec_create(&codec, &stk_image_png, &options), STOKER_OK);
        struct stk_region_run run =
            stk_region_open(codec, kinds[k / 2].channels, file.at, file.size);
        const size_t header = STK_PNG_PROBE_BYTES; /* probe() refuses each flipped bit of it */
        cr_assert_eq(stk_region_check_flips(&run, file.at, 1), 8 * (file.size - header), "%zu", k);
        for (size_t bit = 8 * header; bit < 8 * file.size; bit++) {
            changed = file;
            changed.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
            stk_png_mend(changed.at, changed.size);
            run.bytes = changed.at;
            (void)stk_region_check_damaged(&run);
        }
        run.bytes = file.at;
        for (run.size = header; run.size < file.size; run.size++)
            cr_assert_eq(stk_region_check_damaged(&run), STOKER_ETRUNCATED);
        stk_region_close(&run);
    }
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

CleanTest(codec_regions, a_damaged_webp_is_bad_for_every_rectangle)
{
    for (uint32_t how = 0; how < 4; how++) {
        const struct stk_webp_kind kind = {
            .height = 50, .width = 20, .lossless = how % 2 == 1, .alpha = how / 2 == 1
        };
        const uint32_t channels = how == 3 ? 4 : 3;
        struct stk_webp_file file = stk_webp_write(&kind);
        struct stk_region_run run =
            stk_region_open(make_codec(&stk_image_webp, channels), channels, file.at, file.size);
        cr_assert_gt(stk_region_check_flips(&run, file.at, 11), 10);
        stk_region_close(&run);
        free(file.at);
    }
}
#endif
