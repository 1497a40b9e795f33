/* image_survey.h - read image headers at open, to choose the shape of a row.
 *
 * Reads all headers of up to 1000 images, or an even sample of 1000: numbers 0, n/1000, 2n/1000,
 * ... A few threads read, since each may wait for storage; their number does not change the result.
 */
#ifndef STK_DATASETS_IMAGE_SURVEY_H
#define STK_DATASETS_IMAGE_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

#include "loader/codec/image.h"

enum { STK_SURVEY_IMAGES_MAX = 1000, STK_SURVEY_TEXT_BYTES = 320 };

/* The images to survey. Its functions are called from several threads at once. */
struct stk_survey_set {
    const void *self;
    const char *path;   /* the data set's, for messages */
    uint64_t count;     /* images, at least 1 */
    uint64_t bytes_max; /* longer images are skipped */
    bool far;           /* reading an image takes a round trip */
    uint64_t (*bytes)(const void *self, uint64_t id);

    /* Read the first `bytes` bytes of an image into room and find its shape. STOKER_ETRUNCATED:
     * more bytes are needed. */
    int (*probe)(const void *self, uint64_t id, uint8_t *room, uint32_t bytes,
                 struct stk_image_shape *out, stoker_error *error);

    const char *(*name)(const void *self, uint64_t id); /* NULL: images have no names */
};

struct stk_image_survey {
    struct stk_image_shape first;     /* the first image with a sound header */
    bool all_gray;                    /* every image read has one channel */
    bool sizes_differ;                /* among the images read */
    char text[STK_SURVEY_TEXT_BYTES]; /* "1000 of 60000 image headers read: 28x28, gray" */
};

/* On failure *out is untouched. Errors: the first image's if no image has a sound header;
 * STOKER_ELIMIT (all are longer than bytes_max), STOKER_ENOMEM. */
int stk_image_survey(struct stk_image_survey *out, const struct stk_survey_set *set,
                     stoker_error *error);

/* The shape of a row, and how it was chosen. */
struct stk_image_row {
    struct stk_image_shape shape;
    bool gray_found;   /* one channel because all images read were gray: refuse a color image */
    bool sizes_differ; /* the images read have several sizes, and none was asked for */
    char text[STK_SURVEY_TEXT_BYTES]; /* the survey's; "" = no survey */
};

/* Choose the shape of a row: as given (0 = not), else the size of the first image with a sound
 * header, and 3 channels unless every image read is gray. Reads images only if something is not
 * given. Errors as stk_image_survey. */
int stk_image_row_choose(struct stk_image_row *out, const struct stk_image_shape *given,
                         const struct stk_survey_set *set, stoker_error *error);

#endif
