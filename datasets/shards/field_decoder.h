/* field_decoder.h - the codec of one field's parts in shards of version 2: verify the checksum, then decode.
 *
 * Checksum and codec come from the index in the part's tag, as with records (record.h).
 */
#ifndef STK_DATASETS_SHARDS_FIELD_DECODER_H
#define STK_DATASETS_SHARDS_FIELD_DECODER_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/dataset.h>

#include "datasets/shards/fields_layout.h"
#include "loader/base/crc32c.h"
#include "loader/codec/image_decoder.h"

struct stk_field_decoder {
    struct stk_fields_field field;
    stoker_codec codec;
    /* the same for parts that are image files, by which stoker-pack knows them */
    stoker_codec files;
    stk_crc32c_fn *sum; /* the fastest variant */
    uint64_t entry_bytes;
    struct stk_image_decoder image; /* all 0: no part of it is an image file */
    bool any_zstd;                  /* some part is a Zstandard frame */
    bool any_image;                 /* some part is an image file */
};

struct stk_field_decoder_options {
    bool only_images; /* every part is an image file, so that files of any size can be resized */
    uint64_t pixels_max;
    bool warnings_fail; /* warnings of an image decoder are errors */
};

/* Make the codec of a decoder whose field, any_zstd and any_image are set. It must not be moved afterwards. Errors:
 * STOKER_ENOTSUP and *what (this build lacks a codec), STOKER_ENOMEM, STOKER_ELIMIT. */
int stk_field_decoder_init(struct stk_field_decoder *decoder,
                           const struct stk_field_decoder_options *options, const char **what);
void stk_field_decoder_close(struct stk_field_decoder *decoder); /* all 0 is allowed */

/* Set codec and tag of a part that is stored with `codec` and has that checksum. */
void stk_field_decoder_describe(const struct stk_field_decoder *decoder, uint32_t codec,
                                uint32_t sum, stoker_part *out);

#endif
