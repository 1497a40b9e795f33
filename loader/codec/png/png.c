/* png.c - see png.h: walk over the chunks, then the fast path, then the full one.
 *
 *   bytes ──▶ walk: limits, lengths ──▶ fast path ──▶ row
 *                 │ refused                 │ declined
 *                 ▼                         ▼
 *               error              full path (libpng) ──▶ row or error
 */
#include <stddef.h>

#include "loader/base/memory.h"
#include "loader/codec/png/fast.h"
#include "loader/codec/png/full.h"
#include "loader/codec/png/png.h"
#include "loader/codec/refuse.h"

/* One worker's scratch: two regions whose pages are allocated when a file needs them. */
struct scratch {
    struct stk_png_fast *fast; /* NULL: not in this build, or full_only */
    struct stk_region fast_memory;
    struct stk_region arena; /* libpng's */
};

static void close_scratch(const void *self, void *scratch)
{
    (void)self;
    struct scratch *own = scratch;
    if (own == NULL)
        return;
    stk_region_unmap(&own->fast_memory);
    stk_region_unmap(&own->arena);
    stk_free(own);
}

static int open_fast(struct scratch *own, const struct stk_png_room *room)
{
    const size_t bytes = stk_png_fast_bytes(room);
    if (bytes == 0)
        return STOKER_OK;
    int rc = stk_region_map(&own->fast_memory, bytes);
    if (rc == STOKER_OK)
        own->fast = stk_png_fast_init(own->fast_memory.base, room);
    return rc;
}

/* Open a scratch for images with that room and up to `width` pixels wide. */
static int open_room(const struct stk_image_codec *png, const struct stk_png_room *room,
                     uint32_t width, void **out)
{
    struct scratch *own = stk_calloc(1, sizeof(*own));
    if (own == NULL)
        return STOKER_ENOMEM;
    int rc = png->options.full_only ? STOKER_OK : open_fast(own, room);
    if (rc == STOKER_OK)
        rc = stk_region_map(&own->arena, stk_png_full_arena_bytes(width));
    if (rc != STOKER_OK) {
        close_scratch(png, own);
        return rc;
    }
    *out = own;
    return STOKER_OK;
}

static int open_scratch(const void *self, void **out)
{
    const struct stk_image_codec *png = self;
    const struct stk_png_room room = stk_png_room_of(&png->options.shape);
    return open_room(png, &room, png->options.shape.width, out);
}

/* Reserve address space for the largest image; pages are allocated when one needs them. */
static int open_any(const void *self, void **out)
{
    const struct stk_image_codec *png = self;
    const struct stk_png_room room = {
        .stride_bytes = (size_t)STK_IMAGE_SIDE_MAX * png->options.shape.channels,
        .filtered_bytes =
            png->options.any_pixels_max * png->options.shape.channels + STK_IMAGE_SIDE_MAX,
    };
    return open_room(png, &room, STK_IMAGE_SIDE_MAX, out);
}

/* Decode a file after the walk, at least its first rows; shape: its size and the row's channels. */
static int decode_walked(const struct stk_image_codec *png, struct scratch *own,
                         const stoker_encoded *in, const struct stk_png_walk *walk,
                         const struct stk_image_shape *shape, uint32_t rows, uint8_t *row,
                         stoker_error *error)
{
    if (own->fast != NULL && stk_png_fast_takes(walk, shape, png->options.values) &&
        stk_png_fast_decode(own->fast, in->bytes, in->size, walk, shape, rows, row))
        return STOKER_OK;
    return stk_png_full_decode(in->bytes, in->size, &walk->header, shape, &png->options,
                               own->arena.base, own->arena.bytes, row, error);
}

/* The rows that a region needs: a row is decoded from the one above, so they begin at the top. The rest is unpacked
 * and checked, but not unfiltered. */
static uint32_t rows_for(const struct stk_image_room *room, const struct stk_png_header *header)
{
    if (room->wanted == NULL || header->interlaced)
        return header->height;
    return room->got->height = room->wanted->y + room->wanted->height;
}

/* Returns true if the pixels are values of 8 bits at most. */
static bool has_values(const struct stk_png_header *header)
{
    return (header->colour == STK_PNG_GRAY || header->colour == STK_PNG_PALETTE) &&
           header->depth <= 8;
}

static int decode(const struct stk_image_codec *png, void *scratch, const stoker_encoded *in,
                  const struct stk_image_room *room, stoker_error *error)
{
    struct stk_png_walk walk;
    struct stk_image_shape shape;
    int rc = stk_png_walk(in->bytes, in->size, &png->options.limits, &walk, error);
    if (rc == STOKER_OK)
        rc = stk_image_accept(png, walk.header.height, walk.header.width, room, &shape, error);
    if (rc != STOKER_OK)
        return rc;
    if (png->options.values && !has_values(&walk.header))
        return stk_refuse(error, STOKER_EFORMAT,
                          "a mask of %s: its values must be the indices of a palette, or gray "
                          "levels of up to 8 bits",
                          walk.header.colour == STK_PNG_GRAY ? "16 bits" : "colours or with alpha");
    const uint32_t rows = rows_for(room, &walk.header);
    return decode_walked(png, scratch, in, &walk, &shape, rows, room->at, error);
}

const struct stk_image_kind stk_image_png = {
    .number = STK_SHARD_PNG,
    .missing = "this build reads no PNG files: it was made without libpng",
#ifdef STOKER_HAVE_PNG
    .present = true,
#endif
    .side_max = INT32_MAX,
    .any_pixels_max = (uint64_t)1 << 40,
    .probe = stk_codec_png_probe,
    .open = open_scratch,
    .open_any = open_any,
    .close = close_scratch,
    .decode = decode,
};
