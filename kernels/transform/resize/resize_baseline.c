/* resize_baseline.c - resampling in plain C, for any CPU. */
#include "kernels/transform/variants.h"

#include <string.h>

#include "kernels/transform/resize/taps.h"

enum { BLOCK_BYTES = 256 };

static int32_t weight_of(const struct stk_tap_group *groups, uint32_t tap)
{
    const struct stk_tap_group *group = &groups[tap / 4];
    return group->high[tap % 4] * 2048 + group->low[tap % 4];
}

static uint8_t rounded(int32_t sum)
{
    const int32_t value = sum >> STK_TAP_BITS;
    return (uint8_t)(value > 255 ? 255 : value);
}

static void resize_line(const struct stk_axis *axis, uint32_t channels, const uint8_t *in,
                        uint8_t *out)
{
    for (uint32_t i = 0; i < axis->count; i++) {
        const uint8_t *from = in + (size_t)axis->first[i] * channels;
        const struct stk_tap_group *groups = &axis->weights[(size_t)i * axis->groups];
        for (uint32_t channel = 0; channel < channels; channel++) {
            int32_t sum = STK_TAP_HALF;
            for (uint32_t tap = 0; tap < axis->taps[i]; tap++)
                sum += weight_of(groups, tap) * from[(size_t)tap * channels + channel];
            *out++ = rounded(sum);
        }
    }
}

void stk_resize_lines_baseline(const struct stk_axis *axis, uint32_t channels,
                               const uint8_t *const in[2], uint8_t *const out[2])
{
    resize_line(axis, channels, in[0], out[0]);
    if (in[1] != in[0])
        resize_line(axis, channels, in[1], out[1]);
}

void stk_resize_column_baseline(const struct stk_tap_group *weights, uint32_t taps,
                                const uint8_t *const *lines, size_t bytes, uint8_t *out)
{
    for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
        const size_t count = bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES;
        int32_t sums[BLOCK_BYTES];
        for (size_t i = 0; i < count; i++)
            sums[i] = STK_TAP_HALF;
        for (uint32_t tap = 0; tap < taps; tap++) {
            const int32_t weight = weight_of(weights, tap);
            const uint8_t *line = lines[tap] + at;
            for (size_t i = 0; i < count; i++)
                sums[i] += weight * line[i];
        }
        for (size_t i = 0; i < count; i++)
            out[at + i] = rounded(sums[i]);
    }
}
