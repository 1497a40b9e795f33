/* adler32.c - see adler32.h.
 *
 *   low  = 1 + the sum of all bytes               both modulo 65521
 *   high = the sum of `low` after each byte
 *
 * Sixteen bytes x0..x15 at a time: high grows by 16 low + 16 x0 + 15 x1 + ... + 1 x15. The sums
 * of `low` are kept apart and multiplied by 16 at the end of a run. A run is as long as 32 bits
 * allow, which zlib found to be 5552 bytes.
 */
#include "loader/codec/adler32.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { MODULUS = 65521, RUN_BYTES = 5552, STEP_BYTES = 16 };

struct sums {
    uint32_t low;
    uint32_t high;
};

static void add_bytes(struct sums *sums, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        sums->low += bytes[i];
        sums->high += sums->low;
    }
}

#if defined(__SSE2__)
static uint32_t sum_of_lanes(__m128i x)
{
    x = _mm_add_epi32(x, _mm_shuffle_epi32(x, _MM_SHUFFLE(1, 0, 3, 2)));
    x = _mm_add_epi32(x, _mm_shuffle_epi32(x, _MM_SHUFFLE(2, 3, 0, 1)));
    return (uint32_t)_mm_cvtsi128_si32(x);
}

static void add_steps(struct sums *sums, const uint8_t *bytes, size_t steps)
{
    const __m128i zero = _mm_setzero_si128();
    const __m128i front = _mm_set_epi16(9, 10, 11, 12, 13, 14, 15, 16);
    const __m128i back = _mm_set_epi16(1, 2, 3, 4, 5, 6, 7, 8);
    __m128i low = zero;
    __m128i lows = zero; /* low before each step, summed up */
    __m128i high = zero;
    for (size_t i = 0; i < steps; i++) {
        const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(bytes + i * STEP_BYTES));
        lows = _mm_add_epi32(lows, low);
        low = _mm_add_epi32(low, _mm_sad_epu8(x, zero));
        high = _mm_add_epi32(high, _mm_madd_epi16(_mm_unpacklo_epi8(x, zero), front));
        high = _mm_add_epi32(high, _mm_madd_epi16(_mm_unpackhi_epi8(x, zero), back));
    }
    sums->high += sum_of_lanes(high) + STEP_BYTES * sum_of_lanes(lows) +
                  (uint32_t)(steps * STEP_BYTES) * sums->low;
    sums->low += sum_of_lanes(low);
}
#else
static void add_steps(struct sums *sums, const uint8_t *bytes, size_t steps)
{
    add_bytes(sums, bytes, steps * STEP_BYTES);
}
#endif

uint32_t stk_adler32(const uint8_t *bytes, size_t size)
{
    struct sums sums = { 1, 0 };
    while (size > 0) {
        const size_t run = size < RUN_BYTES ? size : RUN_BYTES;
        const size_t steps = run / STEP_BYTES;
        add_steps(&sums, bytes, steps);
        add_bytes(&sums, bytes + steps * STEP_BYTES, run % STEP_BYTES);
        sums.low %= MODULUS;
        sums.high %= MODULUS;
        bytes += run;
        size -= run;
    }
    return sums.high << 16 | sums.low;
}
