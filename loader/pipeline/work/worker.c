/* worker.c - see worker.h. */
#include "loader/pipeline/work/worker.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/cpu/thread.h"
#include "loader/base/memory/memory.h"
#include "loader/dataset/recall.h"
#include "loader/pipeline/reads/fetch_ring.h"
#include "loader/pipeline/rows/hook_calls.h"
#include "loader/pipeline/rows/neighbor_reads.h"
#include "loader/pipeline/rows/span_rows.h"

#define REAP_WAIT_NS INT64_C(20000000) /* longest time until a worker notices that it must stop */

enum { DEMAND_QUEUE = 4 };

/* ---- memory ---- */

int stk_worker_init(struct stk_worker *worker, struct stk_pipeline *pipeline, uint32_t index,
                    bool reads)
{
    memset(worker, 0, sizeof(*worker));
    worker->pipeline = pipeline;
    worker->index = index;
    worker->deadline_ns = UINT64_MAX;
    int rc = stk_claimer_init(&worker->claimer, pipeline, &worker->ledger, index);
    if (rc == 0)
        rc = stk_row_maker_init(&worker->maker, pipeline, &worker->ledger, reads);
    if (rc == 0)
        rc = stk_fetcher_init(&worker->fetcher, pipeline, &worker->ledger, reads);
    /* All claimed rows, at worst: in runs whose reads fail together. */
    worker->again = stk_calloc(worker->claimer.row_count + 1, sizeof(worker->again[0]));
    if (rc == 0 && worker->again == NULL)
        rc = STOKER_ENOMEM;
    if (rc < 0)
        stk_worker_destroy(worker);
    return rc;
}

void stk_worker_destroy(struct stk_worker *worker)
{
    if (stk_worker_is_stuck(worker))
        return; /* the kernel may still write to the scratch */
    stk_hooks_close(&worker->pipeline->hooks, &worker->maker.hooks);
    stk_claimer_destroy(&worker->claimer);
    stk_row_maker_destroy(&worker->maker);
    stk_fetcher_destroy(&worker->fetcher);
    stk_free(worker->again);
    memset(worker, 0, sizeof(*worker));
}

/* ---- time ---- */

static bool is_interrupted(const struct stk_worker *worker)
{
    return atomic_load_explicit(&worker->pipeline->slots.interrupted, memory_order_relaxed);
}

/* Returns true if the worker must stop between two rows: the loader is being destroyed, or the
 * deadline of a next() without threads has passed, or it was interrupted. Started rows stay
 * started; a later call continues there. */
static bool must_pause(const struct stk_worker *worker)
{
    return atomic_load_explicit(&worker->pipeline->slots.stopping, memory_order_relaxed) ||
           (worker->maker.in_next && is_interrupted(worker)) ||
           (worker->deadline_ns != UINT64_MAX && stk_now_ns() >= worker->deadline_ns);
}

/* Making rows: resident ones need no decoding any more. */
static bool decodes(const struct stk_worker *worker, bool resident)
{
    return worker->pipeline->plan.decodes && !resident;
}

static stoker_trace_kind making_kind(const struct stk_worker *worker, bool resident)
{
    return decodes(worker, resident) ? STOKER_TRACE_DECODE : STOKER_TRACE_CONVERT;
}

static void charge_making(struct stk_worker *worker, bool resident)
{
    stk_ledger_charge(decodes(worker, resident) ? &worker->ledger.decode_ns
                                                : &worker->ledger.convert_ns,
                      &worker->mark_ns);
}

/* ---- rows ---- */

/* No other worker has a span of the batch any more. Where rows failed, the consumer closes their
 * gaps first. */
static void finish_slot(struct stk_pipeline *pipeline, uint64_t batch)
{
    struct stk_slot *slot = stk_slots_of(&pipeline->slots, batch);
    if (slot->failure_row != UINT32_MAX ||
        atomic_load_explicit(&slot->bad_rows, memory_order_relaxed) > 0)
        return;
    stk_finish_slot(pipeline->finish, &pipeline->slots, slot,
                    stk_schedule_place(&pipeline->schedule, batch).rows);
    slot->finished = true;
}

/* Mix a complete batch, unless skipped rows left gaps: the consumer closes them first, then
 * mixes. */
static void mix_slot(struct stk_pipeline *pipeline, uint64_t batch)
{
    struct stk_slot *slot = stk_slots_of(&pipeline->slots, batch);
    const struct stk_batch_place place = stk_schedule_place(&pipeline->schedule, batch);
    if (slot->failure_row == UINT32_MAX && !stk_blend_is_left(pipeline, slot))
        stk_blend_slot(&pipeline->blend, &pipeline->slots, slot, &place, place.rows);
}

static void retire(struct stk_worker *worker, struct stk_span *span)
{
    const uint64_t batch = span->batch;
    stk_ledger_add(&worker->ledger.rows, span->rows);
    stk_ledger_add(&worker->ledger.spans, 1);
    const uint64_t begin_ns = stk_trace_begin(worker->trace, STOKER_TRACE_PUBLISH, batch);
    if (!stk_claim_end(&worker->claimer, span)) {
        stk_trace_cancel(worker->trace);
        return;
    }
    if (worker->pipeline->blend.on)
        mix_slot(worker->pipeline, batch);
    if (stk_hooks_batches(&worker->pipeline->hooks))
        stk_hook_batch(&worker->maker, batch);
    if (worker->pipeline->finish->needed)
        finish_slot(worker->pipeline, batch);
    stk_slots_publish(&worker->pipeline->slots, batch);
    stk_trace_end(worker->trace, STOKER_TRACE_PUBLISH, begin_ns, batch, 0, 0);
}

/* A row is done, or needs its reads. */
static void follow(struct stk_worker *worker, struct stk_span *span, enum stk_row_step step)
{
    for (uint32_t i = 0; step == STK_ROW_READ && i < worker->maker.order_count; i++)
        stk_fetch_queue(&worker->fetcher, &worker->maker.orders[i]);
    if (step == STK_ROW_DONE) {
        assert(span->left > 0);
        span->left--;
    }
}

/* Let the GPU decode the images that wait, and continue their rows. Returns false if there were
 * none. */
static bool decode_waiting(struct stk_worker *worker)
{
    const uint64_t begin_ns =
        stk_trace_begin(worker->trace, STOKER_TRACE_DECODE, STOKER_TRACE_NO_BATCH);
    const uint32_t count = stk_row_decode(&worker->maker);
    for (uint32_t i = 0; i < count; i++) {
        struct stk_span *span;
        uint32_t row;
        const enum stk_row_step step = stk_row_decoded(&worker->maker, i, &span, &row);
        if (step == STK_ROW_AGAIN)
            worker->again[worker->again_count++] = (struct stk_again){ span, row };
        else
            follow(worker, span, step);
    }
    if (count == 0) {
        stk_trace_cancel(worker->trace);
        return false;
    }
    stk_row_decoded_all(&worker->maker);
    stk_trace_end(worker->trace, STOKER_TRACE_DECODE, begin_ns, STOKER_TRACE_NO_BATCH, 0, count);
    return true;
}

/* Begin a row; if it needs no read to find its sample bad, with its substitutes. Returns false if
 * it must wait for a later next(). */
static bool begin_row(struct stk_worker *worker, struct stk_span *span, uint32_t row)
{
    enum stk_row_step step;
    do
        step = stk_row_begin(&worker->maker, span, row);
    while (step == STK_ROW_AGAIN);
    follow(worker, span, step);
    return step != STK_ROW_LATER;
}

/* Returns true if another row may begin: there is room for its reads, and for its image in the
 * GPU's queue. */
static bool has_room(const struct stk_worker *worker)
{
    return stk_fetch_has_room(&worker->fetcher) && !stk_row_must_decode(&worker->maker);
}

/* Begin the rows that have to begin again, or alone, before any new row, as far as there is room
 * for them. Otherwise reads are under way, or images wait for the GPU, and what ends next leads
 * here. */
static void begin_again(struct stk_worker *worker)
{
    const stoker_dataset *dataset = worker->pipeline->dataset;
    if (worker->again_count == 0)
        return;
    const uint32_t turn = stk_recall_enter(dataset);
    while (worker->again_count > 0 && has_room(worker)) {
        const struct stk_again again = worker->again[--worker->again_count];
        if (dataset->recalls)
            stk_span_relocate(&worker->maker, again.span, again.row, 1);
        (void)begin_row(worker, again.span, again.row); /* it has parts, so nobody makes it */
    }
    stk_recall_leave(dataset, turn);
}

/* Let the rows of a run begin alone. The last is pushed first, to keep their order. */
static void part_run(struct stk_worker *worker, struct stk_span *span, uint32_t row, uint32_t rows)
{
    for (uint32_t i = rows; i > 0; i--)
        worker->again[worker->again_count++] = (struct stk_again){ span, row + i - 1 };
}

/* Begin the next row of a span, or the run that starts there. Returns false if it must wait for
 * reads of runs to end, or for a later next(). */
static bool begin_next(struct stk_worker *worker, struct stk_span *span)
{
    struct stk_read_order order;
    const uint32_t row = span->started;
    const enum stk_run_step step = worker->pipeline->plan.runs
                                       ? stk_run_begin(&worker->maker, span, row, &order)
                                       : STK_RUN_NONE;
    if (step == STK_RUN_READ && order.to == NULL && !stk_fetch_has_wide(&worker->fetcher))
        return false;
    span->started += step == STK_RUN_NONE ? 1 : order.run_rows;
    if (step == STK_RUN_NONE && !begin_row(worker, span, row)) {
        span->started--;
        stk_slots_interrupt(&worker->pipeline->slots);
        return false;
    }
    if (step == STK_RUN_DONE)
        span->left -= order.run_rows;
    else if (step == STK_RUN_READ)
        stk_fetch_queue(&worker->fetcher, &order);
    else if (step != STK_RUN_NONE)
        part_run(worker, span, row, order.run_rows);
    begin_again(worker);
    return true;
}

/* Begin rows of a span, at least one if there is room for it. Returns true if all have begun. */
static bool begin_rows(struct stk_worker *worker, struct stk_span *span)
{
    if (span->resident) {
        stk_span_gather(&worker->maker, span, worker->ahead);
        return true;
    }
    while (span->started < span->rows && has_room(worker) && begin_next(worker, span))
        if (must_pause(worker))
            break;
    return span->started == span->rows;
}

/* Begin rows and trace those that were complete at once because they needed no read. Returns true
 * if all have begun. */
static bool start_rows(struct stk_worker *worker, struct stk_span *span)
{
    const stoker_trace_kind kind = making_kind(worker, span->resident);
    const uint32_t first = span->first_row + span->started;
    const uint32_t left = span->left;
    const uint64_t begin_ns = stk_trace_begin(worker->trace, kind, span->batch);
    const uint32_t turn = stk_recall_enter(worker->pipeline->dataset);
    stk_span_renew(&worker->maker, span, turn);
    const bool all = begin_rows(worker, span);
    stk_recall_leave(worker->pipeline->dataset, turn);
    if (span->left < left)
        stk_trace_end(worker->trace, kind, begin_ns, span->batch, first, left - span->left);
    else
        stk_trace_cancel(worker->trace);
    return all;
}

/* ---- spans ---- */

/* Returns true if the worker's reads cover its share of the ring's rows. More would leave nothing
 * for workers that start later, while these rows wait for each other. */
static bool holds_enough(const struct stk_worker *worker)
{
    const struct stk_pipeline *pipeline = worker->pipeline;
    const uint32_t reads = stk_fetch_held(&worker->fetcher);
    const uint32_t parts = pipeline->part_count > 0 ? pipeline->part_count : 1;
    const uint64_t held = (reads + parts - 1) / parts; /* rows */
    const uint32_t active = atomic_load_explicit(&pipeline->active_workers, memory_order_relaxed);
    return held > 0 &&
           held * active >= (uint64_t)pipeline->slots.slot_count * pipeline->slots.batch_size;
}

/* Claim another ticket or some shares of one, if available, and locate its samples. */
static struct stk_span *claim_span(struct stk_worker *worker, uint64_t last_batch)
{
    struct stk_piece piece;
    if (holds_enough(worker))
        return NULL;
    struct stk_span *span = stk_claim_piece(&worker->claimer, last_batch, &piece);
    if (span == NULL)
        return NULL;
    const uint64_t batch = piece.ticket / worker->pipeline->schedule.batch_spans;
    const uint64_t begin_ns = stk_trace_begin(worker->trace, STOKER_TRACE_CLAIM, batch);
    stoker_error error;
    if (stk_claim_rows(&worker->claimer, span, &piece, &error) == 0)
        stk_span_locate(&worker->maker, span);
    else
        stk_span_lose(span, &error);
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
    if (span->resident && worker->claimer.looks_ahead && worker->ahead == NULL && may_claim)
        worker->ahead = claim_span(worker, last_batch == UINT64_MAX ? last_batch : last_batch + 1);
    if (!start_rows(worker, span)) {
        if (worker->deadline_ns != UINT64_MAX)
            charge_making(worker, false);
        return false;
    }
    const bool resident = span->resident;
    worker->starting = NULL;
    if (span->left == 0)
        retire(worker, span);
    charge_making(worker, resident);
    return true;
}

/* Start spans until the read window is full, none is left, or the deadline has passed. */
static void start_spans(struct stk_worker *worker, uint64_t last_batch, bool may_claim,
                        uint64_t now_ns)
{
    worker->mark_ns = now_ns;
    while (start_span(worker, last_batch, may_claim))
        if (must_pause(worker))
            return;
}

static void retire_finished(struct stk_worker *worker)
{
    for (uint32_t i = 0; i < worker->claimer.span_count; i++) {
        struct stk_span *span = &worker->claimer.spans[i];
        if (span->active && span->left == 0 && span != worker->starting && span != worker->ahead)
            retire(worker, span);
    }
}

/* ---- reads ---- */

/* A row has taken its bytes. */
static void follow_read(struct stk_worker *worker, const struct stk_completion *done,
                        enum stk_row_step step)
{
    if (step == STK_ROW_AGAIN)
        worker->again[worker->again_count++] = (struct stk_again){ done->span, done->row };
    else
        follow(worker, done->span, step);
}

/* Hand the finished read of a run to its rows. */
static void take_run(struct stk_worker *worker, const struct stk_completion *done)
{
    const enum stk_run_step step = stk_run_take(&worker->maker, done);
    if (step == STK_RUN_DONE)
        done->span->left -= done->run_rows;
    else if (step == STK_RUN_ALONE)
        part_run(worker, done->span, done->row, done->run_rows);
    for (uint32_t i = 0; step == STK_RUN_NONE && i < done->run_rows; i++) {
        const struct stk_completion one = stk_run_row(done, i);
        follow_read(worker, &one, stk_row_take(&worker->maker, &one));
    }
    stk_fetch_give_back(&worker->fetcher, done->fetch);
}

/* Hand a finished read to its row. */
static void take_read(struct stk_worker *worker, const struct stk_completion *done)
{
    if (stk_row_must_decode(&worker->maker))
        (void)decode_waiting(worker);
    const enum stk_row_step step = stk_row_take(&worker->maker, done);
    stk_fetch_give_back(&worker->fetcher, done->fetch);
    follow_read(worker, done, step);
}

/* Take finished reads, at least one; a later call continues if this one must pause. */
static void take_reads(struct stk_worker *worker)
{
    const stoker_trace_kind kind = making_kind(worker, false);
    const uint64_t begin_ns = stk_trace_begin(worker->trace, kind, STOKER_TRACE_NO_BATCH);
    struct stk_completion done;
    uint32_t taken = 0;
    while (stk_fetch_next(&worker->fetcher, &done)) {
        taken++;
        if (done.span != NULL && done.run_rows > 1)
            take_run(worker, &done);
        else if (done.span != NULL)
            take_read(worker, &done);
        if (must_pause(worker))
            break;
    }
    begin_again(worker);
    stk_trace_end(worker->trace, kind, begin_ns, STOKER_TRACE_NO_BATCH, 0, taken);
    charge_making(worker, false);
    retire_finished(worker);
}

/* Let the GPU decode what waits for it, if that is as much as it takes at once or there is nothing
 * to read meanwhile. Returns false if it did not. */
static bool decode_all(struct stk_worker *worker)
{
    const bool reads = worker->fetcher.in_flight > 0 || worker->fetcher.queued > 0;
    if (reads && !stk_row_must_decode(&worker->maker))
        return false;
    if (!decode_waiting(worker))
        return false;
    begin_again(worker);
    charge_making(worker, false);
    retire_finished(worker);
    return true;
}

static void submit_reads(struct stk_worker *worker)
{
    if (worker->fetcher.queued == 0)
        return;
    const uint64_t begin_ns =
        stk_trace_begin(worker->trace, STOKER_TRACE_SUBMIT, STOKER_TRACE_NO_BATCH);
    const uint32_t submitted = stk_fetch_submit(&worker->fetcher);
    stk_trace_end(worker->trace, STOKER_TRACE_SUBMIT, begin_ns, STOKER_TRACE_NO_BATCH, 0,
                  submitted);
    /* Reads that hit the page cache complete in here. */
    stk_ledger_charge(&worker->ledger.read_ns, &worker->mark_ns);
}

static void reap_reads(struct stk_worker *worker, int64_t wait_ns)
{
    uint32_t reaped;
    const uint64_t begin_ns =
        stk_trace_begin(worker->trace, STOKER_TRACE_READ, STOKER_TRACE_NO_BATCH);
    const bool finished = stk_fetch_reap(&worker->fetcher, wait_ns, &reaped);
    stk_trace_end(worker->trace, STOKER_TRACE_READ, begin_ns, STOKER_TRACE_NO_BATCH, 0, reaped);
    stk_ledger_charge(&worker->ledger.read_ns, &worker->mark_ns);
    if (finished && !atomic_load(&worker->pipeline->slots.stopping)) /* else it is destroyed */
        take_reads(worker);
}

/* ---- without a thread ---- */

bool stk_worker_make_batch(struct stk_worker *worker, uint64_t batch, uint64_t deadline_ns,
                           uint64_t *now_ns)
{
    const uint64_t last_batch =
        stk_pipeline_plan_rereads(&worker->pipeline->plan) ? UINT64_MAX : batch;
    worker->deadline_ns = deadline_ns;
    worker->maker.in_next = true;
    for (;;) {
        start_spans(worker, last_batch, true, *now_ns);
        submit_reads(worker);
        (void)decode_all(worker);
        *now_ns = worker->mark_ns;
        if (stk_slots_ready(&worker->pipeline->slots))
            return true;
        if (worker->fetcher.in_flight > 0) {
            /* Check at least once, or a timeout of 0 would never make progress. */
            const uint64_t left_ns = deadline_ns > *now_ns ? deadline_ns - *now_ns : 0;
            reap_reads(worker, left_ns < (uint64_t)REAP_WAIT_NS ? (int64_t)left_ns : REAP_WAIT_NS);
            *now_ns = worker->mark_ns;
        } else {
            *now_ns = stk_now_ns();
        }
        if (stk_slots_ready(&worker->pipeline->slots))
            return true;
        if (*now_ns >= deadline_ns || is_interrupted(worker))
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
    assert(worker->fetcher.count == 0); /* with reads in flight the caller could not leave */
    worker->mark_ns = *now_ns;
    worker->deadline_ns = deadline_ns;
    worker->maker.in_next = true;
    const bool worked = start_span(worker, UINT64_MAX, may_claim);
    *now_ns = worker->mark_ns;
    return worked;
}

/* ---- with a thread ---- */

static void rest_worker(struct stk_worker *worker)
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

static void make_rows_until_closed(struct stk_worker *worker)
{
    struct stk_pipeline *pipeline = worker->pipeline;
    struct stk_slots *slots = &pipeline->slots;
    worker->mark_ns = stk_now_ns();
    while (!atomic_load(&slots->stopping)) {
        const bool resting = worker->index >= atomic_load(&pipeline->active_workers);
        /* A resting worker still finishes its claimed spans. */
        while (start_span(worker, UINT64_MAX, !resting))
            stk_consumer_cpu_leave(&worker->cpu_checks, worker->pipeline, worker->mark_ns);
        submit_reads(worker);
        if (decode_all(worker))
            continue;
        if (worker->fetcher.in_flight > 0)
            reap_reads(worker, REAP_WAIT_NS);
        else if (worker->fetcher.queued > 0)
            continue;
        else if (resting)
            rest_worker(worker);
        else
            wait_credit(worker);
    }
}

static void set_life(struct stk_worker *worker, uint32_t life)
{
    atomic_store(&worker->life, life);
    stk_futex_wake(&worker->life, UINT32_MAX);
}

/* Other processes of the job have the other CPUs. A thread that may not be moved runs where it
 * is. */
static void keep_to_own_cpus(const struct stk_cpu_share *share)
{
    if (share->keeps)
        (void)sched_setaffinity(0, sizeof(share->set), &share->set);
}

static void *run_worker(void *argument)
{
    struct stk_worker *worker = argument;
    worker->kernel_thread = gettid();
    keep_to_own_cpus(&worker->pipeline->cpu_share);
    worker->start_rc = stk_fetch_ring_open(&worker->fetcher, &worker->start_error);
    set_life(worker, STK_WORKER_RUNNING);
    if (worker->start_rc == 0)
        make_rows_until_closed(worker);
    stk_fetch_ring_close(&worker->fetcher, STK_CLOSE_WAIT_NS);
    set_life(worker, STK_WORKER_GONE);
    return NULL;
}

int stk_worker_start(struct stk_worker *worker)
{
    int rc = stk_thread_start(&worker->thread, "stoker-worker", run_worker, worker);
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
        if (now_ns >= deadline_ns && atomic_load(&worker->fetcher.in_system_call)) {
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
