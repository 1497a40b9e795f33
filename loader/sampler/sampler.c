/* sampler.c - see sampler.h. */
#include "loader/sampler/sampler.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "loader/base/rng.h"

/* Half of the rounds fall on each half. Small sets get more: a keyed function on few values
 * is far from random, and there even single permutations should be equally likely. */
enum { ROUNDS = 6, ROUNDS_SMALL = STK_SAMPLER_ROUNDS_MAX, SMALL_WIDTH = 64 };

#define FIRST_MIX  0x9E3779B1U
#define SECOND_MIX 0x85EBCA77U

#define ORDER_STREAM UINT64_C(0x73616d706c6572) /* "sampler": keeps these keys apart from others */

/* A hash of one half, then mapped to [0, size) by multiplication (Lemire, "Fast random
 * integer generation in an interval", 2019): only its high bits, the well-mixed ones, count.
 * The bias is below size / 2^32. */
static inline uint32_t round_value(uint32_t half, uint32_t key, uint32_t size)
{
    uint32_t h = (half ^ key) * FIRST_MIX;
    h = (h ^ (h >> 15)) * SECOND_MIX;
    return (uint32_t)(((uint64_t)h * size) >> 32);
}

static inline uint32_t add_modulo(uint32_t a, uint32_t b, uint32_t size)
{
    uint32_t sum = a + b; /* sizes are at most 2^31: no overflow */
    uint32_t wrapped = sum - size;
    return wrapped < sum ? wrapped : sum; /* the smaller of the two: a vector minimum */
}

/* The rounds over a whole block: the inner loops have no branches and vectorise. */
static inline __attribute__((always_inline)) uint32_t walk_block(const struct stk_sampler *sampler,
                                                                 const uint32_t *keys,
                                                                 uint32_t *left, uint32_t *right,
                                                                 uint64_t *ids)
{
    const uint32_t width = sampler->width;
    const uint32_t height = sampler->height;
    for (uint32_t round = 0; round < sampler->rounds; round += 2) {
        for (int i = 0; i < STK_SAMPLER_BLOCK; i++)
            left[i] = add_modulo(left[i], round_value(right[i], keys[round], width), width);
        for (int i = 0; i < STK_SAMPLER_BLOCK; i++)
            right[i] = add_modulo(right[i], round_value(left[i], keys[round + 1], height), height);
    }
    const int64_t count = (int64_t)sampler->count; /* signed: what vectors can compare */
    int64_t past = 0;
    for (int i = 0; i < STK_SAMPLER_BLOCK; i++) {
        ids[i] = (uint64_t)right[i] * width + left[i];
        past += (int64_t)ids[i] >= count;
    }
    return (uint32_t)past;
}

/* The row below; that past the end is never used. */
static inline uint32_t row_after(const struct stk_sampler *sampler, uint32_t right)
{
    return right + 1 < sampler->height ? right + 1 : 0;
}

static uint32_t walk_neighbours_baseline(const struct stk_sampler *sampler, const uint32_t *keys,
                                         uint32_t left, uint32_t right, uint64_t *ids)
{
    uint32_t lefts[STK_SAMPLER_BLOCK];
    uint32_t rights[STK_SAMPLER_BLOCK];
    const uint32_t width = sampler->width;
    const uint32_t after = row_after(sampler, right);
    for (uint32_t i = 0; i < STK_SAMPLER_BLOCK; i++) {
        const uint32_t at = left + i;
        lefts[i] = at < width ? at : at - width;
        rights[i] = at < width ? right : after;
    }
    return walk_block(sampler, keys, lefts, rights, ids);
}

static uint32_t walk_block_baseline(const struct stk_sampler *sampler, const uint32_t *keys,
                                    uint32_t *left, uint32_t *right, uint64_t *ids)
{
    return walk_block(sampler, keys, left, right, ids);
}

#if defined(__x86_64__)
/* The same by hand: four vectors of each half stay in registers through all rounds, and the high
 * half of a product costs five operations, where the compiler widens and packs. */
enum { LANES = 8, VECTORS = 4 };

/* high 32 bits of each lane of a times size */
__attribute__((target("avx2"))) static inline __m256i multiply_high(__m256i a, __m256i size)
{
    const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(a, size), 32);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), size);
    return _mm256_blend_epi32(even, odd, 0xAA);
}

/* One round on one half: to + round_value(half), modulo size. */
__attribute__((target("avx2"))) static inline __m256i add_round(__m256i to, __m256i half,
                                                                __m256i key, __m256i size)
{
    __m256i h = _mm256_mullo_epi32(_mm256_xor_si256(half, key), _mm256_set1_epi32((int)FIRST_MIX));
    h = _mm256_mullo_epi32(_mm256_xor_si256(h, _mm256_srli_epi32(h, 15)),
                           _mm256_set1_epi32((int)SECOND_MIX));
    const __m256i sum = _mm256_add_epi32(to, multiply_high(h, size));
    return _mm256_min_epu32(sum, _mm256_sub_epi32(sum, size));
}

/* Four ids from four lanes of each half; lanes past the end are added to *past as -1. */
__attribute__((target("avx2"))) static inline void join_halves(__m128i left, __m128i right,
                                                               __m256i width, __m256i last,
                                                               uint64_t *ids, __m256i *past)
{
    const __m256i id = _mm256_add_epi64(_mm256_mul_epu32(_mm256_cvtepu32_epi64(right), width),
                                        _mm256_cvtepu32_epi64(left));
    _mm256_storeu_si256((__m256i *)(void *)ids, id);
    *past = _mm256_add_epi64(*past, _mm256_cmpgt_epi64(id, last));
}

/* All rounds over VECTORS vectors of each half, then their ids. */
__attribute__((target("avx2"))) static inline __attribute__((always_inline)) void walk_vectors(
    const struct stk_sampler *sampler, const uint32_t *keys, __m256i *left, __m256i *right,
    uint64_t *ids, __m256i *past)
{
    const __m256i width = _mm256_set1_epi32((int)sampler->width);
    const __m256i height = _mm256_set1_epi32((int)sampler->height);
    const __m256i last = _mm256_set1_epi64x((int64_t)sampler->count - 1);
    for (uint32_t round = 0; round < sampler->rounds; round += 2) {
        const __m256i even = _mm256_set1_epi32((int)keys[round]);
        const __m256i odd = _mm256_set1_epi32((int)keys[round + 1]);
        for (int v = 0; v < VECTORS; v++)
            left[v] = add_round(left[v], right[v], even, width);
        for (int v = 0; v < VECTORS; v++)
            right[v] = add_round(right[v], left[v], odd, height);
    }
    for (int v = 0; v < VECTORS; v++) {
        uint64_t *to = ids + v * LANES;
        join_halves(_mm256_castsi256_si128(left[v]), _mm256_castsi256_si128(right[v]), width, last,
                    to, past);
        join_halves(_mm256_extracti128_si256(left[v], 1), _mm256_extracti128_si256(right[v], 1),
                    width, last, to + LANES / 2, past);
    }
}

/* How many lanes were counted: each is -1 in one of four sums. */
__attribute__((target("avx2"))) static inline uint32_t count_past(__m256i past)
{
    int64_t counts[4];
    _mm256_storeu_si256((__m256i *)(void *)counts, past);
    return (uint32_t) - (counts[0] + counts[1] + counts[2] + counts[3]);
}

__attribute__((target("avx2"))) static uint32_t walk_block_avx2(const struct stk_sampler *sampler,
                                                                const uint32_t *keys,
                                                                uint32_t *left, uint32_t *right,
                                                                uint64_t *ids)
{
    __m256i past = _mm256_setzero_si256();
    for (int at = 0; at < STK_SAMPLER_BLOCK; at += LANES * VECTORS) {
        __m256i l[VECTORS], r[VECTORS];
        for (int v = 0; v < VECTORS; v++) {
            l[v] = _mm256_loadu_si256((const __m256i *)(const void *)(left + at + v * LANES));
            r[v] = _mm256_loadu_si256((const __m256i *)(const void *)(right + at + v * LANES));
        }
        walk_vectors(sampler, keys, l, r, ids + at, &past);
    }
    return count_past(past);
}

__attribute__((target("avx2"))) static uint32_t walk_neighbours_avx2(
    const struct stk_sampler *sampler, const uint32_t *keys, uint32_t left, uint32_t right,
    uint64_t *ids)
{
    const __m256i width = _mm256_set1_epi32((int)sampler->width);
    const __m256i here = _mm256_set1_epi32((int)right);
    const __m256i after = _mm256_set1_epi32((int)row_after(sampler, right));
    __m256i at =
        _mm256_add_epi32(_mm256_set1_epi32((int)left), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256i past = _mm256_setzero_si256();
    for (int first = 0; first < STK_SAMPLER_BLOCK; first += LANES * VECTORS) {
        __m256i l[VECTORS], r[VECTORS];
        for (int v = 0; v < VECTORS; v++) {
            l[v] = _mm256_min_epu32(at, _mm256_sub_epi32(at, width)); /* as in add_modulo */
            r[v] = _mm256_blendv_epi8(after, here, _mm256_cmpeq_epi32(l[v], at));
            at = _mm256_add_epi32(at, _mm256_set1_epi32(LANES));
        }
        walk_vectors(sampler, keys, l, r, ids + first, &past);
    }
    return count_past(past);
}
#endif

/* One position; for the few that fall into [count, width * height). */
static uint64_t walk_one(const struct stk_sampler *sampler, const uint32_t *keys, uint64_t position)
{
    uint32_t left = (uint32_t)(position % sampler->width);
    uint32_t right = (uint32_t)(position / sampler->width);
    for (uint32_t round = 0; round < sampler->rounds; round += 2) {
        left = add_modulo(left, round_value(right, keys[round], sampler->width), sampler->width);
        right =
            add_modulo(right, round_value(left, keys[round + 1], sampler->height), sampler->height);
    }
    return (uint64_t)right * sampler->width + left;
}

/* The smallest integer whose square is at least n. */
static uint32_t ceiling_root(uint64_t n)
{
    uint64_t root = (uint64_t)sqrt((double)n);
    while (root * root < n)
        root++;
    while (root > 1 && (root - 1) * (root - 1) >= n)
        root--;
    return (uint32_t)root;
}

void stk_sampler_init(struct stk_sampler *sampler, uint64_t count, uint64_t seed, bool shuffle)
{
    assert(count >= 1);
    assert(count <= STK_SAMPLER_COUNT_MAX);
    const uint32_t width = ceiling_root(count);
    assert(width >= 1);
    *sampler = (struct stk_sampler){
        .count = count,
        .seed = seed,
        .shuffle = shuffle,
        .width = width,
        .height = (uint32_t)((count + width - 1) / width),
        .rounds = width < SMALL_WIDTH ? ROUNDS_SMALL : ROUNDS,
    };
    stk_sampler_use_baseline(sampler);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        sampler->walk = walk_block_avx2;
        sampler->walk_neighbours = walk_neighbours_avx2;
    }
#endif
}

void stk_sampler_use_baseline(struct stk_sampler *sampler)
{
    sampler->walk = walk_block_baseline;
    sampler->walk_neighbours = walk_neighbours_baseline;
}

void stk_sampler_begin(const struct stk_sampler *sampler, uint64_t epoch,
                       struct stk_sampler_order *order)
{
    order->epoch = epoch;
    for (uint32_t i = 0; i < sampler->rounds; i += 4) {
        struct stk_random draw = stk_philox(sampler->seed ^ ORDER_STREAM, epoch, i);
        for (uint32_t j = 0; j < 4; j++)
            order->keys[i + j] = draw.word[j];
    }
}

/* Write positions first, first + stride, ... as halves; no division but at the start. */
static void split_positions(const struct stk_sampler *sampler, uint64_t first, uint64_t stride,
                            uint32_t *left, uint32_t *right)
{
    const uint64_t width = sampler->width;
    assert(width >= 1);
    const uint64_t step_l = stride % width;
    const uint64_t step_r = stride / width;
    uint64_t l = first % width;
    uint64_t r = first / width;
    for (int i = 0; i < STK_SAMPLER_BLOCK; i++) {
        left[i] = (uint32_t)l;
        right[i] = (uint32_t)(r < sampler->height ? r : 0); /* past the end: never used */
        l += step_l;
        r += step_r;
        if (l >= width) {
            l -= width;
            r++;
        }
    }
}

/* Returns how many of the block's ids are past the set's end. */
static uint32_t walk_positions(const struct stk_sampler *sampler, const uint32_t *keys,
                               uint64_t first, uint64_t stride, uint64_t *ids)
{
    if (stride == 1 && sampler->width >= STK_SAMPLER_BLOCK)
        return sampler->walk_neighbours(sampler, keys, (uint32_t)(first % sampler->width),
                                        (uint32_t)(first / sampler->width), ids);
    uint32_t left[STK_SAMPLER_BLOCK];
    uint32_t right[STK_SAMPLER_BLOCK];
    split_positions(sampler, first, stride, left, right);
    return sampler->walk(sampler, keys, left, right, ids);
}

/* The ids of a whole block; positions past `n` give ids that nobody uses. */
static void shuffled_block(const struct stk_sampler *sampler, const uint32_t *keys, uint64_t first,
                           uint64_t stride, uint32_t n, uint64_t *ids)
{
    if (walk_positions(sampler, keys, first, stride, ids) == 0)
        return;
    for (uint32_t i = 0; i < n; i++)
        while (ids[i] >= sampler->count) /* cycle walking: rare, and ends for certain */
            ids[i] = walk_one(sampler, keys, ids[i]);
}

void stk_sampler_ids(const struct stk_sampler *sampler, const struct stk_sampler_order *order,
                     uint64_t first, uint64_t stride, uint32_t n, uint64_t *ids)
{
    if (!sampler->shuffle) {
        for (uint32_t i = 0; i < n; i++)
            ids[i] = first + i * stride;
        return;
    }
    uint32_t done = 0;
    for (; n - done >= STK_SAMPLER_BLOCK; done += STK_SAMPLER_BLOCK)
        shuffled_block(sampler, order->keys, first + done * stride, stride, STK_SAMPLER_BLOCK,
                       ids + done);
    if (done < n) {
        uint64_t rest[STK_SAMPLER_BLOCK];
        shuffled_block(sampler, order->keys, first + done * stride, stride, n - done, rest);
        memcpy(ids + done, rest, (n - done) * sizeof(ids[0]));
    }
}
