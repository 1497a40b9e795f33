/* decoder.c - see decoder.h. */
#include "datasets/shards/decoder.h"

#include <stddef.h>
#include <string.h>

#include "loader/codec/lz4.h"
#include "loader/codec/raw.h"
#include "loader/codec/refuse.h"
#include "loader/codec/zstd.h"

/* The part's number in the set, or STK_SHARD_NO_INDEX. */
static uint64_t index_of(const struct stk_shard_decoder *decoder, uint64_t tag)
{
    return decoder->known == NULL ? STK_SHARD_NO_INDEX
                                  : stk_shard_known_find(decoder->known, (uint32_t)tag,
                                                         (uint32_t)(tag >> STK_SHARD_TAG_INDEX));
}

/* ---- checksums ------------------------------------------------------------------ */

static int compare_sums(const struct stk_shard_decoder *decoder, uint64_t index, uint32_t sum,
                        uint32_t wanted, stoker_error *error)
{
    if (sum != wanted)
        return stk_refuse(error, STOKER_ECORRUPT, "the bytes have checksum %08x, not %08x", sum,
                          wanted);
    if (decoder->known != NULL)
        stk_shard_known_mark(decoder->known, index);
    return STOKER_OK;
}

static int verify(const void *self, const stoker_encoded *in, void *copy, stoker_error *error)
{
    const struct stk_shard_decoder *decoder = self;
    const uint64_t index = index_of(decoder, in->tag);
    if (copy != NULL)
        return compare_sums(decoder, index, stk_crc32c_copy(0, copy, in->bytes, in->size),
                            (uint32_t)in->tag, error);
    if (decoder->once && stk_shard_known_has(decoder->known, index))
        return STOKER_OK;
    return compare_sums(decoder, index, decoder->sum(0, in->bytes, in->size), (uint32_t)in->tag,
                        error);
}

/* The same for the image codec, whose self is the decoder's image. */
static int verify_file(const void *self, const stoker_encoded *in, void *copy, stoker_error *error)
{
    const size_t image_at = offsetof(struct stk_shard_decoder, image);
    return verify((const uint8_t *)self - image_at, in, copy, error);
}

/* ---- elements ------------------------------------------------------------------- */

/* A field that varies is stored raw. */
static int decode_varying(const void *self, void *scratch, const stoker_encoded *in,
                          const stoker_decoded *out, stoker_error *error)
{
    const struct stk_shard_decoder *decoder = self;
    stoker_row *row = &out->rows[0];
    (void)scratch;
    if (in->size > row->bytes_max || in->size % decoder->entry_bytes != 0)
        return stk_refuse(error, STOKER_EFORMAT, "%zu bytes cannot be the field", in->size);
    if (in->size > 0)
        memcpy(row->data, in->bytes, in->size);
    row->length = in->size / decoder->entry_bytes;
    return STOKER_OK;
}

/* ---- create --------------------------------------------------------------------- */

/* Returns true if some part is an image file, or if all are. */
static bool has_files(const struct stk_shard_decoder *decoder, bool all)
{
    uint32_t files = 0;
    for (uint32_t codec = 0; codec < STK_SHARD_CODECS; codec++)
        files |= (stk_kind_is_image(codec) ? 1U : 0U) << codec;
    return (decoder->codecs & files) != 0 && (!all || (decoder->codecs & ~files) == 0);
}

bool stk_shard_decoder_only_files(const struct stk_shard_decoder *decoder)
{
    return has_files(decoder, true);
}

static bool has_codec(const struct stk_shard_decoder *decoder, uint32_t codec)
{
    return (decoder->codecs >> codec & 1) != 0;
}

/* Write what the build lacks. Returns false if it lacks nothing. */
static bool lacks_codec(const struct stk_shard_decoder *decoder, const char **what)
{
    for (uint32_t codec = 0; codec < STK_SHARD_CODECS; codec++) {
        const bool lacks = codec == STK_SHARD_LZ4 ? !stk_lz4_present()
                           : codec == STK_SHARD_ZSTD
                               ? !stk_zstd_present()
                               : stk_kind_is_image(codec) && !stk_image_kinds[codec]->present;
        if (!lacks || !has_codec(decoder, codec))
            continue;
        *what = codec == STK_SHARD_LZ4    ? "this library was built without liblz4"
                : codec == STK_SHARD_ZSTD ? "this library was built without libzstd"
                                          : stk_image_kinds[codec]->missing;
        return true;
    }
    return false;
}

static int make_image(struct stk_shard_decoder *decoder, uint64_t pixels_max, bool warnings_fail)
{
    const struct stk_shard_field *field = &decoder->field;
    const struct stk_image_options options = {
        .shape = { .height = (uint32_t)field->shape[0],
                   .width = (uint32_t)field->shape[1],
                   .channels = (uint32_t)field->shape[2] },
        .any_pixels_max = stk_shard_decoder_only_files(decoder) ? pixels_max : 0,
        .warnings_fail = warnings_fail,
        .values = field->kind == STOKER_FIELD_KIND_MASK,
    };
    const int rc = stk_image_codec_init(&decoder->image, NULL, &options);
    decoder->image.codec.verify = verify_file;
    return rc;
}

/* A codec of elements behind a checksum; decode() and open() of `from` need no self. */
static stoker_codec checked(const struct stk_shard_decoder *decoder, const stoker_codec *from)
{
    stoker_codec codec = *from;
    codec.name = "shard part";
    codec.self = decoder;
    codec.verify = verify;
    return codec;
}

int stk_shard_decoder_init(struct stk_shard_decoder *decoder, uint64_t pixels_max,
                           bool warnings_fail, const char **what)
{
    for (uint32_t kind = 0; kind < STK_SHARD_CODECS; kind++)
        decoder->codec_of[kind] = &decoder->image.codec;
    decoder->codec_of[STK_SHARD_RAW] = &decoder->raw;
    decoder->codec_of[STK_SHARD_LZ4] = &decoder->lz4;
    decoder->codec_of[STK_SHARD_ZSTD] = &decoder->zstd;
    decoder->sum = stk_crc32c_fastest();
    decoder->entry_bytes = stk_shard_entry_bytes(&decoder->field);
    decoder->raw = checked(decoder, &stk_codec_raw);
    decoder->lz4 = checked(decoder, &stk_codec_lz4);
    decoder->zstd = checked(decoder, &stk_codec_zstd);
    if (decoder->field.varies) {
        decoder->raw.flags = STOKER_CODEC_FIELDS;
        decoder->raw.decode = decode_varying;
    }
    const int rc =
        has_files(decoder, false) ? make_image(decoder, pixels_max, warnings_fail) : STOKER_OK;
    *what = stk_image_codec_why(rc);
    return (rc == STOKER_OK || rc == STOKER_ENOTSUP) && lacks_codec(decoder, what) ? STOKER_ENOTSUP
                                                                                   : rc;
}
