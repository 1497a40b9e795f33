/* window.h - an order that shuffles within windows of blocks, so that each block is used within a
 * short time and then never again in the epoch.
 *
 *   blocks 0..B-1 ──keyed permutation──▶ a line of all samples | b5 b5 | b2 b2 b2 | b7 | ...
 *   the line      ──cut into L lanes──▶  their lengths differ by at most 1
 *   a lane        ──cut into runs of W blocks' worth of samples──▶ each run permuted by its own key
 *   position p of the epoch ──▶ position p / L of lane p % L ──▶ sample id
 *
 * The runs of lane l are shifted by l / L of a run, so that the lanes change their blocks one after
 * the other rather than all at once: the first run of a lane is shorter. Odd lanes go backward, so
 * that two lanes use the block at the edge between them at the same time.
 *
 * If all blocks have the same number of samples, except for the last one, the line is arithmetic:
 * the whole blocks are permuted, and the short one lies at a random place among them. Otherwise a
 * table of 8 bytes per block says where each begins. It is made once per epoch and shared.
 *
 * Threads   Any number. A line is made under a lock, and read without it while it is in use.
 */
#ifndef STK_SAMPLER_WINDOW_H
#define STK_SAMPLER_WINDOW_H

#include <stdint.h>

/* Blocks of unequal size have a table of 8 bytes each: 512 MiB. */
#define STK_WINDOW_TABLE_MAX ((uint64_t)1 << 26)

enum { STK_WINDOW_LANES_MAX = 65536 };

/* Which samples each block holds. */
struct stk_blocks {
    uint64_t count;       /* samples, 1..2^62 */
    uint64_t block_count; /* 1..count; 0 = not cut into blocks, which is no order */
    /* Returns the id of a block's first sample: 0 for block 0, then rising. NULL = each block but
     * the last has `block_samples` samples. */
    uint64_t (*first)(const void *self, uint64_t block);
    const void *self;
    uint64_t block_samples;
};

struct stk_window;
struct stk_window_line; /* the blocks of one epoch */

/* Make the order of `window_blocks` >= 1 blocks in each of `lanes` lanes, 1..STK_WINDOW_LANES_MAX.
 * blocks->self must outlive it. With window_blocks >= block_count *out becomes NULL: that is the
 * permutation of all samples (sampler.h). Returns 0, STOKER_ENOMEM, or STOKER_ELIMIT: more than
 * STK_WINDOW_TABLE_MAX blocks of unequal size. */
int stk_window_make(struct stk_window **out, const struct stk_blocks *blocks,
                    uint64_t window_blocks, uint32_t lanes, uint64_t seed);
void stk_window_free(struct stk_window *window); /* NULL is allowed */

/* A hash of everything that the order depends on, except seed and epoch. If there are more than
 * 65,536 blocks of unequal size, it includes 65,536 of them. */
uint64_t stk_window_hash(const struct stk_window *window);

/* Exchange *line, NULL or of this window, for the line of an epoch. Returns 0 or STOKER_ENOMEM:
 * then *line is NULL. The first two lines that are in use at once need no memory. */
int stk_window_begin(struct stk_window *window, uint64_t epoch, struct stk_window_line **line);
void stk_window_leave(struct stk_window *window, struct stk_window_line **line);

/* The sample at a position < count. */
uint64_t stk_window_id(const struct stk_window *window, const struct stk_window_line *line,
                       uint64_t position);

#endif
