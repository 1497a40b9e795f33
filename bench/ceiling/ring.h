/* ring.h - a bare io_uring of one thread, with the fastest setup that the kernel supports. Only in a build
 * with liburing.
 */
#ifndef BENCH_CEILING_RING_H
#define BENCH_CEILING_RING_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

struct bench_ring {
    struct io_uring uring;
    bool open;
    uint32_t requests; /* in flight: the kernel owns their buffers */
};

/* STOKER_ENOTSUP: io_uring is missing or forbidden. */
int bench_ring_open(struct bench_ring *ring, uint32_t entries);

/* Waits for all requests. A zeroed ring is allowed. */
void bench_ring_close(struct bench_ring *ring);

/* Takes the next free entry, of which there must be one, and counts it as a request. */
struct io_uring_sqe *bench_ring_request(struct bench_ring *ring);

/* Submits, waits for `wanted` completions and passes all available ones to answered(), which returns the
 * number of samples finished, < 0 = an error. Returns the sum, or STOKER_EIO. */
int64_t bench_ring_turn(struct bench_ring *ring, uint32_t wanted,
                        int (*answered)(void *state, const struct io_uring_cqe *cqe), void *state);

#endif
