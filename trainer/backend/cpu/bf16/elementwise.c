/* elementwise.c - ReLU, sums and rounding, 32 elements at a time. */
#include "trainer/backend/cpu/bf16/kernels.h"

#ifdef STK_HAVE_BF16
#include "trainer/backend/cpu/bf16/lanes.h"

/* As unsigned numbers, bfloat16 from `first` to `first + 0x7F7F`: above 0 (first 0x0001) or below 0 (0x8001), infinity
 * included, NaN not. */
STK_BF16_INLINE __mmask32 from_smallest(__m512i values, int first)
{
    return _mm512_cmple_epu16_mask(_mm512_sub_epi16(values, _mm512_set1_epi16((short)first)),
                                   _mm512_set1_epi16(0x7F7F));
}

STK_BF16 void stk_bf16_relu_forward(uint16_t *y, const uint16_t *x, uint64_t count)
{
    for (uint64_t i = 0; i < count; i += STK_BF16_LANES) {
        const __mmask32 lanes = stk_bf16_first_lanes(count - i);
        const __m512i values = _mm512_maskz_loadu_epi16(lanes, x + i);
        const __mmask32 kept = _knot_mask32(from_smallest(values, 0x8001));
        stk_bf16_store(y + i, lanes, _mm512_maskz_mov_epi16(kept, values));
    }
}

STK_BF16 void stk_bf16_relu_backward(uint16_t *dx, const uint16_t *y, const uint16_t *dy,
                                     uint64_t count)
{
    for (uint64_t i = 0; i < count; i += STK_BF16_LANES) {
        const __mmask32 lanes = stk_bf16_first_lanes(count - i);
        const __mmask32 on = from_smallest(_mm512_maskz_loadu_epi16(lanes, y + i), 0x0001);
        const __m512i values = _mm512_maskz_loadu_epi16(lanes & on, dy + i);
        stk_bf16_store(dx + i, lanes, values);
    }
}

STK_BF16 void stk_bf16_add(uint16_t *sum, const uint16_t *a, const uint16_t *b, uint64_t count)
{
    for (uint64_t i = 0; i < count; i += STK_BF16_LANES) {
        const __mmask32 lanes = stk_bf16_first_lanes(count - i);
        const __m512i one = _mm512_maskz_loadu_epi16(lanes, a + i);
        const __m512i two = _mm512_maskz_loadu_epi16(lanes, b + i);
        const __m512i both =
            stk_bf16_narrow_two(_mm512_add_ps(stk_bf16_low(one), stk_bf16_low(two)),
                                _mm512_add_ps(stk_bf16_high(one), stk_bf16_high(two)));
        stk_bf16_store(sum + i, lanes, both);
    }
}

STK_BF16 void stk_bf16_from_floats(uint16_t *to, const float *from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i += STK_BF16_FLOATS) {
        const __mmask16 lanes = stk_bf16_first_floats(count - i);
        stk_bf16_store_half(to + i, lanes, stk_bf16_narrow(_mm512_maskz_loadu_ps(lanes, from + i)));
    }
}
#endif
