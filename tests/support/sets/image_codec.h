/* image_codec.h - an image codec in memory of its own. */
#ifndef STK_TEST_IMAGE_CODEC_H
#define STK_TEST_IMAGE_CODEC_H

#include <stdlib.h>

#include "loader/codec/images/image_decoder.h"

/* stk_image_codec_init() in new memory; on failure *out is untouched. */
static inline int stk_image_codec_create(stoker_codec **out, const struct stk_image_kind *kind,
                                         const struct stk_image_options *options)
{
    struct stk_image_codec *image = calloc(1, sizeof(*image));
    const int rc = image == NULL ? STOKER_ENOMEM : stk_image_codec_init(image, kind, options);
    if (rc == STOKER_OK)
        *out = &image->codec;
    else
        free(image);
    return rc;
}

static inline void stk_image_codec_destroy(stoker_codec **codec)
{
    free(*codec);
    *codec = NULL;
}

#endif
