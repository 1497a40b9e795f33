/* dropout.c - dropout with sixteen Philox counters side by side; the mask is that of dropout.h.
 *
 * The counters are those of two groups of 64 elements: lanes 0..7 of a vector are of the first, lanes 8..15 of the
 * second. */
#include "trainer/backend/cpu/bf16/kernels.h"

#ifdef STK_HAVE_BF16
#include "trainer/backend/cpu/bf16/lanes.h"

struct words {
    __m512i word[4];
};

/* Low and high halves of sixteen 32 x 32 bit products. */
STK_BF16_INLINE void multiply(__m512i a, uint32_t factor, __m512i *high, __m512i *low)
{
    const __m512i b = _mm512_set1_epi32((int)factor);
    const __m512i even = _mm512_mul_epu32(a, b);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), b);
    *low = _mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32));
    *high = _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd);
}

/* Counters first .. first + 15, which differ in their low 32 bits only. */
STK_BF16_INLINE struct words draw(const struct stk_dropout *dropout, uint64_t first)
{
    uint32_t k0 = (uint32_t)dropout->key;
    uint32_t k1 = (uint32_t)(dropout->key >> 32);
    __m512i c0 =
        _mm512_add_epi32(_mm512_set1_epi32((int)(uint32_t)first),
                         _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    __m512i c1 = _mm512_set1_epi32((int)(uint32_t)(first >> 32));
    __m512i c2 = _mm512_set1_epi32((int)(uint32_t)dropout->counter_high);
    __m512i c3 = _mm512_set1_epi32((int)(uint32_t)(dropout->counter_high >> 32));
    for (int round = 0; round < 10; round++) {
        __m512i even_high, even_low, odd_high, odd_low;
        multiply(c0, 0xD2511F53U, &even_high, &even_low);
        multiply(c2, 0xCD9E8D57U, &odd_high, &odd_low);
        c0 = _mm512_xor_si512(_mm512_xor_si512(odd_high, c1), _mm512_set1_epi32((int)k0));
        c1 = odd_low;
        c2 = _mm512_xor_si512(_mm512_xor_si512(even_high, c3), _mm512_set1_epi32((int)k1));
        c3 = even_low;
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    return (struct words){ { c0, c1, c2, c3 } };
}

/* Kept elements of the two groups, as bits. */
STK_BF16_INLINE void find_kept(const struct stk_dropout *dropout, uint64_t first_counter,
                               uint64_t kept[2])
{
    const struct words words = draw(dropout, first_counter);
    const __m512i below = _mm512_set1_epi32((int)dropout->dropped_below);
    kept[0] = kept[1] = 0;
    STK_BF16_UNROLL
    for (int half = 0; half < 8; half++) {
        const __m512i word = words.word[half / 2];
        const __m512i bits = half % 2 == 0 ? _mm512_and_si512(word, _mm512_set1_epi32(0xFFFF))
                                           : _mm512_srli_epi32(word, 16);
        const uint64_t lanes = _mm512_cmpge_epi32_mask(bits, below);
        kept[0] |= (lanes & 0xFF) << (8 * half);
        kept[1] |= (lanes >> 8) << (8 * half);
    }
}

/* Up to 32 elements, of which `kept` are kept. */
STK_BF16_INLINE void scale_lanes(uint16_t *to, const uint16_t *from, __mmask32 lanes,
                                 __mmask32 kept, float factor)
{
    const __m512i values = _mm512_maskz_loadu_epi16(lanes & kept, from);
    const __m512 scale = _mm512_set1_ps(factor);
    const __m512i scaled = stk_bf16_narrow_two(_mm512_mul_ps(stk_bf16_low(values), scale),
                                               _mm512_mul_ps(stk_bf16_high(values), scale));
    stk_bf16_store(to, lanes, scaled);
}

STK_BF16 void stk_bf16_drop(const struct stk_dropout *dropout, uint16_t *to, const uint16_t *from,
                            uint64_t count)
{
    for (uint64_t at = 0; at < count; at += 2 * STK_DROPOUT_GROUP) {
        uint64_t kept[2];
        find_kept(dropout, at / STK_DROPOUT_GROUP * STK_DROPOUT_LANES, kept);
        for (uint64_t part = 0; part < 4; part++) {
            const uint64_t first = at + part * STK_BF16_LANES;
            if (first >= count)
                break;
            scale_lanes(to + first, from + first, stk_bf16_first_lanes(count - first),
                        (__mmask32)(kept[part / 2] >> (part % 2 * 32)), dropout->scale);
        }
    }
}
#endif
