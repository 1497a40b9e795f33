/* paeth.h - the filter types of PNG, and the predictor that all variants share. */
#ifndef STK_CODEC_PNG_PAETH_H
#define STK_CODEC_PNG_PAETH_H

#include <stdint.h>

enum { STK_PNG_NONE, STK_PNG_SUB, STK_PNG_UP, STK_PNG_AVERAGE, STK_PNG_PAETH };

/* Of a (left), b (above) and c (above left): the one nearest to a + b - c, ties in that order.
 *
 * Which one it is follows from where the middle of 3c - a - b lies: with lo <= hi being a and b,
 * lo is nearest if 2 hi + lo <= 3c, hi if 2 lo + hi >= 3c, else c. No absolute values,
 * and all that waits for a, the pixel just made, is five steps deep. */
static inline uint8_t stk_png_paeth(int a, int b, int c)
{
    const int threshold = 3 * c - b - a;
    const int lo = a < b ? a : b;
    const int hi = a < b ? b : a;
    const int inner = hi <= threshold ? lo : c;
    return (uint8_t)(threshold <= lo ? hi : inner);
}

#endif
