/* test_png.c - every kind of PNG file becomes the row that was declared, on either path.
 *
 * Method: libpng writes small pictures of every color type, depth, size and filter; what they
 * must become is computed from the samples. The fast path must give the full path's bytes.
 */
#include "loader/codec/png/png.h"

#include "loader/base/fault.h"
#include "support/leaks.h"

#ifndef STOKER_HAVE_PNG

CleanTest(codec_png, a_build_without_libpng_says_so)
{
    stoker_codec *codec = NULL;
    const struct stk_image_options options = { .shape = { 1, 1, 1 } };
    cr_assert_eq(stk_image_codec_create(&codec, &stk_image_png, &options), STOKER_ENOTSUP);
    cr_assert_null(codec);
}

#else

#include "loader/codec/png/unfilter.h"
#include "support/files/dataset_files.h"
#include "support/files/picture.h"
#include "support/runs/image_run.h"

static struct stk_picture picture;
static struct stk_file_bytes file;

static struct stk_image_run open_decoder(uint32_t height, uint32_t width, uint32_t channels,
                                         bool full_only)
{
    const struct stk_image_options options = { .shape = { height, width, channels },
                                               .full_only = full_only };
    return stk_image_run_open(&stk_image_png, &options);
}

static void decode(struct stk_image_run *decoder)
{
    memset(decoder->run.row, 0xA5, decoder->run.row_bytes);
    const int rc = stk_codec_run(&decoder->run, file.at, file.size);
    cr_assert_eq(rc, STOKER_OK, "%s: %ux%u, type %u, %u bits", decoder->run.error.message,
                 picture.height, picture.width, picture.color, picture.depth);
}

static void check_row(const uint8_t *row, uint32_t channels)
{
    for (uint32_t y = 0; y < picture.height; y++)
        for (uint32_t x = 0; x < picture.width; x++) {
            uint8_t expected[4];
            stk_picture_expect(&picture, y, x, channels, expected);
            const uint8_t *got = row + ((size_t)y * picture.width + x) * channels;
            for (uint32_t c = 0; c < channels; c++)
                cr_assert_eq(
                    got[c], expected[c], "%ux%u, type %u, %u bits, %s, at %u %u %u: %u, not %u",
                    picture.height, picture.width, picture.color, picture.depth,
                    picture.interlaced ? "interlaced" : "plain", y, x, c, got[c], expected[c]);
        }
}

static void check_picture(uint32_t channels)
{
    struct stk_image_run decoder = open_decoder(picture.height, picture.width, channels, false);
    decode(&decoder);
    check_row(decoder.run.row, channels);
    stk_image_run_close(&decoder);
}

struct kind {
    uint8_t color;
    uint8_t depth;
    bool transparent;
};

static const struct kind kinds[] = {
    { PNG_COLOR_TYPE_GRAY, 1, false },       { PNG_COLOR_TYPE_GRAY, 2, false },
    { PNG_COLOR_TYPE_GRAY, 4, false },       { PNG_COLOR_TYPE_GRAY, 8, false },
    { PNG_COLOR_TYPE_GRAY, 16, false },      { PNG_COLOR_TYPE_GRAY, 1, true },
    { PNG_COLOR_TYPE_GRAY, 4, true },        { PNG_COLOR_TYPE_GRAY, 8, true },
    { PNG_COLOR_TYPE_GRAY, 16, true },       { PNG_COLOR_TYPE_RGB, 8, false },
    { PNG_COLOR_TYPE_RGB, 16, false },       { PNG_COLOR_TYPE_RGB, 8, true },
    { PNG_COLOR_TYPE_RGB, 16, true },        { PNG_COLOR_TYPE_PALETTE, 1, false },
    { PNG_COLOR_TYPE_PALETTE, 2, true },     { PNG_COLOR_TYPE_PALETTE, 4, false },
    { PNG_COLOR_TYPE_PALETTE, 8, false },    { PNG_COLOR_TYPE_PALETTE, 8, true },
    { PNG_COLOR_TYPE_GRAY_ALPHA, 8, false }, { PNG_COLOR_TYPE_GRAY_ALPHA, 16, false },
    { PNG_COLOR_TYPE_RGB_ALPHA, 8, false },  { PNG_COLOR_TYPE_RGB_ALPHA, 16, false },
};
static const uint32_t row_channels[] = { 1, 3, 4 };

static void paint(const struct kind *kind, uint32_t height, uint32_t width, bool interlaced,
                  int filters)
{
    picture.width = width;
    picture.height = height;
    picture.color = kind->color;
    picture.depth = kind->depth;
    picture.transparent = kind->transparent;
    picture.interlaced = interlaced;
    picture.filters = filters;
    stk_picture_paint(&picture, width * 131 + height * 17 + kind->color * 5 + kind->depth);
    stk_picture_write(&picture, &file);
}

CleanTest(codec_png, every_kind_becomes_every_row)
{
    static const uint32_t heights[] = { 1, 2, 5, 9, 17 };
    static const uint32_t widths[] = { 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33 };
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (size_t h = 0; h < sizeof(heights) / sizeof(heights[0]); h++)
            for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++)
                for (int interlaced = 0; interlaced < 2; interlaced++) {
                    paint(&kinds[k], heights[h], widths[w], interlaced == 1, PNG_ALL_FILTERS);
                    for (size_t c = 0; c < 3; c++)
                        check_picture(row_channels[c]);
                }
}

/* One pixel: to what gray it must come, by Pillow 13's convert("L"). */
static void check_gray(const struct kind *kind, const uint8_t color[3], uint8_t gray)
{
    paint(kind, 1, 1, false, PNG_FILTER_NONE);
    const uint32_t factor = kind->depth == 16 ? 257 : 1;
    for (int c = 0; c < 3; c++)
        picture.samples[0][0][c] = (uint16_t)(color[c] * factor);
    if (kind->color == PNG_COLOR_TYPE_PALETTE) {
        picture.samples[0][0][0] = 1;
        picture.palette[1] = (png_color){ color[0], color[1], color[2] };
    }
    stk_picture_write(&picture, &file);
    struct stk_image_run decoder = open_decoder(1, 1, 1, false);
    decode(&decoder);
    cr_assert_eq(decoder.run.row[0], gray, "type %u, %u bits, %u %u %u: %u, not %u", kind->color,
                 kind->depth, color[0], color[1], color[2], decoder.run.row[0], gray);
    stk_image_run_close(&decoder);
}

CleanTest(codec_png, gray_from_color_is_the_luma_of_bt_601)
{
    static const struct {
        uint8_t color[3];
        uint8_t gray;
    } known[] = {
        { { 0, 0, 255 }, 29 },      { { 255, 0, 0 }, 76 },    { { 0, 255, 0 }, 150 },
        { { 255, 255, 0 }, 226 },   { { 255, 0, 255 }, 105 }, { { 0, 255, 255 }, 179 },
        { { 10, 200, 30 }, 124 },   { { 1, 0, 0 }, 0 },       { { 0, 1, 0 }, 1 },
        { { 255, 255, 254 }, 255 }, { { 77, 77, 77 }, 77 },
    };
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            if ((kinds[k].color & PNG_COLOR_MASK_COLOR) != 0)
                check_gray(&kinds[k], known[i].color, known[i].gray);
}

CleanTest(codec_png, the_fast_path_gives_the_bytes_of_the_full_one)
{
    static const struct kind fast_kinds[] = { { PNG_COLOR_TYPE_GRAY, 8, false },
                                              { PNG_COLOR_TYPE_RGB, 8, false },
                                              { PNG_COLOR_TYPE_RGB_ALPHA, 8, false } };
    static const int filters[] = { PNG_FILTER_NONE, PNG_FILTER_SUB,   PNG_FILTER_UP,
                                   PNG_FILTER_AVG,  PNG_FILTER_PAETH, PNG_ALL_FILTERS };
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t height = 1; height <= 17; height++)
            for (uint32_t width = 1; width <= 17; width++) {
                struct stk_image_run fast = open_decoder(height, width, row_channels[k], false);
                struct stk_image_run full = open_decoder(height, width, row_channels[k], true);
                for (size_t f = 0; f < sizeof(filters) / sizeof(filters[0]); f++) {
                    paint(&fast_kinds[k], height, width, false, filters[f]);
                    decode(&fast);
                    decode(&full);
                    cr_assert_arr_eq(fast.run.row, full.run.row, full.run.row_bytes,
                                     "%ux%ux%u, filters %d", height, width, row_channels[k],
                                     filters[f]);
                }
                check_row(full.run.row, row_channels[k]);
                stk_image_run_close(&fast);
                stk_image_run_close(&full);
            }
}

/* ---- values: what a mask has ---------------------------------------------------- */

static bool has_values(const struct kind *kind)
{
    return (kind->color == PNG_COLOR_TYPE_GRAY || kind->color == PNG_COLOR_TYPE_PALETTE) &&
           kind->depth <= 8;
}

static void check_values(const struct kind *kind, struct stk_image_run *decoder)
{
    const int rc = stk_codec_run(&decoder->run, file.at, file.size);
    cr_assert_eq(rc, has_values(kind) ? STOKER_OK : STOKER_EFORMAT, "%s: type %u, %u bits",
                 decoder->run.error.message, kind->color, kind->depth);
    if (rc != STOKER_OK)
        cr_assert_not_null(strstr(decoder->run.error.message, "a mask of "));
    for (uint32_t i = 0; rc == STOKER_OK && i < picture.height * picture.width; i++)
        cr_assert_eq(decoder->run.row[i], picture.samples[i / picture.width][i % picture.width][0],
                     "type %u, %u bits, pixel %u", kind->color, kind->depth, i);
}

CleanTest(codec_png, values_are_the_samples_as_stored)
{
    static const uint32_t widths[] = { 1, 3, 8, 9, 33 };
    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
        struct stk_image_options options = { .shape = { 9, widths[w], 1 }, .values = true };
        struct stk_image_run fast = stk_image_run_open(&stk_image_png, &options);
        options.full_only = true;
        struct stk_image_run full = stk_image_run_open(&stk_image_png, &options);
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
            for (int interlaced = 0; interlaced < 2; interlaced++) {
                paint(&kinds[k], 9, widths[w], interlaced == 1, PNG_ALL_FILTERS);
                check_values(&kinds[k], &fast);
                check_values(&kinds[k], &full);
            }
        stk_image_run_close(&fast);
        stk_image_run_close(&full);
    }
}

/* Set the length of the palette in the file, and the sum of its chunk. Returns where the chunk
 * begins. */
static size_t cut_palette(uint32_t colors)
{
    size_t at = 8;
    while (memcmp(file.at + at + 4, "PLTE", 4) != 0)
        at += 12 + stk_load_be32(file.at + at);
    const size_t bytes = stk_load_be32(file.at + at);
    const size_t fewer = 3 * (size_t)colors;
    memmove(file.at + at + 12 + fewer, file.at + at + 12 + bytes, file.size - at - 12 - bytes);
    file.size -= bytes - fewer;
    const uint32_t words[2] = { (uint32_t)fewer, stk_crc32(file.at + at + 4, fewer + 4) };
    for (int i = 0; i < 4; i++) {
        file.at[at + (size_t)i] = (uint8_t)(words[0] >> (24 - 8 * i));
        file.at[at + 8 + fewer + (size_t)i] = (uint8_t)(words[1] >> (24 - 8 * i));
    }
    return at;
}

/* A mask's colors are for people: an index without one is as good a class as any. But a palette
 * must be there. */
CleanTest(codec_png, values_need_no_color_of_their_own)
{
    const struct kind kind = { PNG_COLOR_TYPE_PALETTE, 8, false };
    for (int full_only = 0; full_only < 2; full_only++) {
        const struct stk_image_options options = { .shape = { 17, 33, 1 },
                                                   .values = true,
                                                   .full_only = full_only == 1 };
        struct stk_image_run decoder = stk_image_run_open(&stk_image_png, &options);
        paint(&kind, 17, 33, false, PNG_ALL_FILTERS);
        const size_t at = cut_palette(3);
        check_values(&kind, &decoder);
        file.at[at + 12] ^= 1; /* damage to the palette is found all the same */
        cr_assert_eq(stk_codec_run(&decoder.run, file.at, file.size), STOKER_ECORRUPT);
        paint(&kind, 17, 33, false, PNG_ALL_FILTERS);
        (void)cut_palette(0);
        cr_assert_lt(stk_codec_run(&decoder.run, file.at, file.size), 0, "no colors");
        paint(&kind, 17, 33, false, PNG_ALL_FILTERS);
        memmove(file.at + at, file.at + at + 12 + 768, file.size - at - 12 - 768);
        file.size -= 12 + 768;
        cr_assert_lt(stk_codec_run(&decoder.run, file.at, file.size), 0, "no palette");
        stk_image_run_close(&decoder);
    }
}

/* Each variant against a filter written down as the standard has it, on rows of noise. */
static uint8_t paeth_of_the_standard(int a, int b, int c)
{
    const int p = a + b - c;
    const int pa = abs(p - a);
    const int pb = abs(p - b);
    const int pc = abs(p - c);
    return (uint8_t)(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

static void undo_slowly(const struct stk_png_filtered *image, uint8_t *out)
{
    const size_t stride = image->stride;
    const uint32_t step = image->pixel_bytes;
    for (size_t y = 0; y < image->height; y++)
        for (size_t i = 0; i < stride; i++) {
            const uint8_t *from = image->bytes + y * (stride + 1);
            const int a = i < step ? 0 : out[y * stride + i - step];
            const int b = y == 0 ? 0 : out[(y - 1) * stride + i];
            const int c = i < step || y == 0 ? 0 : out[(y - 1) * stride + i - step];
            const int predictions[] = { 0, a, b, (a + b) / 2, paeth_of_the_standard(a, b, c) };
            out[y * stride + i] = (uint8_t)(from[1 + i] + predictions[from[0]]);
        }
}

static void check_unfilter(stk_png_unfilter_fn *unfilter, const struct stk_png_filtered *image,
                           const uint8_t *expected)
{
    const size_t bytes = image->stride * image->height;
    uint8_t *out = malloc(bytes + 8);
    cr_assert_not_null(out);
    memset(out, 0xA5, bytes + 8);
    cr_assert(unfilter(image, out));
    cr_assert_arr_eq(out, expected, bytes, "%u rows of %zu bytes, %u a pixel", image->height,
                     image->stride, image->pixel_bytes);
    for (size_t i = bytes; i < bytes + 8; i++)
        cr_assert_eq(out[i], 0xA5, "a byte behind the row was written");
    free(out);
}

CleanTest(codec_png, unfilters_agree_with_the_standard)
{
    static uint8_t filtered[12 * (1 + 4 * 40) + STK_PNG_SLACK_BYTES];
    static uint8_t zeros[4 * 40 + STK_PNG_SLACK_BYTES];
    static uint8_t expected[12 * 4 * 40];
    stk_png_unfilter_fn *variants[] = { stk_png_unfilter_plain(), stk_png_unfilter_sse41(),
                                        stk_png_unfilter_best() };
    uint64_t draw = 1;
    for (int round = 0; round < 3000; round++) {
        for (size_t i = 0; i < sizeof(filtered); i++)
            filtered[i] = (uint8_t)stk_mix64(draw++);
        struct stk_png_filtered image = { .bytes = filtered, .zeros = zeros };
        image.pixel_bytes = row_channels[round % 3];
        image.height = 1 + (uint32_t)(stk_mix64(draw++) % 12);
        image.stride = image.pixel_bytes * (1 + stk_mix64(draw++) % 40);
        for (uint32_t y = 0; y < image.height; y++) /* Paeth more often: it comes in pairs */
            filtered[y * (image.stride + 1)] = (uint8_t)(stk_mix64(draw++) % 8 % 5);
        if (round % 2 == 0)
            for (uint32_t y = 0; y < image.height; y++)
                filtered[y * (image.stride + 1)] = 4;
        undo_slowly(&image, expected);
        for (size_t v = 0; v < sizeof(variants) / sizeof(variants[0]); v++)
            if (variants[v] != NULL)
                check_unfilter(variants[v], &image, expected);
    }
}

CleanTest(codec_png, an_unknown_filter_type_is_refused)
{
    static uint8_t zeros[4 + STK_PNG_SLACK_BYTES];
    static uint8_t filtered[2 * 5 + STK_PNG_SLACK_BYTES];
    uint8_t out[8];
    const struct stk_png_filtered image = { filtered, zeros, 4, 2, 1 };
    filtered[5] = 5;
    cr_assert_not(stk_png_unfilter_plain()(&image, out));
    cr_assert_not(stk_png_unfilter_best()(&image, out));
}

CleanTest(codec_png, a_probe_believes_no_header_with_a_flipped_bit)
{
    paint(&kinds[3], 5, 9, false, PNG_FILTER_NONE);
    struct stk_image_shape shape = { 1, 2, 3 };
    stoker_error error;
    unsigned corrupt = 0;
    for (size_t bit = 0; bit < 8 * STK_PNG_PROBE_BYTES; bit++) {
        file.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
        error.message[0] = '\0';
        const int rc = stk_codec_png_probe(file.at, file.size, NULL, &shape, &error);
        cr_assert_lt(rc, STOKER_OK, "bit %zu", bit);
        cr_assert_neq(error.message[0], '\0');
        corrupt += rc == STOKER_ECORRUPT;
        file.at[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    cr_assert_geq(corrupt, 8 * 4); /* the sum's own bits, and sizes as good as the right one */
    cr_assert_eq(shape.height, 1);
}

CleanTest(codec_png, more_pixels_than_can_be_counted_are_refused)
{
    stoker_codec *codec = NULL;
    const struct stk_image_options large = { .shape = { 1U << 30, 1U << 30, 4 },
                                             .limits = { .pixels_max = UINT64_MAX } };
    cr_assert_eq(stk_image_codec_create(&codec, &stk_image_png, &large), STOKER_ELIMIT);
    cr_assert_null(codec);
}

#endif
