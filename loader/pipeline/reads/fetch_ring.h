/* fetch_ring.h - the ring of one worker's reads: opened in its thread, closed, and replaced if it
 * breaks. fetch.c submits to it and reaps from it. */
#ifndef STK_PIPELINE_FETCH_RING_H
#define STK_PIPELINE_FETCH_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/reads/fetch.h"

/* Returns true if the ring runs the caller's code, which nothing may replace. */
static inline bool stk_fetch_ring_is_own(const struct stk_fetcher *fetcher)
{
    return fetcher->pipeline->plan.reader >= STK_READER_OWN;
}

/* Enter and leave a reader call. During a built-in reader's call the thread may be abandoned: when
 * the call returns, the thread checks `stopping` before it runs user code. seq_cst: pairs with
 * stk_slots_stop, which sets stopping, and stk_worker_join, which then reads in_system_call. */
static inline void stk_fetch_ring_enter(struct stk_fetcher *fetcher)
{
    if (!stk_fetch_ring_is_own(fetcher))
        atomic_store_explicit(&fetcher->in_system_call, true, memory_order_relaxed);
}

static inline void stk_fetch_ring_leave(struct stk_fetcher *fetcher)
{
    if (!stk_fetch_ring_is_own(fetcher))
        atomic_store(&fetcher->in_system_call, false);
}

/* Open the ring, in the thread that will use it. Returns 0 or the reader's error. */
int stk_fetch_ring_open(struct stk_fetcher *fetcher, stoker_error *error);

/* Close the ring, waiting for reads in flight; sets stuck if some never come back. */
void stk_fetch_ring_close(struct stk_fetcher *fetcher, int64_t wait_ns);

/* Open another ring, after that one is closed: of the caller's own reader if there is one, else of
 * pread, which reads the same bytes. has_ring is true if it opened. */
void stk_fetch_ring_reopen(struct stk_fetcher *fetcher);

#endif
