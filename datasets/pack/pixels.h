/* pixels.h - rows that are images, and the libraries that pack them; each has one file. */
#ifndef PACK_PIXELS_H
#define PACK_PIXELS_H

#include <stdbool.h>
#include <stdint.h>

#include "datasets/pack/sample.h"

struct pack_pixels {
    uint32_t height;
    uint32_t width;
    uint32_t channels; /* 1, 3 or 4 of 8 bits; 0 = rows are no such images */
};

/* Append the row as a file, or a block, to an empty room. NULL, or why it failed. Any thread. */
const char *pack_png(const struct pack_pixels *pixels, const uint8_t *row, struct pack_room *room);
const char *pack_jpeg(const struct pack_pixels *pixels, uint32_t quality, const uint8_t *row,
                      struct pack_room *room);
const char *pack_lz4(const uint8_t *row, size_t row_bytes, struct pack_room *room);

/* Whether this build has them. */
bool pack_png_present(void);
bool pack_jpeg_present(void);
bool pack_lz4_present(void);

#endif
