/* ring.h - a bare io_uring of one thread: opened as fast as the kernel lets it be, closed when nothing
 * is in flight any more. Only in a build with liburing.
 */
#ifndef BENCH_CEILING_RING_H
#define BENCH_CEILING_RING_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

struct bench_ring {
    struct io_uring uring;
    bool open;
    uint32_t requests; /* not answered yet: their buffers belong to the kernel until then */
};

/* STOKER_ENOTSUP: there is no io_uring here, or it is forbidden. */
int bench_ring_open(struct bench_ring *ring, uint32_t entries);

/* Waits for all requests. A ring that was never opened is allowed, if it is zeroed. */
void bench_ring_close(struct bench_ring *ring);

/* The next free entry, counted as a request: there must be one. */
struct io_uring_sqe *bench_ring_request(struct bench_ring *ring);

/* Submit, wait for `wanted` answers, and hand each that is there to answered(state), which returns how
 * many samples it finished, < 0 = an error. Returns their sum, or STOKER_EIO. */
int64_t bench_ring_turn(struct bench_ring *ring, uint32_t wanted,
                        int (*answered)(void *state, const struct io_uring_cqe *cqe), void *state);

#endif
