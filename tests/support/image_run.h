/* image_run.h - one image codec with its scratch, made and freed together, and what the codec of every format must do.
 */
#ifndef STK_TEST_IMAGE_RUN_H
#define STK_TEST_IMAGE_RUN_H

#include "loader/codec/image.h"
#include "support/codec_run.h"

struct stk_image_run {
    stoker_codec *codec;
    struct stk_codec_run run;
};

static inline struct stk_image_run stk_image_run_open(const struct stk_image_kind *kind,
                                                      const struct stk_image_options *options)
{
    const struct stk_image_shape *shape = &options->shape;
    struct stk_image_run image = { 0 };
    cr_assert_eq(stk_image_codec_create(&image.codec, kind, options), STOKER_OK);
    image.run =
        stk_codec_run_open(image.codec, (size_t)shape->height * shape->width * shape->channels);
    return image;
}

static inline void stk_image_run_close(struct stk_image_run *image)
{
    stk_codec_run_close(&image->run);
    stk_image_codec_destroy(&image->codec);
    cr_assert_null(image->codec);
}

/* Decode with a scratch that other files went through, and with a fresh one: both must do the same. */
static inline int stk_image_run_alike(struct stk_image_run *used, const uint8_t *bytes, size_t size)
{
    memset(used->run.row, 0xA5, used->run.row_bytes);
    const int rc = stk_codec_run(&used->run, bytes, size);
    struct stk_codec_run fresh = stk_codec_run_open(used->codec, used->run.row_bytes);
    memset(fresh.row, 0xA5, fresh.row_bytes);
    cr_assert_eq(stk_codec_run(&fresh, bytes, size), rc, "%s and %s", fresh.error.message,
                 used->run.error.message);
    if (rc == STOKER_OK)
        cr_assert_arr_eq(fresh.row, used->run.row, fresh.row_bytes);
    stk_codec_run_close(&fresh);
    return rc;
}

/* Every prefix of a file is truncated, and the scratch still decodes the whole file. */
static inline void stk_image_run_prefixes(struct stk_image_run *image, const uint8_t *bytes,
                                          size_t size)
{
    for (size_t prefix = 0; prefix < size; prefix++)
        cr_assert_eq(stk_codec_run(&image->run, bytes, prefix), STOKER_ETRUNCATED,
                     "%zu of %zu bytes", prefix, size);
    cr_assert_eq(stk_image_run_alike(image, bytes, size), STOKER_OK);
}

/* Every flipped bit gives an error, or the same row to used and fresh scratches. Returns the number of errors. */
static inline unsigned stk_image_run_flips(struct stk_image_run *image, uint8_t *bytes, size_t size)
{
    unsigned refused = 0;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        refused += stk_image_run_alike(image, bytes, size) != STOKER_OK;
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    return refused;
}

/* A kind refuses rows without pixels, of an odd number of channels, or of more pixels than its limits allow. */
static inline void stk_image_kind_refuses_shapes(const struct stk_image_kind *kind)
{
    static const struct stk_image_shape wrong[] = {
        { 0, 1, 1 }, { 1, 0, 1 }, { 1, 1, 0 }, { 1, 1, 2 }, { 1, 1, 5 },
    };
    stoker_codec *codec = NULL;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const struct stk_image_options options = { .shape = wrong[i] };
        cr_assert_eq(stk_image_codec_create(&codec, kind, &options), STOKER_EINVAL);
    }
    const struct stk_image_options over = { .shape = { 10, 11, 1 },
                                            .limits = { .pixels_max = 109 } };
    cr_assert_eq(stk_image_codec_create(&codec, kind, &over), STOKER_ELIMIT);
    cr_assert_null(codec);
    stk_image_codec_destroy(&codec);
    stk_image_codec_destroy(NULL);
}

#endif
