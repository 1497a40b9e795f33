/* trace.h - records what each thread did, in one ring per thread.
 *
 *   its thread ──record──▶ | . . e e e e . . | ──take──▶ any thread, one at a time
 *                          taken ▲     ▲ recorded
 *
 * A ring has one writer and, under the lock, one reader; neither waits for the other. A full ring
 * drops new events and counts them. Without tracing and without an NVTX tool there are no rings:
 * recording is then one test of a NULL pointer.
 */
#ifndef STK_PIPELINE_TRACE_H
#define STK_PIPELINE_TRACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stoker/trace.h>

#include "loader/base/memory/memory.h"
#include "loader/pipeline/report/nvtx.h"

struct stk_trace_ring {
    _Alignas(STK_CACHE_LINE) _Atomic uint64_t recorded; /* release pairs with acquire in take */
    _Atomic uint64_t dropped;                           /* relaxed: a count that orders nothing */
    stoker_trace_event *events; /* [capacity]; this and all below never change */
    uint64_t capacity;          /* a power of two; 0 = NVTX only */
    const struct stk_nvtx *nvtx;
    uint16_t thread;
    _Alignas(STK_CACHE_LINE) _Atomic uint64_t taken; /* release pairs with acquire in record */
};

struct stk_trace {
    struct stk_trace_ring *rings; /* [0] is the consumer's; NULL = no tracing */
    uint32_t ring_count;
    struct stk_region memory; /* events of all rings */
    struct stk_nvtx nvtx;
    pthread_mutex_t lock; /* held while taking; initialized if there are rings */
};

/* Make one ring for the consumer and one per worker, each for at least `events` events; 0 = none,
 * unless an NVTX tool listens. Returns 0 or STOKER_ENOMEM. */
int stk_trace_init(struct stk_trace *trace, uint32_t workers, uint32_t events);
void stk_trace_destroy(struct stk_trace *trace); /* all zero is allowed */

/* The ring of thread 0 (the consumer) or n (worker n - 1); NULL without rings. */
static inline struct stk_trace_ring *stk_trace_ring_of(const struct stk_trace *trace,
                                                       uint32_t thread)
{
    return trace->rings == NULL ? NULL : &trace->rings[thread];
}

/* Move events to *out, as stoker_loader_trace() documents. */
void stk_trace_take(struct stk_trace *trace, stoker_trace *out);

/* ---- the ring's own thread ---- */

uint64_t stk_trace_open(const struct stk_trace_ring *ring, stoker_trace_kind kind, uint64_t batch);
void stk_trace_close(struct stk_trace_ring *ring, const stoker_trace_event *event);

/* Start an event; pass the returned time to stk_trace_end. Pairs nest. */
static inline uint64_t stk_trace_begin(const struct stk_trace_ring *ring, stoker_trace_kind kind,
                                       uint64_t batch)
{
    return ring == NULL ? 0 : stk_trace_open(ring, kind, batch);
}

/* End the event that was started last. */
static inline void stk_trace_end(struct stk_trace_ring *ring, stoker_trace_kind kind,
                                 uint64_t begin_ns, uint64_t batch, uint32_t first_row,
                                 uint32_t rows)
{
    if (ring != NULL)
        stk_trace_close(ring, &(stoker_trace_event){ .begin_ns = begin_ns,
                                                     .batch = batch,
                                                     .first_row = first_row,
                                                     .rows = rows,
                                                     .kind = (uint16_t)kind });
}

/* Drop the event that was started last. */
static inline void stk_trace_cancel(const struct stk_trace_ring *ring)
{
    if (ring != NULL)
        stk_nvtx_pop(ring->nvtx);
}

#endif
