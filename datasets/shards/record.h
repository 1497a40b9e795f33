/* record.h - the codecs of records: verify the checksum, then decode.
 *
 * Checksum and codec come from the index in the sample's tag. So a record read from a wrong place
 * fails, and the index, which may have left the cache, is not read again. Raw records have their own
 * codec because they may be read straight into their row.
 *
 * Records that are verified only once, or that are looked at in a mapping after that, are marked as they pass (known.h).
 */
#ifndef STK_DATASETS_SHARDS_RECORD_H
#define STK_DATASETS_SHARDS_RECORD_H

#include <stdint.h>
#include <stoker/dataset.h>

#include "datasets/shards/file.h"
#include "datasets/shards/known.h"
#include "loader/base/crc32c.h"
#include "loader/codec/image_decoder.h"

struct stk_shard_decoder {
    stoker_codec raw;                    /* for raw records */
    stoker_codec packed;                 /* for all others */
    struct stk_image_decoder image;      /* all 0: no record is an image */
    bool any_zstd;                       /* some record is a Zstandard frame */
    stk_crc32c_fn *sum;                  /* the fastest variant */
    const struct stk_shard_known *known; /* marks what was verified; NULL = no one asks */
    bool once;                           /* a marked record is not verified again */
};

/* Set codec and tag of a record's sample; index: its number in the set. */
void stk_shard_decoder_describe(const struct stk_shard_decoder *decoder,
                                const struct stk_shard_record *record, uint64_t index,
                                stoker_part *out);

/* Make the codecs of a set: `needs` is the mask of its records' codecs, `like` any of its headers.
 * warnings_fail: warnings of an image decoder are errors. The decoder must not be moved afterwards.
 * STOKER_ENOTSUP and *what: this build lacks a codec; STOKER_ENOMEM, STOKER_ELIMIT. On failure there
 * is nothing to close. */
int stk_shard_decoder_init(struct stk_shard_decoder *decoder, const struct stk_shard_header *like,
                           uint32_t needs, bool warnings_fail, const char **what);
void stk_shard_decoder_close(struct stk_shard_decoder *decoder); /* all 0 is allowed */

#endif
