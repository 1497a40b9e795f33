/* crc32c_x86.c - CRC-32C on the two execution units of an x86-64 that can compute it.
 *
 *   CRC32 instruction          8 bytes a cycle with three interleaved sums (latency three cycles)
 *   carry-less multiplication  8 bytes a cycle with four interleaved registers
 *
 * The units work in parallel, so long inputs are split between them:
 *
 *   block: [ front: folded by multiplying | strip 1 | strip 2 | strip 3 ]   next: [ front ...
 *            steps * 128 bytes              steps * 40 bytes each, by the instruction
 *
 * One multiplication carries a sum past the bytes behind its part, since N zero bytes multiply it by
 * a power of x. Powers and folding: Gopal and others, "Fast CRC Computation for Generic Polynomials
 * Using PCLMULQDQ", Intel, 2009.
 *
 * In this file a sum is the instruction's state: the interface's checksum, inverted.
 */
#include "loader/base/cpu_features.h"
#include "loader/base/crc32c.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define SSE42        __attribute__((target("sse4.2,pclmul")))
#define SSE42_INLINE SSE42 static inline __attribute__((always_inline))
#define AVX2         __attribute__((target("avx2,pclmul,vpclmulqdq,sse4.2")))
#define AVX2_INLINE  AVX2 static inline __attribute__((always_inline))

/* ---- the instruction ------------------------------------------------------------ */

SSE42_INLINE uint64_t add_word(uint64_t sum, uint64_t word)
{
    return _mm_crc32_u64(sum, word);
}

SSE42_INLINE uint64_t add_byte(uint64_t sum, uint8_t byte)
{
    return _mm_crc32_u8((uint32_t)sum, byte);
}

SSE42_INLINE uint64_t multiply(uint64_t sum, uint32_t power)
{
    return (uint64_t)_mm_cvtsi128_si64(
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)sum), _mm_cvtsi32_si128((int)power), 0));
}

#define CRC_INLINE SSE42_INLINE
#include "loader/base/crc32c_strips.h"

SSE42 static uint32_t sum_sse42(uint32_t sum_before, const void *bytes, size_t size)
{
    return ~sum_all(~sum_before, bytes, size);
}

/* ---- carry-less multiplication --------------------------------------------------- */

enum { FOLDED_BYTES = 128 }; /* four registers */

/* Registers with the same remainder as all bytes folded into them. Four members, not an array: gcc 12
 * would keep an array in memory. */
struct folds {
    __m256i a, b, c, d;
};

AVX2_INLINE __m256i register_at(const uint8_t *at)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

AVX2_INLINE struct folds folds_at(const uint8_t *at)
{
    return (struct folds){ register_at(at), register_at(at + 32), register_at(at + 64),
                           register_at(at + 96) };
}

/* Adds the sum of all bytes before `first`. */
AVX2_INLINE __m256i plus_sum(__m256i first, uint32_t sum)
{
    return _mm256_xor_si256(first, _mm256_set_epi32(0, 0, 0, 0, 0, 0, 0, (int)sum));
}

AVX2_INLINE struct folds folds_begin(uint32_t sum, const uint8_t *at)
{
    struct folds folds = folds_at(at);
    folds.a = plus_sum(folds.a, sum);
    return folds;
}

/* Carries `sum` forward to `next` and adds it. Each half of a register is multiplied by the power of
 * x for the bytes between: x^(8 bytes + 32) and x^(8 bytes - 32) mod the polynomial, reflected. */
AVX2_INLINE __m256i folded(__m256i sum, __m256i powers, __m256i next)
{
    const __m256i early = _mm256_clmulepi64_epi128(sum, powers, 0x00);
    const __m256i late = _mm256_clmulepi64_epi128(sum, powers, 0x11);
    return _mm256_xor_si256(_mm256_xor_si256(early, late), next);
}

/* For the next FOLDED_BYTES. */
AVX2_INLINE __m256i powers_128(void)
{
    return _mm256_set_epi64x(0x0d3b6092, 0x6992cea2, 0x0d3b6092, 0x6992cea2);
}

AVX2_INLINE struct folds folds_next(struct folds folds, __m256i powers, const uint8_t *at)
{
    const struct folds next = folds_at(at);
    return (struct folds){ folded(folds.a, powers, next.a), folded(folds.b, powers, next.b),
                           folded(folds.c, powers, next.c), folded(folds.d, powers, next.d) };
}

/* Folds four registers into two, two into one, and its halves together: the last 16 bytes take two
 * steps of the instruction instead of sixteen dependent ones. */
AVX2_INLINE uint32_t folds_sum(struct folds folds)
{
    const __m256i by_64 = _mm256_set_epi64x(0x9e4addf8, 0x740eef02, 0x9e4addf8, 0x740eef02);
    const __m256i by_32 = _mm256_set_epi64x(0xba4fc28e, 0x3da6d0cb, 0xba4fc28e, 0x3da6d0cb);
    const __m128i by_16 = _mm_set_epi64x(0x493c7d27, 0xf20c0dfe);
    const __m256i one =
        folded(folded(folds.a, by_64, folds.c), by_32, folded(folds.b, by_64, folds.d));
    const __m128i early = _mm256_castsi256_si128(one);
    const __m128i half = _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(early, by_16, 0x00),
                                                     _mm_clmulepi64_si128(early, by_16, 0x11)),
                                       _mm256_extracti128_si256(one, 1));
    const uint64_t sum = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(half));
    return (uint32_t)_mm_crc32_u64(sum, (uint64_t)_mm_extract_epi64(half, 1));
}

/* size: at least FOLDED_BYTES. */
AVX2_INLINE uint32_t sum_folded(uint32_t sum, const uint8_t *at, size_t size)
{
    struct folds folds = folds_begin(sum, at);
    for (at += FOLDED_BYTES, size -= FOLDED_BYTES; size >= FOLDED_BYTES;
         at += FOLDED_BYTES, size -= FOLDED_BYTES)
        folds = folds_next(folds, powers_128(), at);
    return sum_words(folds_sum(folds), at, size);
}

/* ---- both ----------------------------------------------------------------------- */

enum { STEP_BYTES = 40 }; /* per strip: takes about as long as folding once */

/* A block of `steps` steps, with the powers of x that carry its parts to its end: three for
 * shifted(), two for folded(). */
struct block {
    size_t steps;
    uint32_t past_one, past_two, past_three; /* strips */
    uint32_t early, late; /* from the end of the front to that of the next block's first step */
};

static const struct block block_long = { .steps = 16,
                                         .past_one = 0x6B749FB2U,
                                         .past_two = 0xDD66CBBBU,
                                         .past_three = 0xF48642E9U,
                                         .early = 0xF7506984U,
                                         .late = 0xA51B6135U };
static const struct block block_short = { .steps = 3,
                                          .past_one = 0x2AD91C30U,
                                          .past_two = 0x299847D5U,
                                          .past_three = 0xA00457F7U,
                                          .early = 0x064F7F26U,
                                          .late = 0x88F25A3AU };

struct strips {
    uint64_t a, b, c;
};

/* Force a value to be computed at this place. Compilers would otherwise group the steps of each kind;
 * then the queue of one unit fills up and blocks the other. */
#define HERE_VECTOR(value) __asm__ volatile("" : "+x"(value))
#define HERE_WORD(value)   __asm__ volatile("" : "+r"(value))

/* Adds the next word of each strip. */
AVX2_INLINE struct strips strips_next(struct strips sums, const uint8_t *at, size_t strip)
{
    sums.a = _mm_crc32_u64(sums.a, word_at(at));
    sums.b = _mm_crc32_u64(sums.b, word_at(at + strip));
    sums.c = _mm_crc32_u64(sums.c, word_at(at + 2 * strip));
    HERE_WORD(sums.a);
    HERE_WORD(sums.b);
    HERE_WORD(sums.c);
    return sums;
}

AVX2_INLINE __m256i folded_here(__m256i sum, __m256i powers, const uint8_t *at)
{
    __m256i next = folded(sum, powers, register_at(at));
    HERE_VECTOR(next);
    return next;
}

/* One step: 128 bytes of the front, 40 of each strip. */
AVX2_INLINE void step_both(struct folds *folds, __m256i powers, const uint8_t *front,
                           struct strips *sums, const uint8_t *words, size_t strip)
{
    folds->a = folded_here(folds->a, powers, front);
    *sums = strips_next(*sums, words, strip);
    folds->b = folded_here(folds->b, powers, front + 32);
    *sums = strips_next(*sums, words + 8, strip);
    folds->c = folded_here(folds->c, powers, front + 64);
    *sums = strips_next(*sums, words + 16, strip);
    folds->d = folded_here(folds->d, powers, front + 96);
    *sums = strips_next(*sums, words + 24, strip);
    *sums = strips_next(*sums, words + 32, strip);
}

/* Sums as many blocks as fit. The registers continue from front to front; the strips' sum is added
 * at the start of the next front. */
AVX2_INLINE uint32_t sum_blocks(uint32_t sum, const uint8_t **from, size_t *size,
                                const struct block block)
{
    const size_t strip = block.steps * STEP_BYTES;
    const size_t front_bytes = block.steps * FOLDED_BYTES;
    const size_t block_bytes = front_bytes + 3 * strip;
    const __m256i over = _mm256_set_epi64x(block.late, block.early, block.late, block.early);
    if (*size < block_bytes)
        return sum;
    struct folds folds = folds_begin(sum, *from);
    for (;;) {
        const uint8_t *front = *from;
        const uint8_t *words = front + front_bytes;
        struct strips sums = { 0, 0, 0 };
        for (size_t i = 0; i < STEP_BYTES; i += sizeof(uint64_t))
            sums = strips_next(sums, words + i, strip);
        for (size_t step = 1; step < block.steps; step++)
            step_both(&folds, powers_128(), front + step * FOLDED_BYTES, &sums,
                      words + step * STEP_BYTES, strip);
        const uint64_t behind =
            shifted(sums.a, block.past_two) ^ shifted(sums.b, block.past_one) ^ sums.c;
        *from += block_bytes;
        *size -= block_bytes;
        if (*size < block_bytes)
            return (uint32_t)(shifted(folds_sum(folds), block.past_three) ^ behind);
        folds = folds_next(folds, over, *from);
        folds.a = plus_sum(folds.a, (uint32_t)behind);
    }
}

AVX2 static uint32_t sum_avx2(uint32_t sum_before, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint32_t sum = ~sum_before;
    sum = sum_blocks(sum, &at, &size, block_long);
    sum = sum_blocks(sum, &at, &size, block_short);
    return ~(size < FOLDED_BYTES ? sum_words(sum, at, size) : sum_folded(sum, at, size));
}

/* ---- selection ------------------------------------------------------------------- */

static bool has_sse42(void)
{
    return stk_cpu_has(STK_CPU_SSE42 | STK_CPU_PCLMUL);
}

static bool has_avx2(void)
{
    return stk_cpu_has(STK_CPU_AVX2 | STK_CPU_VPCLMULQDQ) && has_sse42();
}

stk_crc32c_fn *stk_crc32c_sse42(void)
{
    return has_sse42() ? sum_sse42 : NULL;
}

stk_crc32c_fn *stk_crc32c_avx2(void)
{
    return has_avx2() ? sum_avx2 : NULL;
}
#else
stk_crc32c_fn *stk_crc32c_sse42(void)
{
    return NULL;
}

stk_crc32c_fn *stk_crc32c_avx2(void)
{
    return NULL;
}
#endif
