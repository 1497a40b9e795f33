/* sampler.c - the permutation of sampler.h; ids.c has the other orders. */
#include "loader/sampler/sampler.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "loader/base/cpu/cpu_features.h"
#include "loader/base/rng.h"

/* Half of the rounds fall on each half. Small sets get more: a keyed function on few values
 * is far from random, and there even single permutations should be equally likely. */
enum { ROUNDS = 6, ROUNDS_SMALL = STK_SAMPLER_ROUNDS_MAX, SMALL_WIDTH = 64 };
enum { NARROW_WIDTH = 1 << 16 }; /* up to here a product fits into 32 bits, see scale_to() */

enum { FEW_POSITIONS = 4 };

#define ORDER_STREAM UINT64_C(0x73616d706c6572) /* "sampler": keeps these keys apart from others */

/* h * size >> 32. With size <= 2^16 (`narrow`) in 32 bits, of which a vector has twice as many:
 * h = 2^16 a + b, and floor(floor(b * size / 2^16) + a * size) / 2^16 loses nothing. */
static inline uint32_t scale_to(uint32_t h, uint32_t size, bool narrow)
{
    if (narrow)
        return ((h >> 16) * size + ((h & 0xFFFF) * size >> 16)) >> 16;
    return (uint32_t)(((uint64_t)h * size) >> 32);
}

/* Hash one half, then map it to [0, size) by multiplication (Lemire, "Fast random integer
 * generation in an interval", 2019): only the high bits, the well-mixed ones, count. The bias is
 * below size / 2^32. */
static inline uint32_t round_value(uint32_t half, uint32_t key, uint32_t size, bool narrow)
{
    uint32_t h = (half ^ key) * 0x9E3779B1U;
    h = (h ^ (h >> 15)) * 0x85EBCA77U;
    return scale_to(h, size, narrow);
}

static inline uint32_t add_modulo(uint32_t a, uint32_t b, uint32_t size)
{
    uint32_t sum = a + b; /* sizes are at most 2^31: no overflow */
    uint32_t wrapped = sum - size;
    return wrapped < sum ? wrapped : sum; /* the smaller of the two: a vector minimum */
}

/* All rounds over a block, then its ids. Returns how many of them are past the end. The inner loops
 * have no branches and vectorize. */
static inline __attribute__((always_inline)) uint32_t walk_block_body(
    const struct stk_sampler *sampler, const uint32_t *keys, uint32_t *left, uint32_t *right,
    uint64_t *ids, bool narrow)
{
    const uint32_t width = sampler->width;
    const uint32_t height = sampler->height;
    for (uint32_t round = 0; round < sampler->rounds; round += 2) {
        for (int i = 0; i < STK_SAMPLER_BLOCK; i++)
            left[i] = add_modulo(left[i], round_value(right[i], keys[round], width, narrow), width);
        for (int i = 0; i < STK_SAMPLER_BLOCK; i++)
            right[i] =
                add_modulo(right[i], round_value(left[i], keys[round + 1], height, narrow), height);
    }
    const int64_t count = (int64_t)sampler->count; /* signed: what vectors can compare */
    int64_t past = 0;
    for (int i = 0; i < STK_SAMPLER_BLOCK; i++) {
        ids[i] = (uint64_t)right[i] * width + left[i];
        past += (int64_t)ids[i] >= count;
    }
    return (uint32_t)past;
}

#if defined(__x86_64__)
/* The same C, compiled for AVX2: three times faster. */
__attribute__((target("avx2"))) static uint32_t walk_block_avx2(const struct stk_sampler *sampler,
                                                                const uint32_t *keys,
                                                                uint32_t *left, uint32_t *right,
                                                                uint64_t *ids)
{
    if (sampler->width <= NARROW_WIDTH)
        return walk_block_body(sampler, keys, left, right, ids, true);
    return walk_block_body(sampler, keys, left, right, ids, false);
}
#endif

static uint32_t walk_block(const struct stk_sampler *sampler, const uint32_t *keys, uint32_t *left,
                           uint32_t *right, uint64_t *ids)
{
#if defined(__x86_64__)
    if (stk_cpu_has(STK_CPU_AVX2))
        return walk_block_avx2(sampler, keys, left, right, ids);
#endif
    return walk_block_body(sampler, keys, left, right, ids, false);
}

/* One position; for the few that fall into [count, width * height). */
static uint64_t walk_one(const struct stk_sampler *sampler, const uint32_t *keys, uint64_t position)
{
    uint32_t left = (uint32_t)(position % sampler->width);
    uint32_t right = (uint32_t)(position / sampler->width);
    for (uint32_t round = 0; round < sampler->rounds; round += 2) {
        left = add_modulo(left, round_value(right, keys[round], sampler->width, false),
                          sampler->width);
        right = add_modulo(right, round_value(left, keys[round + 1], sampler->height, false),
                           sampler->height);
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
        .length = count,
        .seed = seed,
        .shuffle = shuffle,
        .width = width,
        .height = (uint32_t)((count + width - 1) / width),
        .rounds = width < SMALL_WIDTH ? ROUNDS_SMALL : ROUNDS,
    };
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

/* Split positions first, first + 1, ... into halves. They lie in two rows if width allows. */
static void split_neighbors(const struct stk_sampler *sampler, uint64_t first, uint32_t *left,
                            uint32_t *right)
{
    const uint32_t width = sampler->width;
    const uint32_t at = (uint32_t)(first % width);
    const uint32_t row = (uint32_t)(first / width);
    const uint32_t next = row + 1 < sampler->height ? row + 1 : 0; /* past the end: never used */
    for (uint32_t i = 0; i < STK_SAMPLER_BLOCK; i++) {
        left[i] = at + i < width ? at + i : at + i - width;
        right[i] = at + i < width ? row : next;
    }
}

/* Split positions first, first + stride, ... into halves; divides only at the start. */
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

/* Walk the first n ids again until they are below count: rare, and ends for certain. */
static void finish_walks(const struct stk_sampler *sampler, const uint32_t *keys, uint32_t n,
                         uint64_t *ids)
{
    for (uint32_t i = 0; i < n; i++)
        while (ids[i] >= sampler->count)
            ids[i] = walk_one(sampler, keys, ids[i]);
}

/* The ids of a whole block; ids of positions past `n` are unused. */
static void shuffled_block(const struct stk_sampler *sampler, const uint32_t *keys, uint64_t first,
                           uint64_t stride, uint32_t n, uint64_t *ids)
{
    uint32_t left[STK_SAMPLER_BLOCK];
    uint32_t right[STK_SAMPLER_BLOCK];
    if (stride == 1 && sampler->width >= STK_SAMPLER_BLOCK)
        split_neighbors(sampler, first, left, right);
    else
        split_positions(sampler, first, stride, left, right);
    if (walk_block(sampler, keys, left, right, ids) > 0)
        finish_walks(sampler, keys, n, ids);
}

/* The same for any positions: positions[0..n), n <= STK_SAMPLER_BLOCK. */
static void scattered_block(const struct stk_sampler *sampler, const uint32_t *keys,
                            const uint64_t *positions, uint32_t n, uint64_t *ids)
{
    uint32_t left[STK_SAMPLER_BLOCK] = { 0 };
    uint32_t right[STK_SAMPLER_BLOCK] = { 0 };
    uint64_t block[STK_SAMPLER_BLOCK];
    for (uint32_t i = 0; i < n; i++) {
        assert(positions[i] < sampler->count);
        left[i] = (uint32_t)(positions[i] % sampler->width);
        right[i] = (uint32_t)(positions[i] / sampler->width);
    }
    if (walk_block(sampler, keys, left, right, block) > 0)
        finish_walks(sampler, keys, n, block);
    memcpy(ids, block, n * sizeof(ids[0]));
}

/* A few positions, for which a whole block would take longer. */
static void few_positions(const struct stk_sampler *sampler, const uint32_t *keys,
                          const uint64_t *positions, uint32_t n, uint64_t *ids)
{
    for (uint32_t i = 0; i < n; i++) {
        assert(positions[i] < sampler->count);
        ids[i] = walk_one(sampler, keys, positions[i]);
    }
    finish_walks(sampler, keys, n, ids);
}

void stk_sampler_map(const struct stk_sampler *sampler, const struct stk_sampler_order *order,
                     const uint64_t *positions, uint32_t n, uint64_t *ids)
{
    assert(sampler->shuffle);
    if (n <= FEW_POSITIONS) {
        few_positions(sampler, order->keys, positions, n, ids);
        return;
    }
    for (uint32_t done = 0; done < n; done += STK_SAMPLER_BLOCK)
        scattered_block(sampler, order->keys, positions + done,
                        n - done < STK_SAMPLER_BLOCK ? n - done : STK_SAMPLER_BLOCK, ids + done);
}

void stk_sampler_shuffled(const struct stk_sampler *sampler, const struct stk_sampler_order *order,
                          uint64_t first, uint64_t stride, uint32_t n, uint64_t *ids)
{
    uint32_t done = 0;
    assert(sampler->shuffle);
    for (; n - done >= STK_SAMPLER_BLOCK; done += STK_SAMPLER_BLOCK)
        shuffled_block(sampler, order->keys, first + done * stride, stride, STK_SAMPLER_BLOCK,
                       ids + done);
    if (done < n) {
        uint64_t rest[STK_SAMPLER_BLOCK];
        shuffled_block(sampler, order->keys, first + done * stride, stride, n - done, rest);
        memcpy(ids + done, rest, (n - done) * sizeof(ids[0]));
    }
}
