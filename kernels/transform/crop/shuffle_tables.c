/* shuffle_tables.c - see shuffle_tables.h. */
#include "kernels/transform/crop/shuffle_tables.h"

#include <math.h>

enum {
    WINDOW_ELEMENTS = 4,  /* elements that share a window */
    ZEROS_ABOVE = -0x100, /* the low byte of a 32-bit number; vpshufb turns each 0xff into 0 */
};

/* The conversion that all shuffles of a plan share; factor, bias and fill have an entry per
 * channel. */
struct conversion {
    uint32_t channels;
    bool planes;
    const float *factor, *bias;
    const uint8_t *fill;
};

/* Returns the byte of a block that becomes element i of vector `number`. */
static int32_t byte_of(uint32_t channels, bool planes, bool flip, uint32_t number, uint32_t i)
{
    const uint32_t at = number * STK_BLOCK_PIXELS + i; /* in the block, channels last */
    const uint32_t place = planes ? i : at / channels;
    const uint32_t pixel = flip ? STK_BLOCK_PIXELS - 1 - place : place;
    return (int32_t)(pixel * channels + (planes ? number : at % channels));
}

static bool is_read(const struct conversion *conversion, int32_t byte)
{
    return byte >= 0 && byte < (int32_t)(STK_BLOCK_PIXELS * conversion->channels);
}

/* Returns the window of some elements; it stays in the pixels that are read. In planes all channels
 * use the first one's. */
static int32_t window_of(const struct conversion *conversion, const int32_t *bytes, uint32_t count,
                         uint32_t channel)
{
    const int32_t room = (int32_t)(STK_BLOCK_PIXELS * conversion->channels) - STK_WINDOW_BYTES;
    int32_t lowest = room < 0 ? 0 : room;
    for (uint32_t i = 0; i < count; i++)
        if (is_read(conversion, bytes[i]) && bytes[i] - (int32_t)channel < lowest)
            lowest = bytes[i] - (int32_t)channel;
    return lowest;
}

/* moved: pixels from the first that is read to the block's first. */
static struct stk_shuffle shuffle_of(const struct conversion *conversion, bool flip, int32_t moved,
                                     uint32_t number)
{
    const uint32_t channels = conversion->channels;
    int32_t bytes[STK_BLOCK_PIXELS];
    uint32_t channel[STK_BLOCK_PIXELS];
    for (uint32_t i = 0; i < STK_BLOCK_PIXELS; i++) {
        const int32_t byte = byte_of(channels, conversion->planes, flip, number, i);
        channel[i] = (uint32_t)byte % channels;
        bytes[i] = byte + moved * (int32_t)channels;
    }
    struct stk_shuffle shuffle;
    if (conversion->planes) {
        shuffle.low = window_of(conversion, bytes, WINDOW_ELEMENTS, number);
        shuffle.high = window_of(conversion, bytes + WINDOW_ELEMENTS, WINDOW_ELEMENTS, number);
    } else {
        shuffle.low = shuffle.high = window_of(conversion, bytes, STK_BLOCK_PIXELS, 0);
    }
    for (uint32_t i = 0; i < STK_BLOCK_PIXELS; i++) {
        const float bias = conversion->bias[channel[i]];
        const float fill = (float)conversion->fill[channel[i]];
        const int32_t byte = bytes[i] - (i < WINDOW_ELEMENTS ? shuffle.low : shuffle.high);
        const bool read = is_read(conversion, bytes[i]);
        shuffle.order[i] = read ? byte + ZEROS_ABOVE : -1;
        shuffle.bias[i] = read ? bias : fmaf(fill, conversion->factor[channel[i]], bias);
    }
    return shuffle;
}

void stk_shuffles_init(stk_shuffles shuffles, uint32_t channels, bool planes, const float *factor,
                       const float *bias, const uint8_t *fill)
{
    const struct conversion conversion = { channels, planes, factor, bias, fill };
    for (int32_t overhang = 0; overhang <= STK_BLOCK_PIXELS; overhang++)
        for (uint32_t number = 0; number < channels; number++)
            for (int flip = 0; flip < 2; flip++) {
                shuffles[flip][STK_SIDE_LOW][overhang][number] =
                    shuffle_of(&conversion, flip != 0, -overhang, number);
                shuffles[flip][STK_SIDE_HIGH][overhang][number] =
                    shuffle_of(&conversion, flip != 0, overhang, number);
            }
}
