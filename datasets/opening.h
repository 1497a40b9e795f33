/* opening.h - state that folder:, shards: and tar: keep while they open a data set. */
#ifndef STK_DATASETS_OPENING_H
#define STK_DATASETS_OPENING_H

#include <limits.h>
#include <stdbool.h>
#include <stoker/dataset.h>

#include "datasets/image_survey.h"
#include "datasets/parameters.h"
#include "loader/codec/images/image_decoder.h"

struct stk_opening {
    const char *format; /* "folder": for messages */
    const stoker_storage *storage;
    const char *parameters; /* after the '?' of the spec; "" = none */
    stoker_error *error;    /* may be NULL */
    char path[PATH_MAX];    /* the folder, or the name of the archives */

    /* Of images: the row's shape, 0 = as the images are; limits; on_decode_warning. */
    uint64_t height, width, channels;
    uint64_t file_bytes_max;
    uint64_t pixels_max; /* largest image that is decoded to be resized */
    bool mask;           /* its values are class numbers: see stk_image_options */
    char on_warning[STK_PARAMETER_BYTES_MAX];
    bool warnings_fail;
};

enum {
    STK_FILE_BYTES_DEFAULT = 64 << 20,
    STK_PIXELS_DEFAULT = 1 << 25
}; /* cameras take 24 million */

/* The defaults, before any parameter. */
#define STK_OPENING_INIT(name, in, wanted)                                                         \
    {                                                                                              \
        .format = (name), .storage = (in), .parameters = "", .error = (wanted),                    \
        .file_bytes_max = STK_FILE_BYTES_DEFAULT, .pixels_max = STK_PIXELS_DEFAULT                 \
    }

/* Split DIR?PARAMETERS: sets path, to DIR or DIR/SPLIT, and parameters. Errors as stk_spec_root. */
int stk_opening_folder(struct stk_opening *opening, const char *rest, const char *split);

/* Read the parameters: on_decode_warning, with `images` also the shape and limits above, and the
 * format's own. Errors as stk_parameters_read. */
int stk_opening_parameters(struct stk_opening *opening, bool images,
                           const struct stk_parameter *own, size_t own_count);

/* Set the error "PATH: FORMAT: WHAT" and return code. */
int stk_opening_refuse(const struct stk_opening *opening, int code, const char *what);

/* Choose the shape of a row, from the parameters and the images in `set`, and make its codec. */
int stk_opening_choose_row(const struct stk_opening *opening, const struct stk_survey_set *set,
                           struct stk_image_row *row, struct stk_image_codec *image);

/* The end: with rc = 0 make the data set, which takes `self`; on failure destroy `self`. */
int stk_opening_finish(const struct stk_opening *opening, int rc, stoker_dataset **out,
                       const stoker_dataset_ops *ops, void *self);

#endif
