/* field_decoder.c - see field_decoder.h. */
#include "datasets/shards/field_decoder.h"

#include <string.h>

#include "loader/base/memory.h"
#include "loader/codec/lz4.h"
#include "loader/codec/raw.h"
#include "loader/codec/refuse.h"
#include "loader/codec/zstd.h"

enum { TAG_CODEC_SHIFT = 32 };

/* One worker's; what the field's parts do not need is NULL. */
struct scratch {
    void *image;
    void *zstd;
};

static void close_scratch(const void *self, void *at)
{
    const struct stk_field_decoder *decoder = self;
    struct scratch *scratch = at;
    if (scratch == NULL)
        return;
    if (scratch->image != NULL)
        decoder->image.codec.close(decoder->image.codec.self, scratch->image);
    if (scratch->zstd != NULL)
        stk_codec_zstd.close(NULL, scratch->zstd);
    stk_free(scratch);
}

static int open_all(const struct stk_field_decoder *decoder, bool any, void **out)
{
    const stoker_codec *image = &decoder->image.codec;
    struct scratch *scratch = stk_calloc(1, sizeof(*scratch));
    int rc = scratch == NULL ? STOKER_ENOMEM : STOKER_OK;
    if (rc == STOKER_OK && decoder->any_image)
        rc = (any ? image->open_any : image->open)(image->self, &scratch->image);
    if (rc == STOKER_OK && decoder->any_zstd)
        rc = stk_codec_zstd.open(NULL, &scratch->zstd);
    if (rc == STOKER_OK)
        *out = scratch;
    else
        close_scratch(decoder, scratch);
    return rc;
}

static int open_scratch(const void *self, void **out)
{
    return open_all(self, false, out);
}

static int open_any(const void *self, void **out)
{
    return open_all(self, true, out);
}

static int verify(const void *self, const stoker_encoded *in, stoker_error *error)
{
    const struct stk_field_decoder *decoder = self;
    const uint32_t sum = decoder->sum(0, in->bytes, in->size);
    const uint32_t wanted = (uint32_t)in->tag;
    return sum == wanted ? STOKER_OK
                         : stk_refuse(error, STOKER_ECORRUPT,
                                      "the bytes have checksum %08x, not %08x", sum, wanted);
}

static int decode(const void *self, void *at, const stoker_encoded *in, void *row, size_t row_bytes,
                  stoker_error *error)
{
    const struct stk_field_decoder *decoder = self;
    const struct scratch *scratch = at;
    const stoker_codec *image = &decoder->image.codec;
    switch (in->tag >> TAG_CODEC_SHIFT) {
    case STK_SHARD_RAW:
        return stk_codec_raw.decode(NULL, NULL, in, row, row_bytes, error);
    case STK_SHARD_LZ4:
        return stk_codec_lz4.decode(NULL, NULL, in, row, row_bytes, error);
    case STK_SHARD_ZSTD:
        return stk_codec_zstd.decode(NULL, scratch->zstd, in, row, row_bytes, error);
    default:
        return image->decode(image->self, scratch->image, in, row, row_bytes, error);
    }
}

/* A field that varies is stored raw. */
static int decode_fields(const void *self, void *at, const stoker_encoded *in, stoker_row *rows,
                         uint32_t count, stoker_error *error)
{
    const struct stk_field_decoder *decoder = self;
    (void)at;
    (void)count;
    if (in->size > rows[0].bytes_max || in->size % decoder->entry_bytes != 0)
        return stk_refuse(error, STOKER_EFORMAT, "%zu bytes cannot be the field", in->size);
    if (in->size > 0)
        memcpy(rows[0].data, in->bytes, in->size);
    rows[0].length = in->size / decoder->entry_bytes;
    return STOKER_OK;
}

static int decode_any(const void *self, void *at, const stoker_encoded *in, void *pixels,
                      size_t pixels_bytes, stoker_size *size, stoker_error *error)
{
    const struct stk_field_decoder *decoder = self;
    const struct scratch *scratch = at;
    const stoker_codec *image = &decoder->image.codec;
    return image->decode_any(image->self, scratch->image, in, pixels, pixels_bytes, size, error);
}

static int measure(const void *self, void *at, const stoker_encoded *in, stoker_size *size,
                   stoker_error *error)
{
    const struct stk_field_decoder *decoder = self;
    const struct scratch *scratch = at;
    const stoker_codec *image = &decoder->image.codec;
    return image->measure(image->self, scratch->image, in, size, error);
}

static int decode_region(const void *self, void *at, const stoker_encoded *in,
                         const stoker_region *wanted, void *pixels, size_t pixels_bytes,
                         stoker_region *got, stoker_error *error)
{
    const struct stk_field_decoder *decoder = self;
    const struct scratch *scratch = at;
    const stoker_codec *image = &decoder->image.codec;
    return image->decode_region(image->self, scratch->image, in, wanted, pixels, pixels_bytes, got,
                                error);
}

static int inspect(const void *self, const stoker_encoded *in, stoker_image_header *header,
                   stoker_error *error)
{
    const struct stk_field_decoder *decoder = self;
    return decoder->image.codec.inspect(decoder->image.codec.self, in, header, error);
}

/* ---- create --------------------------------------------------------------------- */

static int make_image(struct stk_field_decoder *decoder,
                      const struct stk_field_decoder_options *options)
{
    const struct stk_fields_field *field = &decoder->field;
    const struct stk_image_decoder_options image = {
        .shape = { .height = (uint32_t)field->shape[0],
                   .width = (uint32_t)field->shape[1],
                   .channels = (uint32_t)field->shape[2] },
        .any_pixels_max = options->only_images ? options->pixels_max : 0,
        .warnings_fail = options->warnings_fail,
        .mask = field->kind == STOKER_FIELD_MASK,
    };
    const int rc = stk_image_decoder_init(&decoder->image, &image);
    if (rc == STOKER_OK && options->only_images) {
        decoder->codec.open_any = open_any;
        decoder->codec.decode_any = decode_any;
        decoder->codec.measure = measure;
        decoder->codec.decode_region = decode_region;
    }
    return rc;
}

int stk_field_decoder_init(struct stk_field_decoder *decoder,
                           const struct stk_field_decoder_options *options, const char **what)
{
    decoder->sum = stk_crc32c_fastest();
    decoder->entry_bytes = stk_fields_entry_bytes(&decoder->field);
    decoder->codec = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                     .name = "shard part",
                                     .self = decoder,
                                     .open = open_scratch,
                                     .close = close_scratch,
                                     .decode = decode,
                                     .decode_fields = decode_fields,
                                     .verify = verify };
    *what = "Zstandard parts, but this library was built without libzstd";
    if (decoder->any_zstd && !stk_zstd_present())
        return STOKER_ENOTSUP;
    const int rc = decoder->any_image ? make_image(decoder, options) : STOKER_OK;
    *what = stk_image_decoder_why(rc);
    decoder->files = decoder->codec;
    decoder->files.name = "image";
    decoder->files.inspect = decoder->any_image ? inspect : NULL;
    return rc;
}

void stk_field_decoder_close(struct stk_field_decoder *decoder)
{
    stk_image_decoder_close(&decoder->image);
}

void stk_field_decoder_describe(const struct stk_field_decoder *decoder, uint32_t codec,
                                uint32_t sum, stoker_part *out)
{
    out->codec = stk_kind_is_image(codec) ? &decoder->files : &decoder->codec;
    out->tag = sum | (uint64_t)codec << TAG_CODEC_SHIFT;
}
