/* png.c - see png.h: walk over the chunks, then the fast path, then the full one.
 *
 *   bytes ──▶ walk: limits, lengths ──▶ fast path ──▶ row
 *                 │ refused                 │ declined
 *                 ▼                         ▼
 *               error              full path (libpng) ──▶ row or error
 */
#include <assert.h>
#include <stddef.h>

#include "loader/base/memory.h"
#include "loader/codec/png/fast.h"
#include "loader/codec/png/full.h"
#include "loader/codec/png/png.h"
#include "loader/codec/refuse.h"

struct png {
    stoker_codec codec; /* first: what create() gives out */
    struct stk_image_shape shape;
    struct stk_image_limits limits;
    uint64_t any_pixels_max;
    bool full_only;
};

/* What one worker needs: two regions whose pages are only taken when a file needs them. */
struct scratch {
    struct stk_png_fast *fast; /* NULL: not in this build, or not wanted */
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

/* A scratch for images with that room, `width` pixels wide. */
static int open_room(const struct png *png, const struct stk_png_room *room, uint32_t width,
                     void **out)
{
    struct scratch *own = stk_calloc(1, sizeof(*own));
    if (own == NULL)
        return STOKER_ENOMEM;
    int rc = png->full_only ? STOKER_OK : open_fast(own, room);
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
    const struct png *png = self;
    const struct stk_png_room room = stk_png_room_of(&png->shape);
    return open_room(png, &room, png->shape.width, out);
}

/* Address space for the largest image; pages are taken when one comes that needs them. */
static int open_any(const void *self, void **out)
{
    const struct png *png = self;
    const struct stk_png_room room = {
        .stride_bytes = (size_t)STK_IMAGE_SIDE_MAX * png->shape.channels,
        .filtered_bytes = png->any_pixels_max * png->shape.channels + STK_IMAGE_SIDE_MAX,
    };
    return open_room(png, &room, STK_IMAGE_SIDE_MAX, out);
}

/* Decode a file that was walked over: an image of that shape. */
static int decode_walked(const struct png *png, struct scratch *own, const stoker_encoded *in,
                         const struct stk_png_walk *walk, const struct stk_image_shape *shape,
                         uint8_t *row, stoker_error *error)
{
    if (own->fast != NULL && stk_png_fast_takes(walk, shape) &&
        stk_png_fast_decode(own->fast, in->bytes, in->size, walk, shape, row))
        return STOKER_OK;
    return stk_png_full_decode(in->bytes, in->size, &walk->header, shape, &png->limits,
                               own->arena.base, own->arena.bytes, row, error);
}

static int decode(const void *self, void *scratch, const stoker_encoded *in, void *row,
                  size_t row_bytes, stoker_error *error)
{
    const struct png *png = self;
    const struct stk_image_shape *shape = &png->shape;
    if (row_bytes != (size_t)shape->height * shape->width * shape->channels)
        return stk_refuse(error, STOKER_EINVAL, "%zu bytes for a row of %u x %u x %u", row_bytes,
                          shape->height, shape->width, shape->channels);
    struct stk_png_walk walk;
    int rc = stk_png_walk(in->bytes, in->size, &png->limits, &walk, error);
    if (rc != STOKER_OK)
        return rc;
    if (walk.header.height != shape->height || walk.header.width != shape->width)
        return stk_refuse(error, STOKER_EFORMAT, "%u x %u pixels where %u x %u are expected",
                          walk.header.height, walk.header.width, shape->height, shape->width);
    return decode_walked(png, scratch, in, &walk, shape, row, error);
}

static int decode_any(const void *self, void *scratch, const stoker_encoded *in, void *pixels,
                      size_t pixels_bytes, stoker_size *size, stoker_error *error)
{
    const struct png *png = self;
    struct stk_png_walk walk;
    int rc = stk_png_walk(in->bytes, in->size, &png->limits, &walk, error);
    if (rc != STOKER_OK)
        return rc;
    const struct stk_image_shape shape = { walk.header.height, walk.header.width,
                                           png->shape.channels };
    rc = stk_image_check_any(&shape, png->any_pixels_max, pixels_bytes, error);
    if (rc != STOKER_OK)
        return rc;
    *size = (stoker_size){ shape.height, shape.width };
    return decode_walked(png, scratch, in, &walk, &shape, pixels, error);
}

#ifdef STOKER_HAVE_PNG
static const bool present = true;
#else
static const bool present = false;
#endif

/* So that no count of bytes made from a shape overflows, whatever the limits say. */
#define PIXELS_EVER ((uint64_t)1 << 40)

int stk_codec_png_create(stoker_codec **out, const struct stk_png_options *options)
{
    const struct stk_image_shape *shape = &options->shape;
    const struct stk_image_limits limits = stk_image_limits(&options->limits);
    if (!present)
        return STOKER_ENOTSUP;
    const bool known = shape->channels == 1 || shape->channels == 3 || shape->channels == 4;
    if (!known || shape->height < 1 || shape->width < 1 || shape->height > INT32_MAX ||
        shape->width > INT32_MAX)
        return STOKER_EINVAL;
    const uint64_t pixels = (uint64_t)shape->height * shape->width;
    if (pixels > limits.pixels_max || pixels > PIXELS_EVER || options->any_pixels_max > PIXELS_EVER)
        return STOKER_ELIMIT;
    struct png *png = stk_calloc(1, sizeof(*png));
    if (png == NULL)
        return STOKER_ENOMEM;
    *png = (struct png){
        .codec = { .name = "png",
                   .self = png,
                   .open = open_scratch,
                   .close = close_scratch,
                   .decode = decode },
        .shape = *shape,
        .limits = limits,
        .any_pixels_max = options->any_pixels_max,
        .full_only = options->full_only,
    };
    if (png->any_pixels_max > 0) {
        png->codec.open_any = open_any;
        png->codec.decode_any = decode_any;
    }
    *out = &png->codec;
    return STOKER_OK;
}

void stk_codec_png_destroy(stoker_codec **codec)
{
    if (codec == NULL || *codec == NULL)
        return;
    assert((const void *)*codec == (*codec)->self);
    stk_free(*codec);
    *codec = NULL;
}
