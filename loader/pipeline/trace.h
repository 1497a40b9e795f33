/* trace.h - what each thread did, kept in a ring of its own until somebody takes it.
 *
 *   its thread ──record──▶ | . . e e e e . . | ──take──▶ whoever asks, one at a time
 *                          taken ▲     ▲ recorded
 *
 * A ring has one writer and, under the lock, one reader, so neither waits for the other. One
 * that is full drops what comes and counts it. Without tracing and without an NVTX tool there
 * are no rings: a thread's pointer is NULL, and that is all that its spans look at.
 */
#ifndef STK_PIPELINE_TRACE_H
#define STK_PIPELINE_TRACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stoker/trace.h>

#include "loader/base/memory.h"
#include "loader/pipeline/nvtx.h"

struct stk_trace_ring {
    _Alignas(STK_CACHE_LINE) _Atomic uint64_t recorded; /* release pairs with acquire in take */
    _Atomic uint64_t dropped;                           /* relaxed: a sum, never a signal */
    stoker_trace_event *events;                         /* capacity of them; from here on fixed */
    uint64_t capacity;                                  /* a power of two; 0 = NVTX alone */
    const struct stk_nvtx *nvtx;
    uint16_t thread;
    _Alignas(STK_CACHE_LINE) _Atomic uint64_t taken; /* release pairs with acquire in record */
};

struct stk_trace {
    struct stk_trace_ring *rings; /* NULL = nobody listens; [0] is the consumer's */
    uint32_t ring_count;
    struct stk_region memory; /* the events of all rings */
    struct stk_nvtx nvtx;
    pthread_mutex_t lock; /* held by who takes; made if there are rings */
};

/* One ring for the consumer and one for each of `workers` threads, of at least `events` each;
 * 0 = none, unless an NVTX tool listens. 0 or STOKER_ENOMEM. */
int stk_trace_init(struct stk_trace *trace, uint32_t workers, uint32_t events);
void stk_trace_destroy(struct stk_trace *trace); /* all zero is allowed */

/* The ring of a thread, or NULL: 0 = the consumer's, n = worker n, from 1. */
static inline struct stk_trace_ring *stk_trace_ring_of(const struct stk_trace *trace,
                                                       uint32_t thread)
{
    return trace->rings == NULL ? NULL : &trace->rings[thread];
}

/* stoker_loader_trace() once it knows that there is something to take. */
void stk_trace_take(struct stk_trace *trace, stoker_trace *out);

/* ---- the thread that the ring belongs to ---- */

uint64_t stk_trace_open(const struct stk_trace_ring *ring, stoker_trace_kind kind, uint64_t batch);
void stk_trace_close(struct stk_trace_ring *ring, const stoker_trace_event *event);

/* Something begins; returns when, for stk_trace_end. Pairs nest. */
static inline uint64_t stk_trace_begin(const struct stk_trace_ring *ring, stoker_trace_kind kind,
                                       uint64_t batch)
{
    return ring == NULL ? 0 : stk_trace_open(ring, kind, batch);
}

/* What began last ends. */
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

/* What began last came to nothing: it is not told. */
static inline void stk_trace_cancel(const struct stk_trace_ring *ring)
{
    if (ring != NULL)
        stk_nvtx_pop(ring->nvtx);
}

#endif
