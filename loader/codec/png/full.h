/* full.h - the full path: any legal PNG file, through libpng. */
#ifndef STK_CODEC_PNG_FULL_H
#define STK_CODEC_PNG_FULL_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "loader/codec/image.h"
#include "loader/codec/png/walk.h"

/* Memory that libpng needs to decode files of that width. */
size_t stk_png_full_arena_bytes(uint32_t width);

/* Decode a file that stk_png_walk() has accepted and whose size is the shape's. Of the options only
 * limits and values matter. Allocates nothing: libpng lives in the arena, which may hold anything
 * before and after. Errors: STOKER_ECORRUPT, STOKER_ENOMEM if the arena is too small,
 * STOKER_ENOTSUP in a build without libpng. */
int stk_png_full_decode(const uint8_t *bytes, size_t size, const struct stk_png_header *header,
                        const struct stk_image_shape *shape,
                        const struct stk_image_options *options, void *arena, size_t arena_bytes,
                        uint8_t *row, stoker_error *error);

#endif
