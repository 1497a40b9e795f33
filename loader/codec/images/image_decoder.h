/* image_decoder.h - the codec of PNG, JPEG and WebP files. A file's kind is recognized by its first
 * bytes, not by its name.
 */
#ifndef STK_CODEC_IMAGE_DECODER_H
#define STK_CODEC_IMAGE_DECODER_H

#include <stdbool.h>
#include <stoker/codec.h>

#include "loader/base/error.h"
#include "loader/codec/image.h"
#include "loader/codec/kinds.h"

/* The kinds of image files, by their number in stk_kinds; NULL: not an image file. */
extern const struct stk_image_kind *const stk_image_kinds[STK_SHARD_CODECS];

struct stk_image_decoder {
    stoker_codec codec;
    stoker_codec *of[STK_SHARD_CODECS]; /* NULL: not an image file, or not in this build */
    bool gray_found;                    /* see stk_image_row */
    bool mask;                          /* rows are values of one channel: colors are refused */
};

struct stk_image_decoder_options {
    struct stk_image_shape shape; /* the row's */
    uint64_t any_pixels_max;      /* decode_any() takes images of up to this many pixels; 0 = no
                                     decode_any() */
    bool warnings_fail;           /* a decoder's warnings are errors */
    bool gray_found;              /* see stk_image_row */
    bool mask; /* values as stored: palette indices, gray levels unscaled; refuse colors */
};

/* Make the codec for rows of one shape. STOKER_EINVAL, STOKER_ELIMIT, STOKER_ENOMEM; STOKER_ENOTSUP
 * in a build without image codecs. On failure there is nothing to close. */
int stk_image_decoder_init(struct stk_image_decoder *image,
                           const struct stk_image_decoder_options *options);
/* Returns why it failed with `rc`, as the rest of a message. */
const char *stk_image_decoder_why(int rc);
void stk_image_decoder_close(struct stk_image_decoder *image); /* all 0 is allowed */

/* Find the shape of an image from its first bytes; sets only error->message. */
int stk_image_probe(const uint8_t *bytes, size_t size, struct stk_image_shape *out,
                    stoker_error *error);

/* The same at open, with a full error at `place`. STOKER_ENOTSUP: this build lacks the image's
 * codec. */
int stk_image_probe_at(const struct stk_place *place, const uint8_t *bytes, size_t size,
                       struct stk_image_shape *out, stoker_error *error);

#endif
