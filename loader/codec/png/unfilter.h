/* unfilter.h - undo the five filters of PNG, for pixels of 1, 3 and 4 bytes. */
#ifndef STK_CODEC_PNG_UNFILTER_H
#define STK_CODEC_PNG_UNFILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STK_PNG_SLACK_BYTES = 32 }; /* readable after the filtered bytes and after the zero row */

/* A filtered image. */
struct stk_png_filtered {
    const uint8_t *bytes; /* height x (filter type, stride bytes), and slack */
    const uint8_t *zeros; /* stride zero bytes, and slack: the row above the first one */
    size_t stride;        /* bytes of one row of pixels */
    uint32_t height;
    uint32_t pixel_bytes; /* 1, 3 or 4 */
};

/* Write the image to `out`, exactly height x stride bytes. Returns false, with `out` partly
 * written, if a filter type is invalid. */
typedef bool stk_png_unfilter_fn(const struct stk_png_filtered *image, uint8_t *out);

/* The variants: plain C, and with SSE4.1 on x86-64. NULL = not supported by this processor. */
stk_png_unfilter_fn *stk_png_unfilter_plain(void);
stk_png_unfilter_fn *stk_png_unfilter_sse41(void);

/* The fastest variant that this processor supports. */
stk_png_unfilter_fn *stk_png_unfilter_best(void);

#endif
