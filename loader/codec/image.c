/* image.c - see image.h. */
#include "loader/codec/image.h"

#include <assert.h>

#include "loader/base/memory/memory.h"
#include "loader/codec/refuse.h"

/* Keeps byte counts made from a shape from overflowing, whatever the limits are. */
#define PIXELS_EVER ((uint64_t)1 << 40)

static bool lies_within(uint32_t from, uint32_t count, uint32_t side)
{
    return count >= 1 && count <= side && from <= side - count;
}

static int accept_region(const struct stk_image_room *room, uint32_t height, uint32_t width,
                         stoker_error *error)
{
    const stoker_region *wanted = room->wanted;
    *room->got = (stoker_region){ .height = height, .width = width, .eighths = 8 };
    const bool is_valid = lies_within(wanted->y, wanted->height, height) &&
                          lies_within(wanted->x, wanted->width, width) && wanted->eighths >= 1 &&
                          wanted->eighths <= 8;
    return is_valid
               ? STOKER_OK
               : stk_refuse(error, STOKER_EINVAL, "a region outside %u x %u pixels", height, width);
}

int stk_image_accept(const struct stk_image_codec *codec, uint32_t height, uint32_t width,
                     const struct stk_image_room *room, struct stk_image_shape *shape,
                     stoker_error *error)
{
    const struct stk_image_options *options = &codec->options;
    *shape = (struct stk_image_shape){ height, width, options->shape.channels };
    if (room->size == NULL)
        return height == options->shape.height && width == options->shape.width
                   ? STOKER_OK
                   : stk_refuse(error, STOKER_EFORMAT, "%u x %u pixels where %u x %u are expected",
                                height, width, options->shape.height, options->shape.width);
    const uint64_t pixels = (uint64_t)height * width;
    if (height > STK_IMAGE_SIDE_MAX || width > STK_IMAGE_SIDE_MAX)
        return stk_refuse(error, STOKER_ELIMIT, "%u x %u pixels: a side is at most %d", height,
                          width, STK_IMAGE_SIDE_MAX);
    if (pixels > options->any_pixels_max || pixels * shape->channels > room->bytes)
        return stk_refuse(error, STOKER_ELIMIT, "%u x %u pixels, at most %llu", height, width,
                          (unsigned long long)options->any_pixels_max);
    *room->size = (stoker_size){ height, width };
    return room->wanted == NULL ? STOKER_OK : accept_region(room, height, width, error);
}

static int decode(const void *self, void *scratch, const stoker_encoded *in, void *row,
                  size_t row_bytes, stoker_error *error)
{
    const struct stk_image_codec *codec = self;
    const struct stk_image_shape *shape = &codec->options.shape;
    if (row_bytes != (size_t)shape->height * shape->width * shape->channels)
        return stk_refuse(error, STOKER_EINVAL, "%zu bytes for a row of %u x %u x %u", row_bytes,
                          shape->height, shape->width, shape->channels);
    const struct stk_image_room room = { .at = row, .bytes = row_bytes };
    return codec->kind->decode(codec, scratch, in, &room, error);
}

static int decode_any(const void *self, void *scratch, const stoker_encoded *in, void *pixels,
                      size_t pixels_bytes, stoker_size *size, stoker_error *error)
{
    const struct stk_image_codec *codec = self;
    const struct stk_image_room room = { .at = pixels, .bytes = pixels_bytes, .size = size };
    return codec->kind->decode(codec, scratch, in, &room, error);
}

static int measure(const void *self, void *scratch, const stoker_encoded *in, stoker_size *size,
                   stoker_error *error)
{
    (void)scratch;
    const struct stk_image_codec *codec = self;
    struct stk_image_shape shape;
    const int rc = codec->kind->probe(in->bytes, in->size, &codec->options.limits, &shape, error);
    if (rc == STOKER_OK)
        *size = (stoker_size){ shape.height, shape.width };
    return rc;
}

static int decode_region(const void *self, void *scratch, const stoker_encoded *in,
                         const stoker_region *wanted, void *pixels, size_t pixels_bytes,
                         stoker_region *got, stoker_error *error)
{
    const struct stk_image_codec *codec = self;
    stoker_size size;
    const struct stk_image_room room = {
        .at = pixels, .bytes = pixels_bytes, .size = &size, .wanted = wanted, .got = got
    };
    return codec->kind->decode(codec, scratch, in, &room, error);
}

static int inspect(const void *self, const stoker_encoded *in, stoker_image_header *header,
                   stoker_error *error)
{
    const struct stk_image_codec *codec = self;
    *header = (stoker_image_header){ .format = STOKER_IMAGE_FORMAT_OTHER };
    return codec->kind->inspect == NULL ? STOKER_OK
                                        : codec->kind->inspect(codec, in, header, error);
}

int stk_image_codec_create(stoker_codec **out, const struct stk_image_kind *kind,
                           const struct stk_image_options *options)
{
    const struct stk_image_shape *shape = &options->shape;
    if (!kind->present)
        return STOKER_ENOTSUP;
    const bool known = shape->channels == 1 || shape->channels == 3 || shape->channels == 4;
    if (!known || shape->height < 1 || shape->width < 1 || shape->height > kind->side_max ||
        shape->width > kind->side_max)
        return STOKER_EINVAL;
    const struct stk_image_limits limits = stk_image_limits(&options->limits);
    const uint64_t pixels = (uint64_t)shape->height * shape->width;
    if (pixels > limits.pixels_max || pixels > PIXELS_EVER ||
        options->any_pixels_max > kind->any_pixels_max)
        return STOKER_ELIMIT;
    struct stk_image_codec *codec = stk_calloc(1, sizeof(*codec));
    if (codec == NULL)
        return STOKER_ENOMEM;
    *codec = (struct stk_image_codec){
        .codec = { .struct_size = sizeof(stoker_codec),
                   .name = stk_kinds[kind->number].name,
                   .self = codec,
                   .open = kind->open,
                   .close = kind->close,
                   .decode = decode,
                   .inspect = inspect },
        .kind = kind,
        .options = *options,
    };
    codec->options.limits = limits;
    if (options->any_pixels_max > 0) {
        codec->codec.open_any = kind->open_any;
        codec->codec.decode_any = decode_any;
        codec->codec.measure = measure;
        codec->codec.decode_region = decode_region;
    }
    *out = &codec->codec;
    return STOKER_OK;
}

void stk_image_codec_destroy(stoker_codec **codec)
{
    if (codec == NULL || *codec == NULL)
        return;
    assert((const void *)*codec == (*codec)->self);
    stk_free(*codec);
    *codec = NULL;
}
