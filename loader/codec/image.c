/* image.c - see image.h. */
#include "loader/codec/image.h"

#include "loader/codec/refuse.h"

int stk_image_check_any(const struct stk_image_shape *shape, uint64_t pixels_max, size_t bytes_max,
                        stoker_error *error)
{
    const uint64_t pixels = (uint64_t)shape->height * shape->width;
    if (shape->height > STK_IMAGE_SIDE_MAX || shape->width > STK_IMAGE_SIDE_MAX)
        return stk_refuse(error, STOKER_ELIMIT, "%u x %u pixels: a side is at most %d",
                          shape->height, shape->width, STK_IMAGE_SIDE_MAX);
    if (pixels > pixels_max || pixels * shape->channels > bytes_max)
        return stk_refuse(error, STOKER_ELIMIT, "%u x %u pixels, at most %llu", shape->height,
                          shape->width, (unsigned long long)pixels_max);
    return STOKER_OK;
}
