/* blur_neon.c - sums of weighted lines for 64-bit ARM, eight elements at once in two registers,
 * which keep the sums of all taps. */
#include "kernels/transform/variants.h"

#include <arm_neon.h>

enum { LANES = 8 };

struct sums {
    int32x4_t low, high;
};

static inline struct sums add_line(struct sums sums, int16x8_t line, int16_t weight)
{
    return (struct sums){ vmlal_n_s16(sums.low, vget_low_s16(line), weight),
                          vmlal_high_n_s16(sums.high, line, weight) };
}

static inline struct sums sum_lanes(const int16_t *const *lines, const int32_t *weights,
                                    uint32_t reach, size_t at)
{
    const struct sums none = { vdupq_n_s32(0), vdupq_n_s32(0) };
    struct sums sums = add_line(none, vld1q_s16(lines[reach] + at), (int16_t)weights[0]);
    for (uint32_t tap = 1; tap <= reach; tap++) {
        const int16_t weight = (int16_t)weights[tap];
        sums = add_line(sums, vld1q_s16(lines[reach - tap] + at), weight);
        sums = add_line(sums, vld1q_s16(lines[reach + tap] + at), weight);
    }
    return sums;
}

/* Both stores add half and shift, as stk_blur_keep() and stk_blur_settle() do. */
static inline void store16(struct sums sums, int16_t *out)
{
    enum { BITS = STK_BLUR_BITS - STK_BLUR_KEPT };
    vst1q_s16(out, vcombine_s16(vqmovn_s32(vrshrq_n_s32(sums.low, BITS)),
                                vqmovn_s32(vrshrq_n_s32(sums.high, BITS))));
}

static inline void store8(struct sums sums, uint8_t *out)
{
    enum { BITS = STK_BLUR_BITS + STK_BLUR_KEPT };
    const int16x8_t words = vcombine_s16(vqmovn_s32(vrshrq_n_s32(sums.low, BITS)),
                                         vqmovn_s32(vrshrq_n_s32(sums.high, BITS)));
    vst1_u8(out, vqmovun_s16(words));
}

void stk_blur_neon(const int16_t *const *lines, const int32_t *weights, uint32_t reach,
                   size_t count, int16_t *out16, uint8_t *out8)
{
    const size_t whole = count / LANES * LANES;
    for (size_t at = 0; at < whole; at += LANES) {
        const struct sums sums = sum_lanes(lines, weights, reach, at);
        if (out8 != NULL)
            store8(sums, out8 + at);
        else
            store16(sums, out16 + at);
    }
    for (size_t at = whole; at < count; at++) {
        int32_t sum = weights[0] * lines[reach][at];
        for (uint32_t tap = 1; tap <= reach; tap++)
            sum += weights[tap] * (lines[reach - tap][at] + lines[reach + tap][at]);
        if (out8 != NULL)
            out8[at] = stk_blur_settle(sum);
        else
            out16[at] = (int16_t)stk_blur_keep(sum);
    }
}
