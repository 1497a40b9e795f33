/* image.c - see image.h. */
#include "loader/codec/image.h"

#include "loader/codec/refuse.h"

static bool lies_within(uint32_t from, uint32_t count, uint32_t side)
{
    return count >= 1 && count <= side && from <= side - count;
}

static bool is_valid(const stoker_region *wanted, uint32_t height, uint32_t width)
{
    return lies_within(wanted->y, wanted->height, height) &&
           lies_within(wanted->x, wanted->width, width) && wanted->eighths >= 1 &&
           wanted->eighths <= 8;
}

int stk_image_accept(const struct stk_image_codec *codec, uint32_t height, uint32_t width,
                     const stoker_decoded *out, struct stk_image_shape *shape, stoker_error *error)
{
    const struct stk_image_options *options = &codec->options;
    *shape = (struct stk_image_shape){ height, width, options->shape.channels };
    if (out->got == NULL)
        return height == options->shape.height && width == options->shape.width
                   ? STOKER_OK
                   : stk_refuse(error, STOKER_EFORMAT, "%u x %u pixels where %u x %u are expected",
                                height, width, options->shape.height, options->shape.width);
    const uint64_t pixels = (uint64_t)height * width;
    if (height > STK_IMAGE_SIDE_MAX || width > STK_IMAGE_SIDE_MAX)
        return stk_refuse(error, STOKER_ELIMIT, "%u x %u pixels: a side is at most %d", height,
                          width, STK_IMAGE_SIDE_MAX);
    if (pixels > options->any_pixels_max || pixels * shape->channels > out->rows[0].bytes_max)
        return stk_refuse(error, STOKER_ELIMIT, "%u x %u pixels, at most %llu", height, width,
                          (unsigned long long)options->any_pixels_max);
    *out->got = (stoker_region){ .height = height, .width = width, .eighths = 8 };
    return out->wanted == NULL || is_valid(out->wanted, height, width)
               ? STOKER_OK
               : stk_refuse(error, STOKER_EINVAL, "a region outside %u x %u pixels", height, width);
}
