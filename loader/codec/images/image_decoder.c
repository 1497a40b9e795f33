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

/* Keeps byte counts made from a shape from overflowing, whatever the limits are. */
#define PIXELS_EVER ((uint64_t)1 << 40)

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

/* Returns true if the codec decodes files of that kind. */
static bool has(const struct stk_image_codec *image, const struct stk_image_kind *kind)
{
    return kind != NULL && kind->present && (image->kind == NULL || image->kind == kind);
}

static void close_scratch(const void *self, void *at)
{
    struct scratch *scratch = at;
    if (scratch == NULL)
        return;
    for (int kind = 0; kind < KINDS; kind++)
        if (stk_image_kinds[kind] != NULL && scratch->of[kind] != NULL)
            stk_image_kinds[kind]->close(self, scratch->of[kind]);
    stk_free(scratch);
}

static int open_scratch(const void *self, bool any_size, void **out)
{
    struct scratch *scratch = stk_calloc(1, sizeof(*scratch));
    int rc = scratch == NULL ? STOKER_ENOMEM : STOKER_OK;
    for (int kind = 0; kind < KINDS && rc == STOKER_OK; kind++)
        if (has(self, stk_image_kinds[kind]))
            rc = stk_image_kinds[kind]->open(self, any_size, &scratch->of[kind]);
    if (rc == STOKER_OK)
        *out = scratch;
    else
        close_scratch(self, scratch);
    return rc;
}

static int find_kind(const struct stk_image_codec *image, const stoker_encoded *in,
                     const struct stk_image_kind **kind, stoker_error *error)
{
    *kind = image->kind;
    if (*kind != NULL)
        return STOKER_OK;
    if (in->size == 0)
        return stk_refuse(error, STOKER_ETRUNCATED, "the file is empty");
    *kind = stk_image_kinds[stk_kind_of_bytes(in->bytes, in->size)];
    if (*kind == NULL)
        return stk_refuse(error, STOKER_EMAGIC, UNKNOWN);
    return (*kind)->present ? STOKER_OK : stk_refuse(error, STOKER_ENOTSUP, "%s", (*kind)->missing);
}

/* Returns true if the header claims more than one channel. The decoder verifies the header, and
 * reports one that cannot be read. */
static bool has_color(const struct stk_image_kind *kind, const stoker_encoded *in)
{
    struct stk_image_shape shape;
    if (kind == &stk_image_png)
        return in->size > PNG_COLOR_AT && in->bytes[PNG_COLOR_AT] != 0;
    return kind->probe(in->bytes, in->size, NULL, &shape, NULL) == STOKER_OK && shape.channels != 1;
}

/* If rows are gray only because all images read were, a color image must not silently become gray.
 * A PNG mask in color has a palette, or its decoder refuses it. */
static int check_color(const struct stk_image_options *options, const struct stk_image_kind *kind,
                       const stoker_encoded *in, stoker_error *error)
{
    const bool values = options->values && kind != &stk_image_png;
    if ((!values && !options->gray_found) || !has_color(kind, in))
        return STOKER_OK;
    return stk_refuse(
        error, STOKER_EFORMAT, "%s",
        values ? "a mask of colors: its values must be the gray levels of one channel"
               : "a color image, but the set was opened as gray, like the images read at open: "
                 "channels=3 in the spec makes all rows RGB, channels=1 all gray");
}

static int decode(const void *self, void *at, const stoker_encoded *in, const stoker_decoded *out,
                  stoker_error *error)
{
    const struct stk_image_codec *image = self;
    const struct stk_image_shape *shape = &image->options.shape;
    const struct scratch *scratch = at;
    const struct stk_image_kind *kind;
    if (out->got == NULL &&
        out->rows[0].bytes_max != (size_t)shape->height * shape->width * shape->channels)
        return stk_refuse(error, STOKER_EINVAL, "%zu bytes for a row of %u x %u x %u",
                          out->rows[0].bytes_max, shape->height, shape->width, shape->channels);
    int rc = find_kind(image, in, &kind, error);
    if (rc == STOKER_OK)
        rc = check_color(&image->options, kind, in, error);
    return rc == STOKER_OK ? kind->decode(image, scratch->of[kind->number], in, out, error) : rc;
}

static int probe(const void *self, const stoker_encoded *in, bool inspect,
                 stoker_image_header *header, stoker_error *error)
{
    const struct stk_image_codec *image = self;
    const struct stk_image_kind *kind;
    struct stk_image_shape shape = { 0 };
    *header = (stoker_image_header){ .format = STOKER_IMAGE_FORMAT_OTHER };
    int rc = find_kind(image, in, &kind, error);
    if (rc == STOKER_OK && !inspect) {
        rc = kind->probe(in->bytes, in->size, &image->options.limits, &shape, error);
        header->height = shape.height;
        header->width = shape.width;
        return rc;
    }
    if (rc == STOKER_OK)
        rc = check_color(&image->options, kind, in, error);
    return rc == STOKER_OK && kind->inspect != NULL ? kind->inspect(image, in, header, error) : rc;
}

/* ---- init ------------------------------------------------------------------------ */

static int check_shape(const struct stk_image_kind *kind, const struct stk_image_options *options,
                       uint64_t pixels_max)
{
    const struct stk_image_shape *shape = &options->shape;
    const bool known = shape->channels == 1 || shape->channels == 3 || shape->channels == 4;
    if (!known || shape->height < 1 || shape->width < 1 || shape->height > kind->side_max ||
        shape->width > kind->side_max)
        return STOKER_EINVAL;
    const uint64_t pixels = (uint64_t)shape->height * shape->width;
    return pixels > pixels_max || pixels > PIXELS_EVER ||
                   options->any_pixels_max > kind->any_pixels_max
               ? STOKER_ELIMIT
               : STOKER_OK;
}

int stk_image_codec_init(struct stk_image_codec *codec, const struct stk_image_kind *kind,
                         const struct stk_image_options *options)
{
    struct stk_image_codec made = {
        .codec = { .struct_size = sizeof(stoker_codec),
                   .name = kind == NULL ? "image" : stk_kinds[kind->number].name,
                   .self = codec,
                   .flags = STOKER_CODEC_FILE,
                   .open = open_scratch,
                   .close = close_scratch,
                   .decode = decode,
                   .probe = probe },
        .kind = kind,
        .options = *options,
    };
    made.options.limits = stk_image_limits(&options->limits);
    if (options->any_pixels_max > 0)
        made.codec.flags |= STOKER_CODEC_ANY_SIZE;
    int rc = STOKER_ENOTSUP;
    for (int i = 0; i < KINDS && (rc == STOKER_ENOTSUP || rc == STOKER_OK); i++)
        if (has(&made, stk_image_kinds[i]))
            rc = check_shape(stk_image_kinds[i], options, made.options.limits.pixels_max);
    if (rc == STOKER_OK)
        *codec = made;
    return rc;
}

const char *stk_image_codec_why(int rc)
{
    return rc == STOKER_ENOTSUP
               ? "this build reads no images: it was made without libpng, libjpeg-turbo and libwebp"
               : "no codec for rows of this shape";
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
