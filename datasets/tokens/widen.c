/* widen.c - see widen.h.
 *
 * Loads are copies of known size, so the compiler makes vectors of them at any alignment.
 */
#include "datasets/tokens/widen.h"
#include "loader/base/cpu_features.h"

#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define COPY(bytes)                                                                                \
    static bool copy_##bytes(const void *from, void *to, size_t count)                             \
    {                                                                                              \
        memcpy(to, from, count *(bytes));                                                          \
        return true;                                                                               \
    }

COPY(1)
COPY(2)
COPY(4)
COPY(8)

enum { BLOCK = 64, AHEAD_BYTES = 2048 };

/* Types of which every value fits. Blocks have a known size, for the compiler's vectors; tokens in a mapped file are
 * prefetched beyond the end of a window too, where the next one mostly begins. */
#define WIDEN(name, from_type, to_type)                                                            \
    static bool name(const void *restrict from, void *restrict to, size_t count)                   \
    {                                                                                              \
        const uint8_t *at = from;                                                                  \
        to_type *out = to;                                                                         \
        size_t done = 0;                                                                           \
        for (; done + BLOCK <= count; done += BLOCK, at += BLOCK * sizeof(from_type)) {            \
            from_type block[BLOCK];                                                                \
            for (size_t i = 0; i < sizeof(block); i += 64)                                         \
                __builtin_prefetch(at + AHEAD_BYTES + i);                                          \
            memcpy(block, at, sizeof(block));                                                      \
            for (size_t i = 0; i < BLOCK; i++)                                                     \
                out[done + i] = (to_type)block[i];                                                 \
        }                                                                                          \
        for (; done < count; done++, at += sizeof(from_type)) {                                    \
            from_type token;                                                                       \
            memcpy(&token, at, sizeof(token));                                                     \
            out[done] = (to_type)token;                                                            \
        }                                                                                          \
        return true;                                                                               \
    }

WIDEN(widen_u8_i32, uint8_t, int32_t)
WIDEN(widen_i8_i32, int8_t, int32_t)
WIDEN(widen_u16_i32, uint16_t, int32_t)
WIDEN(widen_i16_i32, int16_t, int32_t)
WIDEN(widen_u8_i64, uint8_t, int64_t)
WIDEN(widen_i8_i64, int8_t, int64_t)
WIDEN(widen_u16_i64, uint16_t, int64_t)
WIDEN(widen_i16_i64, int16_t, int64_t)
WIDEN(widen_u32_i64, uint32_t, int64_t)
WIDEN(widen_i32_i64, int32_t, int64_t)

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))

/* The usual tokens: each vector is loaded, widened and stored by itself. The compiler would unpack halves of longer ones. */
AVX2 static bool widen_u16_i32_avx2(const void *restrict from, void *restrict to, size_t count)
{
    const uint8_t *at = from;
    int32_t *out = to;
    size_t done = 0;
    for (; done + BLOCK / 2 <= count; done += BLOCK / 2) {
        __builtin_prefetch(at + done * sizeof(uint16_t) + AHEAD_BYTES);
        for (size_t i = done; i < done + BLOCK / 2; i += 8)
            _mm256_storeu_si256((__m256i *)(void *)(out + i),
                                _mm256_cvtepu16_epi32(_mm_loadu_si128(
                                    (const __m128i *)(const void *)(at + i * sizeof(uint16_t)))));
    }
    return widen_u16_i32(at + done * sizeof(uint16_t), out + done, count - done);
}

AVX2 static bool widen_u16_i64_avx2(const void *restrict from, void *restrict to, size_t count)
{
    const uint8_t *at = from;
    int64_t *out = to;
    size_t done = 0;
    for (; done + BLOCK / 2 <= count; done += BLOCK / 2) {
        __builtin_prefetch(at + done * sizeof(uint16_t) + AHEAD_BYTES);
        for (size_t i = done; i < done + BLOCK / 2; i += 4)
            _mm256_storeu_si256((__m256i *)(void *)(out + i),
                                _mm256_cvtepu16_epi64(_mm_loadl_epi64(
                                    (const __m128i *)(const void *)(at + i * sizeof(uint16_t)))));
    }
    return widen_u16_i64(at + done * sizeof(uint16_t), out + done, count - done);
}

static stk_widen_fn *faster(stk_widen_fn *widen)
{
    if (!stk_cpu_has(STK_CPU_AVX2))
        return widen;
    return widen == widen_u16_i32   ? widen_u16_i32_avx2
           : widen == widen_u16_i64 ? widen_u16_i64_avx2
                                    : widen;
}
#else
static stk_widen_fn *faster(stk_widen_fn *widen)
{
    return widen;
}
#endif

/* Unsigned to signed of the same width: a token with the highest bit does not fit. */
#define CHECKED(name, type)                                                                        \
    static bool name(const void *restrict from, void *restrict to, size_t count)                   \
    {                                                                                              \
        const uint8_t *at = from;                                                                  \
        type *out = to;                                                                            \
        type bits = 0;                                                                             \
        for (size_t i = 0; i < count; i++) {                                                       \
            type token;                                                                            \
            memcpy(&token, at + i * sizeof(token), sizeof(token));                                 \
            bits |= token;                                                                         \
            out[i] = token;                                                                        \
        }                                                                                          \
        return bits >> (sizeof(bits) * 8 - 1) == 0;                                                \
    }

CHECKED(check_u32, uint32_t)
CHECKED(check_u64, uint64_t)

static stk_widen_fn *to_itself(stoker_dtype dtype)
{
    switch (stoker_dtype_bytes(dtype)) {
    case 1:
        return copy_1;
    case 2:
        return copy_2;
    case 4:
        return copy_4;
    default:
        return copy_8;
    }
}

stk_widen_fn *stk_widen_choose(stoker_dtype from, stoker_dtype to)
{
    static const struct {
        stoker_dtype from;
        stk_widen_fn *to_int32, *to_int64;
    } table[] = {
        { STOKER_DTYPE_UINT8, widen_u8_i32, widen_u8_i64 },
        { STOKER_DTYPE_INT8, widen_i8_i32, widen_i8_i64 },
        { STOKER_DTYPE_UINT16, widen_u16_i32, widen_u16_i64 },
        { STOKER_DTYPE_INT16, widen_i16_i32, widen_i16_i64 },
        { STOKER_DTYPE_UINT32, check_u32, widen_u32_i64 },
        { STOKER_DTYPE_INT32, copy_4, widen_i32_i64 },
        { STOKER_DTYPE_UINT64, NULL, check_u64 },
        { STOKER_DTYPE_INT64, NULL, copy_8 },
    };
    if (from == to)
        return to_itself(from);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].from == from)
            return to == STOKER_DTYPE_INT32   ? faster(table[i].to_int32)
                   : to == STOKER_DTYPE_INT64 ? faster(table[i].to_int64)
                                              : NULL;
    return NULL;
}
