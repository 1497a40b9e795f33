/* sampler.c - see sampler.h. */
#include "loader/sampler/sampler.h"

#include <assert.h>
#include <math.h>

#include "loader/base/rng.h"

/* Half of the rounds fall on each half. Small sets get more: a keyed function on few values
 * is far from random, and there even single permutations should be equally likely. */
enum { ROUNDS = 6, ROUNDS_SMALL = 12, SMALL_WIDTH = 64 };

#define ORDER_STREAM UINT64_C(0x73616d706c6572) /* "sampler": keeps these keys apart from others */

/* A hash of one half, then mapped to [0, size) by multiplication (Lemire, "Fast random
 * integer generation in an interval", 2019): only its high bits, the well-mixed ones, count.
 * The bias is below size / 2^32. */
static inline uint32_t round_value(uint32_t half, uint32_t key, uint32_t size)
{
    uint32_t h = (half ^ key) * 0x9E3779B1U;
    h = (h ^ (h >> 15)) * 0x85EBCA77U;
    return (uint32_t)(((uint64_t)h * size) >> 32);
}

static inline uint32_t add_modulo(uint32_t a, uint32_t b, uint32_t size)
{
    uint32_t sum = a + b; /* sizes are at most 2^31: no overflow */
    uint32_t wrapped = sum - size;
    return wrapped < sum ? wrapped : sum; /* the smaller of the two: a vector minimum */
}

/* The rounds over a whole block: the inner loops have no branches and vectorise. */
static inline __attribute__((always_inline)) void walk_block(const struct stk_sampler *sampler,
                                                             const uint32_t *keys, uint32_t *left,
                                                             uint32_t *right)
{
    const uint32_t width = sampler->width;
    const uint32_t height = sampler->height;
    for (uint32_t round = 0; round < sampler->rounds; round += 2) {
        for (int i = 0; i < STK_SAMPLER_BLOCK; i++)
            left[i] = add_modulo(left[i], round_value(right[i], keys[round], width), width);
        for (int i = 0; i < STK_SAMPLER_BLOCK; i++)
            right[i] = add_modulo(right[i], round_value(left[i], keys[round + 1], height), height);
    }
}

static void walk_block_baseline(const struct stk_sampler *sampler, const uint32_t *keys,
                                uint32_t *left, uint32_t *right)
{
    walk_block(sampler, keys, left, right);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void walk_block_avx2(const struct stk_sampler *sampler,
                                                            const uint32_t *keys, uint32_t *left,
                                                            uint32_t *right)
{
    walk_block(sampler, keys, left, right);
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
        .walk = walk_block_baseline,
    };
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        sampler->walk = walk_block_avx2;
#endif
}

static void make_keys(const struct stk_sampler *sampler, uint64_t epoch,
                      uint32_t keys[ROUNDS_SMALL])
{
    for (uint32_t i = 0; i < sampler->rounds; i += 4) {
        struct stk_random draw = stk_philox(sampler->seed ^ ORDER_STREAM, epoch, i);
        for (uint32_t j = 0; j < 4; j++)
            keys[i + j] = draw.word[j];
    }
}

/* Neighbouring positions of a set so wide that a block wraps at most once: no branches. */
static void split_neighbours(const struct stk_sampler *sampler, uint32_t l, uint32_t r,
                             uint32_t *left, uint32_t *right)
{
    const uint32_t width = sampler->width;
    const uint32_t above = r + 1 < sampler->height ? r + 1 : 0; /* past the end: never used */
    for (uint32_t i = 0; i < STK_SAMPLER_BLOCK; i++) {
        uint32_t at = l + i;
        left[i] = at < width ? at : at - width;
        right[i] = at < width ? r : above;
    }
}

/* Write positions first, first + stride, ... as halves; no division but at the start. */
static void split_positions(const struct stk_sampler *sampler, uint64_t first, uint64_t stride,
                            uint32_t *left, uint32_t *right)
{
    const uint64_t width = sampler->width;
    assert(width >= 1);
    uint64_t l = first % width;
    uint64_t r = first / width;
    if (stride == 1 && width >= STK_SAMPLER_BLOCK) {
        split_neighbours(sampler, (uint32_t)l, (uint32_t)r, left, right);
        return;
    }
    const uint64_t step_l = stride % width;
    const uint64_t step_r = stride / width;
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

static void shuffled_block(const struct stk_sampler *sampler, const uint32_t *keys, uint64_t first,
                           uint64_t stride, uint32_t n, uint64_t *ids)
{
    uint32_t left[STK_SAMPLER_BLOCK];
    uint32_t right[STK_SAMPLER_BLOCK];
    split_positions(sampler, first, stride, left, right);
    sampler->walk(sampler, keys, left, right);

    uint64_t largest = 0;
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = (uint64_t)right[i] * sampler->width + left[i];
        largest = ids[i] > largest ? ids[i] : largest;
    }
    if (largest < sampler->count)
        return;
    for (uint32_t i = 0; i < n; i++)
        while (ids[i] >= sampler->count) /* cycle walking: rare, and ends for certain */
            ids[i] = walk_one(sampler, keys, ids[i]);
}

void stk_sampler_ids(const struct stk_sampler *sampler, uint64_t epoch, uint64_t first,
                     uint64_t stride, uint32_t n, uint64_t *ids)
{
    if (!sampler->shuffle) {
        for (uint32_t i = 0; i < n; i++)
            ids[i] = first + i * stride;
        return;
    }
    uint32_t keys[ROUNDS_SMALL];
    make_keys(sampler, epoch, keys);
    for (uint32_t done = 0; done < n; done += STK_SAMPLER_BLOCK) {
        uint32_t block = n - done < STK_SAMPLER_BLOCK ? n - done : STK_SAMPLER_BLOCK;
        shuffled_block(sampler, keys, first + done * stride, stride, block, ids + done);
    }
}
