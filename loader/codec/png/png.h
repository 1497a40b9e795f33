/* png.h - the codec of PNG files.
 *
 * Decodes every legal file: all color types and depths, interlaced or not. 16 bits become 8 by
 * rounding (v x 255 / 65535), palettes become colors, colors become gray by gray.h (BT.601, as
 * Pillow's "L"). gAMA and other chunks about display are ignored. Transparency is dropped, or
 * becomes alpha if the row has 4 channels.
 *
 * With options.values pixels stay as they are stored: the indices of a palette, whose colors and
 * transparency do not matter, and gray levels of 1, 2, 4 or 8 bits, unscaled. Other kinds of files
 * are refused.
 *
 * A file is refused if a chunk fails its CRC, the pixels fail their Adler-32, or IEND is missing.
 * Bytes after IEND are ignored.
 *
 * Of a region, decode the rows from the top to the last one needed, but all of an interlaced file.
 * The rest is unpacked and checked, too, so the same files are refused as without a region.
 */
#ifndef STK_CODEC_PNG_H
#define STK_CODEC_PNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/codec.h>

#include "loader/codec/image.h"

extern const struct stk_image_kind stk_image_png;

enum { STK_PNG_PROBE_BYTES = 33 }; /* enough bytes of a file to probe it */

/* stk_image_kind.probe: gray is 1 channel, RGB and palettes are 3, with alpha 4; a palette's
 * transparency is ignored. STOKER_ECORRUPT: IHDR fails its CRC. */
int stk_codec_png_probe(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                        struct stk_image_shape *out, stoker_error *error);

#endif
