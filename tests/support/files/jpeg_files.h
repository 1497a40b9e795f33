/* jpeg_files.h - small JPEG files of every kind, written and read back by libjpeg itself. */
#ifndef STK_TEST_JPEG_FILES_H
#define STK_TEST_JPEG_FILES_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "loader/base/rng.h"

struct stk_jpeg_kind {
    uint32_t height, width;
    uint32_t channels;      /* 1 gray, 2 of no known color, 3 color, 4 inverted CMYK */
    bool ycck;              /* CMYK stored as YCCK */
    int h_factor, v_factor; /* sampling factors of luma: 2, 2 is 4:2:0 */
    bool progressive;
    bool unfinished; /* progressive, without the scans that refine the coefficients */
    bool arithmetic;
    bool no_tables;
    uint32_t restart_rows; /* MCU rows between restart markers; 0 = none */
    const uint8_t *solid;  /* one color for all pixels, at quality 100; NULL = a pattern */
};

struct stk_jpeg_file {
    unsigned char *at; /* from malloc */
    unsigned long size;
};

static inline uint8_t stk_jpeg_sample(uint32_t y, uint32_t x, uint32_t c)
{
    const uint64_t noise = stk_mix64((y * 4096ULL + x) * 4 + c);
    return (uint8_t)(40 + x * (3 + c) + y * 2 + (noise & 15));
}

static inline struct stk_jpeg_file stk_jpeg_write(const struct stk_jpeg_kind *kind)
{
    struct stk_jpeg_file file = { NULL, 0 };
    struct jpeg_compress_struct compress;
    struct jpeg_error_mgr errors; /* the default one ends the program */
    compress.err = jpeg_std_error(&errors);
    jpeg_create_compress(&compress);
    jpeg_mem_dest(&compress, &file.at, &file.size);
    compress.image_width = kind->width;
    compress.image_height = kind->height;
    compress.input_components = (int)kind->channels;
    static const J_COLOR_SPACE spaces[] = { JCS_UNKNOWN, JCS_GRAYSCALE, JCS_UNKNOWN, JCS_RGB,
                                            JCS_CMYK };
    compress.in_color_space = spaces[kind->channels];
    jpeg_set_defaults(&compress);
    if (kind->ycck)
        jpeg_set_colorspace(&compress, JCS_YCCK);
    jpeg_set_quality(&compress, kind->solid != NULL ? 100 : 85, TRUE);
    if (kind->h_factor != 0) {
        compress.comp_info[0].h_samp_factor = kind->h_factor;
        compress.comp_info[0].v_samp_factor = kind->v_factor;
    }
    compress.arith_code = kind->arithmetic ? TRUE : FALSE;
    compress.restart_in_rows = (int)kind->restart_rows;
    if (kind->progressive)
        jpeg_simple_progression(&compress);
    if (kind->unfinished)
        compress.num_scans = kind->channels == 1 ? 4 : 6; /* the others refine */
    if (kind->no_tables)
        jpeg_suppress_tables(&compress, TRUE);
    jpeg_start_compress(&compress, kind->no_tables ? FALSE : TRUE);
    uint8_t *row = calloc(kind->width, kind->channels);
    cr_assert_not_null(row);
    for (uint32_t y = 0; y < kind->height; y++) {
        for (uint32_t i = 0; i < kind->width * kind->channels; i++)
            row[i] = kind->solid != NULL
                         ? kind->solid[i % kind->channels]
                         : stk_jpeg_sample(y, i / kind->channels, i % kind->channels);
        JSAMPROW rows[] = { row };
        (void)jpeg_write_scanlines(&compress, rows, 1);
    }
    free(row);
    jpeg_finish_compress(&compress);
    jpeg_destroy_compress(&compress);
    return file;
}

static inline uint8_t stk_jpeg_expect_gray(const uint8_t rgb[3])
{
    return (uint8_t)((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 0x8000) >> 16);
}

/* One pixel of inverted CMYK as RGB and its gray, in plain arithmetic. */
static inline void stk_jpeg_expect_inks(const uint8_t inks[4], uint32_t channels, uint8_t *out)
{
    uint8_t rgba[4] = { 0, 0, 0, 255 };
    for (int c = 0; c < 3; c++)
        rgba[c] = (uint8_t)(inks[3] - ((255 - inks[c]) * inks[3] * 2 + 255) / 510);
    if (channels == 1)
        out[0] = stk_jpeg_expect_gray(rgba);
    else
        memcpy(out, rgba, channels);
}

/* By way of CMYK, or of RGB for gray from color. */
static inline void stk_jpeg_expect_converted(struct jpeg_decompress_struct *decompress,
                                             uint32_t channels, uint8_t *out)
{
    const bool inks = decompress->num_components == 4;
    decompress->out_color_space = inks ? JCS_CMYK : JCS_RGB;
    (void)jpeg_start_decompress(decompress);
    const size_t width = decompress->image_width;
    uint8_t *line = calloc(width, 4);
    cr_assert_not_null(line);
    while (decompress->output_scanline < decompress->output_height) {
        uint8_t *to = out + decompress->output_scanline * width * channels;
        (void)jpeg_read_scanlines(decompress, &line, 1);
        for (size_t x = 0; x < width; x++)
            if (inks)
                stk_jpeg_expect_inks(line + 4 * x, channels, to + x * channels);
            else
                to[x] = stk_jpeg_expect_gray(line + 3 * x);
    }
    free(line);
}

static inline void stk_jpeg_expect_rows(struct jpeg_decompress_struct *decompress,
                                        uint32_t channels, uint8_t *out)
{
    decompress->out_color_space = channels == 1   ? JCS_GRAYSCALE
                                  : channels == 3 ? JCS_RGB
                                                  : JCS_EXT_RGBA;
    (void)jpeg_start_decompress(decompress);
    while (decompress->output_scanline < decompress->output_height) {
        JSAMPROW row =
            out + (size_t)decompress->output_scanline * decompress->image_width * channels;
        (void)jpeg_read_scanlines(decompress, &row, 1);
    }
}

/* What libjpeg makes of it by default. */
static inline void stk_jpeg_expect(const struct stk_jpeg_file *file, uint32_t channels,
                                   uint8_t *out)
{
    struct jpeg_decompress_struct decompress;
    struct jpeg_error_mgr errors;
    decompress.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&decompress);
    jpeg_mem_src(&decompress, file->at, file->size);
    (void)jpeg_read_header(&decompress, TRUE);
    if (decompress.num_components == 4 || (decompress.num_components == 3 && channels == 1))
        stk_jpeg_expect_converted(&decompress, channels, out);
    else
        stk_jpeg_expect_rows(&decompress, channels, out);
    (void)jpeg_finish_decompress(&decompress);
    jpeg_destroy_decompress(&decompress);
}

#endif
