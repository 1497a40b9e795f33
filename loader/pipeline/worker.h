/* worker.h - a thread with its own reader ring: claims spans, reads, decodes, converts.
 *
 *   claim spans until the read window is full ─▶ submit as one batch
 *        ▲                                            │
 *        └── rows done, span counted down ◀── reap in any order
 *
 * Workers share only the pipeline. `workers = 0` is one worker without a thread: the
 * consumer runs it inside next().
 */
#ifndef STK_PIPELINE_WORKER_H
#define STK_PIPELINE_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/base/clock.h"
#include "loader/pipeline/codecs.h"
#include "loader/pipeline/ledger.h"
#include "loader/pipeline/pace.h"
#include "loader/pipeline/pipeline.h"
#include "loader/pipeline/trace.h"

#define STK_CLOSE_WAIT_NS                                                                          \
    INT64_C(5000000000) /* longest wait for a device to finish with our buffers at destroy */

/* A ticket, or parts of one, in progress. */
struct stk_span {
    bool active;
    bool resident;     /* every row is in memory as stored, at sources[]; samples[] is unused */
    bool on_device;    /* resident in GPU memory: nothing to do on the host */
    uint32_t capacity; /* rows that fit, in whole parts of a ticket */
    uint32_t parts;    /* parts of the ticket that the span holds */
    uint64_t batch;
    struct stk_slot *slot;
    uint64_t epoch;
    uint64_t position;  /* position of row first_row in the epoch */
    uint32_t first_row; /* its first row's number in the batch */
    uint32_t rows;
    uint32_t started;       /* rows started, in order */
    uint32_t left;          /* rows not complete yet */
    const void **sources;   /* resident: address of each row, then of the next span's first */
    stoker_sample *samples; /* not resident: where each row is stored */
    uint8_t *attempts;      /* substitutes tried, per row */
};

/* A read in flight. */
struct stk_fetch {
    stoker_read read; /* first member: the reader returns its address */
    struct stk_fetch *next_free;
    struct stk_span *span;
    uint32_t row;    /* number in the span */
    uint8_t *start;  /* destination of byte 0 */
    uint64_t offset; /* byte 0 in the file */
    uint32_t total_bytes;
    uint32_t done_bytes;
    uint32_t retries;    /* in a row, without progress */
    uint32_t block_rows; /* > 0: fills a cache block of this many samples */
    uint8_t *scratch;    /* this fetch's own, pipeline->encoded_bytes_max bytes */
};

struct stk_worker {
    struct stk_pipeline *pipeline;
    uint32_t index;
    const stoker_reader *reader;   /* the pipeline's, or pread after a failure */
    void *ring;                    /* the reader's handle; NULL is allowed */
    _Atomic uint64_t locked_bytes; /* bytes of scratch that its ring has locked; read by stats */
    bool has_ring;                 /* false: no ring is open */
    uint32_t ring_failures;        /* in a row, without a completed read */
    struct stk_region scratch;
    uint8_t *row; /* one decoded row or image, inside scratch or image_scratch */
    /* Images before the transform; only as many pages as the largest image needs are touched. */
    struct stk_region image_scratch;
    void *transform;           /* scratch of the transform plan, inside image_scratch */
    struct stk_fetch *fetches; /* [read_depth + 1]: a row that fails still holds its own fetch
                                  while its substitute needs one */
    uint32_t fetch_count;
    struct stk_fetch *free_fetches;
    stoker_read **queue; /* reads to submit next */
    stoker_read **reaped;
    uint32_t queued;
    uint32_t in_flight; /* reads submitted and not yet processed; includes reaped ones */
    uint32_t reaped_next, reaped_count; /* reaped[next..count): finished, not yet processed */
    struct stk_span *spans;
    uint32_t span_count;
    const void **sources;      /* for all spans */
    stoker_sample *samples;    /* for all spans */
    uint8_t *attempts;         /* for all spans */
    struct stk_span *starting; /* claimed, with rows not started yet; or NULL */
    struct stk_span *ahead; /* claimed after `starting`, to fetch its first rows early; or NULL */
    struct stk_pace pace;   /* parts of a ticket that it takes next */
    struct stk_sampler_order order; /* keys of the epoch it last worked in */
    bool has_order;
    uint64_t mark_ns;       /* end of the last activity that the ledger has counted */
    uint64_t clear_ns;      /* next check if it shares the consumer's CPU */
    uint64_t clear_wait_ns; /* from that check to the one after it */
    struct stk_codecs codecs;
    bool stuck;           /* its ring did not close: the kernel may still write to its memory */
    uint64_t deadline_ns; /* without a thread: when next() must return; UINT64_MAX = no limit */
    /* True in a built-in reader's system call: no user code runs meanwhile. */
    _Atomic bool in_system_call;

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

/* Returns true if the worker must stop between two rows: the loader is being destroyed, or the deadline of a
 * next() without threads has passed. Started rows stay started; a later call continues there. */
static inline bool stk_worker_must_pause(const struct stk_worker *worker)
{
    return atomic_load_explicit(&worker->pipeline->slots.stopping, memory_order_relaxed) ||
           (worker->deadline_ns != UINT64_MAX && stk_now_ns() >= worker->deadline_ns);
}

/* Enter and leave a reader call. During a built-in reader's call the thread may be abandoned: when the call
 * returns, the thread checks `stopping` before it runs user code. seq_cst: pairs with stk_slots_stop, which
 * sets stopping, and stk_worker_join, which then reads in_system_call. */
static inline void stk_worker_enter_reader(struct stk_worker *worker)
{
    if (!worker->pipeline->reader_own)
        atomic_store_explicit(&worker->in_system_call, true, memory_order_relaxed);
}

static inline void stk_worker_leave_reader(struct stk_worker *worker)
{
    if (!worker->pipeline->reader_own)
        atomic_store(&worker->in_system_call, false);
}

/* The counter of the time in which rows are made; resident ones need no decoding any more. */
static inline _Atomic uint64_t *stk_worker_making_ns(struct stk_worker *worker, bool resident)
{
    const bool decodes = worker->pipeline->decodes && !resident;
    return decodes ? &worker->ledger.decode_ns : &worker->ledger.convert_ns;
}

enum { STK_WORKER_STARTING, STK_WORKER_RUNNING, STK_WORKER_GONE };

/* Allocate the worker's memory; no thread, no ring yet. A worker that never reads can run only while the
 * pipeline is resident. Returns 0 or STOKER_ENOMEM; on failure nothing stays allocated. */
int stk_worker_init(struct stk_worker *worker, struct stk_pipeline *pipeline, uint32_t index,
                    bool reads);

/* Free the worker; its thread must have ended. A stuck worker's memory is never freed. */
void stk_worker_destroy(struct stk_worker *worker);

/* Start the thread; stk_worker_wait_started then returns whether its ring opened. */
int stk_worker_start(struct stk_worker *worker);
int stk_worker_wait_started(struct stk_worker *worker, stoker_error *error);

/* CPU time that its thread has used, ns; 0 without a thread. A system call. Any thread, while the worker
 * is not being joined. */
uint64_t stk_worker_cpu_ns(const struct stk_worker *worker);

/* CPU time that its thread has used, plus the time it was ready while others had the CPUs, ns. The second
 * counts for at most four times the first: a thread that sleeps and wakes often queues for a CPU each
 * time, and needs little of it. */
uint64_t stk_worker_demand_ns(const struct stk_worker *worker);

/* Wait for the thread to end. Returns false if at deadline_ns it was stuck in a built-in reader's system call;
 * it is then abandoned. There is no limit while the thread runs user code (codec, data set, reader). */
bool stk_worker_join(struct stk_worker *worker, uint64_t deadline_ns);

/* Without a thread: open the ring in the calling thread. */
int stk_worker_open_ring(struct stk_worker *worker, stoker_error *error);

/* Without a thread: work until the batch is ready. If every sample is read, reads for later batches start,
 * too, and continue after the return. Returns false if the batch is not ready by deadline_ns, which is
 * checked between rows; each call does at least one. *now_ns is the time at the call and becomes the time
 * at the return: reading the clock costs as much as several rows of MNIST, so it is read once. */
bool stk_worker_make_batch(struct stk_worker *worker, uint64_t batch, uint64_t deadline_ns,
                           uint64_t *now_ns);

/* Without a thread, beside workers that have one, once nothing is read any more: do one span; claims a new
 * one only if `may_claim`. Returns false if there was none or it is not done by deadline_ns. A span claimed
 * early stays claimed, and must be done before its batch can be waited for. now_ns as above. */
bool stk_worker_help(struct stk_worker *worker, bool may_claim, uint64_t deadline_ns,
                     uint64_t *now_ns);
bool stk_worker_holds_span(const struct stk_worker *worker);

/* Close the ring, waiting for reads in flight; sets stuck if some never come back. */
void stk_worker_close_ring(struct stk_worker *worker, int64_t wait_ns);

#endif
