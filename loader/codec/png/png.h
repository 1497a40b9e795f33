/* png.h - the codec of PNG files.
 *
 * Every legal file is decoded: all colour types and depths, interlaced or not, converted to
 * the row that the data set declares. 16 bits become 8 by rounding (v x 255 / 65535), palettes
 * become colours, colours become gray by gray.h (BT.601, as Pillow's "L"); gAMA and all other
 * chunks that only say how a screen should show the pixels are ignored. Transparency is dropped,
 * or becomes alpha if the row has 4 channels.
 *
 * A file is refused if any chunk fails its CRC, the pixels their Adler-32, or the end is
 * missing: what follows IEND is not looked at.
 */
#ifndef STK_CODEC_PNG_H
#define STK_CODEC_PNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>

#include "loader/codec/image.h"

struct stk_png_options {
    struct stk_image_shape shape; /* of a row; a file of another size gives STOKER_EFORMAT */
    struct stk_image_limits limits;
    uint64_t any_pixels_max; /* > 0: files of any size up to so many pixels are decoded, too, by
                                decode_any(); 0 = the codec has none */
    bool full_only;          /* never take the fast path: for tests and measurements */
};

/* Make the codec of one row shape. Immutable: any number of threads may decode with it, each
 * with a scratch of its own. On failure *out is untouched.
 * Errors: STOKER_EINVAL (the shape), STOKER_ELIMIT (too many pixels), STOKER_ENOMEM,
 * STOKER_ENOTSUP in a build without libpng.
 * decode() answers STOKER_EMAGIC, STOKER_ETRUNCATED, STOKER_EFORMAT, STOKER_ECORRUPT or
 * STOKER_ELIMIT. */
int stk_codec_png_create(stoker_codec **out, const struct stk_png_options *options);

/* Free it and set *codec to NULL. NULL and a pointer to NULL are allowed. */
void stk_codec_png_destroy(stoker_codec **codec);

/* Whether bytes begin as a PNG file does. */
bool stk_codec_png_magic(const uint8_t *bytes, size_t size);

enum { STK_PNG_PROBE_BYTES = 33 }; /* so much of a file's beginning is enough to probe it */

/* Tell a file's own shape from its beginning, without decoding: gray is 1 channel, RGB and
 * palettes are 3, with alpha 4 (a palette's transparency is not looked for). limits may be NULL.
 * Errors: STOKER_EMAGIC, STOKER_ETRUNCATED, STOKER_EFORMAT, STOKER_ELIMIT, STOKER_ECORRUPT (IHDR
 * fails its CRC); only error->message is filled in. Works in a build without libpng as well. */
int stk_codec_png_probe(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                        struct stk_image_shape *out, stoker_error *error);

#endif
