/* share.c - one thread's part of a ceiling. */
#include "bench/loaderbench/ceiling/share.h"

#include <assert.h>

int bench_share_create(struct bench_share *out, const struct bench_work *work, uint32_t thread,
                       uint32_t threads)
{
    uint64_t count = work->material->count;
    uint64_t rows = work->ring_rows / threads;
    rows = rows < 1 ? 1 : rows;
    struct bench_share share = { .work = work,
                                 .ring_rows = rows,
                                 .piece =
                                     rows < work->batch_size ? (uint32_t)rows : work->batch_size };
    share.first = count * thread / threads;
    share.end = work->one_pass ? count * (thread + 1) / threads : count;
    share.next = share.first;
    int rc = bench_block_create(&share.ring, rows * work->plan->to_bytes);
    if (rc == STOKER_OK)
        *out = share;
    return rc;
}

void bench_share_destroy(struct bench_share *share)
{
    bench_block_destroy(&share->ring);
}

uint32_t bench_share_take(struct bench_share *share, uint32_t wanted, uint64_t *start)
{
    if (share->next == share->end && !share->work->one_pass)
        share->next = 0;
    uint64_t left = share->end - share->next;
    uint32_t count = left < wanted ? (uint32_t)left : wanted;
    *start = share->next;
    share->next += count;
    return count;
}

void *bench_share_room(struct bench_share *share, uint64_t rows)
{
    assert(rows <= share->ring_rows);
    if (share->at + rows > share->ring_rows)
        share->at = 0;
    char *room = (char *)share->ring.bytes + share->at * share->work->plan->to_bytes;
    share->at += rows;
    return room;
}
