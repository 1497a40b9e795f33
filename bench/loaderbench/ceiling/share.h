/* share.h - one thread's part of a ceiling: its place in the order, and its own ring.
 *
 *   order   ....[ next .......... end )....     samples left to this thread
 *   ring    [ piece ][ piece ][ piece ]         rows, written in a circle
 */
#ifndef BENCH_CEILING_SHARE_H
#define BENCH_CEILING_SHARE_H

#include "bench/loaderbench/ceiling/ceiling.h"

struct bench_share {
    const struct bench_work *work;
    struct bench_block ring;
    uint64_t ring_rows;
    uint64_t at;    /* next free row of the ring */
    uint32_t piece; /* rows per step, <= ring_rows */
    uint64_t first; /* start of this thread's part of the order */
    uint64_t end;   /* one past its end; with a time limit the end of the order */
    uint64_t next;
};

int bench_share_create(struct bench_share *out, const struct bench_work *work, uint32_t thread,
                       uint32_t threads);
void bench_share_destroy(struct bench_share *share);

/* Takes up to `wanted` consecutive samples of the order; returns their number, and their start in
 * *start. 0 = the pass is over. Without one_pass the order wraps around. */
uint32_t bench_share_take(struct bench_share *share, uint32_t wanted, uint64_t *start);

/* The next `rows` rows of the ring, which wraps around. rows <= ring_rows. */
void *bench_share_room(struct bench_share *share, uint64_t rows);

#endif
