/* photo_codec.h - a codec for gray images that differ in size: a byte each for height and width,
 * then the pixels.
 *
 * What `decode` does with an image of another size than its data set's differs from test to test:
 * each has its own. */
#ifndef STK_TEST_PHOTO_CODEC_H
#define STK_TEST_PHOTO_CODEC_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/codec.h>
#include <string.h>

enum { STK_PHOTO_HEAD = 2 };

static inline int stk_photo_probe(const void *self, const stoker_encoded *in, bool inspect,
                                  stoker_image_header *header, stoker_error *error)
{
    (void)self, (void)inspect, (void)error;
    header->height = in->bytes[0];
    header->width = in->bytes[1];
    return STOKER_OK;
}

/* Decode just what is wanted, or all if that is NULL. */
static inline int stk_photo_decode(const stoker_encoded *in, const stoker_decoded *out)
{
    const stoker_region whole = { 0, 0, in->bytes[0], in->bytes[1], 8 };
    stoker_region got = out->wanted != NULL ? *out->wanted : whole;
    got.eighths = 8;
    cr_assert_geq(out->rows[0].bytes_max, (size_t)got.height * got.width);
    cr_assert_geq(in->size, STK_PHOTO_HEAD + (size_t)whole.height * whole.width);
    for (uint32_t y = 0; y < got.height; y++)
        memcpy((uint8_t *)out->rows[0].data + (size_t)y * got.width,
               in->bytes + STK_PHOTO_HEAD + (size_t)(got.y + y) * whole.width + got.x, got.width);
    if (out->got != NULL)
        *out->got = got;
    return STOKER_OK;
}

#endif
