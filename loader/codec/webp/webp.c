/* webp.c - see webp.h. libwebp writes straight into the row, except for gray.
 *
 *   bytes ──▶ walk: limits, chunks ──▶ libwebp ──▶ row of RGB or RGBA
 *                 │ refused               └────▶ scratch: RGB ──▶ row of gray
 *                 ▼
 *               error
 */
#include "loader/codec/webp/webp.h"

#include <assert.h>

#include "loader/base/memory/memory.h"
#include "loader/codec/gray.h"
#include "loader/codec/refuse.h"
#include "loader/codec/webp/walk.h"

#ifdef STOKER_HAVE_WEBP
#include <webp/decode.h>

enum { RGB = 3, RGBA = 4, MARGIN = 4 };

struct scratch {
    struct stk_region colors; /* pixels of an image that becomes gray; else unmapped */
};

/* ---- scratch ---- */

static void close_scratch(const void *self, void *scratch)
{
    (void)self;
    struct scratch *own = scratch;
    if (own == NULL)
        return;
    stk_region_unmap(&own->colors);
    stk_free(own);
}

/* Reserve address space for the color pixels of the largest image if the row is gray. */
static int open_scratch(const void *self, bool any_size, void **out)
{
    const struct stk_image_options *options = &((const struct stk_image_codec *)self)->options;
    const uint64_t pixels =
        any_size ? options->any_pixels_max : (uint64_t)options->shape.height * options->shape.width;
    struct scratch *own = stk_calloc(1, sizeof(*own));
    if (own == NULL)
        return STOKER_ENOMEM;
    const int rc =
        options->shape.channels == 1 ? stk_region_map(&own->colors, pixels * RGB) : STOKER_OK;
    if (rc != STOKER_OK) {
        close_scratch(self, own);
        return rc;
    }
    *out = own;
    return STOKER_OK;
}

/* ---- decoding ---- */

static int refuse_status(VP8StatusCode status, stoker_error *error)
{
    switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return stk_refuse(error, STOKER_ENOMEM, "libwebp");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return stk_refuse(error, STOKER_EFORMAT, "libwebp: a feature that it does not support");
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return stk_refuse(error, STOKER_ECORRUPT, "libwebp: the image ends before its last pixel");
    default:
        return stk_refuse(error, STOKER_ECORRUPT, "libwebp: corrupt data (status %d)", (int)status);
    }
}

/* Widen a range by a margin on both sides, within the image, to an even start, as libwebp
 * requires. */
static struct stk_image_range widened(uint32_t from, uint32_t count, uint32_t side)
{
    const uint32_t first = from > MARGIN ? from - MARGIN : 0;
    const uint32_t room = side - from - count;
    return (struct stk_image_range){ first - first % 2,
                                     from + count + (room < MARGIN ? room : MARGIN) };
}

/* What to decode: libwebp then neither filters nor converts the rest. At the edges of that, smooth
 * upsampling sees no neighbors: hence the margin. It reads no further than the last row, so that is
 * the image's: damage below must not go unnoticed. */
static stoker_region choose_region(const stoker_decoded *out, const struct stk_webp_walk *walk)
{
    const stoker_region *wanted = out->wanted;
    if (wanted == NULL)
        return (stoker_region){ 0, 0, walk->height, walk->width, 8 };
    const struct stk_image_range y = widened(wanted->y, walk->height - wanted->y, walk->height);
    const struct stk_image_range x = widened(wanted->x, wanted->width, walk->width);
    return *out->got = (stoker_region){ y.from, x.from, y.to - y.from, x.to - x.from, 8 };
}

/* Decode a region to pixels of 3 or 4 bytes. */
static int decode_colors(const stoker_encoded *in, const struct stk_webp_walk *walk,
                         const stoker_region *region, uint32_t channels, uint8_t *pixels,
                         stoker_error *error)
{
    WebPDecoderConfig config;
    if (WebPInitDecoderConfig(&config) == 0)
        return stk_refuse(error, STOKER_ENOTSUP, "libwebp is of another version than its headers");
    config.options.use_cropping = region->height != walk->height || region->width != walk->width;
    config.options.crop_top = (int)region->y;
    config.options.crop_left = (int)region->x;
    config.options.crop_height = (int)region->height;
    config.options.crop_width = (int)region->width;
    config.output.colorspace = channels == RGBA ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = (WebPRGBABuffer){
        .rgba = pixels,
        .stride = (int)(region->width * channels),
        .size = (size_t)region->height * region->width * channels,
    };
    const VP8StatusCode status = WebPDecode(in->bytes, walk->bytes, &config);
    return status == VP8_STATUS_OK ? STOKER_OK : refuse_status(status, error);
}

/* Decode a file after the walk. */
static int decode_walked(const struct stk_image_codec *webp, const struct scratch *own,
                         const stoker_encoded *in, const struct stk_webp_walk *walk,
                         const stoker_decoded *out, stoker_error *error)
{
    const stoker_region region = choose_region(out, walk);
    const uint32_t channels = webp->options.shape.channels;
    if (channels != 1)
        return decode_colors(in, walk, &region, channels, out->rows[0].data, error);
    const size_t pixels = (size_t)region.height * region.width;
    assert(pixels * RGB <= own->colors.bytes);
    const int rc = decode_colors(in, walk, &region, RGB, own->colors.base, error);
    if (rc == STOKER_OK)
        stk_gray_from_rgb(own->colors.base, pixels, out->rows[0].data);
    return rc;
}

static int decode(const struct stk_image_codec *webp, void *scratch, const stoker_encoded *in,
                  const stoker_decoded *out, stoker_error *error)
{
    struct stk_webp_walk walk;
    struct stk_image_shape shape;
    int rc = stk_webp_walk(in->bytes, in->size, &webp->options.limits, &walk, error);
    if (rc == STOKER_OK)
        rc = stk_image_accept(webp, walk.height, walk.width, out, &shape, error);
    return rc == STOKER_OK ? decode_walked(webp, scratch, in, &walk, out, error) : rc;
}
#endif

const struct stk_image_kind stk_image_webp = {
    .number = STK_SHARD_WEBP,
    .missing = "this build reads no WebP files: it was made without libwebp",
    .side_max = UINT32_MAX,
    .any_pixels_max = (uint64_t)1 << 40,
    .probe = stk_codec_webp_probe,
#ifdef STOKER_HAVE_WEBP
    .present = true,
    .open = open_scratch,
    .close = close_scratch,
    .decode = decode,
#endif
};
