/* sampler.h - the sample at each position of an epoch.
 *
 *   position --(keyed by seed, epoch)--> sample id      a bijection on [0, count)
 *
 * A generalized Feistel network (Black and Rogaway, "Ciphers with arbitrary finite
 * domains", CT-RSA 2002): a position is written as R * width + L with L < width and
 * R < height, width and height near sqrt(count). Each round adds a keyed hash of one
 * half to the other, modulo that half's size. width * height exceeds count by less
 * than width, so almost no position needs a second walk. O(1) memory, O(1) seek.
 *
 * Other orders (draws.h, mix.h, window.h) replace the permutation if `draws`, `mix` or `window` is
 * set.
 *
 * Threads   Immutable after init: any number of threads.
 */
#ifndef STK_SAMPLER_SAMPLER_H
#define STK_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>

#define STK_SAMPLER_COUNT_MAX ((uint64_t)1 << 62)

enum { STK_SAMPLER_BLOCK = 64 }; /* positions worked on at a time */

struct stk_draws;
struct stk_mix;
struct stk_mix_cursor;
struct stk_window;
struct stk_window_line;

struct stk_sampler {
    uint64_t count;  /* samples */
    uint64_t length; /* positions in an epoch; count, unless changed after init */
    uint64_t seed;
    bool shuffle; /* false: id = position, or what `draws` says */
    /* not a permutation; NULL = none. Not owned; set after init, with shuffle = false */
    const struct stk_draws *draws;
    const struct stk_mix *mix; /* several sources; NULL = one. As draws */
    /* with shuffle = true: within windows of blocks; NULL = among all samples. Set after init */
    struct stk_window *window;
    uint32_t width;  /* range of the half L */
    uint32_t height; /* range of the half R */
    uint32_t rounds; /* even */
};

enum { STK_SAMPLER_ROUNDS_MAX = 12 };

/* The keys of one epoch, computed once for all of its positions. */
struct stk_sampler_order {
    uint64_t epoch;
    uint32_t keys[STK_SAMPLER_ROUNDS_MAX];
    struct stk_mix_cursor *cursor; /* for a mix: belongs to the thread; begin keeps it */
    struct stk_window_line *line;  /* for a window, as cursor */
};

/* count is 1..STK_SAMPLER_COUNT_MAX. */
void stk_sampler_init(struct stk_sampler *sampler, uint64_t count, uint64_t seed, bool shuffle);

/* Compute the keys: all that the permutation needs. */
void stk_sampler_begin(const struct stk_sampler *sampler, uint64_t epoch,
                       struct stk_sampler_order *order);

/* A use of any order by a thread: open once, enter each epoch, close. Before open it must be all
 * zero. Return 0 or STOKER_ENOMEM; close is needed in either case. */
int stk_sampler_open(const struct stk_sampler *sampler, struct stk_sampler_order *order);
__attribute__((warn_unused_result)) int stk_sampler_enter(const struct stk_sampler *sampler,
                                                          uint64_t epoch,
                                                          struct stk_sampler_order *order,
                                                          stoker_error *error);
void stk_sampler_close(const struct stk_sampler *sampler, struct stk_sampler_order *order);

/* ids[i] = the sample at position first + i * stride, modulo length, of the order's epoch, for i <
 * n. Returns 0, or an error of the caller's own order (then *error is filled in, and the ids are
 * unusable); without one it cannot fail, and error may be NULL. */
__attribute__((warn_unused_result)) int stk_sampler_ids(const struct stk_sampler *sampler,
                                                        const struct stk_sampler_order *order,
                                                        uint64_t first, uint64_t stride, uint32_t n,
                                                        uint64_t *ids, stoker_error *error);

/* The same for a sampler that shuffles, and positions that are all below count. */
void stk_sampler_shuffled(const struct stk_sampler *sampler, const struct stk_sampler_order *order,
                          uint64_t first, uint64_t stride, uint32_t n, uint64_t *ids);

/* ids[i] = the sample at positions[i], each < count, for i < n; of a sampler that shuffles. The two
 * arrays may be the same. */
void stk_sampler_map(const struct stk_sampler *sampler, const struct stk_sampler_order *order,
                     const uint64_t *positions, uint32_t n, uint64_t *ids);

#endif
