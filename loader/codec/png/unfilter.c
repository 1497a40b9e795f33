/* unfilter.c - see unfilter.h. Plain C, and the choice among the variants.
 *
 *   c b     x = filtered byte + predictor(a, b, c), all modulo 256
 *   a x     a lies one pixel to the left, b above, c above a; 0 outside of the image
 */
#include "loader/codec/png/unfilter.h"

#include <string.h>

#include "loader/codec/png/paeth.h"

static void undo_sub(const uint8_t *from, uint8_t *out, size_t stride, size_t pixel_bytes)
{
    memcpy(out, from, pixel_bytes);
    for (size_t i = pixel_bytes; i < stride; i++)
        out[i] = (uint8_t)(from[i] + out[i - pixel_bytes]);
}

static void undo_up(const uint8_t *restrict from, const uint8_t *restrict above,
                    uint8_t *restrict out, size_t stride)
{
    for (size_t i = 0; i < stride; i++)
        out[i] = (uint8_t)(from[i] + above[i]);
}

static void undo_average(const uint8_t *from, const uint8_t *above, uint8_t *out, size_t stride,
                         size_t pixel_bytes)
{
    for (size_t i = 0; i < stride; i++) {
        const int left = i < pixel_bytes ? 0 : out[i - pixel_bytes];
        out[i] = (uint8_t)(from[i] + (left + above[i]) / 2);
    }
}

static void undo_paeth(const uint8_t *from, const uint8_t *above, uint8_t *out, size_t stride,
                       size_t pixel_bytes)
{
    for (size_t i = 0; i < pixel_bytes && i < stride; i++)
        out[i] = (uint8_t)(from[i] + above[i]); /* with a = c = 0 the predictor is b */
    for (size_t i = pixel_bytes; i < stride; i++)
        out[i] = (uint8_t)(from[i] +
                           stk_png_paeth(out[i - pixel_bytes], above[i], above[i - pixel_bytes]));
}

static bool undo_all(const struct stk_png_filtered *image, uint8_t *out)
{
    const uint8_t *from = image->bytes;
    const uint8_t *above = image->zeros;
    for (uint32_t y = 0; y < image->height; y++) {
        switch (*from++) {
        case STK_PNG_NONE:
            memcpy(out, from, image->stride);
            break;
        case STK_PNG_SUB:
            undo_sub(from, out, image->stride, image->pixel_bytes);
            break;
        case STK_PNG_UP:
            undo_up(from, above, out, image->stride);
            break;
        case STK_PNG_AVERAGE:
            undo_average(from, above, out, image->stride, image->pixel_bytes);
            break;
        case STK_PNG_PAETH:
            undo_paeth(from, above, out, image->stride, image->pixel_bytes);
            break;
        default:
            return false;
        }
        above = out;
        from += image->stride;
        out += image->stride;
    }
    return true;
}

stk_png_unfilter_fn *stk_png_unfilter_plain(void)
{
    return undo_all;
}

stk_png_unfilter_fn *stk_png_unfilter_best(void)
{
    stk_png_unfilter_fn *vector = stk_png_unfilter_sse41();
    return vector != NULL ? vector : undo_all;
}
