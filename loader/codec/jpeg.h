/* jpeg.h - the codec of JPEG files: baseline and progressive, 8 bits, gray or colour.
 *
 * Decoded exactly as libjpeg does by default (slow integer DCT, smooth upsampling). What
 * libjpeg only warns of (missing or damaged parts, which it would paint over) is an error here.
 * Colours become gray as gray.h says (the luma as stored), gray becomes colour; CMYK is refused.
 */
#ifndef STK_CODEC_JPEG_H
#define STK_CODEC_JPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>

#include "loader/codec/image.h"

struct stk_jpeg_options {
    struct stk_image_shape shape; /* of a row; a file of another size gives STOKER_EFORMAT */
    struct stk_image_limits limits;
    uint64_t any_pixels_max; /* > 0: files of any size up to so many pixels are decoded, too, by
                                decode_any(); 0 = the codec has none */
};

/* Make the codec of one row shape. Immutable: any number of threads may decode with it, each
 * with a scratch of its own. On failure *out is untouched.
 * Errors: STOKER_EINVAL (the shape), STOKER_ELIMIT (too many pixels), STOKER_ENOMEM,
 * STOKER_ENOTSUP in a build without libjpeg-turbo.
 * decode() answers STOKER_EMAGIC, STOKER_ETRUNCATED, STOKER_EFORMAT, STOKER_ECORRUPT or
 * STOKER_ELIMIT. */
int stk_codec_jpeg_create(stoker_codec **out, const struct stk_jpeg_options *options);

/* Free it and set *codec to NULL. NULL and a pointer to NULL are allowed. */
void stk_codec_jpeg_destroy(stoker_codec **codec);

/* Whether bytes begin as a JPEG file does. */
bool stk_codec_jpeg_magic(const uint8_t *bytes, size_t size);

/* Tell a file's own shape from its beginning, without decoding: gray is 1 channel, colour 3.
 * The shape stands behind what a camera writes in front (a thumbnail, a colour profile), so it
 * may take the whole file: STOKER_ETRUNCATED then asks for more. limits may be NULL.
 * Errors: STOKER_EMAGIC, STOKER_ETRUNCATED, STOKER_EFORMAT, STOKER_ELIMIT; only error->message
 * is filled in. Works in a build without libjpeg-turbo as well. */
int stk_codec_jpeg_probe(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                         struct stk_image_shape *out, stoker_error *error);

#endif
