/* folder_image.h - the codec of files that are PNG or JPEG: their first bytes tell which, not
 * their names.
 */
#ifndef STK_DATASETS_FOLDER_IMAGE_H
#define STK_DATASETS_FOLDER_IMAGE_H

#include <stoker/codec.h>

#include "loader/codec/image.h"

struct stk_folder_image {
    stoker_codec codec;
    stoker_codec *png;  /* NULL = this build has none */
    stoker_codec *jpeg; /* NULL = this build has none */
};

/* Make the codec of one row shape, which also decodes images of any size up to any_pixels_max
 * pixels (0: none but that shape). STOKER_EINVAL, STOKER_ELIMIT, STOKER_ENOMEM; STOKER_ENOTSUP in a
 * build that has neither. On failure there is nothing to close. */
int stk_folder_image_init(struct stk_folder_image *image, const struct stk_image_shape *shape,
                          uint64_t any_pixels_max);
void stk_folder_image_close(struct stk_folder_image *image); /* never made (all 0) is allowed */

/* The shape of an image that begins with these bytes; only error->message is filled in. */
int stk_folder_image_probe(const uint8_t *bytes, size_t size, struct stk_image_shape *out,
                           stoker_error *error);

#endif
