/* record.c - see record.h. */
#include "datasets/shards/record.h"

#include "loader/base/memory.h"
#include "loader/codec/lz4.h"
#include "loader/codec/raw.h"
#include "loader/codec/refuse.h"
#include "loader/codec/zstd.h"

static const stoker_codec *image_codec(const struct stk_shard_decoder *decoder)
{
    return decoder->image.codec.decode == NULL ? NULL : &decoder->image.codec;
}

/* One per worker; what the set's records do not need is NULL. */
struct scratch {
    void *image;
    void *zstd;
};

static void close_scratch(const void *self, void *at)
{
    struct scratch *scratch = at;
    const stoker_codec *image = image_codec(self);
    if (scratch == NULL)
        return;
    if (scratch->image != NULL)
        image->close(image->self, scratch->image);
    if (scratch->zstd != NULL)
        stk_codec_zstd.close(stk_codec_zstd.self, scratch->zstd);
    stk_free(scratch);
}

static int open_scratch(const void *self, void **out)
{
    const struct stk_shard_decoder *decoder = self;
    const stoker_codec *image = image_codec(decoder);
    int rc = STOKER_OK;
    if (image == NULL && !decoder->any_zstd)
        return STOKER_OK;
    struct scratch *scratch = stk_calloc(1, sizeof(*scratch));
    if (scratch == NULL)
        return STOKER_ENOMEM;
    if (image != NULL)
        rc = image->open(image->self, &scratch->image);
    if (rc == STOKER_OK && decoder->any_zstd)
        rc = stk_codec_zstd.open(stk_codec_zstd.self, &scratch->zstd);
    if (rc == STOKER_OK)
        *out = scratch;
    else
        close_scratch(self, scratch);
    return rc;
}

/* ---- the tag: 32 bits of checksum, 8 of codec, the low 24 of the index ---------- */

enum { TAG_CODEC_SHIFT = 32, TAG_INDEX_SHIFT = 64 - STK_SHARD_INDEX_BITS };

void stk_shard_decoder_describe(const struct stk_shard_decoder *decoder,
                                const struct stk_shard_record *record, uint64_t index,
                                stoker_part *out)
{
    out->codec = record->codec == STK_SHARD_RAW ? &decoder->raw : &decoder->packed;
    out->tag = record->sum | (uint64_t)record->codec << TAG_CODEC_SHIFT | index << TAG_INDEX_SHIFT;
}

static enum stk_shard_codec codec_of(uint64_t tag)
{
    return (enum stk_shard_codec)(uint8_t)(tag >> TAG_CODEC_SHIFT);
}

/* The record's number in the set, or STK_SHARD_NO_INDEX. */
static uint64_t index_of(const struct stk_shard_decoder *decoder, uint64_t tag)
{
    return decoder->known == NULL ? STK_SHARD_NO_INDEX
                                  : stk_shard_known_find(decoder->known, (uint32_t)tag,
                                                         (uint32_t)(tag >> TAG_INDEX_SHIFT));
}

static int check(const struct stk_shard_decoder *decoder, uint64_t index, uint32_t sum,
                 uint32_t wanted, stoker_error *error)
{
    if (sum != wanted)
        return stk_refuse(error, STOKER_ECORRUPT, "the bytes have checksum %08x, not %08x", sum,
                          wanted);
    if (decoder->known != NULL)
        stk_shard_known_mark(decoder->known, index);
    return STOKER_OK;
}

static int verify(const void *self, const stoker_encoded *in, stoker_error *error)
{
    const struct stk_shard_decoder *decoder = self;
    const uint64_t index = index_of(decoder, in->tag);
    if (decoder->once && stk_shard_known_has(decoder->known, index))
        return STOKER_OK;
    return check(decoder, index, decoder->sum(0, in->bytes, in->size), (uint32_t)in->tag, error);
}

static int verify_into(const void *self, const stoker_encoded *in, void *row, stoker_error *error)
{
    const struct stk_shard_decoder *decoder = self;
    const uint32_t sum = stk_crc32c_copy(0, row, in->bytes, in->size);
    return check(decoder, index_of(decoder, in->tag), sum, (uint32_t)in->tag, error);
}

static int decode_packed(const void *self, void *scratch, const stoker_encoded *in, void *row,
                         size_t row_bytes, stoker_error *error)
{
    const struct scratch *of = scratch;
    const stoker_codec *image = image_codec(self);
    switch (codec_of(in->tag)) {
    case STK_SHARD_LZ4:
        return stk_codec_lz4.decode(NULL, NULL, in, row, row_bytes, error);
    case STK_SHARD_ZSTD:
        return stk_codec_zstd.decode(NULL, of->zstd, in, row, row_bytes, error);
    default:
        return image->decode(image->self, of->image, in, row, row_bytes, error);
    }
}

static int inspect(const void *self, const stoker_encoded *in, stoker_image_header *header,
                   stoker_error *error)
{
    const stoker_codec *image = image_codec(self);
    const enum stk_shard_codec codec = codec_of(in->tag);
    *header = (stoker_image_header){ .format = STOKER_IMAGE_OTHER };
    return stk_kind_is_image(codec) ? image->inspect(image->self, in, header, error) : STOKER_OK;
}

/* ---- create --------------------------------------------------------------------- */

static bool needs_any(uint32_t needs, enum stk_shard_codec codec)
{
    return (needs >> codec & 1) != 0;
}

static const char *missing_in_build(const struct stk_shard_decoder *decoder, uint32_t needs)
{
    if (needs_any(needs, STK_SHARD_LZ4) && !stk_lz4_present())
        return "LZ4 records, but this library was built without liblz4";
    if (needs_any(needs, STK_SHARD_ZSTD) && !stk_zstd_present())
        return "Zstandard records, but this library was built without libzstd";
    if (needs_any(needs, STK_SHARD_PNG) && decoder->image.of[STK_SHARD_PNG] == NULL)
        return "PNG records, but this library was built without libpng";
    if (needs_any(needs, STK_SHARD_JPEG) && decoder->image.of[STK_SHARD_JPEG] == NULL)
        return "JPEG records, but this library was built without libjpeg-turbo";
    return NULL;
}

int stk_shard_decoder_init(struct stk_shard_decoder *decoder, const struct stk_shard_header *like,
                           uint32_t needs, bool warnings_fail, const char **what)
{
    *decoder = (struct stk_shard_decoder){ .sum = stk_crc32c_fastest(),
                                           .any_zstd = needs_any(needs, STK_SHARD_ZSTD) };
    *what = "the codec of the records";
    int rc = STOKER_OK;
    if (needs_any(needs, STK_SHARD_PNG) || needs_any(needs, STK_SHARD_JPEG)) {
        const struct stk_image_decoder_options image = {
            .shape = { .height = (uint32_t)like->shape[0],
                       .width = (uint32_t)like->shape[1],
                       .channels = (uint32_t)like->shape[2] },
            .warnings_fail = warnings_fail,
        };
        rc = stk_image_decoder_init(&decoder->image, &image);
    }
    const char *missing =
        rc == STOKER_OK || rc == STOKER_ENOTSUP ? missing_in_build(decoder, needs) : NULL;
    if (missing != NULL) {
        *what = missing;
        rc = STOKER_ENOTSUP;
    }
    if (rc != STOKER_OK) {
        stk_shard_decoder_close(decoder);
        return rc;
    }
    decoder->raw = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                   .name = "shard record",
                                   .self = decoder,
                                   .decode = stk_codec_raw.decode,
                                   .verify = verify,
                                   .verify_into = verify_into,
                                   .bytes_are_row = true };
    decoder->packed = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                      .name = "shard record",
                                      .self = decoder,
                                      .open = open_scratch,
                                      .close = close_scratch,
                                      .decode = decode_packed,
                                      .verify = verify,
                                      .inspect = image_codec(decoder) != NULL ? inspect : NULL };
    return STOKER_OK;
}

void stk_shard_decoder_close(struct stk_shard_decoder *decoder)
{
    stk_image_decoder_close(&decoder->image);
    *decoder = (struct stk_shard_decoder){ 0 };
}
