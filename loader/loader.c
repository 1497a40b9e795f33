/* loader.c - the consumer's side: batches in order, one at a time.
 *
 *   { next ─▶ release }*          in one thread
 */
#include <string.h>

#include <stoker/stoker.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/base/thread.h"
#include "loader/loader.h"
#include "loader/state.h"

enum {
    TUNE_EVERY = 16,         /* batches between two looks at the clock */
    HAND_WINDOW_NS = 5000000 /* over which the consumer's waiting is judged */
};

/* ---- next and release ---- */

/* End the run with this error, which every later call returns, too. */
static int fail(stoker_loader *loader, const stoker_error *error)
{
    loader->error = *error;
    atomic_store_explicit(&loader->failed, true, memory_order_release);
    return error->code;
}

/* File what the workers noted about the rows of a batch. */
static int file_failures(stoker_loader *loader, struct stk_slot *slot, uint32_t rows)
{
    for (uint32_t row = 0; row < rows; row++) {
        if (slot->row_bad[row] == STK_ROW_GOOD)
            continue;
        const struct stk_failure *failure = &slot->failures[row];
        const struct stk_place place = {
            .path = failure->path,
            .offset = failure->offset,
            .sample = failure->sample,
            .os_errno = failure->os_errno,
        };
        stoker_error report;
        (void)stk_error_set(&report, failure->code, (stoker_stage)failure->stage, &place,
                            failure->detail[0] != '\0' ? "%s" : NULL, failure->detail);
        stk_ledger_add(&loader->ledger.bad_samples, 1);
        if (stk_bad_file(&loader->bad, &report) == STOKER_EBADSAMPLES) {
            (void)stk_error_set(&report, STOKER_EBADSAMPLES, (stoker_stage)failure->stage, &place,
                                "more than %llu",
                                (unsigned long long)loader->options.max_bad_samples);
            return fail(loader, &report);
        }
    }
    return 0;
}

/* Close the gaps that skipped rows leave; returns how many rows remain. */
static uint32_t close_gaps(stoker_loader *loader, struct stk_slot *slot, uint32_t rows)
{
    const struct stk_road *road = &loader->road;
    const size_t row_bytes = road->convert.to_bytes;
    const size_t label_bytes = stoker_dtype_bytes(road->dataset->info.label_dtype);
    uint32_t kept = 0;
    for (uint32_t row = 0; row < rows; row++) {
        if (slot->row_bad[row] == STK_ROW_SKIPPED)
            continue;
        if (kept != row) {
            memcpy(stk_road_row(road, slot, kept), stk_road_row(road, slot, row), row_bytes);
            slot->ids[kept] = slot->ids[row];
            if (slot->labels != NULL)
                memcpy((uint8_t *)slot->labels + kept * label_bytes,
                       (uint8_t *)slot->labels + row * label_bytes, label_bytes);
        }
        kept++;
    }
    return kept;
}

/* What the consumer sees of a slot. */
static void describe(stoker_loader *loader, const struct stk_slot *slot,
                     const struct stk_batch_place *place, uint32_t rows, stoker_batch *batch)
{
    const stoker_dataset_info *set = &loader->road.dataset->info;
    *batch = (stoker_batch){
        .images = { .data = slot->images, .dtype = loader->options.dtype, .rank = set->rank + 1 },
        .labels = { .data = slot->labels, .dtype = set->label_dtype, .rank = 1 },
        .ids = slot->ids,
        .count = rows,
        .epoch = place->epoch,
        .index = place->index,
        .loader = loader,
        .turn = loader->road.slots.head,
    };
    batch->images.shape[0] = rows;
    batch->labels.shape[0] = rows;
    memcpy(&batch->images.shape[1], set->shape, set->rank * sizeof(set->shape[0]));
    if (loader->options.layout == STOKER_NCHW) { /* checked at create: height, width, channels */
        batch->images.shape[1] = set->shape[2];
        batch->images.shape[2] = set->shape[0];
        batch->images.shape[3] = set->shape[1];
    }
}

static int deliver(stoker_loader *loader, stoker_batch *batch)
{
    struct stk_slots *slots = &loader->road.slots;
    struct stk_slot *slot = stk_slots_of(slots, slots->head);
    const struct stk_batch_place place = stk_schedule_place(&loader->road.schedule, slots->head);
    uint32_t rows = place.rows;
    if (slot->failure_row != UINT32_MAX) {
        stk_ledger_add(&loader->ledger.bad_samples, 1);
        return fail(loader, &slot->failure);
    }
    if (atomic_load_explicit(&slot->bad_rows, memory_order_relaxed) > 0) {
        int rc = file_failures(loader, slot, rows);
        if (rc < 0)
            return rc;
        rows = close_gaps(loader, slot, rows);
    }
    describe(loader, slot, &place, rows, batch);
    loader->state_epoch = place.epoch;
    loader->state_position = stk_schedule_position_after(&loader->road.schedule, &place);
    loader->end_pending = place.last;
    slots->head++;
    slots->lent++;
    stk_ledger_add(&loader->ledger.batches, 1);
    stk_ledger_add(&loader->ledger.samples, rows);
    stk_ledger_add(&loader->ledger.bytes, rows * loader->road.convert.to_bytes);
    return STOKER_OK;
}

/* Wait for the head batch, working instead of sleeping where that is called for. What the hand
 * claimed in an earlier call may be the head itself: it is done in any case. */
static bool wait_with_hand(stoker_loader *loader, uint64_t deadline_ns, uint64_t *now_ns)
{
    struct stk_slots *slots = &loader->road.slots;
    const bool lends = atomic_load_explicit(&loader->lends_hand, memory_order_relaxed);
    stk_slots_note_cpu(slots);
    while (lends || stk_worker_holds_span(&loader->hand)) {
        if (!stk_worker_help(&loader->hand, lends, now_ns))
            break;
        if (stk_slots_ready(slots))
            return true;
        if (*now_ns >= deadline_ns && !stk_worker_holds_span(&loader->hand))
            return false;
    }
    return stk_slots_wait_ready(slots, deadline_ns, now_ns);
}

static bool wait_for_batch(stoker_loader *loader)
{
    struct stk_slots *slots = &loader->road.slots;
    const bool keeps_reading = !loader->threads && loader->road.reads; /* in this call, too */
    if (stk_slots_ready(slots) && !keeps_reading)
        return true;
    const uint64_t before_ns = stk_now_ns();
    const uint64_t deadline_ns =
        loader->options.timeout_ms < 0
            ? UINT64_MAX
            : before_ns + (uint64_t)loader->options.timeout_ms * UINT64_C(1000000);
    uint64_t now_ns = before_ns;
    bool ready;
    if (!loader->threads)
        ready = stk_worker_make_batch(&loader->workers[0], slots->head, deadline_ns, &now_ns);
    else if (loader->has_hand)
        ready = wait_with_hand(loader, deadline_ns, &now_ns);
    else
        ready = stk_slots_wait_ready(slots, deadline_ns, &now_ns);
    stk_ledger_add(&loader->ledger.stall_ns, now_ns - before_ns);
    stk_ledger_add(&loader->ledger.stalls, 1);
    return ready;
}

/* Run so many workers from now on, the consumer's hand among them if it is lent. */
static void run_workers(stoker_loader *loader, uint32_t workers, bool lends_hand)
{
    loader->road.slots.workers = workers;
    loader->road.slots.spare_core = loader->cpus > workers;
    atomic_store(&loader->lends_hand, lends_hand);
    atomic_store(&loader->road.active_workers, workers - (lends_hand ? 1 : 0));
    stk_futex_wake(&loader->road.active_workers, UINT32_MAX);
}

/* Whether the consumer should do a worker's share: where every core works and it waits for more
 * than half of the time. It stops once it waits for less than a quarter. */
static bool judge_hand(stoker_loader *loader, uint64_t now_ns, uint64_t stall_ns)
{
    const bool lends = atomic_load_explicit(&loader->lends_hand, memory_order_relaxed);
    const uint64_t span_ns = now_ns - loader->hand_window_ns;
    if (span_ns < HAND_WINDOW_NS)
        return lends;
    const uint64_t waited_ns = stall_ns - loader->hand_stall_ns;
    const bool first = loader->hand_window_ns == 0;
    loader->hand_window_ns = now_ns;
    loader->hand_stall_ns = stall_ns;
    if (first || !loader->has_hand || loader->tuner.workers < 2 ||
        loader->cpus > loader->tuner.workers)
        return false;
    return waited_ns > span_ns / (lends ? 4 : 2);
}

static void tune(stoker_loader *loader)
{
    const uint64_t batches = stk_ledger_read(&loader->ledger.batches);
    if (!loader->threads || batches % TUNE_EVERY != 0)
        return;
    const uint64_t now_ns = stk_now_ns();
    const uint64_t stall_ns = stk_ledger_read(&loader->ledger.stall_ns);
    const uint32_t before = loader->tuner.workers;
    const bool lent = atomic_load_explicit(&loader->lends_hand, memory_order_relaxed);
    const uint32_t workers =
        loader->tuned ? stk_tuner_step(&loader->tuner, now_ns, batches, stall_ns) : before;
    const bool lends = judge_hand(loader, now_ns, stall_ns);
    if (workers != before || lends != lent)
        run_workers(loader, workers, lends);
}

static void note_first_batch(stoker_loader *loader)
{
    if (stk_ledger_read(&loader->ledger.first_batch_ns) == 0)
        stk_ledger_add(&loader->ledger.first_batch_ns, stk_now_ns() - loader->created_ns);
}

int stoker_loader_next(stoker_loader *loader, stoker_batch *batch)
{
    if (loader == NULL || batch == NULL)
        return STOKER_EINVAL;
    if (stk_fork_guard_tripped(&loader->guard))
        return STOKER_EFORKED;
    struct stk_slots *slots = &loader->road.slots;
    if (atomic_load_explicit(&loader->failed, memory_order_relaxed))
        return loader->error.code;
    if (loader->end_pending) {
        loader->end_pending = false;
        loader->state_epoch++;
        loader->state_position = 0;
        return STOKER_EPOCH_END;
    }
    if (slots->head >= slots->batches)
        return STOKER_FINISHED;
    if (stk_slots_head_lent(slots)) /* of the others some may be free: batches come in order */
        return STOKER_EBUSY;
    if (!wait_for_batch(loader))
        return STOKER_ETIMEDOUT;
    int rc = deliver(loader, batch);
    if (rc == STOKER_OK) {
        note_first_batch(loader);
        tune(loader);
    }
    return rc;
}

void stoker_batch_release(stoker_batch *batch)
{
    if (batch == NULL || batch->loader == NULL)
        return;
    stoker_loader *loader = batch->loader;
    const uint64_t turn = batch->turn;
    *batch = (stoker_batch){ .count = 0 };
    if (!stk_fork_guard_tripped(&loader->guard))
        stk_slots_release(&loader->road.slots, turn);
}

/* ---- looking at a loader ---- */

const stoker_error *stoker_loader_error(const stoker_loader *loader)
{
    if (loader == NULL || !atomic_load_explicit(&loader->failed, memory_order_acquire))
        return NULL;
    return &loader->error;
}

int stoker_loader_state(const stoker_loader *loader, stoker_state *out)
{
    if (loader == NULL || out == NULL)
        return STOKER_EINVAL;
    if (stk_fork_guard_tripped(&loader->guard))
        return STOKER_EFORKED;
    const struct stk_resume resume = {
        .seed = loader->options.seed,
        .epoch = loader->state_epoch,
        .position = loader->state_position,
        .count = loader->road.dataset->info.count,
        .row_bytes = loader->road.dataset->row_bytes,
        .shuffle = loader->options.shuffle,
    };
    stk_state_pack(out, &resume);
    return STOKER_OK;
}

uint64_t stoker_loader_batches_per_epoch(const stoker_loader *loader)
{
    return loader == NULL ? 0 : loader->road.schedule.epoch_batches;
}

int stoker_loader_bad_sample(const stoker_loader *loader, uint64_t index, stoker_error *out)
{
    if (loader == NULL || out == NULL)
        return STOKER_EINVAL;
    if (stk_fork_guard_tripped(&loader->guard))
        return STOKER_EFORKED;
    /* The lock inside is not part of what the caller sees as const. */
    return stk_bad_report((struct stk_bad *)&loader->bad, index, out) ? STOKER_OK : STOKER_EINVAL;
}
