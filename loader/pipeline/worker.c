/* worker.c - see worker.h. */
#include "loader/pipeline/worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/base/thread.h"
#include "loader/pipeline/fetch.h"
#include "loader/pipeline/row.h"
#include "loader/reader/registered.h"

#define REAP_WAIT_NS INT64_C(20000000) /* longest time until a worker notices that it must stop */

/* When a worker checks if it shares the consumer's CPU, nanoseconds. */
#define CLEAR_LOOK_NS     UINT64_C(100000)
#define CLEAR_AGAIN_NS    UINT64_C(500000)
#define CLEAR_WAIT_MAX_NS UINT64_C(500000000)

enum {
    SPANS_MAX = 64,
    DEMAND_QUEUE = 4,
    FIXED_SCRATCH_BYTES = 16 << 20 /* a ring that registers more holds all of it in memory; without
                                      registration only the used pages are */
};

/* ---- memory ---- */

/* Number of spans. With whole tickets: one started and one claimed ahead. If workers take tickets in
 * parts, the reads in flight belong to more spans, each with room for a few parts. */
enum { WHOLE_SPANS = 2 };

/* Rows of a span that takes parts of tickets. */
static uint32_t small_span_rows(const struct stk_pipeline *pipeline)
{
    const struct stk_schedule *schedule = &pipeline->schedule;
    const uint32_t parts =
        pipeline->read_depth / ((SPANS_MAX - WHOLE_SPANS) * schedule->part_rows) + 1;
    return parts < schedule->span_parts ? parts * schedule->part_rows : schedule->span_rows;
}

static uint32_t span_count(const struct stk_pipeline *pipeline)
{
    const uint32_t spans = pipeline->read_depth / small_span_rows(pipeline) + WHOLE_SPANS;
    return spans < SPANS_MAX ? spans : SPANS_MAX;
}

static uint32_t span_capacity(const struct stk_pipeline *pipeline, uint32_t index)
{
    return index < WHOLE_SPANS ? pipeline->schedule.span_rows : small_span_rows(pipeline);
}

static size_t count_rows(const struct stk_worker *worker)
{
    size_t rows = 0;
    for (uint32_t i = 0; i < worker->span_count; i++)
        rows += span_capacity(worker->pipeline, i);
    return rows;
}

/* Give each span its share of the arrays. */
static void share_out_rows(struct stk_worker *worker)
{
    size_t rows = 0;
    for (uint32_t i = 0; i < worker->span_count; i++) {
        struct stk_span *span = &worker->spans[i];
        span->capacity = span_capacity(worker->pipeline, i);
        /* Room for a span's rows and for the first rows of the next. */
        span->sources = worker->sources + rows + (size_t)i * STK_AHEAD_ROWS_MAX;
        span->samples = worker->samples + rows;
        span->attempts = worker->attempts + rows;
        rows += span->capacity;
    }
}

/* Not in the scratch, which a ring may page-lock: most of the memory reserved for the largest image is
 * never touched. */
static int map_image_scratch(struct stk_worker *worker)
{
    const struct stk_pipeline *pipeline = worker->pipeline;
    if (!pipeline->transforms)
        return 0;
    const size_t plan_bytes = (stk_transform_scratch_bytes(&pipeline->transform) + 63) / 64 * 64;
    const size_t image_bytes =
        pipeline->any_size ? pipeline->image_bytes_max + STK_IMAGE_SLACK_BYTES : 0;
    int rc = stk_region_map(&worker->image_scratch, plan_bytes + image_bytes);
    if (rc < 0)
        return rc;
    worker->transform = worker->image_scratch.base;
    if (pipeline->any_size)
        worker->row = (uint8_t *)worker->image_scratch.base + plan_bytes;
    return 0;
}

static int take_memory(struct stk_worker *worker, bool reads)
{
    const struct stk_pipeline *pipeline = worker->pipeline;
    /* A whole file is read with one extra byte, to notice that it has grown. */
    const size_t longest = pipeline->encoded_bytes_max + pipeline->dataset->info.has_paths;
    const size_t encoded = reads ? (longest + 63) / 64 * 64 : 0;
    worker->fetch_count = encoded > 0 ? pipeline->read_depth + 1 : 0;
    worker->span_count = span_count(pipeline);
    worker->spans = stk_calloc(worker->span_count, sizeof(worker->spans[0]));
    const size_t rows = count_rows(worker);
    const size_t sources = rows + (size_t)worker->span_count * STK_AHEAD_ROWS_MAX;
    worker->sources = stk_calloc(sources, sizeof(worker->sources[0]));
    worker->samples = stk_calloc(rows, sizeof(worker->samples[0]));
    worker->attempts = stk_calloc(rows, sizeof(worker->attempts[0]));
    worker->fetches = stk_calloc(worker->fetch_count + 1, sizeof(worker->fetches[0]));
    worker->queue = stk_calloc(worker->fetch_count + 1, sizeof(worker->queue[0]));
    worker->reaped = stk_calloc(worker->fetch_count + 1, sizeof(worker->reaped[0]));
    if (worker->spans == NULL || worker->sources == NULL || worker->samples == NULL ||
        worker->attempts == NULL || worker->fetches == NULL || worker->queue == NULL ||
        worker->reaped == NULL || stk_codecs_init(&worker->codecs) < 0)
        return STOKER_ENOMEM;
    share_out_rows(worker);

    int rc = stk_region_map(&worker->scratch,
                            worker->fetch_count * encoded + pipeline->dataset->row_bytes);
    if (rc == 0)
        rc = map_image_scratch(worker);
    if (rc < 0)
        return rc;
    uint8_t *base = worker->scratch.base;
    for (uint32_t i = 0; i < worker->fetch_count; i++) {
        worker->fetches[i].scratch = base + i * encoded;
        worker->fetches[i].next_free = worker->free_fetches;
        worker->free_fetches = &worker->fetches[i];
    }
    if (worker->row == NULL)
        worker->row = base + worker->fetch_count * encoded;
    return 0;
}

int stk_worker_init(struct stk_worker *worker, struct stk_pipeline *pipeline, uint32_t index,
                    bool reads)
{
    memset(worker, 0, sizeof(*worker));
    worker->pipeline = pipeline;
    worker->index = index;
    worker->reader = pipeline->reader;
    worker->deadline_ns = UINT64_MAX;
    int rc = take_memory(worker, reads);
    if (rc < 0)
        stk_worker_destroy(worker);
    return rc;
}

void stk_worker_destroy(struct stk_worker *worker)
{
    if (worker->stuck)
        return; /* the kernel may still write to the scratch */
    stk_codecs_destroy(&worker->codecs);
    stk_region_unmap(&worker->scratch);
    stk_region_unmap(&worker->image_scratch);
    stk_free(worker->spans);
    stk_free(worker->sources);
    stk_free(worker->samples);
    stk_free(worker->attempts);
    stk_free(worker->fetches);
    stk_free(worker->queue);
    stk_free(worker->reaped);
    memset(worker, 0, sizeof(*worker));
}

/* ---- the ring ---- */

int stk_worker_open_ring(struct stk_worker *worker, stoker_error *error)
{
    const struct stk_pipeline *pipeline = worker->pipeline;
    if (pipeline->encoded_bytes_max == 0)
        return 0; /* nothing will ever be read */
    const bool fixed = worker->scratch.bytes <= FIXED_SCRATCH_BYTES;
    const bool straight = pipeline->copies && pipeline->slots.memory.locked; /* pinned anyhow */
    const stoker_reader_setup setup = {
        .files = pipeline->files,
        .file_count = pipeline->dataset->info.file_count,
        .directory =
            pipeline->dataset->info.has_paths ? pipeline->dataset->info.directory : AT_FDCWD,
        .depth = pipeline->read_depth,
        .scratch = fixed ? worker->scratch.base : NULL,
        .scratch_bytes = fixed ? worker->scratch.bytes : 0,
        .slots = straight ? pipeline->slots.memory.base : NULL,
        .slots_bytes = straight ? pipeline->slots.memory.bytes : 0,
        .any_thread = pipeline->any_thread,
    };
    int rc = worker->reader->open(&worker->ring, &setup, error);
    if (rc < 0 && !pipeline->reader_forced && worker->reader != &stoker_reader_pread) {
        /* A ring can fail on one thread although the others opened theirs. */
        worker->reader = &stoker_reader_pread;
        atomic_fetch_add(&worker->pipeline->pread_workers, 1U); /* once: pread has no fallback */
        rc = worker->reader->open(&worker->ring, &setup, error);
    }
    worker->has_ring = rc == 0;
    if (rc == 0 && worker->reader == &stoker_reader_uring)
        atomic_store_explicit(&worker->locked_bytes,
                              stk_uring_registered_bytes(worker->ring, worker->scratch.base),
                              memory_order_relaxed);
    return rc > 0 ? STOKER_EREADER : rc; /* open() knows no normal stop */
}

void stk_worker_close_ring(struct stk_worker *worker, int64_t wait_ns)
{
    if (!worker->has_ring)
        return;
    stk_worker_enter_reader(worker);
    if (worker->reader->close(worker->ring, wait_ns) != 0)
        worker->stuck = true;
    stk_worker_leave_reader(worker);
    worker->has_ring = false;
    worker->ring = NULL;
    atomic_store_explicit(&worker->locked_bytes, 0U, memory_order_relaxed);
}

/* ---- spans ---- */

static void retire(struct stk_worker *worker, struct stk_span *span)
{
    span->active = false;
    if (!span->resident) /* now, because a substitute has its own label */
        stk_row_write_labels(worker, span);
    stk_ledger_add(&worker->ledger.rows, span->rows);
    stk_ledger_add(&worker->ledger.spans, 1);
    worker->pace.gathers = span->resident;
    const uint64_t begin_ns = stk_trace_begin(worker->trace, STOKER_TRACE_PUBLISH, span->batch);
    if (stk_slots_parts_done(&worker->pipeline->slots, span->batch, span->parts))
        stk_trace_end(worker->trace, STOKER_TRACE_PUBLISH, begin_ns, span->batch, 0, 0);
    else
        stk_trace_cancel(worker->trace);
}

static struct stk_span *free_span(struct stk_worker *worker)
{
    for (uint32_t i = 0; i < worker->span_count; i++)
        if (!worker->spans[i].active)
            return &worker->spans[i];
    return NULL;
}

static const struct stk_sampler_order *order_of(struct stk_worker *worker, uint64_t epoch)
{
    if (!worker->has_order || worker->order.epoch != epoch) {
        stk_sampler_begin(&worker->pipeline->sampler, epoch, &worker->order);
        worker->has_order = true;
    }
    return &worker->order;
}

/* Find the span's samples and where they are stored. */
static void locate_span(struct stk_worker *worker, struct stk_span *span,
                        const struct stk_piece *piece)
{
    struct stk_pipeline *pipeline = worker->pipeline;
    const struct stk_schedule *schedule = &pipeline->schedule;
    span->batch = piece->ticket / schedule->batch_spans;
    const struct stk_batch_place place = stk_schedule_place(schedule, span->batch);
    const struct stk_rows taken =
        stk_schedule_rows(schedule, place.rows, piece->ticket, piece->part, piece->parts);

    span->active = true;
    span->parts = piece->parts;
    span->first_row = taken.first;
    span->slot = stk_slots_of(&pipeline->slots, span->batch);
    span->epoch = place.epoch;
    span->position = place.position + (uint64_t)span->first_row * schedule->world_size;
    span->rows = taken.count;
    span->started = 0;
    span->left = span->rows;
    if (pipeline->on_bad == STOKER_ON_BAD_SUBSTITUTE)
        memset(span->attempts, 0, span->rows);

    stk_sampler_ids(&pipeline->sampler, order_of(worker, span->epoch), span->position,
                    schedule->world_size, span->rows, &span->slot->ids[span->first_row]);
    stoker_error error;
    stk_error_clear(&error);
    int rc = stk_row_locate(worker, span, &error);
    if (rc < 0) {
        const struct stk_place nowhere = STK_NOWHERE;
        if (error.code != rc)
            (void)stk_error_set(&error, rc, STOKER_STAGE_LOCATE, &nowhere,
                                "locate() of the data set failed");
        for (uint32_t row = 0; row < span->rows; row++)
            stk_row_lose(span, row, &error);
        span->started = span->rows;
    }
}

/* Start rows of a span, at least one if there is room for its read. Returns true if all have started. */
static bool begin_rows(struct stk_worker *worker, struct stk_span *span)
{
    if (span->resident) {
        stk_row_gather(worker, span, worker->ahead);
        return true;
    }
    while (span->started < span->rows &&
           (worker->fetch_count == 0 ||
            worker->queued + worker->in_flight < worker->pipeline->read_depth)) {
        stk_row_start(worker, span, span->started++);
        if (stk_worker_must_pause(worker))
            break;
    }
    return span->started == span->rows;
}

/* The same; also counts the rows that were complete at once because they needed no read. */
static bool start_rows(struct stk_worker *worker, struct stk_span *span)
{
    const stoker_trace_kind kind =
        worker->pipeline->decodes && !span->resident ? STOKER_TRACE_DECODE : STOKER_TRACE_CONVERT;
    const uint32_t first = span->first_row + span->started;
    const uint32_t left = span->left;
    const uint64_t begin_ns = stk_trace_begin(worker->trace, kind, span->batch);
    const bool all = begin_rows(worker, span);
    if (span->left < left)
        stk_trace_end(worker->trace, kind, begin_ns, span->batch, first, left - span->left);
    else
        stk_trace_cancel(worker->trace);
    return all;
}

/* Returns true if the worker's reads cover its share of the ring's rows. More would leave nothing for
 * workers that start later, while these rows wait for each other. */
static bool holds_its_part(const struct stk_worker *worker)
{
    const struct stk_pipeline *pipeline = worker->pipeline;
    const uint64_t held = worker->queued + worker->in_flight;
    const uint32_t active = atomic_load_explicit(&pipeline->active_workers, memory_order_relaxed);
    return held > 0 &&
           held * active >= (uint64_t)pipeline->slots.slot_count * pipeline->slots.batch_size;
}

/* Number of parts of a ticket to take, if the span has room for them. */
static uint32_t parts_wanted(struct stk_worker *worker, const struct stk_span *span)
{
    const struct stk_schedule *schedule = &worker->pipeline->schedule;
    const struct stk_ledger_entry *ledger = &worker->ledger;
    if (schedule->span_parts == 1)
        return 1;
    const uint32_t parts =
        stk_pace_step(&worker->pace, stk_ledger_read(&ledger->rows), stk_ledger_busy_ns(ledger),
                      schedule->part_rows, schedule->span_parts);
    if (span->capacity == schedule->span_rows)
        return parts;
    const uint32_t most = span->capacity / schedule->part_rows;
    return parts < most ? parts : most;
}

/* Claim another ticket or a part of one, if available. */
static struct stk_span *claim_span(struct stk_worker *worker, uint64_t last_batch)
{
    struct stk_span *span = free_span(worker);
    struct stk_piece piece;
    if (span == NULL || holds_its_part(worker) ||
        stk_slots_claim(&worker->pipeline->slots, worker->index, last_batch,
                        parts_wanted(worker, span), &piece) != STK_CLAIM_OK)
        return NULL;
    const uint64_t batch = piece.ticket / worker->pipeline->schedule.batch_spans;
    const uint64_t begin_ns = stk_trace_begin(worker->trace, STOKER_TRACE_CLAIM, batch);
    locate_span(worker, span, &piece);
    stk_trace_end(worker->trace, STOKER_TRACE_CLAIM, begin_ns, batch, span->first_row, span->rows);
    return span;
}

/* Start one span: one claimed earlier or, if allowed, a new one. Returns false if none is available
 * or the read window is full. */
static bool start_span(struct stk_worker *worker, uint64_t last_batch, bool may_claim)
{
    if (atomic_load_explicit(&worker->pipeline->slots.stopping, memory_order_relaxed))
        return false;
    if (worker->starting == NULL) {
        worker->starting = worker->ahead;
        worker->ahead = NULL;
    }
    if (worker->starting == NULL && may_claim)
        worker->starting = claim_span(worker, last_batch);
    struct stk_span *span = worker->starting;
    if (span == NULL || span->batch > last_batch)
        return false;
    if (span->resident && worker->pipeline->looks_ahead && worker->ahead == NULL && may_claim)
        worker->ahead = claim_span(worker, last_batch == UINT64_MAX ? last_batch : last_batch + 1);
    if (!start_rows(worker, span)) {
        if (worker->deadline_ns != UINT64_MAX)
            stk_ledger_charge(stk_worker_making_ns(worker, false), &worker->mark_ns);
        return false;
    }
    worker->starting = NULL;
    if (span->left == 0)
        retire(worker, span);
    stk_ledger_charge(stk_worker_making_ns(worker, span->resident), &worker->mark_ns);
    return true;
}

/* Start spans until the read window is full, none is left, or the deadline has passed. */
static void start_spans(struct stk_worker *worker, uint64_t last_batch, bool may_claim,
                        uint64_t now_ns)
{
    worker->mark_ns = now_ns;
    while (start_span(worker, last_batch, may_claim))
        if (stk_worker_must_pause(worker))
            return;
}

static void retire_finished(struct stk_worker *worker)
{
    for (uint32_t i = 0; i < worker->span_count; i++) {
        struct stk_span *span = &worker->spans[i];
        if (span->active && span->left == 0 && span != worker->starting && span != worker->ahead)
            retire(worker, span);
    }
}

static void submit_reads(struct stk_worker *worker)
{
    if (!stk_fetch_submit(worker)) /* may end a span whose last rows are lost */
        retire_finished(worker);
}

static void reap_reads(struct stk_worker *worker, int64_t wait_ns)
{
    stk_fetch_reap(worker, wait_ns);
    retire_finished(worker);
}

/* ---- without a thread ---- */

bool stk_worker_make_batch(struct stk_worker *worker, uint64_t batch, uint64_t deadline_ns,
                           uint64_t *now_ns)
{
    const uint64_t last_batch = worker->pipeline->reads ? UINT64_MAX : batch;
    worker->deadline_ns = deadline_ns;
    for (;;) {
        start_spans(worker, last_batch, true, *now_ns);
        submit_reads(worker);
        *now_ns = worker->mark_ns;
        if (stk_slots_ready(&worker->pipeline->slots))
            return true;
        if (worker->in_flight > 0) {
            /* Check at least once, or a timeout of 0 would never make progress. */
            const uint64_t left_ns = deadline_ns > *now_ns ? deadline_ns - *now_ns : 0;
            reap_reads(worker, left_ns < (uint64_t)REAP_WAIT_NS ? (int64_t)left_ns : REAP_WAIT_NS);
            *now_ns = worker->mark_ns;
        } else {
            *now_ns = stk_now_ns();
        }
        if (stk_slots_ready(&worker->pipeline->slots))
            return true;
        if (*now_ns >= deadline_ns)
            return false;
    }
}

bool stk_worker_holds_span(const struct stk_worker *worker)
{
    return worker->starting != NULL || worker->ahead != NULL;
}

bool stk_worker_help(struct stk_worker *worker, bool may_claim, uint64_t deadline_ns,
                     uint64_t *now_ns)
{
    assert(worker->fetch_count == 0); /* with reads in flight the caller could not leave */
    worker->mark_ns = *now_ns;
    worker->deadline_ns = deadline_ns;
    const bool worked = start_span(worker, UINT64_MAX, may_claim);
    *now_ns = worker->mark_ns;
    return worked;
}

/* ---- with a thread ---- */

/* Leave the consumer's CPU, if there is a CPU for each worker beside it. The scheduler places a woken thread
 * where it last ran and may leave it there with its waker for tens of ms although another CPU is idle
 * (measured on Linux 6.18: half the throughput meanwhile). If there is no better CPU, the checks become
 * rarer. */
static void leave_consumer_cpu(struct stk_worker *worker)
{
    struct stk_slots *slots = &worker->pipeline->slots;
    if (worker->mark_ns < worker->clear_ns ||
        atomic_load_explicit(&worker->pipeline->active_workers, memory_order_relaxed) >=
            worker->pipeline->cpus)
        return;
    const uint32_t cpu = atomic_load_explicit(&slots->consumer_cpu, memory_order_relaxed);
    if (cpu != stk_cpu_here()) {
        worker->clear_ns = worker->mark_ns + CLEAR_LOOK_NS;
        worker->clear_wait_ns = worker->clear_wait_ns / 2;
        return;
    }
    (void)stk_thread_leave_cpu(cpu);
    worker->clear_wait_ns = 2 * worker->clear_wait_ns + CLEAR_AGAIN_NS;
    if (worker->clear_wait_ns > CLEAR_WAIT_MAX_NS)
        worker->clear_wait_ns = CLEAR_WAIT_MAX_NS;
    worker->clear_ns = worker->mark_ns + worker->clear_wait_ns;
}

static void rest(struct stk_worker *worker)
{
    _Atomic uint32_t *active = &worker->pipeline->active_workers;
    uint32_t value = atomic_load(active);
    if (worker->index < value)
        return;
    const uint64_t begin_ns =
        stk_trace_begin(worker->trace, STOKER_TRACE_REST, STOKER_TRACE_NO_BATCH);
    stk_futex_wait(active, value, -1);
    stk_trace_end(worker->trace, STOKER_TRACE_REST, begin_ns, STOKER_TRACE_NO_BATCH, 0, 0);
    worker->mark_ns = stk_now_ns();
}

static void wait_credit(struct stk_worker *worker)
{
    const uint64_t begin_ns =
        stk_trace_begin(worker->trace, STOKER_TRACE_CREDIT, STOKER_TRACE_NO_BATCH);
    stk_slots_wait_credit(&worker->pipeline->slots, -1);
    stk_ledger_charge(&worker->ledger.slot_wait_ns, &worker->mark_ns);
    stk_trace_end(worker->trace, STOKER_TRACE_CREDIT, begin_ns, STOKER_TRACE_NO_BATCH, 0, 0);
}

static void work(struct stk_worker *worker)
{
    struct stk_pipeline *pipeline = worker->pipeline;
    struct stk_slots *slots = &pipeline->slots;
    worker->mark_ns = stk_now_ns();
    while (!atomic_load(&slots->stopping)) {
        const bool resting = worker->index >= atomic_load(&pipeline->active_workers);
        /* A resting worker still finishes its claimed spans. */
        while (start_span(worker, UINT64_MAX, !resting))
            leave_consumer_cpu(worker);
        submit_reads(worker);
        if (worker->in_flight > 0)
            reap_reads(worker, REAP_WAIT_NS);
        else if (worker->queued > 0)
            continue;
        else if (resting)
            rest(worker);
        else
            wait_credit(worker);
    }
}

static void set_life(struct stk_worker *worker, uint32_t life)
{
    atomic_store(&worker->life, life);
    stk_futex_wake(&worker->life, UINT32_MAX);
}

static void *run(void *argument)
{
    struct stk_worker *worker = argument;
    worker->kernel_thread = gettid();
    worker->start_rc = stk_worker_open_ring(worker, &worker->start_error);
    set_life(worker, STK_WORKER_RUNNING);
    if (worker->start_rc == 0)
        work(worker);
    stk_worker_close_ring(worker, STK_CLOSE_WAIT_NS);
    set_life(worker, STK_WORKER_GONE);
    return NULL;
}

int stk_worker_start(struct stk_worker *worker)
{
    int rc = stk_thread_start(&worker->thread, "stoker-worker", run, worker);
    worker->started = rc == 0;
    return rc;
}

uint64_t stk_worker_demand_ns(const struct stk_worker *worker)
{
    const uint64_t cpu_ns = stk_worker_cpu_ns(worker);
    const uint64_t queue_ns = cpu_ns > 0 ? stk_thread_queue_ns(worker->kernel_thread) : 0;
    return cpu_ns + (queue_ns < DEMAND_QUEUE * cpu_ns ? queue_ns : DEMAND_QUEUE * cpu_ns);
}

uint64_t stk_worker_cpu_ns(const struct stk_worker *worker)
{
    return worker->started ? stk_thread_cpu_ns(worker->thread) : 0;
}

int stk_worker_wait_started(struct stk_worker *worker, stoker_error *error)
{
    while (atomic_load(&worker->life) == STK_WORKER_STARTING)
        stk_futex_wait(&worker->life, STK_WORKER_STARTING, -1);
    if (worker->start_rc < 0 && error != NULL)
        *error = worker->start_error;
    return worker->start_rc;
}

bool stk_worker_join(struct stk_worker *worker, uint64_t deadline_ns)
{
    if (!worker->started)
        return true;
    uint32_t life;
    while ((life = atomic_load(&worker->life)) != STK_WORKER_GONE) {
        const uint64_t now_ns = stk_now_ns();
        if (now_ns >= deadline_ns && atomic_load(&worker->in_system_call)) {
            pthread_detach(worker->thread);
            worker->stuck = true;
            return false;
        }
        stk_futex_wait(&worker->life, life,
                       now_ns < deadline_ns ? (int64_t)(deadline_ns - now_ns) : REAP_WAIT_NS);
    }
    pthread_join(worker->thread, NULL);
    worker->started = false;
    return true;
}
