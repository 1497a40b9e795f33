/* decoder.c - see decoder.h. */
#include "datasets/shards/decoder.h"

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

static int verify(const void *self, const stoker_encoded *in, stoker_error *error)
{
    const struct stk_shard_decoder *decoder = self;
    const uint64_t index = index_of(decoder, in->tag);
    if (decoder->once && stk_shard_known_has(decoder->known, index))
        return STOKER_OK;
    return compare_sums(decoder, index, decoder->sum(0, in->bytes, in->size), (uint32_t)in->tag,
                        error);
}

static int verify_into(const void *self, const stoker_encoded *in, void *row, stoker_error *error)
{
    const struct stk_shard_decoder *decoder = self;
    const uint32_t sum = stk_crc32c_copy(0, row, in->bytes, in->size);
    return compare_sums(decoder, index_of(decoder, in->tag), sum, (uint32_t)in->tag, error);
}

/* ---- elements ------------------------------------------------------------------- */

/* A field that varies is stored raw. */
static int decode_varying(const void *self, void *scratch, const stoker_encoded *in,
                          stoker_row *rows, uint32_t count, stoker_error *error)
{
    const struct stk_shard_decoder *decoder = self;
    (void)scratch;
    (void)count;
    if (in->size > rows[0].bytes_max || in->size % decoder->entry_bytes != 0)
        return stk_refuse(error, STOKER_EFORMAT, "%zu bytes cannot be the field", in->size);
    if (in->size > 0)
        memcpy(rows[0].data, in->bytes, in->size);
    rows[0].length = in->size / decoder->entry_bytes;
    return STOKER_OK;
}

static int decode_packed(const void *self, void *scratch, const stoker_encoded *in, void *row,
                         size_t row_bytes, stoker_error *error)
{
    (void)self;
    return (uint8_t)(in->tag >> STK_SHARD_TAG_CODEC) == STK_SHARD_LZ4
               ? stk_codec_lz4.decode(NULL, NULL, in, row, row_bytes, error)
               : stk_codec_zstd.decode(NULL, scratch, in, row, row_bytes, error);
}

/* ---- image files: the codec of folder: behind a checksum ------------------------ */

static const stoker_codec *image_of(const void *self)
{
    return &((const struct stk_shard_decoder *)self)->image.codec;
}

static int open_file(const void *self, void **scratch)
{
    return image_of(self)->open(image_of(self)->self, scratch);
}

static int open_any(const void *self, void **scratch)
{
    return image_of(self)->open_any(image_of(self)->self, scratch);
}

static void close_file(const void *self, void *scratch)
{
    image_of(self)->close(image_of(self)->self, scratch);
}

static int decode_file(const void *self, void *scratch, const stoker_encoded *in, void *row,
                       size_t row_bytes, stoker_error *error)
{
    return image_of(self)->decode(image_of(self)->self, scratch, in, row, row_bytes, error);
}

static int decode_any(const void *self, void *scratch, const stoker_encoded *in, void *pixels,
                      size_t pixels_bytes, stoker_size *size, stoker_error *error)
{
    return image_of(self)->decode_any(image_of(self)->self, scratch, in, pixels, pixels_bytes, size,
                                      error);
}

static int measure(const void *self, void *scratch, const stoker_encoded *in, stoker_size *size,
                   stoker_error *error)
{
    return image_of(self)->measure(image_of(self)->self, scratch, in, size, error);
}

static int decode_region(const void *self, void *scratch, const stoker_encoded *in,
                         const stoker_region *wanted, void *pixels, size_t pixels_bytes,
                         stoker_region *got, stoker_error *error)
{
    return image_of(self)->decode_region(image_of(self)->self, scratch, in, wanted, pixels,
                                         pixels_bytes, got, error);
}

static int inspect(const void *self, const stoker_encoded *in, stoker_image_header *header,
                   stoker_error *error)
{
    return image_of(self)->inspect(image_of(self)->self, in, header, error);
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

static bool has(const struct stk_shard_decoder *decoder, uint32_t codec)
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
                               : stk_kind_is_image(codec) && decoder->image.of[codec] == NULL;
        if (!lacks || !has(decoder, codec))
            continue;
        *what = codec == STK_SHARD_LZ4    ? "this library was built without liblz4"
                : codec == STK_SHARD_ZSTD ? "this library was built without libzstd"
                : codec == STK_SHARD_PNG  ? "this library was built without libpng"
                : codec == STK_SHARD_JPEG ? "this library was built without libjpeg-turbo"
                                          : "this library was built without libwebp";
        return true;
    }
    return false;
}

static int make_image(struct stk_shard_decoder *decoder, uint64_t pixels_max, bool warnings_fail)
{
    const struct stk_shard_field *field = &decoder->field;
    const bool any = stk_shard_decoder_only_files(decoder);
    const struct stk_image_decoder_options options = {
        .shape = { .height = (uint32_t)field->shape[0],
                   .width = (uint32_t)field->shape[1],
                   .channels = (uint32_t)field->shape[2] },
        .any_pixels_max = any ? pixels_max : 0,
        .warnings_fail = warnings_fail,
        .mask = field->kind == STOKER_FIELD_KIND_MASK,
    };
    const int rc = stk_image_decoder_init(&decoder->image, &options);
    decoder->files.open = open_file;
    decoder->files.close = close_file;
    decoder->files.inspect = inspect;
    if (rc == STOKER_OK && any) {
        decoder->files.open_any = open_any;
        decoder->files.decode_any = decode_any;
        decoder->files.measure = measure;
        decoder->files.decode_region = decode_region;
    }
    return rc;
}

int stk_shard_decoder_init(struct stk_shard_decoder *decoder, uint64_t pixels_max,
                           bool warnings_fail, const char **what)
{
    const bool varies = decoder->field.varies;
    stoker_codec codec = { .struct_size = sizeof(stoker_codec), .self = decoder, .verify = verify };
    for (uint32_t kind = 0; kind < STK_SHARD_CODECS; kind++)
        decoder->codec_of[kind] = kind == STK_SHARD_RAW     ? &decoder->raw
                                  : stk_kind_is_image(kind) ? &decoder->files
                                                            : &decoder->packed;
    decoder->sum = stk_crc32c_fastest();
    decoder->entry_bytes = stk_shard_entry_bytes(&decoder->field);
    codec.name = "shard part";
    codec.decode = decode_packed;
    decoder->packed = codec;
    if (has(decoder, STK_SHARD_ZSTD)) {
        decoder->packed.open = stk_codec_zstd.open;
        decoder->packed.close = stk_codec_zstd.close;
    }
    codec.decode = varies ? NULL : stk_codec_raw.decode;
    codec.decode_fields = varies ? decode_varying : NULL;
    codec.verify_into = varies ? NULL : verify_into;
    codec.bytes_are_row = !varies;
    decoder->raw = codec;
    decoder->files = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                     .name = "image",
                                     .self = decoder,
                                     .decode = decode_file,
                                     .verify = verify };
    const int rc =
        has_files(decoder, false) ? make_image(decoder, pixels_max, warnings_fail) : STOKER_OK;
    *what = stk_image_decoder_why(rc);
    return (rc == STOKER_OK || rc == STOKER_ENOTSUP) && lacks_codec(decoder, what) ? STOKER_ENOTSUP
                                                                                   : rc;
}

void stk_shard_decoder_close(struct stk_shard_decoder *decoder)
{
    stk_image_decoder_close(&decoder->image);
}
