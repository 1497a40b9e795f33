/* worker.h - one thread with one ring: claims spans, reads, decodes, converts.
 *
 *   claim spans until the read window is full ─▶ submit as one batch
 *        ▲                                            │
 *        └── rows done, span counted down ◀── reap in any order
 *
 * A worker shares nothing with the others but the pipeline. `workers = 0` is one worker
 * without a thread: the consumer runs it inside next().
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
    INT64_C(5000000000) /* how long a device may keep our buffers at the end */

/* A ticket being worked on. */
struct stk_span {
    bool active;
    bool resident; /* every row is in memory as stored: rows[] tells where, samples[] is unused */
    bool kept;     /* resident, and that memory is the GPU's: there is nothing to be made here */
    uint32_t capacity; /* rows that it has room for; parts of a ticket, whole ones */
    uint32_t parts;    /* of the ticket that it took */
    uint64_t batch;
    struct stk_slot *slot;
    uint64_t epoch;
    uint64_t position;  /* of row first_row in the epoch */
    uint32_t first_row; /* in the batch */
    uint32_t rows;
    uint32_t started;       /* rows begun, in order */
    uint32_t left;          /* rows not complete yet */
    const void **sources;   /* resident: each row, then the first of the next span */
    stoker_sample *samples; /* else: where each row lies */
    uint8_t *attempts;      /* substitutes tried, per row */
};

/* A read on its way. */
struct stk_fetch {
    stoker_read read; /* first: the reader hands back its address */
    struct stk_fetch *next_free;
    struct stk_span *span;
    uint32_t row;    /* in the span */
    uint8_t *start;  /* where byte 0 goes */
    uint64_t offset; /* of byte 0 in the file */
    uint32_t total_bytes;
    uint32_t done_bytes;
    uint32_t retries;    /* since the last progress */
    uint32_t block_rows; /* > 0: fills a cache block of that many samples */
    uint8_t *scratch;    /* this fetch's own, pipeline->encoded_bytes_max bytes */
};

struct stk_worker {
    struct stk_pipeline *pipeline;
    uint32_t index;
    const stoker_reader *reader;   /* the pipeline's, or pread after a failure */
    void *ring;                    /* the reader's own; NULL is allowed */
    _Atomic uint64_t locked_bytes; /* of its scratch, by its ring; read by stats */
    bool has_ring;                 /* else there is nothing to read from */
    uint32_t ring_failures;        /* since the last read that came back */
    struct stk_region scratch;
    uint8_t *row; /* one decoded row or image, inside scratch or image_scratch */
    struct stk_region
        image_scratch;         /* where images are transformed: touched as far as they are large */
    void *transform;           /* scratch of the transform plan, inside image_scratch */
    struct stk_fetch *fetches; /* one more than read_depth: a row that fails while its own
                                     fetch is still held needs another for its substitute */
    uint32_t fetch_count;
    struct stk_fetch *free_fetches;
    stoker_read **queue; /* reads to submit next */
    stoker_read **reaped;
    uint32_t queued;
    uint32_t in_flight; /* reads that are submitted and not yet taken: reaped ones are among them */
    uint32_t reaped_next, reaped_count; /* of reaped[]: those between are finished, and not taken */
    struct stk_span *spans;
    uint32_t span_count;
    const void **sources;           /* of all spans */
    stoker_sample *samples;         /* of all spans */
    uint8_t *attempts;              /* of all spans */
    struct stk_span *starting;      /* claimed, and not all of its rows are begun; or NULL */
    struct stk_span *ahead;         /* claimed after it, to fetch its first rows early; or NULL */
    struct stk_pace pace;           /* how many parts of a ticket it takes next */
    struct stk_sampler_order order; /* of the epoch it last worked in */
    bool has_order;
    uint64_t mark_ns;       /* when the last thing that the ledger knows of ended */
    uint64_t clear_ns;      /* not before then does it look again whether it stands clear, */
    uint64_t clear_wait_ns; /* and how long it waits after that */
    struct stk_codecs codecs;
    bool stuck;           /* its ring would not close: its memory is not ours to free */
    uint64_t deadline_ns; /* without a thread: when next has to return; UINT64_MAX = no limit */
    _Atomic bool in_system_call; /* of a built-in reader: nothing of the user's runs meanwhile */

    struct stk_ledger_entry ledger;
    struct stk_trace_ring *trace; /* of the thread that runs this worker; NULL = nobody listens */

    pthread_t thread;
    pid_t kernel_thread; /* known once its life is RUNNING */
    uint64_t demand_ns;  /* of CPU time, at the consumer's last look; the consumer's own */
    bool started;
    _Atomic uint32_t life; /* futex: STK_WORKER_* */
    int start_rc;
    stoker_error start_error;
};

/* Returns true if the worker must stop between two rows: the loader is being destroyed, or the time of a
 * next without threads is over. What is begun stays begun, and a later call continues there. */
static inline bool stk_worker_must_pause(const struct stk_worker *worker)
{
    return atomic_load_explicit(&worker->pipeline->slots.stopping, memory_order_relaxed) ||
           (worker->deadline_ns != UINT64_MAX && stk_now_ns() >= worker->deadline_ns);
}

/* Enter and leave a call of the reader. While a built-in one is in it, the thread may be given up: when it
 * comes back it looks at `stopping` before it calls anything of the user's. seq_cst: its partner, stopping
 * and then in_system_call, is in stk_slots_stop and stk_worker_join. */
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

/* Take the worker's memory; no thread, no ring yet. One that never reads works only while the pipeline
 * is resident. 0 or STOKER_ENOMEM; on failure all is given back. */
int stk_worker_init(struct stk_worker *worker, struct stk_pipeline *pipeline, uint32_t index,
                    bool reads);

/* Free it. The thread must be gone; a stuck worker keeps its memory for good. */
void stk_worker_destroy(struct stk_worker *worker);

/* Start the thread; stk_worker_wait_started then tells whether its ring opened. */
int stk_worker_start(struct stk_worker *worker);
int stk_worker_wait_started(struct stk_worker *worker, stoker_error *error);

/* CPU time that its thread has used; 0 without a thread. A system call. Any thread, while the worker
 * is not being joined. */
uint64_t stk_worker_cpu_ns(const struct stk_worker *worker);

/* CPU time that its thread has used or was ready to use while others had the CPUs. Of the latter at
 * most four times the former counts: a thread that sleeps and wakes often waits for a CPU each
 * time, and needs little of it. */
uint64_t stk_worker_demand_ns(const struct stk_worker *worker);

/* Wait for the thread to end. False: at deadline_ns it was stuck in a system call of a built-in reader, and
 * is given up. A thread in the user's own code (codec, data set, reader) is waited for without limit. */
bool stk_worker_join(struct stk_worker *worker, uint64_t deadline_ns);

/* Without a thread: open the ring in the calling thread. */
int stk_worker_open_ring(struct stk_worker *worker, stoker_error *error);

/* Without a thread: work until the batch is ready. Where every sample is read, reads for later batches
 * are begun as well, and go on after the return. False = not by deadline_ns, which is looked at between
 * rows; each call does at least one. *now_ns is the time
 * at the call and becomes the time at the return: a look at the clock costs as much as
 * several rows of MNIST, so nobody looks twice. */
bool stk_worker_make_batch(struct stk_worker *worker, uint64_t batch, uint64_t deadline_ns,
                           uint64_t *now_ns);

/* Without a thread, beside workers that have one, and only where nothing is read any more: do one span,
 * a further one only if it may. False: there was none, or it is not done by deadline_ns. What it claimed early it still holds
 * afterwards, and whoever waits for a batch must have it done first. now_ns as above. */
bool stk_worker_help(struct stk_worker *worker, bool may_claim, uint64_t deadline_ns,
                     uint64_t *now_ns);
bool stk_worker_holds_span(const struct stk_worker *worker);

/* Close the ring, waiting for reads in flight; sets stuck if some never come back. */
void stk_worker_close_ring(struct stk_worker *worker, int64_t wait_ns);

#endif
