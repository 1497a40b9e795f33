/* webp.c - see webp.h. libwebp, which writes right into the row; gray takes a detour.
 *
 *   bytes ──▶ walk: limits, chunks ──▶ libwebp ──▶ row of RGB or RGBA
 *                 │ refused               └────▶ scratch: RGB ──▶ row of gray
 *                 ▼
 *               error
 */
#include "loader/codec/webp/webp.h"

#include <assert.h>

#include "loader/base/memory.h"
#include "loader/codec/gray.h"
#include "loader/codec/refuse.h"
#include "loader/codec/webp/walk.h"

#ifdef STOKER_HAVE_WEBP
#include <webp/decode.h>

enum { RGB = 3, RGBA = 4 };

struct webp {
    stoker_codec codec; /* first: what create() gives out */
    struct stk_image_shape shape;
    struct stk_image_limits limits;
    uint64_t any_pixels_max;
};

struct scratch {
    struct stk_region colours; /* of an image that becomes gray; else nothing */
};

/* ---- scratch ---- */

static void close_scratch(const void *self, void *scratch)
{
    (void)self;
    struct scratch *own = scratch;
    if (own == NULL)
        return;
    stk_region_unmap(&own->colours);
    stk_free(own);
}

/* Address space for so many pixels, if they are to be gray; pages are taken when used. */
static int open_pixels(const struct webp *webp, uint64_t pixels, void **out)
{
    struct scratch *own = stk_calloc(1, sizeof(*own));
    if (own == NULL)
        return STOKER_ENOMEM;
    const int rc =
        webp->shape.channels == 1 ? stk_region_map(&own->colours, pixels * RGB) : STOKER_OK;
    if (rc != STOKER_OK) {
        close_scratch(webp, own);
        return rc;
    }
    *out = own;
    return STOKER_OK;
}

static int open_scratch(const void *self, void **out)
{
    const struct webp *webp = self;
    return open_pixels(webp, (uint64_t)webp->shape.height * webp->shape.width, out);
}

static int open_any(const void *self, void **out)
{
    const struct webp *webp = self;
    return open_pixels(webp, webp->any_pixels_max, out);
}

/* ---- decoding ---- */

static int refuse_status(VP8StatusCode status, stoker_error *error)
{
    switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return stk_refuse(error, STOKER_ENOMEM, "libwebp: out of memory");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return stk_refuse(error, STOKER_EFORMAT, "libwebp: a feature that it does not support");
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return stk_refuse(error, STOKER_ECORRUPT, "libwebp: the image ends before its last pixel");
    default:
        return stk_refuse(error, STOKER_ECORRUPT, "libwebp: corrupt data (status %d)", (int)status);
    }
}

/* Decode to pixels of `channels` bytes, 3 or 4. */
static int decode_colours(const stoker_encoded *in, const struct stk_webp_walk *walk,
                          uint32_t channels, uint8_t *pixels, stoker_error *error)
{
    WebPDecoderConfig config;
    if (WebPInitDecoderConfig(&config) == 0)
        return stk_refuse(error, STOKER_ENOTSUP, "libwebp is of another version than its headers");
    config.output.colorspace = channels == RGBA ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = (WebPRGBABuffer){
        .rgba = pixels,
        .stride = (int)(walk->width * channels),
        .size = (size_t)walk->height * walk->width * channels,
    };
    const VP8StatusCode status = WebPDecode(in->bytes, walk->bytes, &config);
    return status == VP8_STATUS_OK ? STOKER_OK : refuse_status(status, error);
}

/* Decode a file that was walked over to rows of the codec's channels. */
static int decode_walked(const struct webp *webp, const struct scratch *own,
                         const stoker_encoded *in, const struct stk_webp_walk *walk, uint8_t *row,
                         stoker_error *error)
{
    if (webp->shape.channels != 1)
        return decode_colours(in, walk, webp->shape.channels, row, error);
    const size_t pixels = (size_t)walk->height * walk->width;
    assert(pixels * RGB <= own->colours.bytes);
    const int rc = decode_colours(in, walk, RGB, own->colours.base, error);
    if (rc == STOKER_OK)
        stk_gray_from_rgb(own->colours.base, pixels, row);
    return rc;
}

static int decode(const void *self, void *scratch, const stoker_encoded *in, void *row,
                  size_t row_bytes, stoker_error *error)
{
    const struct webp *webp = self;
    const struct stk_image_shape *shape = &webp->shape;
    if (row_bytes != (size_t)shape->height * shape->width * shape->channels)
        return stk_refuse(error, STOKER_EINVAL, "%zu bytes for a row of %u x %u x %u", row_bytes,
                          shape->height, shape->width, shape->channels);
    struct stk_webp_walk walk;
    const int rc = stk_webp_walk(in->bytes, in->size, &webp->limits, &walk, error);
    if (rc != STOKER_OK)
        return rc;
    if (walk.height != shape->height || walk.width != shape->width)
        return stk_refuse(error, STOKER_EFORMAT, "%u x %u pixels where %u x %u are expected",
                          walk.height, walk.width, shape->height, shape->width);
    return decode_walked(webp, scratch, in, &walk, row, error);
}

static int decode_any(const void *self, void *scratch, const stoker_encoded *in, void *pixels,
                      size_t pixels_bytes, stoker_size *size, stoker_error *error)
{
    const struct webp *webp = self;
    struct stk_webp_walk walk;
    int rc = stk_webp_walk(in->bytes, in->size, &webp->limits, &walk, error);
    if (rc != STOKER_OK)
        return rc;
    const struct stk_image_shape shape = { walk.height, walk.width, webp->shape.channels };
    rc = stk_image_check_any(&shape, webp->any_pixels_max, pixels_bytes, error);
    if (rc != STOKER_OK)
        return rc;
    *size = (stoker_size){ shape.height, shape.width };
    return decode_walked(webp, scratch, in, &walk, pixels, error);
}

/* So that no count of bytes made from a shape overflows, whatever the limits say. */
#define PIXELS_EVER ((uint64_t)1 << 40)

int stk_codec_webp_create(stoker_codec **out, const struct stk_webp_options *options)
{
    const struct stk_image_shape *shape = &options->shape;
    const struct stk_image_limits limits = stk_image_limits(&options->limits);
    const bool known = shape->channels == 1 || shape->channels == 3 || shape->channels == 4;
    if (!known || shape->height < 1 || shape->width < 1)
        return STOKER_EINVAL;
    const uint64_t pixels = (uint64_t)shape->height * shape->width;
    if (pixels > limits.pixels_max || pixels > PIXELS_EVER || options->any_pixels_max > PIXELS_EVER)
        return STOKER_ELIMIT;
    struct webp *webp = stk_calloc(1, sizeof(*webp));
    if (webp == NULL)
        return STOKER_ENOMEM;
    *webp = (struct webp){
        .codec = { .name = "webp",
                   .self = webp,
                   .open = open_scratch,
                   .close = close_scratch,
                   .decode = decode },
        .shape = *shape,
        .limits = limits,
        .any_pixels_max = options->any_pixels_max,
    };
    if (webp->any_pixels_max > 0) {
        webp->codec.open_any = open_any;
        webp->codec.decode_any = decode_any;
    }
    *out = &webp->codec;
    return STOKER_OK;
}

#else

int stk_codec_webp_create(stoker_codec **out, const struct stk_webp_options *options)
{
    (void)out;
    (void)options;
    return STOKER_ENOTSUP;
}

#endif

void stk_codec_webp_destroy(stoker_codec **codec)
{
    if (codec == NULL || *codec == NULL)
        return;
    assert((const void *)*codec == (*codec)->self);
    stk_free(*codec);
    *codec = NULL;
}
