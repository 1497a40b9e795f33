/* pixels.h - encode rows as PNG, JPEG, LZ4 or Zstandard; each library has one file. */
#ifndef PACK_PIXELS_H
#define PACK_PIXELS_H

#include <stdbool.h>
#include <stdint.h>

#include "datasets/pack/room.h"

struct pack_pixels {
    uint32_t height;
    uint32_t width;
    uint32_t channels; /* 1, 3 or 4 of 8 bits; 0 = rows are not such images */
};

/* Encode the row as a file or block into an empty room. Returns NULL, or the reason of a failure.
 * Callable from any thread. */
const char *pack_png(const struct pack_pixels *pixels, const uint8_t *row, struct pack_room *room);
const char *pack_jpeg(const struct pack_pixels *pixels, uint32_t quality, const uint8_t *row,
                      struct pack_room *room);
const char *pack_lz4(const uint8_t *row, size_t row_bytes, uint32_t level, struct pack_room *room);
const char *pack_zstd(const uint8_t *row, size_t row_bytes, uint32_t level, struct pack_room *room);

/* Make a baseline file with the coefficients, the markers and so the pixels of a progressive or
 * arithmetic JPEG file. The room stays empty if the file is neither, is damaged, or ends before its
 * last scan, which decoders then guess. Returns NULL, or the reason of a failure. Callable from any
 * thread. */
const char *pack_jpeg_baseline(const uint8_t *file, size_t size, struct pack_room *room);

/* Return true if this build has the library. */
bool pack_png_present(void);
bool pack_jpeg_present(void);
bool pack_lz4_present(void);
bool pack_zstd_present(void);

#endif
