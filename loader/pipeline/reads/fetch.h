/* fetch.h - the reads of one worker and its ring: queue, submit, reap, and continue short reads.
 *
 *   FREE ──queue──▶ QUEUED ──submit──▶ IN FLIGHT ──reap, next──┬─ all bytes ─▶ completion ──give back──▶ FREE
 *                     ▲                                        ├─ failed ────▶ completion ──give back──▶ FREE
 *                     └──────── short, EINTR, EAGAIN ... ──────┘
 *
 * It fills the memory that an order names and knows nothing of rows, caches and policies.
 *
 * A read without progress is retried STK_RETRIES_MAX times, more and more slowly, then once by a
 * blocking pread, and only then fails. A broken ring is replaced by pread.
 *
 * Only the caller's own reader, if there is one, may deliver its bytes: it alone retries and
 * continues its reads, a broken ring is replaced by another of its own, and what it does not
 * deliver is a read error.
 *
 * A whole file is read with one byte more than it had when the data set was opened: a longer or
 * shorter result means that it changed. A short read starts again from the beginning, with blocking
 * calls on one descriptor, so that bytes of two files that had the name in turn are never mixed. If
 * another file of the same length has the name now, it is delivered: whole, or not at all.
 */
#ifndef STK_PIPELINE_FETCH_H
#define STK_PIPELINE_FETCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/plan/pipeline.h"
#include "loader/pipeline/report/ledger.h"
#include "loader/pipeline/slots/span.h"

enum {
    STK_RETRIES_MAX = 64,
    /* Longest read of a run: what the reader hands out at once (STK_READ_GROUP_BYTES), and the
     * tokens behind it. */
    STK_RUN_BYTES_MAX = (128 << 10) + 64
};

struct stk_fetcher {
    struct stk_pipeline *pipeline;
    struct stk_ledger_entry *ledger;
    const stoker_reader *reader;   /* the pipeline's, or pread after a failure */
    void *ring;                    /* the reader's handle; NULL is allowed */
    bool has_ring;                 /* false: no ring is open */
    bool stuck;                    /* it did not close: the kernel may still write to our memory */
    uint32_t ring_failures;        /* in a row, without a completed read */
    _Atomic uint64_t locked_bytes; /* bytes of scratch that the ring has locked; read by stats */
    /* bytes of slots, which several rings may lock; read by stats */
    _Atomic uint64_t locked_slot_bytes;
    /* True in a built-in reader's system call: no user code runs meanwhile. */
    _Atomic bool in_system_call;
    struct stk_region scratch;
    struct stk_region wide_memory; /* for the reads of runs; not registered */
    uint8_t **wide; /* [wide_free] parts of it that are unused, STK_RUN_BYTES_MAX each */
    uint32_t wide_free;
    uint32_t run_rows;         /* rows of runs that are held, less one for each run */
    struct stk_fetch *fetches; /* [count] */
    uint32_t count;            /* 0 = it never reads */
    struct stk_fetch *free;
    struct stk_fetch *lost; /* no ring is left to read them */
    stoker_read **queue;    /* reads to submit next */
    stoker_read **reaped;
    uint32_t queued;
    uint32_t in_flight; /* reads submitted and not yet processed; includes reaped and lost ones */
    uint32_t reaped_next, reaped_count; /* reaped[next..count): finished, not yet processed */
};

/* Allocate the memory; no ring yet. Without `reads` it never reads. Returns 0 or STOKER_ENOMEM;
 * destroy either way. */
int stk_fetcher_init(struct stk_fetcher *fetcher, struct stk_pipeline *pipeline,
                     struct stk_ledger_entry *ledger, bool reads);
void stk_fetcher_destroy(struct stk_fetcher *fetcher); /* not if stuck; all zero is allowed */

/* Memory that reads take, bytes. */
static inline uint64_t stk_fetch_memory_bytes(const struct stk_fetcher *fetcher)
{
    return fetcher->scratch.bytes + fetcher->wide_memory.bytes;
}

/* Number of reads that are queued or in flight; of a run, as many as its rows would need. */
static inline uint32_t stk_fetch_held(const struct stk_fetcher *fetcher)
{
    return fetcher->queued + fetcher->in_flight + fetcher->run_rows;
}

/* Returns true if all reads of another row may be queued. */
static inline bool stk_fetch_has_room(const struct stk_fetcher *fetcher)
{
    return fetcher->count == 0 || stk_fetch_held(fetcher) < fetcher->pipeline->read_depth;
}

/* Returns true if there is memory for the read of a run. If not, runs are being read. */
static inline bool stk_fetch_has_wide(const struct stk_fetcher *fetcher)
{
    return fetcher->wide_free > 0;
}

/* Queue a read. There must be room. */
void stk_fetch_queue(struct stk_fetcher *fetcher, const struct stk_read_order *order);

/* Submit the queue. Returns the number of reads that the ring took. Without any ring, all reads
 * fail: they are in flight until next() has returned them. */
uint32_t stk_fetch_submit(struct stk_fetcher *fetcher);

/* Wait up to wait_ns for finished reads, unless some are left; *reaped is the number that came.
 * Returns true if next() has any. */
bool stk_fetch_reap(struct stk_fetcher *fetcher, int64_t wait_ns, uint32_t *reaped);

/* Take the next finished read; false if there is none. completion->span is NULL if the read
 * continues. Otherwise it is the caller's until stk_fetch_give_back(). */
bool stk_fetch_next(struct stk_fetcher *fetcher, struct stk_completion *completion);
void stk_fetch_give_back(struct stk_fetcher *fetcher, struct stk_fetch *fetch);

#endif
