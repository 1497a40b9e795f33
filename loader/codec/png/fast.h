/* fast.h - the fast path: 8-bit gray, RGB, RGBA and palette indices, not interlaced, unpacked by inflate.h.
 *
 * Gives the same bytes as the full path, or declines; then use the full path.
 */
#ifndef STK_CODEC_PNG_FAST_H
#define STK_CODEC_PNG_FAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/codec/image.h"
#include "loader/codec/png/walk.h"

struct stk_png_fast;

/* The largest image that a state can hold. */
struct stk_png_room {
    size_t stride_bytes;   /* one row of pixels */
    size_t filtered_bytes; /* all rows, each with a filter byte */
};

static inline struct stk_png_room stk_png_room_of(const struct stk_image_shape *shape)
{
    const size_t stride = (size_t)shape->width * shape->channels;
    return (struct stk_png_room){ stride, shape->height * (stride + 1) };
}

/* Size of the state, which the caller allocates, zeroed and aligned to 64 bytes; 0 = this build has no
 * fast path. */
size_t stk_png_fast_bytes(const struct stk_png_room *room);

/* Initialise the state in that memory; nothing needs to be freed. NULL = no fast path. */
struct stk_png_fast *stk_png_fast_init(void *memory, const struct stk_png_room *room);

/* Returns true if the fast path can be tried: a common kind of file with the channels of the row. values: see
 * stk_image_options. */
bool stk_png_fast_takes(const struct stk_png_walk *walk, const struct stk_image_shape *shape,
                        bool values);

/* Decode the first `rows` rows of such a file of that shape, for which there is room; the whole file is checked.
 * Returns false if it declines, with the row partly written. */
bool stk_png_fast_decode(struct stk_png_fast *fast, const uint8_t *bytes, size_t size,
                         const struct stk_png_walk *walk, const struct stk_image_shape *shape,
                         uint32_t rows, uint8_t *row);

#endif
