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

/* Make the codec of image files for rows of one shape; kind: of all files, or NULL. Nothing is
 * allocated. decode() returns STOKER_EMAGIC, STOKER_ETRUNCATED, STOKER_EFORMAT, STOKER_ECORRUPT,
 * STOKER_ELIMIT or, for WebP, STOKER_ENOMEM. Errors: STOKER_EINVAL (the shape), STOKER_ELIMIT (too
 * many pixels), STOKER_ENOTSUP (this build lacks the kind, or all kinds); *codec is then untouched.
 */
int stk_image_codec_init(struct stk_image_codec *codec, const struct stk_image_kind *kind,
                         const struct stk_image_options *options);

/* Returns why it failed with `rc`, as the rest of a message. */
const char *stk_image_codec_why(int rc);

/* Find the shape of an image from its first bytes; sets only error->message. */
int stk_image_probe(const uint8_t *bytes, size_t size, struct stk_image_shape *out,
                    stoker_error *error);

/* The same at open, with a full error at `place`. STOKER_ENOTSUP: this build lacks the image's
 * codec. */
int stk_image_probe_at(const struct stk_place *place, const uint8_t *bytes, size_t size,
                       struct stk_image_shape *out, stoker_error *error);

#endif
