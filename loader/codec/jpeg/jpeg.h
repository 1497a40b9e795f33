/* jpeg.h - the codec of JPEG files: baseline and progressive, 8 bits, gray, colour or CMYK.
 *
 * Decoded exactly as libjpeg does by default (slow integer DCT, smooth upsampling). Colours become
 * gray as gray.h says, gray becomes colour. CMYK and YCCK become RGB as in
 * Pillow's convert("RGB"), and gray from that: the inks are taken as inverted, as Adobe stores
 * them; no colour profile is applied.
 *
 * libjpeg reports some faults as warnings and continues. Those that concern the pixels are errors
 * here: a premature end (JWRN_HIT_MARKER, JWRN_JPEG_EOF), damaged codes (JWRN_HUFF_BAD_CODE,
 * JWRN_ARITH_BAD_CODE), a missing restart marker (JWRN_MUST_RESYNC), scans that contradict each other
 * (JWRN_BOGUS_PROGRESSION), and any that this list does not name. These four are accepted
 * unless warnings_fail:
 *   JWRN_EXTRANEOUS_DATA   bytes before a marker that belong to nothing
 *   JWRN_JFIF_MAJOR        an unknown version of JFIF
 *   JWRN_NOT_SEQUENTIAL    parameters of a progressive scan in a baseline file, which are unused
 *   JWRN_ADOBE_XFORM       an unknown colour transform in Adobe's segment: YCbCr, or YCCK, is assumed
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
    bool warnings_fail;      /* the four warnings above are errors as well; default false */
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

/* Tell a file's own shape from its beginning, without decoding: gray is 1 channel, colour
 * and CMYK 3.
 * The shape stands behind what a camera writes in front (a thumbnail, a colour profile), so it
 * may take the whole file: STOKER_ETRUNCATED then asks for more. limits may be NULL.
 * Errors: STOKER_EMAGIC, STOKER_ETRUNCATED, STOKER_EFORMAT, STOKER_ELIMIT; only error->message
 * is filled in. Works in a build without libjpeg-turbo as well. */
int stk_codec_jpeg_probe(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                         struct stk_image_shape *out, stoker_error *error);

#endif
