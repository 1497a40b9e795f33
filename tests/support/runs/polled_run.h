/* polled_run.h - a loader's whole run by poll() alone: next() is called with a timeout of 0, and
 * never waits.
 *
 * A poll that lasts STK_POLL_MS is a descriptor that nobody sets: the run ends with STOKER_TIMEOUT.
 * Without Criterion: the programs for ThreadSanitizer use it as well.
 */
#ifndef STK_TEST_POLLED_RUN_H
#define STK_TEST_POLLED_RUN_H

#include <poll.h>

#include "support/runs/scenario.h"

enum { STK_POLL_MS = 30000, STK_POLLED_HELD_MAX = 8 };

struct stk_polled {
    int fd;
    uint64_t polls;    /* in which the descriptor was not readable at first */
    uint64_t timeouts; /* calls of next() that had nothing */
};

/* Returns true if the descriptor is readable within timeout_ms. */
static inline bool stk_fd_is_readable(int fd, int timeout_ms)
{
    struct pollfd entry = { .fd = fd, .events = POLLIN };
    return poll(&entry, 1, timeout_ms) == 1 && (entry.revents & POLLIN) != 0;
}

static inline bool stk_polled_wait(struct stk_polled *polled)
{
    if (stk_fd_is_readable(polled->fd, 0))
        return true;
    polled->polls++;
    return stk_fd_is_readable(polled->fd, STK_POLL_MS);
}

/* Call next() until it has something to say. */
static inline int stk_polled_next(stoker_loader *loader, struct stk_polled *polled,
                                  stoker_batch *batch)
{
    int rc = STOKER_TIMEOUT;
    while (rc == STOKER_TIMEOUT) {
        if (!stk_polled_wait(polled))
            return STOKER_TIMEOUT;
        rc = stoker_loader_next(loader, batch, 0);
        polled->timeouts += rc == STOKER_TIMEOUT;
    }
    return rc;
}

/* Up to `most` batches; `held` of them are held at a time, and the oldest is released. */
static inline void stk_polled_run(stoker_loader *loader, struct stk_polled *polled, uint32_t held,
                                  uint32_t most, struct stk_run *run)
{
    stoker_batch batches[STK_POLLED_HELD_MAX];
    uint32_t taken = 0;
    stk_batches_begin(batches, STK_POLLED_HELD_MAX);
    run->rc = STOKER_OK;
    while (run->rc >= 0 && run->rc != STOKER_FINISHED && taken < most) {
        stoker_batch *batch = &batches[taken % held];
        stoker_batch_release(batch);
        run->rc = stk_polled_next(loader, polled, batch);
        if (run->rc == STOKER_EPOCH_END)
            run->epoch_ends++;
        if (run->rc != STOKER_OK)
            continue;
        taken++;
        run->samples += batch->count;
        run->hashes[run->batches++ % STK_RUN_BATCHES_MAX] = stk_batch_hash(batch);
    }
    for (uint32_t i = 0; i < held; i++)
        stoker_batch_release(&batches[i]);
}

#endif
