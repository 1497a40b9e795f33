/* ring.c - see ring.h. */
#include "bench/ceiling/ring.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stoker/error.h>

int bench_ring_open(struct bench_ring *ring, uint32_t entries)
{
    static const unsigned flags[] = {
#if defined(IORING_SETUP_DEFER_TASKRUN)
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_COOP_TASKRUN,
#endif
        0 /* older kernels */
    };
    int rc = -EINVAL;
    for (size_t index = 0; rc == -EINVAL && index < sizeof(flags) / sizeof(flags[0]); index++)
        rc = io_uring_queue_init(entries, &ring->uring, flags[index]);
    if (rc < 0)
        return STOKER_ENOTSUP;
    ring->open = true;
    (void)io_uring_register_ring_fd(&ring->uring); /* saves a look-up; optional */
    return STOKER_OK;
}

void bench_ring_close(struct bench_ring *ring)
{
    if (!ring->open)
        return;
    while (ring->requests > 0) {
        struct io_uring_cqe *cqe = NULL;
        if (io_uring_wait_cqe(&ring->uring, &cqe) < 0)
            break;
        io_uring_cqe_seen(&ring->uring, cqe);
        ring->requests--;
    }
    io_uring_queue_exit(&ring->uring);
    ring->open = false;
}

struct io_uring_sqe *bench_ring_request(struct bench_ring *ring)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
    assert(sqe != NULL); /* as many entries as requests */
    ring->requests++;
    return sqe;
}

int64_t bench_ring_turn(struct bench_ring *ring, uint32_t wanted,
                        int (*answered)(void *state, const struct io_uring_cqe *cqe), void *state)
{
    int rc = io_uring_submit_and_wait(&ring->uring, wanted);
    if (rc < 0 && rc != -EINTR)
        return STOKER_EIO;
    struct io_uring_cqe *cqe = NULL;
    unsigned head = 0;
    unsigned seen = 0;
    int64_t done = 0;
    io_uring_for_each_cqe(&ring->uring, head, cqe)
    {
        const int finished = answered(state, cqe);
        done = finished < 0 || done < 0 ? STOKER_EIO : done + finished;
        seen++;
    }
    io_uring_cq_advance(&ring->uring, seen);
    ring->requests -= seen;
    return done;
}
