/* image_run.h - one image codec with its scratch, made and freed together. */
#ifndef STK_TEST_IMAGE_RUN_H
#define STK_TEST_IMAGE_RUN_H

#include "support/runs/codec_run.h"
#include "support/sets/image_codec.h"

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

/* Decode with a scratch that other files went through, and with a fresh one: both must do the
 * same. */
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

#endif
