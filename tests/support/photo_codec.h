/* photo_codec.h - a codec for gray images that differ in size: a byte each for height and width,
 * then the pixels.
 *
 * What `decode` does with an image of another size than its data set's differs from test to test:
 * each has its own. */
#ifndef STK_TEST_PHOTO_CODEC_H
#define STK_TEST_PHOTO_CODEC_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <stoker/codec.h>
#include <string.h>

enum { STK_PHOTO_HEAD = 2 };

static inline int stk_photo_measure(const void *self, void *scratch, const stoker_encoded *in,
                                    stoker_size *size, stoker_error *error)
{
    (void)self, (void)scratch, (void)error;
    *size = (stoker_size){ in->bytes[0], in->bytes[1] };
    return STOKER_OK;
}

static inline int stk_photo_decode_any(const void *self, void *scratch, const stoker_encoded *in,
                                       void *pixels, size_t pixels_bytes, stoker_size *size,
                                       stoker_error *error)
{
    const size_t bytes = (size_t)in->bytes[0] * in->bytes[1];
    cr_assert_geq(pixels_bytes, bytes);
    cr_assert_geq(in->size, STK_PHOTO_HEAD + bytes);
    memcpy(pixels, in->bytes + STK_PHOTO_HEAD, bytes);
    return stk_photo_measure(self, scratch, in, size, error);
}

static inline int stk_photo_decode_region(const void *self, void *scratch, const stoker_encoded *in,
                                          const stoker_region *wanted, void *pixels,
                                          size_t pixels_bytes, stoker_region *got,
                                          stoker_error *error)
{
    (void)self, (void)scratch, (void)error;
    cr_assert_geq(pixels_bytes, (size_t)wanted->height * wanted->width);
    *got = *wanted;
    got->eighths = 8;
    for (uint32_t y = 0; y < got->height; y++)
        memcpy((uint8_t *)pixels + (size_t)y * got->width,
               in->bytes + STK_PHOTO_HEAD + (size_t)(got->y + y) * in->bytes[1] + got->x,
               got->width);
    return STOKER_OK;
}

#endif
