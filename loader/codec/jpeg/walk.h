/* walk.h - walk over the markers of a JPEG file: its size, its number of scans, its end.
 *
 * Allocates and decodes nothing, so that a file over the limits is refused before libjpeg sees it.
 * Reads markers like libjpeg and leaves their contents to it.
 */
#ifndef STK_CODEC_JPEG_WALK_H
#define STK_CODEC_JPEG_WALK_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "loader/codec/image.h"

struct stk_jpeg_walk {
    uint32_t width, height; /* pixels, 1..65535 */
    uint32_t components;    /* 1, 3 or 4 */
    uint32_t scans;
};

/* Walk to the end of the image. Errors: STOKER_EMAGIC, STOKER_ETRUNCATED, STOKER_EFORMAT (a kind of
 * JPEG that cannot be decoded here, too), STOKER_ELIMIT; error->message (error may be NULL) says
 * what is wrong. */
int stk_jpeg_walk(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                  struct stk_jpeg_walk *out, stoker_error *error);

#endif
