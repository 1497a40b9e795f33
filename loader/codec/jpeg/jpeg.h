/* jpeg.h - the codec of JPEG files: baseline and progressive, 8 bits, gray, color or CMYK.
 *
 * Decodes like libjpeg's default (slow integer DCT, smooth upsampling). Colors become gray by
 * gray.h, gray becomes color. CMYK and YCCK become RGB as in Pillow's convert("RGB"), and gray from
 * that: inks are assumed inverted, as Adobe stores them; no color profile is applied.
 *
 * libjpeg reports some faults as warnings and continues. Those that concern pixels are errors here:
 * a premature end (JWRN_HIT_MARKER, JWRN_JPEG_EOF), damaged codes (JWRN_HUFF_BAD_CODE,
 * JWRN_ARITH_BAD_CODE), a missing restart marker (JWRN_MUST_RESYNC), scans that contradict each
 * other (JWRN_BOGUS_PROGRESSION), and all others but these four, which are accepted unless
 * warnings_fail:
 *   JWRN_EXTRANEOUS_DATA   stray bytes before a marker
 *   JWRN_JFIF_MAJOR        an unknown version of JFIF
 *   JWRN_NOT_SEQUENTIAL    parameters of a progressive scan in a baseline file, which are unused
 *   JWRN_ADOBE_XFORM       an unknown color transform in Adobe's segment: YCbCr, or YCCK, is
 *                          assumed
 *
 * Of a region, decode the rows and columns needed, in whole blocks. All codes of the file are read,
 * so the same files are refused as without a region: only the work on pixels is saved. For later
 * regions of the same bytes, notes have the places of the codes (places.h), so that those elsewhere
 * are not read again. A progressive file that ends before its last scan is decoded whole. Scales
 * are 1/8, 2/8, 4/8 and 8/8: libjpeg-turbo has no vector code for others.
 */
#ifndef STK_CODEC_JPEG_H
#define STK_CODEC_JPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>

#include "loader/codec/image.h"

extern const struct stk_image_kind stk_image_jpeg;

/* stk_image_kind.probe: gray is 1 channel, color and CMYK 3. The shape comes after what a camera
 * writes first (a thumbnail, a color profile), so the whole file may be needed. */
int stk_codec_jpeg_probe(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                         struct stk_image_shape *out, stoker_error *error);

#endif
