/* webp.h - the codec of WebP files: lossy, lossless, and either with alpha.
 *
 * Decoded exactly as libwebp does by default (smooth upsampling, no dithering). Pixels become gray
 * by gray.h; alpha is dropped, or 255 if the file has none and the row has 4 channels. Animated
 * files are refused. WebP has no checksum over its pixels: a flipped bit can give
 * other pixels without an error.
 *
 * Of a region, filter and convert only the columns needed and the rows from the first one needed,
 * with a margin of a few pixels. The file is read to its end, so the same files are refused as
 * without a region. Never scales: libwebp scales after decoding, which saves nothing.
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
