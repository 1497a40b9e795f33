/* image_survey.h - what the images of a data set are like: their headers read at open, before the
 * shape of a row is chosen.
 *
 * All headers of up to 1000 images, of more an even sample of 1000: numbers 0, n/1000, 2n/1000, ...
 * A few threads read them, since each may wait for storage. The result is the same with any number.
 */
#ifndef STK_DATASETS_IMAGE_SURVEY_H
#define STK_DATASETS_IMAGE_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "loader/codec/image.h"

enum { STK_SURVEY_IMAGES_MAX = 1000, STK_SURVEY_TEXT_BYTES = 320 };

/* The images to look at. Functions are called from several threads at once. */
struct stk_survey_set {
    const void *self;
    const char *path;   /* of the set, for messages */
    uint64_t count;     /* images, at least 1 */
    uint64_t bytes_max; /* an image with more is not looked at */
    uint64_t (*bytes)(const void *self, uint64_t id);

    /* Read the first `bytes` bytes of an image into room, which holds as many, and find its shape.
     * STOKER_ETRUNCATED: more of them are needed. */
    int (*probe)(const void *self, uint64_t id, uint8_t *room, uint32_t bytes,
                 struct stk_image_shape *out, stoker_error *error);

    const char *(*name)(const void *self, uint64_t id); /* NULL: images have numbers alone */
};

struct stk_image_survey {
    struct stk_image_shape first;     /* of the first image that has a sound header */
    bool all_gray;                    /* each of those looked at has one channel */
    bool sizes_differ;                /* among those looked at */
    char text[STK_SURVEY_TEXT_BYTES]; /* "1000 of 60000 image headers read: 28x28, gray" */
};

/* On failure *out is untouched. Errors: that of the first image if no image has a sound header;
 * STOKER_ELIMIT (all are longer than bytes_max), STOKER_ENOMEM. */
int stk_image_survey(struct stk_image_survey *out, const struct stk_survey_set *set,
                     stoker_error *error);

#endif
