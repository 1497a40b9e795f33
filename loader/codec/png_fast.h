/* png_fast.h - the fast path: 8-bit gray, RGB and RGBA, not interlaced, unpacked by inflate.h.
 *
 * Takes what the full path takes, and gives the same bytes, or declines: then the full path is to
 * be asked.
 */
#ifndef STK_CODEC_PNG_FAST_H
#define STK_CODEC_PNG_FAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/codec/image.h"
#include "loader/codec/png_walk.h"

struct stk_png_fast;

/* Bytes of the state for rows of that shape, which the caller provides, zeroed and aligned to
 * 64 bytes; 0 = this build has no fast path. */
size_t stk_png_fast_bytes(const struct stk_image_shape *shape);

/* Make the state in that memory. There is nothing to undo. NULL = this build has no fast path. */
struct stk_png_fast *stk_png_fast_init(void *memory, const struct stk_image_shape *shape);

/* Whether it may be tried: a common file whose samples are just those of the row. */
bool stk_png_fast_takes(const struct stk_png_walk *walk, const struct stk_image_shape *shape);

/* Decode such a file. False: declined, and the row is half written. */
bool stk_png_fast_decode(struct stk_png_fast *fast, const uint8_t *bytes, size_t size,
                         const struct stk_png_walk *walk, uint8_t *row);

#endif
