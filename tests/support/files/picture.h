/* picture.h - small pictures of any PNG kind, written by libpng, and what a decoder must make
 * of them, computed here from the samples.
 */
#ifndef STK_TEST_PICTURE_H
#define STK_TEST_PICTURE_H

#include <criterion/criterion.h>
#include <png.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/rng.h"

enum { STK_PICTURE_SIDE_MAX = 64, STK_FILE_BYTES_MAX = 1 << 17 };

struct stk_picture {
    uint32_t width, height;
    uint8_t depth; /* bits */
    uint8_t color; /* PNG_COLOR_TYPE_... */
    bool interlaced;
    bool transparent; /* has tRNS; not with an alpha channel */
    int filters;      /* PNG_FILTER_..., or PNG_ALL_FILTERS */
    uint16_t samples[STK_PICTURE_SIDE_MAX][STK_PICTURE_SIDE_MAX][4];
    png_color palette[256];
    uint8_t palette_alpha[256];
};

struct stk_file_bytes {
    size_t size;
    uint8_t at[STK_FILE_BYTES_MAX];
};

static inline uint32_t stk_picture_channels(const struct stk_picture *picture)
{
    switch (picture->color) {
    case PNG_COLOR_TYPE_GRAY_ALPHA:
        return 2;
    case PNG_COLOR_TYPE_RGB:
        return 3;
    case PNG_COLOR_TYPE_RGB_ALPHA:
        return 4;
    default:
        return 1;
    }
}

/* Fill in samples: slopes with noise, so that every filter has something to do. */
static inline void stk_picture_paint(struct stk_picture *picture, uint64_t seed)
{
    const uint32_t channels = stk_picture_channels(picture);
    const uint32_t mask = (1U << picture->depth) - 1;
    for (uint32_t y = 0; y < picture->height; y++)
        for (uint32_t x = 0; x < picture->width; x++)
            for (uint32_t c = 0; c < channels; c++) {
                const uint64_t noise = stk_mix64(seed + (y * 4096ULL + x) * 4 + c);
                const uint32_t slope = x * (5 + c) + y * (3 + (uint32_t)seed % 7);
                const uint32_t value = (noise >> 60) < 4 ? (uint32_t)(noise & mask) : slope;
                picture->samples[y][x][c] = (uint16_t)(value & mask);
            }
    for (uint32_t i = 0; i < 256; i++) {
        const uint64_t noise = stk_mix64(seed ^ (i + 77));
        picture->palette[i] =
            (png_color){ (uint8_t)noise, (uint8_t)(noise >> 8), (uint8_t)(noise >> 16) };
        picture->palette_alpha[i] = i % 3 == 0 ? 0 : (uint8_t)(noise >> 24);
    }
}

/* ---- writing ---- */

static inline void stk_picture_append(png_structp png, png_bytep bytes, size_t size)
{
    struct stk_file_bytes *file = png_get_io_ptr(png);
    cr_assert_leq(size, sizeof(file->at) - file->size);
    memcpy(file->at + file->size, bytes, size);
    file->size += size;
}

/* One row as PNG packs it. */
static inline void stk_picture_pack(const struct stk_picture *picture, uint32_t y, uint8_t *out)
{
    const uint32_t channels = stk_picture_channels(picture);
    memset(out, 0, (size_t)STK_PICTURE_SIDE_MAX * 8);
    for (uint32_t i = 0; i < picture->width * channels; i++) {
        const uint32_t sample = picture->samples[y][i / channels][i % channels];
        if (picture->depth == 16) {
            out[2 * i] = (uint8_t)(sample >> 8);
            out[2 * i + 1] = (uint8_t)sample;
        } else {
            const uint32_t bit = i * picture->depth;
            const uint32_t shift = 8 - picture->depth - bit % 8;
            out[bit / 8] = (uint8_t)(out[bit / 8] | sample << shift);
        }
    }
}

static inline void stk_picture_write_tables(const struct stk_picture *picture, png_structp png,
                                            png_infop info)
{
    const uint16_t *first = picture->samples[0][0];
    const png_color_16 clear = {
        .gray = first[0], .red = first[0], .green = first[1], .blue = first[2]
    };
    const bool indexed = picture->color == PNG_COLOR_TYPE_PALETTE;
    const int entries = 1 << picture->depth;
    if (indexed)
        png_set_PLTE(png, info, picture->palette, entries);
    if (picture->transparent)
        png_set_tRNS(png, info, indexed ? picture->palette_alpha : NULL, indexed ? entries : 0,
                     indexed ? NULL : &clear);
    png_set_gAMA_fixed(png, info, 20000); /* far from any screen: must be ignored */
}

static inline void stk_picture_write(const struct stk_picture *picture, struct stk_file_bytes *out)
{
    out->size = 0;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    cr_assert_not_null(png);
    png_infop info = png_create_info_struct(png);
    cr_assert_not_null(info);
    if (setjmp(png_jmpbuf(png)) != 0)
        abort();
    png_set_write_fn(png, out, stk_picture_append, NULL);
    png_set_IHDR(png, info, picture->width, picture->height, picture->depth, picture->color,
                 picture->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, 0, 0);
    stk_picture_write_tables(picture, png, info);
    png_set_filter(png, 0, picture->filters);
    png_set_compression_level(png, 1);
    png_write_info(png, info);
    uint8_t row[STK_PICTURE_SIDE_MAX * 8];
    for (int pass = png_set_interlace_handling(png); pass > 0; pass--)
        for (uint32_t y = 0; y < picture->height; y++) {
            stk_picture_pack(picture, y, row);
            png_write_row(png, row);
        }
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
}

/* ---- what a decoder must make of it ---- */

struct stk_rgba {
    uint16_t at[4];
};

static inline struct stk_rgba stk_picture_color(const struct stk_picture *picture, uint32_t y,
                                                uint32_t x)
{
    const uint16_t *sample = picture->samples[y][x];
    const uint16_t full = (uint16_t)((1U << picture->depth) - 1);
    const bool clear =
        picture->transparent && memcmp(sample, picture->samples[0][0],
                                       stk_picture_channels(picture) * sizeof(sample[0])) == 0;
    switch (picture->color) {
    case PNG_COLOR_TYPE_GRAY:
        return (struct stk_rgba){ { sample[0], sample[0], sample[0], clear ? 0 : full } };
    case PNG_COLOR_TYPE_GRAY_ALPHA:
        return (struct stk_rgba){ { sample[0], sample[0], sample[0], sample[1] } };
    case PNG_COLOR_TYPE_RGB:
        return (struct stk_rgba){ { sample[0], sample[1], sample[2], clear ? 0 : full } };
    case PNG_COLOR_TYPE_RGB_ALPHA:
        return (struct stk_rgba){ { sample[0], sample[1], sample[2], sample[3] } };
    default:
        return (
            struct stk_rgba){ { picture->palette[sample[0]].red, picture->palette[sample[0]].green,
                                picture->palette[sample[0]].blue,
                                picture->transparent ? picture->palette_alpha[sample[0]] : 255 } };
    }
}

/* One pixel as a row of 1, 3 or 4 channels has it; gray from colors by Pillow's formula. */
static inline void stk_picture_expect(const struct stk_picture *picture, uint32_t y, uint32_t x,
                                      uint32_t channels, uint8_t *out)
{
    const struct stk_rgba color = stk_picture_color(picture, y, x);
    const uint32_t full =
        picture->color == PNG_COLOR_TYPE_PALETTE ? 255 : (1U << picture->depth) - 1;
    uint8_t eight[4];
    for (int c = 0; c < 4; c++)
        eight[c] = (uint8_t)((color.at[c] * 255U + full / 2) / full);
    if (channels >= 3) {
        memcpy(out, eight, channels);
        return;
    }
    *out = eight[0];
    if (eight[0] != eight[1] || eight[1] != eight[2])
        *out = (uint8_t)((19595U * eight[0] + 38470U * eight[1] + 7471U * eight[2] + 0x8000) >> 16);
}

#endif
