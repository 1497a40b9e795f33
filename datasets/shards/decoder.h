/* decoder.h - the codecs of one field's parts: verify the checksum, then decode.
 *
 * The checksum comes from the index, in the part's tag: a part read from a wrong place fails, and
 * the index, which may have left the cache, is not read again.
 */
#ifndef STK_DATASETS_SHARDS_DECODER_H
#define STK_DATASETS_SHARDS_DECODER_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/dataset.h>

#include "datasets/shards/known.h"
#include "datasets/shards/layout.h"
#include "loader/base/crc32c/crc32c.h"
#include "loader/codec/images/image_decoder.h"

struct stk_shard_decoder {
    struct stk_shard_field field;
    uint32_t codecs;                                /* bit c = some part of the field has codec c */
    const stoker_codec *codec_of[STK_SHARD_CODECS]; /* one of the next four */
    stoker_codec raw, lz4, zstd;                    /* elements */
    struct stk_image_codec image;                   /* all 0: no part is an image file */
    uint64_t entry_bytes;
    stk_crc32c_fn *sum;                  /* the fastest variant */
    const struct stk_shard_known *known; /* marks what was verified; NULL = nobody asks */
    bool once;                           /* do not verify a marked part again */
};

/* Make the codecs of a decoder whose field, codecs, known and once are set; it must not move
 * afterwards. pixels_max: largest image that is decoded to be resized. warnings_fail: an image
 * decoder's warnings are errors. Nothing is allocated. STOKER_ENOTSUP and *what (this build lacks a
 * codec), STOKER_EINVAL, STOKER_ELIMIT. */
int stk_shard_decoder_init(struct stk_shard_decoder *decoder, uint64_t pixels_max,
                           bool warnings_fail, const char **what);

/* Returns true if all parts of the field are image files: then they may have any size. */
bool stk_shard_decoder_only_files(const struct stk_shard_decoder *decoder);

/* The tag: 32 bits of checksum, 8 of 0, the low 24 of the index. */
enum { STK_SHARD_TAG_INDEX = 64 - STK_SHARD_INDEX_BITS };

/* Set codec and tag of a part; index: its number among the parts of the set. */
static inline void stk_shard_decoder_describe(const struct stk_shard_decoder *decoder,
                                              const struct stk_shard_record *record, uint64_t index,
                                              stoker_part *out)
{
    out->codec = decoder->codec_of[record->codec];
    out->tag = record->sum | index << STK_SHARD_TAG_INDEX;
}

#endif
