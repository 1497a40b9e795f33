/* png_chunks.h - PNG files put together by hand: chunks with right sums and whatever inside. */
#ifndef STK_TEST_PNG_CHUNKS_H
#define STK_TEST_PNG_CHUNKS_H

#include "picture.h"
#include "png_sums.h"

static inline void stk_png_add_bytes(struct stk_file_bytes *file, const void *bytes, size_t size)
{
    cr_assert_leq(size, sizeof(file->at) - file->size);
    if (size > 0)
        memcpy(file->at + file->size, bytes, size);
    file->size += size;
}

/* Append a chunk; body may be NULL when bytes is 0. */
static inline void stk_png_add(struct stk_file_bytes *file, const char *type, const void *body,
                               size_t bytes)
{
    uint8_t word[4];
    stk_png_put_be32(word, (uint32_t)bytes);
    stk_png_add_bytes(file, word, 4);
    const size_t summed = file->size;
    stk_png_add_bytes(file, type, 4);
    stk_png_add_bytes(file, body, bytes);
    stk_png_put_be32(word, stk_png_sum(file->at + summed, bytes + 4));
    stk_png_add_bytes(file, word, 4);
}

/* Signature and IHDR. */
static inline void stk_png_begin(struct stk_file_bytes *file, uint32_t height, uint32_t width,
                                 uint8_t depth, uint8_t color)
{
    uint8_t header[13] = { 0 };
    stk_png_put_be32(header, width);
    stk_png_put_be32(header + 4, height);
    header[8] = depth;
    header[9] = color;
    file->size = 0;
    stk_png_add_bytes(file, "\x89PNG\r\n\x1a\n", 8);
    stk_png_add(file, "IHDR", header, sizeof(header));
}

/* Copy a file with its IDAT cut into pieces of piece_bytes (0 = as they are), an empty one
 * among them, and `bytes` of a chunk `type` before the first (type NULL = none). */
static inline void stk_png_rebuild(struct stk_file_bytes *out, const struct stk_file_bytes *from,
                                   size_t piece_bytes, const char *type, const void *body,
                                   size_t bytes)
{
    out->size = 0;
    stk_png_add_bytes(out, from->at, 8);
    for (size_t at = 8; at < from->size; at += 12 + stk_load_be32(from->at + at)) {
        const size_t length = stk_load_be32(from->at + at);
        const char *name = (const char *)from->at + at + 4;
        const uint8_t *content = from->at + at + 8;
        const bool image = memcmp(name, "IDAT", 4) == 0;
        if (image && type != NULL)
            stk_png_add(out, type, body, bytes);
        if (image)
            type = NULL;
        if (!image || piece_bytes == 0) {
            stk_png_add(out, name, content, length);
            continue;
        }
        for (size_t done = 0; done < length; done += piece_bytes)
            stk_png_add(out, "IDAT", content + done,
                        length - done < piece_bytes ? length - done : piece_bytes);
        stk_png_add(out, "IDAT", NULL, 0);
    }
}

#endif
