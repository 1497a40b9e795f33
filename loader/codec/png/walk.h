/* walk.h - find the chunks of a PNG file and check them against the limits.
 *
 * Reads lengths and types only, computes no checksum and allocates nothing, so that a file with a
 * false size is refused before a decoder sees it.
 */
#ifndef STK_CODEC_PNG_WALK_H
#define STK_CODEC_PNG_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "loader/codec/image.h"

enum {
    STK_PNG_SIGNATURE_BYTES = 8,
    STK_PNG_CHUNK_BYTES = 12, /* length, type and CRC around the bytes of a chunk */
    STK_PNG_GRAY = 0,
    STK_PNG_RGB = 2,
    STK_PNG_PALETTE = 3,
    STK_PNG_GRAY_ALPHA = 4,
    STK_PNG_RGBA = 6
};

#define STK_PNG_TYPE(a, b, c, d)                                                                   \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

struct stk_png_header {
    uint32_t width, height; /* pixels, 1..2^31 - 1 */
    uint8_t depth;          /* bits: 1, 2, 4, 8 or 16 */
    uint8_t color;          /* STK_PNG_GRAY, ... */
    bool interlaced;
};

struct stk_png_walk {
    struct stk_png_header header;
    size_t idat_at;     /* the first IDAT chunk */
    size_t idat_bytes;  /* bodies of all IDAT chunks */
    uint32_t idat_runs; /* 1 = the IDAT chunks are consecutive, as required */
    uint32_t idat_count;
    /* No other chunk affects the pixels, which of an image with a palette are its indices. */
    bool plain;
    bool has_palette; /* color is STK_PNG_PALETTE, with one PLTE, as long and where it must be */
};

/* A complete chunk. */
struct stk_png_chunk {
    uint32_t type;
    uint32_t bytes;
    const uint8_t *body;
};

/* Read the chunk at `at`; false if the file ends before the chunk. */
bool stk_png_chunk_at(const uint8_t *bytes, size_t size, size_t at, struct stk_png_chunk *out);

/* Read signature and IHDR, then walk over all chunks up to IEND. Errors: STOKER_EMAGIC,
 * STOKER_ETRUNCATED, STOKER_EFORMAT, STOKER_ELIMIT; error->message (error may be NULL) says what is
 * wrong. */
int stk_png_walk(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                 struct stk_png_walk *out, stoker_error *error);

#endif
