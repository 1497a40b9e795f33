/* picks.c - see picks.h. */
#include "kernels/transform/picks.h"

#include <math.h>

enum {
    HALF_BLOCK = STK_BLOCK_PIXELS / 2,
    GROUP_BYTES = 4,    /* that vpermd moves at a time */
    WINDOW_ELEMENTS = 4 /* of 16 bytes, four of which become each of them */
};

/* What picks have in common. */
struct picking {
    uint32_t channels;
    bool planes;
    const float *factor, *bias;
    const uint8_t *fill;
};

/* Where a vector's elements are, in bytes from the first that is read; and of which channels they are. */
struct elements {
    int32_t bytes[STK_BLOCK_PIXELS];
    uint32_t channel[STK_BLOCK_PIXELS];
};

/* moved: pixels from the first that is read to the block's first. */
static struct elements elements_of(const struct picking *picking, bool flip, int32_t moved,
                                   uint32_t number)
{
    const uint32_t channels = picking->channels;
    struct elements elements;
    for (uint32_t i = 0; i < STK_BLOCK_PIXELS; i++) {
        const uint32_t at = number * STK_BLOCK_PIXELS + i; /* in the block, channels last */
        const uint32_t place = picking->planes ? i : at / channels;
        const uint32_t pixel = flip ? STK_BLOCK_PIXELS - 1 - place : place;
        elements.channel[i] = picking->planes ? number : at % channels;
        elements.bytes[i] =
            ((int32_t)pixel + moved) * (int32_t)channels + (int32_t)elements.channel[i];
    }
    return elements;
}

static bool is_read(const struct picking *picking, int32_t byte)
{
    return byte >= 0 && byte < (int32_t)(STK_BLOCK_PIXELS * picking->channels);
}

/* The window of elements first..last: it stays in what is read. In planes all channels have the first one's. */
static int32_t window_of(const struct picking *picking, const struct elements *elements,
                         uint32_t first, uint32_t last)
{
    const int32_t room = (int32_t)(STK_BLOCK_PIXELS * picking->channels) - STK_WINDOW_BYTES;
    int32_t lowest = room < 0 ? 0 : room;
    for (uint32_t i = first; i <= last; i++) {
        const int32_t channel = picking->planes ? (int32_t)elements->channel[i] : 0;
        if (is_read(picking, elements->bytes[i]) && elements->bytes[i] - channel < lowest)
            lowest = elements->bytes[i] - channel;
    }
    return lowest;
}

static struct stk_pick pick_of(const struct picking *picking, bool flip, int32_t moved,
                               uint32_t number)
{
    const struct elements elements = elements_of(picking, flip, moved, number);
    const uint32_t end = STK_BLOCK_PIXELS - 1;
    struct stk_pick pick;
    pick.low = window_of(picking, &elements, 0, picking->planes ? HALF_BLOCK - 1 : end);
    pick.high = picking->planes ? window_of(picking, &elements, HALF_BLOCK, end) : pick.low;
    for (uint32_t i = 0; i < STK_BLOCK_PIXELS; i++) {
        const uint32_t channel = elements.channel[i];
        const float bias = picking->bias[channel];
        const int32_t byte = elements.bytes[i] - (i < HALF_BLOCK ? pick.low : pick.high);
        const bool read = is_read(picking, elements.bytes[i]);
        pick.order[i] = read ? byte - 256 : -1;
        pick.bias[i] =
            read ? bias : fmaf((float)picking->fill[channel], picking->factor[channel], bias);
    }
    return pick;
}

void stk_picks_init(stk_picks picks, uint32_t channels, bool planes, const float *factor,
                    const float *bias, const uint8_t *fill)
{
    const struct picking picking = { channels, planes, factor, bias, fill };
    for (int32_t overhang = 0; overhang <= STK_BLOCK_PIXELS; overhang++)
        for (uint32_t number = 0; number < channels; number++)
            for (int flip = 0; flip < 2; flip++) {
                picks[flip][STK_SIDE_LOW][overhang][number] =
                    pick_of(&picking, flip != 0, -overhang, number);
                picks[flip][STK_SIDE_HIGH][overhang][number] =
                    pick_of(&picking, flip != 0, overhang, number);
            }
}

/* Where element i of vector `number` is, in bytes from the first pixel's first. */
static int32_t wide_byte(uint32_t channels, bool planes, bool flip, uint32_t number, uint32_t i)
{
    const uint32_t at = number * STK_WIDE_PIXELS + i; /* in the block, channels last */
    const uint32_t place = planes ? i : at / channels;
    const uint32_t pixel = flip ? STK_WIDE_PIXELS - 1 - place : place;
    return (int32_t)(pixel * channels + (planes ? number : at % channels));
}

static struct stk_wide_pick wide_pick_of(uint32_t channels, bool planes, bool flip, uint32_t number)
{
    struct stk_wide_pick pick;
    for (uint32_t first = 0; first < STK_WIDE_PIXELS; first += WINDOW_ELEMENTS) {
        int32_t lowest = wide_byte(channels, planes, flip, number, first);
        for (uint32_t i = 1; i < WINDOW_ELEMENTS; i++) {
            const int32_t byte = wide_byte(channels, planes, flip, number, first + i);
            lowest = byte < lowest ? byte : lowest;
        }
        const int32_t window = lowest / GROUP_BYTES;
        for (uint32_t i = 0; i < WINDOW_ELEMENTS; i++) {
            const int32_t byte = wide_byte(channels, planes, flip, number, first + i);
            pick.groups[first + i] =
                (window + (int32_t)i) % STK_WIDE_PIXELS; /* those behind: unused */
            pick.order[first + i] = byte - window * GROUP_BYTES - 256;
        }
    }
    return pick;
}

void stk_wide_picks_init(stk_wide_picks picks, uint32_t channels, bool planes)
{
    for (uint32_t number = 0; number < channels; number++)
        for (int flip = 0; flip < 2; flip++)
            picks[flip][number] = wide_pick_of(channels, planes, flip != 0, number);
}
