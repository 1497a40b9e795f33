/* record.h - the codecs of records: verify the checksum, then decode as the record says.
 *
 * The index tells both, and the sample's tag brings them here: so a record read from a wrong place
 * does not pass either, and the index, which has left the cache since it told the place, is not
 * looked at again. Raw records have a codec of their own, for they may be read to where their
 * row is to be.
 */
#ifndef STK_DATASETS_SHARDS_RECORD_H
#define STK_DATASETS_SHARDS_RECORD_H

#include <stdint.h>
#include <stoker/dataset.h>

#include "datasets/image_codec.h"
#include "datasets/shards/file.h"
#include "loader/base/crc32c.h"

struct stk_shard_decoder {
    stoker_codec raw;              /* of raw records */
    stoker_codec packed;           /* of all others */
    struct stk_folder_image image; /* not made: no record is an image */
    stk_crc32c_fn *sum;            /* the fastest here */
};

/* Its codec, and what it brings along. */
void stk_shard_decoder_tell(const struct stk_shard_decoder *decoder,
                            const struct stk_shard_record *record, stoker_sample *out);

/* Make the codecs of a set whose records have the codecs of the mask `needs` and rows like those of
 * `like`; warnings_fail: what an image's decoder only warns of is an error. Must stay where it is.
 * STOKER_ENOTSUP and *what if this build cannot decode them;
 * STOKER_ENOMEM, STOKER_ELIMIT. On failure there is nothing to close. */
int stk_shard_decoder_init(struct stk_shard_decoder *decoder, const struct stk_shard_header *like,
                           uint32_t needs, bool warnings_fail, const char **what);
void stk_shard_decoder_close(struct stk_shard_decoder *decoder); /* never made is allowed */

#endif
