/* crc32c_avx512.c - CRC-32C with 512-bit carry-less multiplication.
 *
 *   summing   the multiplier folds the front of a block while the CRC32 instruction sums the three strips behind it, as
 *             in crc32c_x86.c
 *   copying   each register that was loaded is folded and stored, in the order of addresses, in which processors
 *             prefetch; memory is read once, and what was summed is what was copied
 *
 * The multiplier takes 16 bytes a cycle on Zen 5 and 32 on Intel's cores, the instruction 8 on both: a step has as
 * many bytes for the instruction as it takes in the shorter of these times.
 *
 * In this file a sum is the instruction's state: the interface's checksum, inverted.
 */
#include "loader/base/cpu_features.h"
#include "loader/base/crc32c.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define AVX512        __attribute__((target("avx512f,avx512vl,avx2,pclmul,vpclmulqdq,sse4.2")))
#define AVX512_INLINE AVX512 static inline __attribute__((always_inline))

enum {
    REGISTER = 64,
    FRONT_STEP = 4 * REGISTER,
    STRIP_STEP = 24, /* per strip */
    STEPS = 16,
    STRIP = STEPS * STRIP_STEP,
    FRONT = STEPS * FRONT_STEP,
    STEP_BYTES = FRONT_STEP + 3 * STRIP_STEP,
    BLOCK = STEPS * STEP_BYTES
};

/* Registers with the same remainder as all bytes folded into them. */
struct folds {
    __m512i a, b, c, d;
};

AVX512_INLINE __m512i register_at(const uint8_t *at)
{
    return _mm512_loadu_si512(at);
}

AVX512_INLINE struct folds folds_at(const uint8_t *at)
{
    return (struct folds){ register_at(at), register_at(at + REGISTER),
                           register_at(at + 2 * REGISTER), register_at(at + 3 * REGISTER) };
}

/* Adds the sum of all bytes before `first`. */
AVX512_INLINE __m512i plus_sum(__m512i first, uint32_t sum)
{
    const __m512i lowest = _mm512_maskz_set1_epi32(1, (int)sum);
    return _mm512_xor_si512(first, lowest);
}

/* What carries 16 bytes over others: x^(8 bytes + 31) and x^(8 bytes - 33) mod the polynomial, reflected. */
AVX512_INLINE __m512i powers(uint32_t early, uint32_t late)
{
    return _mm512_set_epi64(late, early, late, early, late, early, late, early);
}

AVX512_INLINE __m512i powers_64(void)
{
    return powers(0x740EEF02U, 0x9E4ADDF8U);
}

AVX512_INLINE __m512i powers_128(void)
{
    return powers(0x6992CEA2U, 0x0D3B6092U);
}

AVX512_INLINE __m512i powers_256(void)
{
    return powers(0xDCB17AA4U, 0xB9E02B86U);
}

/* Carries `sum` forward to `next` and adds it. */
AVX512_INLINE __m512i folded(__m512i sum, __m512i powers, __m512i next)
{
    const __m512i early = _mm512_clmulepi64_epi128(sum, powers, 0x00);
    const __m512i late = _mm512_clmulepi64_epi128(sum, powers, 0x11);
    return _mm512_ternarylogic_epi64(early, late, next, 0x96); /* the sum of all three */
}

AVX512_INLINE struct folds folds_next(struct folds folds, __m512i powers, struct folds next)
{
    return (struct folds){ folded(folds.a, powers, next.a), folded(folds.b, powers, next.b),
                           folded(folds.c, powers, next.c), folded(folds.d, powers, next.d) };
}

/* Folds four registers into one, that in half twice, and takes the rest with the instruction. */
AVX512_INLINE uint32_t folds_sum(struct folds folds)
{
    const __m256i by_32 = _mm256_set_epi64x(0xBA4FC28E, 0x3DA6D0CB, 0xBA4FC28E, 0x3DA6D0CB);
    const __m128i by_16 = _mm_set_epi64x(0x493C7D27, 0xF20C0DFE);
    const __m512i one = folded(folded(folds.a, powers_128(), folds.c), powers_64(),
                               folded(folds.b, powers_128(), folds.d));
    const __m256i first = _mm512_castsi512_si256(one);
    const __m256i half =
        _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(first, by_32, 0x00),
                                          _mm256_clmulepi64_epi128(first, by_32, 0x11)),
                         _mm512_extracti64x4_epi64(one, 1));
    const __m128i early = _mm256_castsi256_si128(half);
    const __m128i last = _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(early, by_16, 0x00),
                                                     _mm_clmulepi64_si128(early, by_16, 0x11)),
                                       _mm256_extracti128_si256(half, 1));
    const uint64_t sum = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(last));
    return (uint32_t)_mm_crc32_u64(sum, (uint64_t)_mm_extract_epi64(last, 1));
}

/* ---- summing -------------------------------------------------------------------- */

struct strips {
    uint64_t a, b, c;
};

/* Force a value to be computed at this place, so that the units' steps alternate (crc32c_x86.c). */
#define HERE_VECTOR(value) __asm__ volatile("" : "+v"(value))
#define HERE_WORD(value)   __asm__ volatile("" : "+r"(value))

AVX512_INLINE uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

/* Adds the next word of each strip. */
AVX512_INLINE struct strips strips_next(struct strips sums, const uint8_t *at)
{
    sums.a = _mm_crc32_u64(sums.a, word_at(at));
    sums.b = _mm_crc32_u64(sums.b, word_at(at + STRIP));
    sums.c = _mm_crc32_u64(sums.c, word_at(at + 2 * STRIP));
    HERE_WORD(sums.a);
    HERE_WORD(sums.b);
    HERE_WORD(sums.c);
    return sums;
}

AVX512_INLINE __m512i folded_here(__m512i sum, const uint8_t *at)
{
    __m512i next = folded(sum, powers_256(), register_at(at));
    HERE_VECTOR(next);
    return next;
}

/* The sum after zero bytes: `power` is x^(8 bytes - 33) mod the polynomial. */
AVX512_INLINE uint64_t shifted(uint64_t sum, uint32_t power)
{
    const __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)sum), _mm_cvtsi32_si128((int)power), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

/* A step's share of the next block, whose four parts are too short for a processor to notice their order. There may be
 * no such block: a prefetch never faults. */
AVX512_INLINE void prefetch_step(const uint8_t *at)
{
    for (size_t i = 0; i < STEP_BYTES / REGISTER; i++)
        _mm_prefetch(at + i * REGISTER, _MM_HINT_T0);
}

/* The strips of a block, and its front but for the first step, which is in *folds. Returns the sum of the strips. */
AVX512_INLINE uint64_t sum_block(struct folds *folds, const uint8_t *front)
{
    const uint8_t *words = front + FRONT;
    struct strips sums = { 0, 0, 0 };
    for (size_t i = 0; i < STRIP_STEP; i += sizeof(uint64_t))
        sums = strips_next(sums, words + i);
    for (size_t step = 1; step < STEPS; step++) {
        front += FRONT_STEP;
        words += STRIP_STEP;
        prefetch_step(front + BLOCK + step * (STEP_BYTES - FRONT_STEP));
        folds->a = folded_here(folds->a, front);
        sums = strips_next(sums, words);
        folds->b = folded_here(folds->b, front + REGISTER);
        sums = strips_next(sums, words + 8);
        folds->c = folded_here(folds->c, front + 2 * REGISTER);
        sums = strips_next(sums, words + 16);
        folds->d = folded_here(folds->d, front + 3 * REGISTER);
    }
    return shifted(sums.a, 0xD7A4825CU) ^ shifted(sums.b, 0xD270F1A2U) ^ sums.c; /* past two, one */
}

/* Sums the blocks of `size` bytes, at least one; *left: the bytes behind them. */
AVX512_INLINE uint32_t sum_blocks(uint32_t sum, const uint8_t *at, size_t size, size_t *left)
{
    /* From the end of a front to that of the next block's first step. */
    const __m512i over = powers(0x6E4CB630U, 0xD813B325U);
    struct folds folds = folds_at(at);
    folds.a = plus_sum(folds.a, sum);
    for (;;) {
        const uint64_t behind = sum_block(&folds, at);
        at += BLOCK;
        size -= BLOCK;
        if (size < BLOCK) {
            *left = size;
            return (uint32_t)(shifted(folds_sum(folds), 0x86D8E4D2U) ^ behind); /* past three */
        }
        folds = folds_next(folds, over, folds_at(at));
        folds.a = plus_sum(folds.a, (uint32_t)behind);
    }
}

/* size: at least FRONT_STEP; *left: what is behind the last step. */
AVX512_INLINE uint32_t sum_steps(uint32_t sum, const uint8_t *at, size_t size, size_t *left)
{
    struct folds folds = folds_at(at);
    folds.a = plus_sum(folds.a, sum);
    for (at += FRONT_STEP, size -= FRONT_STEP; size >= FRONT_STEP;
         at += FRONT_STEP, size -= FRONT_STEP)
        folds = folds_next(folds, powers_256(), folds_at(at));
    *left = size;
    return folds_sum(folds);
}

AVX512 static uint32_t sum_avx512(uint32_t sum_before, const void *bytes, size_t size)
{
    if (size < FRONT_STEP)
        return stk_crc32c_avx2()(sum_before, bytes, size);
    const uint8_t *end = (const uint8_t *)bytes + size;
    uint32_t sum = ~sum_before;
    if (size >= BLOCK)
        sum = sum_blocks(sum, end - size, size, &size);
    if (size >= FRONT_STEP)
        sum = sum_steps(sum, end - size, size, &size);
    return size > 0 ? stk_crc32c_avx2()(~sum, end - size, size) : ~sum;
}

/* ---- copying -------------------------------------------------------------------- */

/* Stores that go past the caches, of memory that nobody reads soon; `to` begins a line. */
AVX512_INLINE void stream(uint8_t *to, struct folds bytes)
{
    _mm512_stream_si512((void *)to, bytes.a);
    _mm512_stream_si512((void *)(to + REGISTER), bytes.b);
    _mm512_stream_si512((void *)(to + 2 * REGISTER), bytes.c);
    _mm512_stream_si512((void *)(to + 3 * REGISTER), bytes.d);
}

AVX512 static uint32_t copy_avx512(uint32_t sum_before, void *target, const void *bytes,
                                   size_t size)
{
    const size_t lead = (0U - (uintptr_t)target) % REGISTER;
    const uint8_t *at = bytes;
    uint8_t *to = target;
    if (size < lead + FRONT_STEP)
        return stk_crc32c_copy_plain(stk_crc32c_avx2(), sum_before, target, bytes, size);
    sum_before = stk_crc32c_copy_plain(stk_crc32c_avx2(), sum_before, to, at, lead);
    struct folds folds = folds_at(at + lead);
    stream(to + lead, folds);
    folds.a = plus_sum(folds.a, ~sum_before);
    size_t done = lead + FRONT_STEP;
    for (; done + FRONT_STEP <= size; done += FRONT_STEP) {
        const struct folds next = folds_at(at + done);
        stream(to + done, next);
        folds = folds_next(folds, powers_256(), next);
    }
    _mm_sfence(); /* such stores are ordered with no other */
    return stk_crc32c_copy_plain(stk_crc32c_avx2(), ~folds_sum(folds), to + done, at + done,
                                 size - done);
}

/* ---- selection ------------------------------------------------------------------- */

static bool has_avx512(void)
{
    return stk_cpu_has(STK_CPU_AVX512F | STK_CPU_AVX512VL) && stk_crc32c_avx2() != NULL;
}

stk_crc32c_fn *stk_crc32c_avx512(void)
{
    return has_avx512() ? sum_avx512 : NULL;
}

stk_crc32c_copy_fn *stk_crc32c_copy_avx512(void)
{
    return has_avx512() ? copy_avx512 : NULL;
}
#else
stk_crc32c_fn *stk_crc32c_avx512(void)
{
    return NULL;
}

stk_crc32c_copy_fn *stk_crc32c_copy_avx512(void)
{
    return NULL;
}
#endif
