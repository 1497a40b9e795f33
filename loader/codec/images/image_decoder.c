/* image_decoder.c - see image_decoder.h. */
#include "loader/codec/images/image_decoder.h"

#include "loader/base/memory/memory.h"
#include "loader/codec/jpeg/jpeg.h"
#include "loader/codec/png/png.h"
#include "loader/codec/refuse.h"
#include "loader/codec/webp/webp.h"

enum {
    KINDS = STK_SHARD_CODECS,
    PNG_COLOR_AT = 25 /* color type in a PNG file, 0 = gray */
};

#define UNKNOWN "neither PNG nor JPEG nor WebP"

/* One worker's scratch. */
struct scratch {
    void *of[KINDS];
};

const struct stk_image_kind *const stk_image_kinds[KINDS] = {
    [STK_SHARD_PNG] = &stk_image_png,
    [STK_SHARD_JPEG] = &stk_image_jpeg,
    [STK_SHARD_WEBP] = &stk_image_webp,
};

/* ---- the codec ------------------------------------------------------------------- */

static void close_scratch(const void *self, void *at)
{
    const struct stk_image_decoder *image = self;
    struct scratch *scratch = at;
    if (scratch == NULL)
        return;
    for (int kind = 0; kind < KINDS; kind++)
        if (image->of[kind] != NULL && scratch->of[kind] != NULL)
            image->of[kind]->close(image->of[kind]->self, scratch->of[kind]);
    stk_free(scratch);
}

static int open_all(const struct stk_image_decoder *image, bool any, void **out)
{
    struct scratch *scratch = stk_calloc(1, sizeof(*scratch));
    int rc = scratch == NULL ? STOKER_ENOMEM : STOKER_OK;
    for (int kind = 0; kind < KINDS && rc == STOKER_OK; kind++) {
        const stoker_codec *codec = image->of[kind];
        if (codec != NULL)
            rc = (any ? codec->open_any : codec->open)(codec->self, &scratch->of[kind]);
    }
    if (rc == STOKER_OK)
        *out = scratch;
    else
        close_scratch(image, scratch);
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

/* Find the codec for a file and this worker's scratch for it. */
static int choose(const struct stk_image_decoder *image, const struct scratch *scratch,
                  const stoker_encoded *in, const stoker_codec **codec, void **own,
                  stoker_error *error)
{
    if (in->size == 0)
        return stk_refuse(error, STOKER_ETRUNCATED, "the file is empty");
    const enum stk_shard_codec kind = stk_kind_of_bytes(in->bytes, in->size);
    if (stk_image_kinds[kind] == NULL)
        return stk_refuse(error, STOKER_EMAGIC, UNKNOWN);
    *codec = image->of[kind];
    *own = scratch->of[kind];
    return *codec == NULL ? stk_refuse(error, STOKER_ENOTSUP, "%s", stk_image_kinds[kind]->missing)
                          : STOKER_OK;
}

/* Returns true if the header claims more than one channel. The codec verifies the header, and
 * reports one that cannot be read. */
static bool has_color(const stoker_encoded *in)
{
    struct stk_image_shape shape;
    if (stk_kind_of_bytes(in->bytes, in->size) == STK_SHARD_PNG)
        return in->size > PNG_COLOR_AT && in->bytes[PNG_COLOR_AT] != 0;
    return stk_image_probe(in->bytes, in->size, &shape, NULL) == STOKER_OK && shape.channels != 1;
}

/* If rows are gray only because all images read were, a color image must not silently become gray.
 * */
static int check_color(const struct stk_image_decoder *image, const stoker_encoded *in,
                       stoker_error *error)
{
    if ((!image->gray_found && !image->mask) || !has_color(in))
        return STOKER_OK;
    if (image->mask)
        return stk_kind_of_bytes(in->bytes, in->size) == STK_SHARD_PNG
                   ? STOKER_OK /* has a palette, or its codec refuses it */
                   : stk_refuse(
                         error, STOKER_EFORMAT,
                         "a mask of colors: its values must be the gray levels of one channel");
    return stk_refuse(
        error, STOKER_EFORMAT,
        "a color image, but the set was opened as gray, like the images read at open: "
        "channels=3 in the spec makes all rows RGB, channels=1 all gray");
}

/* choose(), and refuse a file of colors where there must be none. */
static int begin(const struct stk_image_decoder *image, const struct scratch *scratch,
                 const stoker_encoded *in, const stoker_codec **codec, void **own,
                 stoker_error *error)
{
    const int rc = choose(image, scratch, in, codec, own, error);
    return rc == STOKER_OK ? check_color(image, in, error) : rc;
}

static int decode(const void *self, void *at, const stoker_encoded *in, void *row, size_t row_bytes,
                  stoker_error *error)
{
    const stoker_codec *codec;
    void *own;
    const int rc = begin(self, at, in, &codec, &own, error);
    return rc == STOKER_OK ? codec->decode(codec->self, own, in, row, row_bytes, error) : rc;
}

static int decode_any(const void *self, void *at, const stoker_encoded *in, void *pixels,
                      size_t pixels_bytes, stoker_size *size, stoker_error *error)
{
    const stoker_codec *codec;
    void *own;
    const int rc = begin(self, at, in, &codec, &own, error);
    return rc == STOKER_OK
               ? codec->decode_any(codec->self, own, in, pixels, pixels_bytes, size, error)
               : rc;
}

static int measure(const void *self, void *at, const stoker_encoded *in, stoker_size *size,
                   stoker_error *error)
{
    const stoker_codec *codec;
    void *own;
    const int rc = choose(self, at, in, &codec, &own, error);
    return rc == STOKER_OK ? codec->measure(codec->self, own, in, size, error) : rc;
}

static int decode_region(const void *self, void *at, const stoker_encoded *in,
                         const stoker_region *wanted, void *pixels, size_t pixels_bytes,
                         stoker_region *got, stoker_error *error)
{
    const stoker_codec *codec;
    void *own;
    const int rc = begin(self, at, in, &codec, &own, error);
    return rc == STOKER_OK ? codec->decode_region(codec->self, own, in, wanted, pixels,
                                                  pixels_bytes, got, error)
                           : rc;
}

static int inspect(const void *self, const stoker_encoded *in, stoker_image_header *header,
                   stoker_error *error)
{
    const struct stk_image_decoder *image = self;
    const struct scratch none = { .of = { NULL } };
    const stoker_codec *codec;
    void *unused;
    const int rc = begin(image, &none, in, &codec, &unused, error);
    return rc == STOKER_OK ? codec->inspect(codec->self, in, header, error) : rc;
}

int stk_image_decoder_init(struct stk_image_decoder *image,
                           const struct stk_image_decoder_options *options)
{
    int made = 0;
    const struct stk_image_options codec = { .shape = options->shape,
                                             .any_pixels_max = options->any_pixels_max,
                                             .warnings_fail = options->warnings_fail,
                                             .values = options->mask };
    *image = (struct stk_image_decoder){ .gray_found = options->gray_found, .mask = options->mask };
    for (int kind = 0; kind < KINDS; kind++) {
        if (stk_image_kinds[kind] == NULL)
            continue;
        const int rc = stk_image_codec_create(&image->of[kind], stk_image_kinds[kind], &codec);
        if (rc != STOKER_OK && rc != STOKER_ENOTSUP) {
            stk_image_decoder_close(image);
            return rc;
        }
        made += rc == STOKER_OK;
    }
    if (made == 0)
        return STOKER_ENOTSUP;
    image->codec = (stoker_codec){ .struct_size = sizeof(stoker_codec),
                                   .name = "image",
                                   .self = image,
                                   .open = open_scratch,
                                   .close = close_scratch,
                                   .decode = decode,
                                   .inspect = inspect };
    if (options->any_pixels_max > 0) {
        image->codec.open_any = open_any;
        image->codec.decode_any = decode_any;
        image->codec.measure = measure;
        image->codec.decode_region = decode_region;
    }
    return STOKER_OK;
}

const char *stk_image_decoder_why(int rc)
{
    return rc == STOKER_ENOTSUP
               ? "this build reads no images: it was made without libpng, libjpeg-turbo and libwebp"
               : "no codec for rows of this shape";
}

void stk_image_decoder_close(struct stk_image_decoder *image)
{
    for (int kind = 0; kind < KINDS; kind++)
        stk_image_codec_destroy(&image->of[kind]);
    *image = (struct stk_image_decoder){ 0 };
}

int stk_image_probe(const uint8_t *bytes, size_t size, struct stk_image_shape *out,
                    stoker_error *error)
{
    if (size == 0)
        return stk_refuse(error, STOKER_ETRUNCATED, "the file is empty");
    const enum stk_shard_codec kind = stk_kind_of_bytes(bytes, size);
    return stk_image_kinds[kind] == NULL
               ? stk_refuse(error, STOKER_EMAGIC, UNKNOWN)
               : stk_image_kinds[kind]->probe(bytes, size, NULL, out, error);
}

int stk_image_probe_at(const struct stk_place *place, const uint8_t *bytes, size_t size,
                       struct stk_image_shape *out, stoker_error *error)
{
    stoker_error said = { .message = "" };
    int rc = stk_image_probe(bytes, size, out, &said);
    const struct stk_image_kind *kind = stk_image_kinds[stk_kind_of_bytes(bytes, size)];
    if (rc == STOKER_OK && !kind->present)
        rc = stk_refuse(&said, STOKER_ENOTSUP, "%s", kind->missing);
    return rc == STOKER_OK ? rc
                           : stk_error_set(error, rc, STOKER_STAGE_OPEN, place,
                                           said.message[0] != '\0' ? "%s" : NULL, said.message);
}
