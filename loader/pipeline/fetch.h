/* fetch.h - reads in flight: queue, submit, reap, and continue what came short.
 *
 *   FREE ──queue──▶ QUEUED ──submit──▶ IN FLIGHT ──reap──┬─ all bytes ─▶ row finished ─▶ FREE
 *                     ▲                                  ├─ failed ────▶ row failed ───▶ FREE
 *                     └──────── short, EINTR, EAGAIN ... ┘
 *
 * A read without progress is retried STK_RETRIES_MAX times, more and more slowly, then once by a blocking pread, and
 * only then fails. A broken ring is replaced by pread.
 *
 * Only the caller's own reader, if there is one, may deliver its bytes: it alone retries and continues its reads, a
 * broken ring is replaced by another of its own, and what it does not deliver is a read error.
 *
 * A whole file is read with one byte more than it had when the data set was opened: a longer or shorter result means
 * that it changed. A short read starts again from the beginning, with blocking calls on one descriptor, so that bytes
 * of two files that had the name in turn are never mixed. If another file of the same length has the name now, it is
 * delivered: whole, or not at all.
 */
#ifndef STK_PIPELINE_FETCH_H
#define STK_PIPELINE_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/worker.h"

enum { STK_RETRIES_MAX = 64 };

/* Queue the read for a row whose sample is in a file. A fetch must be free. */
void stk_fetch_queue(struct stk_worker *worker, struct stk_span *span, uint32_t row);

/* Submit the queue. Returns false if there is no ring any more: the rows that needed one have failed. */
bool stk_fetch_submit(struct stk_worker *worker);

/* Complete the rows whose reads have finished; waits up to wait_ns for the first. Stops between two rows if
 * stk_worker_must_pause(); the next call continues. */
void stk_fetch_reap(struct stk_worker *worker, int64_t wait_ns);

#endif
