/* webp.h - the codec of WebP files: lossy, lossless, and either with alpha.
 *
 * Decoded exactly as libwebp does by default (smooth upsampling, no dithering). Pixels become gray
 * by gray.h; alpha is dropped, or 255 if the file has none and the row has 4 channels. Animated
 * files are refused. WebP has no checksum over its pixels: a flipped bit can give
 * other pixels without an error.
 *
 * decode_region() filters and converts only the columns that are needed and the rows from the first
 * one that is, with a few around them. It reads the file to its end, and refuses the same files as
 * decode_any(). It never scales: libwebp scales after decoding, which saves nothing.
 *
 * libwebp allocates its tables and rows with malloc() for each image and has no allocator hooks:
 * the only codec that allocates while it decodes. The amount depends on the number of pixels, which
 * is checked first (about 4 bytes per pixel for a lossless image), and on the length of the file.
 */
#ifndef STK_CODEC_WEBP_H
#define STK_CODEC_WEBP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>

#include "loader/codec/image.h"

extern const struct stk_image_kind stk_image_webp;

/* stk_image_kind.probe: 3 channels, 4 with alpha. */
int stk_codec_webp_probe(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                         struct stk_image_shape *out, stoker_error *error);

#endif
