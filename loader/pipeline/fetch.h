/* fetch.h - reads in flight: queue, submit, reap, take up again what came short.
 *
 *   FREE ──queue──▶ QUEUED ──submit──▶ IN FLIGHT ──reap──┬─ all bytes ─▶ row finished ─▶ FREE
 *                     ▲                                  ├─ failed ────▶ row failed ───▶ FREE
 *                     └──────── short, EINTR, EAGAIN ... ┘
 *
 * A read without progress is tried again STK_RETRIES_MAX times, slower and slower, then
 * once more by a blocking pread, and only then given up. A ring that breaks is replaced by pread.
 *
 * What a reader of the caller's own delivers, nobody else can: its reads are retried and continued by it
 * alone, its ring is replaced by another of its own, and what it does not deliver is a read error.
 *
 * A whole file is asked for with one byte more than it had when the data set was opened: one that
 * delivers more, or ends earlier, has changed. Short of its end it is read again from its start,
 * by one blocking call after the other on one descriptor, so that bytes of two files that had its
 * name in turn are never mixed. A name at which another file of the same length stands by now
 * delivers that one: whole, or not at all.
 */
#ifndef STK_PIPELINE_FETCH_H
#define STK_PIPELINE_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/worker.h"

enum { STK_RETRIES_MAX = 64 };

/* Queue the read for a row whose sample lies in a file. A free fetch must be there. */
void stk_fetch_queue(struct stk_worker *worker, struct stk_span *span, uint32_t row);

/* Submit what is queued. False: there is no ring any more, and the rows that needed one are lost. */
bool stk_fetch_submit(struct stk_worker *worker);

/* Complete what has arrived; waits up to wait_ns for the first. Ends between two rows if it must
 * (stk_worker_must_pause); the next call takes the others. */
void stk_fetch_reap(struct stk_worker *worker, int64_t wait_ns);

#endif
