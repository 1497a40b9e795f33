/* image_codec.h - the rows of files that are PNG, JPEG or WebP, recognised by their first bytes, not
 * by their names: what shape they have, and the codec that decodes them.
 */
#ifndef STK_DATASETS_IMAGE_CODEC_H
#define STK_DATASETS_IMAGE_CODEC_H

#include <stdbool.h>
#include <stoker/codec.h>

#include "datasets/image_survey.h"
#include "loader/base/error.h"
#include "loader/codec/image.h"

/* What a row is, and how that was found. */
struct stk_image_row {
    struct stk_image_shape shape;
    bool gray_found;                  /* one channel, not as asked for: a colour image is refused */
    bool sizes_differ;                /* of the images looked at, and no size was asked for */
    char text[STK_SURVEY_TEXT_BYTES]; /* of the survey; "" = there was none */
};

/* Choose the shape of a row: what is given (0 = not), else the size of the first image that has a
 * sound header, and 3 channels unless each image looked at is gray. Looks at images only if something
 * is not given. Errors as stk_image_survey. */
int stk_image_row_choose(struct stk_image_row *out, const struct stk_image_shape *given,
                         const struct stk_survey_set *set, stoker_error *error);

enum stk_folder_image_kind {
    STK_FOLDER_IMAGE_PNG,
    STK_FOLDER_IMAGE_JPEG,
    STK_FOLDER_IMAGE_WEBP,
    STK_FOLDER_IMAGE_KINDS
};

struct stk_folder_image {
    stoker_codec codec;
    stoker_codec *of[STK_FOLDER_IMAGE_KINDS]; /* NULL = this build has none */
    bool gray_found;                          /* of the row */
};

struct stk_folder_image_options {
    struct stk_image_shape shape; /* of a row */
    uint64_t any_pixels_max; /* images of any size up to so many pixels are decoded, too; 0 = none
                                     but that shape */
    bool warnings_fail;      /* what a decoder only warns of is an error */
    bool gray_found;         /* of the row */
};

/* Make the codec of one row shape. STOKER_EINVAL, STOKER_ELIMIT, STOKER_ENOMEM; STOKER_ENOTSUP in a
 * build that has no image codec. On failure there is nothing to close. */
int stk_folder_image_init(struct stk_folder_image *image,
                          const struct stk_folder_image_options *options);
void stk_folder_image_close(struct stk_folder_image *image); /* never made (all 0) is allowed */

/* The shape of an image that begins with these bytes; only error->message is filled in. */
int stk_folder_image_probe(const uint8_t *bytes, size_t size, struct stk_image_shape *out,
                           stoker_error *error);

/* The same while a set is opened: the error names `place`. */
int stk_folder_image_probe_at(const struct stk_place *place, const uint8_t *bytes, size_t size,
                              struct stk_image_shape *out, stoker_error *error);

#endif
