/* webp.h - the codec of WebP files: lossy, lossless, and either with alpha.
 *
 * Decoded exactly as libwebp does by default (smooth upsampling, no dithering). Pixels become gray
 * by gray.h; alpha is dropped, or 255 if the file has none and the row has 4 channels. Animated
 * files are refused. WebP has no checksum over its pixels: a flipped bit that leaves a legal
 * stream gives other pixels.
 *
 * libwebp allocates its tables and rows for each image and frees them again, by malloc(), and offers
 * no way to bring memory of one's own: this is the one codec that allocates while it decodes.
 * How much depends on the pixels, whose number is checked before (a lossless image takes about 4 bytes
 * each), and on the length of the file.
 */
#ifndef STK_CODEC_WEBP_H
#define STK_CODEC_WEBP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>

#include "loader/codec/image.h"

struct stk_webp_options {
    struct stk_image_shape shape; /* of a row; a file of another size gives STOKER_EFORMAT */
    struct stk_image_limits limits;
    uint64_t any_pixels_max; /* > 0: decode_any() decodes files of any size up to this number of
                                pixels; 0 = the codec has no decode_any() */
};

/* Make the codec of one row shape. Immutable: any number of threads may decode with it, each
 * with a scratch of its own. On failure *out is untouched.
 * Errors: STOKER_EINVAL (the shape), STOKER_ELIMIT (too many pixels), STOKER_ENOMEM,
 * STOKER_ENOTSUP in a build without libwebp.
 * decode() returns STOKER_EMAGIC, STOKER_ETRUNCATED, STOKER_EFORMAT, STOKER_ECORRUPT,
 * STOKER_ELIMIT or STOKER_ENOMEM. */
int stk_codec_webp_create(stoker_codec **out, const struct stk_webp_options *options);

/* Free it and set *codec to NULL. NULL and a pointer to NULL are allowed. */
void stk_codec_webp_destroy(stoker_codec **codec);

/* Returns true if the bytes begin as a WebP file does. */
bool stk_codec_webp_magic(const uint8_t *bytes, size_t size);

/* Read a file's own shape from its beginning, without decoding: 3 channels, 4 with alpha. limits
 * may be NULL. Errors: STOKER_EMAGIC, STOKER_ETRUNCATED (more bytes are needed), STOKER_EFORMAT,
 * STOKER_ELIMIT; only error->message is filled in. Works in a build without libwebp as well. */
int stk_codec_webp_probe(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                         struct stk_image_shape *out, stoker_error *error);

#endif
