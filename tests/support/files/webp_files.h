/* webp_files.h - small WebP files of every kind, written and read back by libwebp itself. */
#ifndef STK_TEST_WEBP_FILES_H
#define STK_TEST_WEBP_FILES_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/encode.h>

#include "loader/base/bytes.h"
#include "loader/base/rng.h"

struct stk_webp_kind {
    uint32_t height, width;
    bool lossless;
    bool alpha;
    const uint8_t *solid; /* one color for all pixels, RGBA; NULL = a pattern */
};

struct stk_webp_file {
    uint8_t *at; /* from malloc */
    size_t size;
};

static inline void stk_webp_paint(const struct stk_webp_kind *kind, uint8_t *rgba)
{
    for (uint32_t y = 0; y < kind->height; y++)
        for (uint32_t x = 0; x < kind->width; x++)
            for (uint32_t c = 0; c < 4; c++) {
                const uint64_t noise = stk_mix64((y * 4096ULL + x) * 4 + c);
                const uint32_t value = 30 + x * (3 + c) + y * 2 + (noise & 31);
                rgba[(y * kind->width + x) * 4 + c] =
                    (uint8_t)(kind->solid != NULL ? kind->solid[c] : value);
            }
}

static inline struct stk_webp_file stk_webp_write(const struct stk_webp_kind *kind)
{
    uint8_t *rgba = malloc((size_t)kind->height * kind->width * 4);
    WebPConfig config;
    WebPPicture picture;
    WebPMemoryWriter writer;
    cr_assert_not_null(rgba);
    stk_webp_paint(kind, rgba);
    WebPMemoryWriterInit(&writer);
    cr_assert(WebPConfigInit(&config) != 0 && WebPPictureInit(&picture) != 0);
    config.lossless = kind->lossless ? 1 : 0;
    config.exact = 1; /* colors stay where alpha is 0 */
    config.method = 2;
    picture.use_argb = 1;
    picture.width = (int)kind->width;
    picture.height = (int)kind->height;
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = &writer;
    const int stride = (int)kind->width * 4;
    cr_assert(
        (kind->alpha ? WebPPictureImportRGBA : WebPPictureImportRGBX)(&picture, rgba, stride));
    cr_assert(WebPEncode(&config, &picture), "%d", picture.error_code);
    WebPPictureFree(&picture);
    free(rgba);
    struct stk_webp_file file = { malloc(writer.size), writer.size };
    cr_assert_not_null(file.at);
    memcpy(file.at, writer.mem, writer.size);
    WebPMemoryWriterClear(&writer);
    return file;
}

/* What libwebp makes of it by default, and the gray of that. */
static inline void stk_webp_expect(const struct stk_webp_file *file, uint32_t channels,
                                   uint8_t *out)
{
    int width = 0;
    int height = 0;
    uint8_t *pixels =
        (channels == 4 ? WebPDecodeRGBA : WebPDecodeRGB)(file->at, file->size, &width, &height);
    cr_assert_not_null(pixels);
    const size_t count = (size_t)width * (size_t)height;
    for (size_t i = 0; i < count && channels == 1; i++)
        out[i] = (uint8_t)((19595U * pixels[3 * i] + 38470U * pixels[3 * i + 1] +
                            7471U * pixels[3 * i + 2] + 0x8000) >>
                           16);
    if (channels != 1)
        memcpy(out, pixels, count * channels);
    WebPFree(pixels);
}

/* Put "RIFF", its length, "WEBP" and a chunk with these bytes in front of the file's own chunks. */
static inline void stk_webp_put_chunk(struct stk_webp_file *file, const char *name,
                                      const void *bytes, uint32_t size)
{
    const size_t more = 8 + size + size % 2;
    uint8_t *longer = calloc(1, file->size + more);
    cr_assert_not_null(longer);
    memcpy(longer, file->at, 12);
    memcpy(longer + 12, name, 4);
    stk_store_le32(longer + 16, size);
    memcpy(longer + 20, bytes, size);
    memcpy(longer + 12 + more, file->at + 12, file->size - 12);
    free(file->at);
    file->at = longer;
    file->size += more;
    stk_store_le32(file->at + 4, (uint32_t)file->size - 8);
}

#endif
