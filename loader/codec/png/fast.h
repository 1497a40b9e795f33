/* fast.h - the fast path: 8-bit gray, RGB and RGBA, not interlaced, unpacked by inflate.h.
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
#include "loader/codec/png/walk.h"

struct stk_png_fast;

/* The largest image that a state has room for. */
struct stk_png_room {
    size_t stride_bytes;   /* of one row of pixels */
    size_t filtered_bytes; /* of all rows, each with a byte more */
};

static inline struct stk_png_room stk_png_room_of(const struct stk_image_shape *shape)
{
    const size_t stride = (size_t)shape->width * shape->channels;
    return (struct stk_png_room){ stride, shape->height * (stride + 1) };
}

/* Bytes of the state with that room, which the caller provides, zeroed and aligned to 64 bytes;
 * 0 = this build has no fast path. */
size_t stk_png_fast_bytes(const struct stk_png_room *room);

/* Make the state in that memory. There is nothing to undo. NULL = this build has no fast path. */
struct stk_png_fast *stk_png_fast_init(void *memory, const struct stk_png_room *room);

/* Whether it may be tried: a common file whose samples are just those of the row. */
bool stk_png_fast_takes(const struct stk_png_walk *walk, const struct stk_image_shape *shape);

/* Decode such a file, whose image is of that shape, for which there is room. False: declined, and
 * the row is half written. */
bool stk_png_fast_decode(struct stk_png_fast *fast, const uint8_t *bytes, size_t size,
                         const struct stk_png_walk *walk, const struct stk_image_shape *shape,
                         uint8_t *row);

#endif
