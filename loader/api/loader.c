/* loader.c - the consumer's side: batches in order, one at a time.
 *
 *   { next ─▶ release }*          in one thread
 *
 * next() waits here; deliver.c fills in the batch; batch.c releases it.
 */
#include <string.h>

#include <stoker/stoker.h>

#include "loader/api/deliver.h"
#include "loader/api/lend/poll.h"
#include "loader/api/loader.h"
#include "loader/api/state.h"
#include "loader/base/clock.h"
#include "loader/base/cpu/thread.h"
#include "loader/base/error.h"
#include "loader/base/struct_size.h"
#include "loader/pipeline/work/consumer_wait.h"

enum {
    TUNE_EVERY = 16,      /* batches between two readings of the clock, and */
    TUNE_NS = 10000000,   /* time between two steps of the tuner */
    SAMPLE_NS = 10000000, /* between two measurements of CPU time: each is two system calls */
    COPY_POLL_NS = 50000  /* longest delay until a finished copy's slot is released while waiting */
};

/* ---- waiting for the workers ---- */

/* Wait for the head batch; while the caller assists, work instead of sleeping. A span that it
 * claimed in an earlier call is always finished, since it may belong to the head batch. */
static bool wait_and_assist(stoker_loader *loader, uint64_t deadline_ns, uint64_t *now_ns)
{
    struct stk_slots *slots = &loader->pipeline.slots;
    const bool assists = atomic_load_explicit(&loader->caller_assists, memory_order_relaxed);
    stk_consumer_cpu_note(slots);
    while (assists || stk_worker_holds_span(&loader->caller_worker)) {
        if (!stk_worker_help(&loader->caller_worker, assists, deadline_ns, now_ns))
            break;
        if (stk_slots_ready(slots))
            return true;
        if (*now_ns >= deadline_ns || atomic_load(&slots->interrupted))
            return false; /* the next call finishes the claimed span */
    }
    return stk_consumer_wait(slots, deadline_ns, now_ns);
}

/* Make the head batch in this thread, measuring the CPU time of some of them. */
static bool make_here(stoker_loader *loader, uint64_t deadline_ns, uint64_t *now_ns)
{
    struct stk_worker *worker = &loader->workers[0];
    const uint64_t head = loader->pipeline.slots.head;
    const uint64_t before_ns = *now_ns;
    if (before_ns < loader->sample_ns)
        return stk_worker_make_batch(worker, head, deadline_ns, now_ns);
    const uint64_t cpu_before_ns = stk_thread_cpu_ns_here();
    const bool ready = stk_worker_make_batch(worker, head, deadline_ns, now_ns);
    stk_ledger_add(&loader->ledger.sampled_cpu_ns, stk_thread_cpu_ns_here() - cpu_before_ns);
    stk_ledger_add(&loader->ledger.sampled_ns, *now_ns - before_ns);
    loader->sample_ns = *now_ns + SAMPLE_NS;
    return ready;
}

static bool wait_or_work(stoker_loader *loader, uint64_t deadline_ns, uint64_t *now_ns)
{
    struct stk_slots *slots = &loader->pipeline.slots;
    if (!loader->threads)
        return make_here(loader, deadline_ns, now_ns);
    if (loader->has_caller_worker)
        return wait_and_assist(loader, deadline_ns, now_ns);
    return stk_consumer_wait(slots, deadline_ns, now_ns);
}

static bool wait_for_batch(stoker_loader *loader, uint64_t deadline_ns, uint64_t *now_ns)
{
    const uint64_t batch = loader->pipeline.slots.head;
    const uint64_t begin_ns = stk_trace_begin(loader->trace.rings, STOKER_TRACE_WAIT, batch);
    const bool ready = wait_or_work(loader, deadline_ns, now_ns);
    stk_trace_end(loader->trace.rings, STOKER_TRACE_WAIT, begin_ns, batch, 0, 0);
    return ready;
}

/* Choose the number of workers to run, by the work done so far. */
static uint32_t tune_workers(stoker_loader *loader, struct stk_look *now)
{
    const struct stk_schedule *schedule = &loader->pipeline.schedule;
    if (now->ns < loader->tune_ns)
        return loader->tuner.workers;
    loader->tune_ns = now->ns + TUNE_NS;
    for (uint32_t i = 0; i < loader->worker_count; i++) {
        struct stk_worker *worker = &loader->workers[i];
        if (i < loader->tuner.workers) /* the others rest */
            worker->demand_ns = stk_worker_demand_ns(worker);
        now->rows += stk_ledger_read(&worker->ledger.rows);
        now->spans += stk_ledger_read(&worker->ledger.spans);
        now->cpu_ns += worker->demand_ns;
    }
    now->rows += stk_ledger_read(&loader->caller_worker.ledger.rows);
    now->spans += stk_ledger_read(&loader->caller_worker.ledger.spans);
    const uint64_t first = stk_claim_affinity_first(&loader->pipeline.slots.affinity);
    return stk_tuner_step(&loader->tuner, now, first / schedule->batch_spans + 1);
}

/* Read the clock every few batches; the tuner also does after a wait. */
static void tune(stoker_loader *loader)
{
    const uint64_t batches = stk_ledger_read(&loader->ledger.batches);
    const bool waited = loader->tuned && loader->waited_ns >= loader->tune_ns;
    if (!loader->threads || (batches % TUNE_EVERY != 0 && !waited))
        return;
    struct stk_look now = {
        .ns = stk_now_ns(),
        .batches = batches,
        .stall_ns = stk_ledger_read(&loader->ledger.stall_ns),
    };
    const uint32_t before = loader->tuner.workers;
    const bool assisted = atomic_load_explicit(&loader->caller_assists, memory_order_relaxed);
    const bool assists = loader->has_caller_worker && !loader->polls &&
                         stk_pipeline_is_resident(&loader->pipeline) &&
                         stk_caller_assist_step(&loader->assist, now.ns, now.batches, now.stall_ns);
    const uint32_t workers = loader->tuned ? tune_workers(loader, &now) : before;
    if (workers != before || assists != assisted)
        stk_loader_run_workers(loader, workers, assists);
}

static void note_first_batch(stoker_loader *loader)
{
    if (stk_ledger_read(&loader->ledger.first_batch_ns) == 0)
        stk_ledger_add(&loader->ledger.first_batch_ns, stk_now_ns() - loader->created_ns);
}

/* ---- next ---- */

static int next_in_place(stoker_loader *loader, stoker_batch *batch, int32_t timeout_ms)
{
    const struct stk_slots *slots = &loader->pipeline.slots;
    const bool keeps_reading =
        !loader->threads &&
        stk_pipeline_plan_rereads(&loader->pipeline.plan); /* in this call, too */
    uint64_t start_ns = 0;
    if (slots->lent > 0 && stk_kept_make_room(loader, timeout_ms, &start_ns) != STOKER_OK)
        return STOKER_BUSY;
    if (!stk_slots_ready(slots) || keeps_reading) {
        const uint64_t before_ns = stk_now_ns();
        uint64_t now_ns = before_ns;
        const bool ready = wait_for_batch(
            loader, stk_loader_deadline(timeout_ms, start_ns > 0 ? start_ns : before_ns), &now_ns);
        stk_loader_count_stall(loader, before_ns, now_ns);
        if (!ready)
            return STOKER_TIMEOUT;
    }
    return stk_deliver_in_place(loader, batch);
}

/* Wait on the host for the oldest copy, no longer than COPY_POLL_NS: next() may be interrupted. 0
 * or STOKER_EDEVICE. */
static int wait_for_oldest(stoker_loader *loader, uint64_t deadline_ns, uint64_t now_ns)
{
    const struct stk_transfer *transfer = &loader->transfer;
    const uint64_t end_ns =
        deadline_ns - now_ns > COPY_POLL_NS ? now_ns + COPY_POLL_NS : deadline_ns;
    const int done = transfer->device->ops->wait(transfer->device,
                                                 stk_transfer_copied(transfer, transfer->retired),
                                                 end_ns, loader->pipeline.slots.spare_core);
    return done < 0 ? done : 0;
}

/* Wait for the head slot to be ready. Slots that are being copied are credits which only this
 * thread returns, so it must not sleep past the end of their copies. */
static int wait_beside_copies(stoker_loader *loader, uint64_t deadline_ns, uint64_t *now_ns)
{
    struct stk_slots *slots = &loader->pipeline.slots;
    int rc;
    while ((rc = stk_transfer_retire(&loader->transfer)) == 0 &&
           stk_transfer_copying(&loader->transfer)) {
        const bool in_vain = stk_slots_head_lent(slots); /* until its copy is done */
        if (!loader->threads && !in_vain)
            break; /* this thread makes it */
        if (!in_vain && stk_slots_ready(slots))
            return 0;
        *now_ns = stk_now_ns();
        if (*now_ns >= deadline_ns || atomic_load(&slots->interrupted))
            return STOKER_TIMEOUT;
        if (in_vain)
            rc = wait_for_oldest(loader, deadline_ns, *now_ns);
        else if (deadline_ns - *now_ns > COPY_POLL_NS)
            (void)wait_for_batch(loader, *now_ns + COPY_POLL_NS, now_ns);
        else
            (void)wait_for_batch(loader, deadline_ns, now_ns);
        if (rc < 0)
            return rc;
    }
    if (rc == 0 && !wait_for_batch(loader, deadline_ns, now_ns))
        rc = STOKER_TIMEOUT;
    return rc;
}

/* Wait on the host for the copy of the next batch. */
static int wait_for_copy(stoker_loader *loader, uint64_t deadline_ns)
{
    struct stk_transfer *transfer = &loader->transfer;
    stk_ledger_add(&loader->ledger.copy_waits, 1);
    const int done = transfer->device->ops->wait(transfer->device,
                                                 stk_transfer_usable(transfer, transfer->delivered),
                                                 deadline_ns, loader->pipeline.slots.spare_core);
    return done == 0 ? STOKER_TIMEOUT : done < 0 ? done : 0;
}

/* The buffer for the next batch to send is lent: in the way of this call only if none is sent. */
static int make_room(stoker_loader *loader, int32_t timeout_ms, uint64_t start_ns)
{
    if (!stk_transfer_sent(&loader->transfer))
        return stk_kept_make_room(loader, timeout_ms, &start_ns);
    stk_kept_look_ahead(loader);
    return 0;
}

static int send_next(stoker_loader *loader, int32_t timeout_ms, uint64_t start_ns, uint64_t *now_ns)
{
    struct stk_transfer *transfer = &loader->transfer;
    const uint64_t deadline_ns = stk_loader_deadline(timeout_ms, start_ns);
    if (stk_device_failure(transfer->device) != NULL)
        return STOKER_EDEVICE; /* found by wait_on, release_on or a deleter */
    int rc = stk_transfer_retire(transfer);
    if (rc == 0 && !stk_transfer_has_room(transfer))
        rc = make_room(loader, timeout_ms, start_ns);
    if (rc == 0 && !stk_transfer_sent(transfer)) {
        rc = wait_beside_copies(loader, deadline_ns, now_ns);
        if (rc == 0)
            rc = stk_deliver_send(loader);
    }
    if (rc != 0)
        return rc;
    return loader->options.non_blocking ? stk_deliver_send_ahead(loader)
                                        : wait_for_copy(loader, deadline_ns);
}

static int fail_device(stoker_loader *loader)
{
    const struct stk_place nowhere = STK_NOWHERE;
    const char *failure = stk_device_failure(loader->device);
    stoker_error error;
    (void)stk_error_set(&error, STOKER_EDEVICE, STOKER_STAGE_TRANSFER, &nowhere, "%s",
                        failure == NULL ? loader->device->ops->name : failure);
    return stk_deliver_fail(loader, &error);
}

static int next_on_device(stoker_loader *loader, stoker_batch *batch, int32_t timeout_ms)
{
    const uint64_t before_ns = stk_now_ns();
    uint64_t now_ns = before_ns;
    const bool waits = !stk_transfer_sent(&loader->transfer) || !loader->options.non_blocking;
    const int rc = send_next(loader, timeout_ms, before_ns, &now_ns);
    if (waits && rc != STOKER_BUSY)
        stk_loader_count_stall(loader, before_ns, stk_now_ns());
    if (rc == STOKER_EDEVICE && !atomic_load_explicit(&loader->failed, memory_order_relaxed))
        return fail_device(loader);
    if (rc == 0)
        stk_deliver_sent(loader, batch);
    return rc;
}

static bool take_interrupt(stoker_loader *loader)
{
    _Atomic bool *const interrupted = &loader->pipeline.slots.interrupted;
    return atomic_load_explicit(interrupted, memory_order_relaxed) &&
           atomic_exchange(interrupted, false);
}

int stoker_loader_interrupt(stoker_loader *loader)
{
    if (loader == NULL)
        return STOKER_EINVAL;
    if (stk_fork_guard_tripped(&loader->guard))
        return STOKER_EFORKED;
    stk_slots_interrupt(&loader->pipeline.slots);
    return STOKER_OK;
}

static int next(stoker_loader *loader, stoker_batch *batch, int32_t timeout_ms)
{
    if (atomic_load_explicit(&loader->failed, memory_order_relaxed))
        return loader->error.code;
    if (take_interrupt(loader))
        return STOKER_INTERRUPTED;
    if (loader->end_pending) {
        loader->end_pending = false;
        stk_kept_end_epoch(loader);
        loader->state_epoch++;
        loader->state_position = 0;
        return STOKER_EPOCH_END;
    }
    stk_leases_collect(&loader->leases);
    if ((loader->on_device ? loader->transfer.delivered : loader->pipeline.slots.head) >=
        loader->pipeline.slots.batches)
        return STOKER_FINISHED;
    int rc = loader->on_device ? next_on_device(loader, batch, timeout_ms)
                               : next_in_place(loader, batch, timeout_ms);
    if (rc == STOKER_OK) {
        note_first_batch(loader);
        tune(loader);
    }
    const bool in_vain = rc == STOKER_TIMEOUT || rc == STOKER_BUSY;
    return in_vain && take_interrupt(loader) ? STOKER_INTERRUPTED : rc;
}

static int take_turn(stoker_loader *loader, stoker_batch *out, int32_t timeout_ms)
{
    const size_t size = out->struct_size;
    stk_leases_begin_turn(&loader->leases);
    const int rc = next(loader, out, timeout_ms);
    stk_log_update(loader);
    stk_poll_update(loader);
    stk_poll_paused(loader, rc);
    stk_leases_end_turn(&loader->leases);
    if (rc == STOKER_OK)
        out->struct_size = size;
    return rc;
}

/* The caller's struct is of another version. */
static int take_turn_resized(stoker_loader *loader, stoker_batch *batch, int32_t timeout_ms)
{
    stoker_batch ours = { .struct_size = sizeof(ours) };
    const int rc = take_turn(loader, &ours, timeout_ms);
    if (rc == STOKER_OK)
        stk_struct_write(batch, batch->struct_size, &ours, sizeof(ours));
    return rc;
}

/* Refuse a call whose arguments cannot be right; stoker_loader_error() says why. */
static int check_next(stoker_loader *loader, const stoker_batch *batch, int32_t timeout_ms)
{
    const struct stk_place nowhere = STK_NOWHERE;
    const char *why = NULL;
    if (batch == NULL)
        why = "batch is NULL";
    else if (!stk_struct_size_fits(batch->struct_size, STK_SIZE_UP_TO(stoker_batch, turn)))
        why = "batch->struct_size is not set: start from STOKER_BATCH_INIT";
    else if (timeout_ms < -1)
        why = "timeout_ms is below -1";
    else if (batch->loader == loader && stk_batch_is_lent(loader, batch->lease, batch->turn))
        why = "the batch is still lent: release it, or pass another stoker_batch";
    atomic_store_explicit(&loader->misused, why != NULL, memory_order_relaxed);
    if (why == NULL)
        return STOKER_OK;
    return stk_error_set(&loader->misuse, STOKER_EINVAL, STOKER_STAGE_WAIT, &nowhere,
                         "stoker_loader_next: %s", why);
}

int stoker_loader_next(stoker_loader *loader, stoker_batch *batch, int32_t timeout_ms)
{
    if (loader == NULL)
        return STOKER_EINVAL;
    if (stk_fork_guard_tripped(&loader->guard))
        return STOKER_EFORKED;
    if (check_next(loader, batch, timeout_ms) != STOKER_OK)
        return STOKER_EINVAL;
    return batch->struct_size == sizeof(*batch) ? take_turn(loader, batch, timeout_ms)
                                                : take_turn_resized(loader, batch, timeout_ms);
}

/* ---- queries ---- */

const stoker_error *stoker_loader_error(const stoker_loader *loader)
{
    static const stoker_error forked = {
        .code = STOKER_EFORKED,
        .stage = STOKER_STAGE_WAIT,
        .offset = STOKER_NO_OFFSET,
        .sample = STOKER_NO_SAMPLE,
        .message = "the loader belongs to the parent process",
    };
    if (loader == NULL)
        return NULL;
    if (stk_fork_guard_tripped(&loader->guard))
        return &forked;
    if (atomic_load_explicit(&loader->misused, memory_order_relaxed))
        return &loader->misuse;
    return atomic_load_explicit(&loader->failed, memory_order_acquire) ? &loader->error : NULL;
}

int stoker_loader_state(const stoker_loader *loader, void *state, size_t capacity, size_t *size,
                        stoker_error *error)
{
    if (loader == NULL)
        return stk_refuse_option(error, STOKER_EINVAL, "state: loader is NULL");
    if (stk_fork_guard_tripped(&loader->guard))
        return stk_refuse_option(error, STOKER_EFORKED,
                                 "state: the loader belongs to the parent process");
    const size_t needed = stk_state_size(&loader->mix);
    if (size != NULL)
        *size = needed;
    if (state == NULL)
        return STOKER_OK;
    if (capacity < needed)
        return stk_refuse_option(error, STOKER_ELIMIT,
                                 "state: capacity is %zu bytes, the state has %zu", capacity,
                                 needed);
    struct stk_resume resume = stk_state_start(loader->pipeline.dataset, &loader->options);
    resume.order_hash = loader->order_hash;
    resume.epoch = loader->state_epoch;
    resume.position = loader->state_position;
    stk_state_write(state, &resume, &loader->mix);
    return STOKER_OK;
}

int32_t stoker_loader_find_field(const stoker_loader *loader, const char *name)
{
    if (loader == NULL || name == NULL)
        return -1;
    for (uint32_t i = 0; i < loader->outputs.count; i++)
        if (strcmp(loader->outputs.each[i].view.name, name) == 0)
            return (int32_t)i;
    return -1;
}

uint64_t stoker_loader_batches_per_epoch(const stoker_loader *loader)
{
    return loader == NULL ? 0 : loader->pipeline.schedule.epoch_batches;
}

int stoker_loader_bad_sample(const stoker_loader *loader, uint64_t index, stoker_error *out)
{
    if (loader == NULL || out == NULL)
        return STOKER_EINVAL;
    if (stk_fork_guard_tripped(&loader->guard))
        return STOKER_EFORKED;
    /* const to callers does not include the lock inside. */
    return stk_bad_samples_report((struct stk_bad_samples *)&loader->bad_samples, index, out)
               ? STOKER_OK
               : STOKER_EINVAL;
}
