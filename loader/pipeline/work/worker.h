/* worker.h - a thread with its own reader ring, and the only loop of the pipeline: claims spans,
 * begins their rows, reads what rows need, and hands them what was read.
 *
 *   claim spans, begin rows until the read window is full ─▶ submit as one batch
 *        ▲                                                        │
 *        └── rows done or begun again, span counted down ◀── reap in any order
 *
 * It calls claim, row and fetch; none of them calls another, or the worker.
 * Workers share only the pipeline. `workers = 0` is one worker without a thread: the
 * consumer runs it inside next().
 */
#ifndef STK_PIPELINE_WORKER_H
#define STK_PIPELINE_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/plan/pipeline.h"
#include "loader/pipeline/reads/fetch.h"
#include "loader/pipeline/report/ledger.h"
#include "loader/pipeline/report/trace.h"
#include "loader/pipeline/rows/row.h"
#include "loader/pipeline/work/claim.h"
#include "loader/pipeline/work/consumer_cpu.h"

#define STK_CLOSE_WAIT_NS                                                                          \
    INT64_C(5000000000) /* longest wait for a device to finish with our buffers at destroy */

/* A row to be begun again: its sample is a substitute, or the run that it was in has failed. */
struct stk_again {
    struct stk_span *span;
    uint32_t row;
};

struct stk_worker {
    struct stk_pipeline *pipeline;
    uint32_t index;
    struct stk_claimer claimer;
    struct stk_row_maker maker;
    struct stk_fetcher fetcher;
    struct stk_span *starting; /* claimed, with rows not started yet; or NULL */
    struct stk_span *ahead;  /* claimed after `starting`, to fetch its first rows early; or NULL */
    struct stk_again *again; /* [claimer.row_count], each row once; empty while new rows begin */
    uint32_t again_count;
    uint64_t mark_ns; /* end of the last activity that the ledger has counted */
    struct stk_cpu_checks cpu_checks;
    uint64_t deadline_ns; /* without a thread: when next() must return; UINT64_MAX = no limit */
    bool stuck;           /* its thread was abandoned in a system call */

    struct stk_ledger_entry ledger;
    struct stk_trace_ring *trace; /* ring of the thread that runs this worker; NULL = no tracing */

    pthread_t thread;
    pid_t kernel_thread; /* valid once `life` is RUNNING */
    uint64_t demand_ns;  /* CPU time at the consumer's last check; used by the consumer only */
    bool started;
    _Atomic uint32_t life; /* futex: STK_WORKER_* */
    int start_rc;
    stoker_error start_error;
};

enum { STK_WORKER_STARTING, STK_WORKER_RUNNING, STK_WORKER_GONE };

/* Allocate the worker's memory; no thread, no ring yet. A worker that never reads can run only
 * while the pipeline is resident. Returns 0 or STOKER_ENOMEM; on failure nothing stays
 * allocated. */
int stk_worker_init(struct stk_worker *worker, struct stk_pipeline *pipeline, uint32_t index,
                    bool reads);

/* Free the worker; its thread must have ended. A stuck worker's memory is never freed. */
void stk_worker_destroy(struct stk_worker *worker);

/* Returns true if its thread, or its ring, did not come back: the kernel may still write to its
 * memory. */
static inline bool stk_worker_is_stuck(const struct stk_worker *worker)
{
    return worker->stuck || worker->fetcher.stuck;
}

/* Start the thread; stk_worker_wait_started then returns whether its ring opened. */
int stk_worker_start(struct stk_worker *worker);
int stk_worker_wait_started(struct stk_worker *worker, stoker_error *error);

/* CPU time that its thread has used, ns; 0 without a thread. A system call. Any thread, while the
 * worker is not being joined. */
uint64_t stk_worker_cpu_ns(const struct stk_worker *worker);

/* CPU time that its thread has used, plus the time it was ready while others had the CPUs, ns. The
 * second counts for at most four times the first: a thread that sleeps and wakes often queues for a
 * CPU each time, and needs little of it. */
uint64_t stk_worker_demand_ns(const struct stk_worker *worker);

/* Wait for the thread to end. Returns false if at deadline_ns it was stuck in a built-in reader's
 * system call; it is then abandoned. There is no limit while the thread runs user code (codec, data
 * set, reader). */
bool stk_worker_join(struct stk_worker *worker, uint64_t deadline_ns);

/* Without a thread: work until the batch is ready. If every sample is read, reads for later batches
 * start, too, and continue after the return. Returns false if the batch is not ready by
 * deadline_ns, which is checked between rows; each call does at least one. *now_ns is the time at
 * the call and becomes the time at the return: reading the clock costs as much as several rows of
 * MNIST, so it is read once. */
bool stk_worker_make_batch(struct stk_worker *worker, uint64_t batch, uint64_t deadline_ns,
                           uint64_t *now_ns);

/* Do one span in the caller's thread, beside workers that have threads. Nothing may be read any
 * more. A new span is claimed only if `may_claim`. Returns false if there was none or it is not
 * done by deadline_ns. A span claimed early stays claimed, and must be done before its batch can be
 * waited for. now_ns as above. */
bool stk_worker_help(struct stk_worker *worker, bool may_claim, uint64_t deadline_ns,
                     uint64_t *now_ns);
bool stk_worker_holds_span(const struct stk_worker *worker);

#endif
