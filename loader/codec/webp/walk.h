/* walk.h - walk over the chunks of a WebP file: check its size, its end and the limits.
 *
 * Allocates and decodes nothing: a file over the limits is refused before libwebp sees it.
 */
#ifndef STK_CODEC_WEBP_WALK_H
#define STK_CODEC_WEBP_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "loader/codec/image.h"

struct stk_webp_walk {
    uint32_t width, height; /* pixels, 1..2^24 */
    bool alpha;
    size_t bytes; /* length of the file; what follows is ignored */
};

/* Walk to the image and check that the file is as long as it claims. Errors: STOKER_EMAGIC,
 * STOKER_ETRUNCATED, STOKER_EFORMAT (an animation too), STOKER_ELIMIT; error->message (error may be
 * NULL) says what is wrong. */
int stk_webp_walk(const uint8_t *bytes, size_t size, const struct stk_image_limits *limits,
                  struct stk_webp_walk *out, stoker_error *error);

#endif
