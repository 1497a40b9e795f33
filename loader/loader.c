/* loader.c - composes the road: options in, batches out, in order, to one consumer.
 *
 *   create ─▶ { next ─▶ release }* ─▶ destroy          all but stats in one thread
 *
 * What a batch holds is decided by road/schedule and sampler/ alone; who makes it, and when,
 * by road/slots and road/worker. This file knows both sides and adds nothing to either.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stoker/stoker.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/base/fork.h"
#include "loader/base/thread.h"
#include "loader/options.h"
#include "loader/reader/choose.h"
#include "loader/road/road.h"
#include "loader/road/tuner.h"
#include "loader/road/worker.h"
#include "loader/state.h"

struct stoker_loader {
    struct stk_fork_guard guard;
    struct stk_road road;
    bool has_bad; /* bad is made */
    struct stk_bad bad;
    stoker_file *files;
    stoker_loader_options options;
    char reader_reason[128];

    struct stk_worker *workers; /* worker_count threads; or one without a thread */
    uint32_t worker_count;
    uint32_t workers_made;
    bool threads; /* false: num_workers = 0 */
    bool tuned;
    struct stk_tuner tuner;
    uint32_t cpus;

    /* The consumer's side. */
    struct stk_ledger_consumer ledger;
    uint64_t created_ns;
    bool end_pending;     /* the epoch's last batch is delivered, its end not yet told */
    uint64_t state_epoch; /* where a resume would go on */
    uint64_t state_position;
    _Atomic bool failed; /* release pairs with acquire in stoker_loader_error */
    stoker_error error;
};

enum {
    SPAN_BYTES_RAW = 401408,    /* rows that make a ticket: about 50 us of gathering, */
    SPAN_BYTES_DECODED = 65536, /* or of decoding */
    BLOCK_BYTES = 65536,        /* rows that one read brings into the cache */
    READ_DEPTH = 128,           /* where hot and cold small reads stop gaining */
    READ_WINDOW_BYTES = 8 << 20,
    RING_BYTES = 6 << 20, /* slots that still lie in the last-level cache */
    RING_SLOTS_MIN = 4,
    RING_SLOTS_MAX = 32,
    READING_WORKERS_PER_CPU = 4,
    READING_WORKERS_MAX = 32,
    TUNE_EVERY = 16 /* batches between two looks at the clock */
};

#define DESTROY_WAIT_NS UINT64_C(6000000000) /* a second more than a ring's own limit */

/* ---- create: what the machine and the data set decide ---- */

static uint32_t clamp(uint64_t value, uint32_t low, uint32_t high)
{
    return value < low ? low : value > high ? high : (uint32_t)value;
}

static uint32_t span_rows(const stoker_loader *loader)
{
    const struct stk_road *road = &loader->road;
    const uint64_t rows =
        (road->decodes ? SPAN_BYTES_DECODED : SPAN_BYTES_RAW) / road->dataset->row_bytes;
    const uint32_t most = loader->options.batch_size < STK_SPAN_ROWS_MAX
                              ? loader->options.batch_size
                              : STK_SPAN_ROWS_MAX;
    return clamp(rows, 1, most);
}

static void choose_workers(stoker_loader *loader)
{
    const int32_t asked = loader->options.num_workers;
    const bool reads = loader->road.encoded_bytes_max > 0;
    loader->cpus = stk_cpu_count();
    loader->threads = asked != 0;
    loader->tuned = asked == STOKER_WORKERS_AUTO;
    loader->worker_count = asked == 0 ? 1 : (uint32_t)asked;
    if (loader->tuned) /* waiting for storage costs no CPU: more may help */
        loader->worker_count =
            clamp(reads ? (uint64_t)loader->cpus * READING_WORKERS_PER_CPU : loader->cpus, 1,
                  loader->cpus > READING_WORKERS_MAX ? loader->cpus : READING_WORKERS_MAX);
    uint32_t first = loader->tuned ? loader->cpus : loader->worker_count;
    atomic_init(&loader->road.active_workers, first);
    stk_tuner_init(&loader->tuner, first, loader->worker_count);
}

static uint32_t slot_count(const stoker_loader *loader)
{
    const struct stk_road *road = &loader->road;
    if (loader->options.prefetch_batches > 0)
        return loader->options.prefetch_batches;
    if (!loader->threads)
        return 2; /* one is lent, one is made */
    const size_t batch_bytes = road->convert.to_bytes * loader->options.batch_size;
    uint64_t slots = clamp(RING_BYTES / batch_bytes, RING_SLOTS_MIN, RING_SLOTS_MAX);
    /* Each worker's reads need slots to go to, and no worker should wait for another's. */
    uint64_t in_flight =
        road->encoded_bytes_max > 0 && road->cache.kind == STOKER_CACHE_NONE
            ? (uint64_t)loader->tuner.workers * road->read_depth / loader->options.batch_size
            : 0;
    if (slots < loader->tuner.workers + 2U + in_flight)
        slots = loader->tuner.workers + 2U + in_flight;
    return clamp(slots, 2, STOKER_PREFETCH_MAX);
}

static int make_convert(stoker_loader *loader)
{
    const stoker_dataset_info *set = &loader->road.dataset->info;
    const struct stk_convert_options convert = {
        .from = set->dtype,
        .to = loader->options.dtype,
        .layout = loader->options.layout,
        .elements = loader->road.dataset->row_bytes / stoker_dtype_bytes(set->dtype),
        .channels = set->rank > 0 && set->shape[set->rank - 1] <= STK_CHANNELS_MAX
                        ? (uint32_t)set->shape[set->rank - 1]
                        : 1,
        .scale = loader->options.scale,
        .mean = loader->options.mean,
        .std = loader->options.std,
        .mean_count = loader->options.mean_count,
    };
    int rc = stk_convert_plan_init(&loader->road.convert, &convert);
    loader->road.copies =
        loader->road.convert.copies && (convert.layout == STOKER_NHWC || convert.channels == 1);
    return rc;
}

/* What sample 0 is like tells what all are like, as far as choices of speed go. */
static int look_at_samples(stoker_loader *loader, bool *in_memory, stoker_error *error)
{
    stoker_sample sample;
    int rc = stoker_dataset_locate(loader->road.dataset, 0, &sample, error);
    if (rc < 0)
        return rc;
    *in_memory = sample.extent.memory != NULL;
    loader->road.decodes = sample.codec != NULL;
    loader->road.encoded_bytes_max = loader->road.dataset->info.file_count > 0
                                         ? loader->road.dataset->info.encoded_bytes_max
                                         : 0;
    return 0;
}

static int make_cache(stoker_loader *loader, bool in_memory)
{
    const stoker_dataset *dataset = loader->road.dataset;
    const size_t row_bytes = dataset->row_bytes;
    const uint64_t count = dataset->info.count;
    const uint64_t budget =
        loader->options.cache_bytes > 0 ? loader->options.cache_bytes : stk_memory_available() / 2;
    const size_t encoded = loader->road.encoded_bytes_max;

    stoker_cache kind = loader->options.cache;
    if (in_memory && !loader->road.decodes)
        kind = STOKER_CACHE_NONE; /* the data set itself is the cache */
    else if (kind == STOKER_CACHE_AUTO && count <= budget / row_bytes)
        kind = STOKER_CACHE_DECODED;
    else if (kind == STOKER_CACHE_AUTO)
        kind = encoded > 0 && count <= budget / encoded ? STOKER_CACHE_ENCODED : STOKER_CACHE_NONE;

    uint32_t block_rows = 1;
    while (dataset->info.dense && block_rows * 2 * row_bytes <= BLOCK_BYTES)
        block_rows *= 2;
    const struct stk_cache_options cache = {
        .kind = kind,
        .budget_bytes = budget,
        .count = count,
        .stride_bytes = kind == STOKER_CACHE_ENCODED ? encoded : row_bytes,
        .block_rows = block_rows,
    };
    return stk_cache_init(&loader->road.cache, &cache);
}

static int make_reader(stoker_loader *loader, stoker_error *error)
{
    struct stk_road *road = &loader->road;
    const uint32_t file_count = road->dataset->info.file_count;
    const char *named = getenv("STOKER_READER");
    road->reader_forced = loader->options.reader != NULL || (named != NULL && named[0] != '\0');
    if (loader->options.reader != NULL) {
        road->reader = loader->options.reader;
        (void)snprintf(loader->reader_reason, sizeof(loader->reader_reason),
                       "given in the options");
    } else {
        int rc = stk_reader_choose(&road->reader, loader->reader_reason,
                                   sizeof(loader->reader_reason), error);
        if (rc < 0)
            return rc;
    }
    loader->files = stk_calloc((size_t)file_count + 1, sizeof(loader->files[0]));
    if (loader->files == NULL)
        return STOKER_ENOMEM;
    for (uint32_t i = 0; i < file_count; i++) {
        int rc = road->dataset->ops->file(road->dataset->self, i, &loader->files[i]);
        if (rc < 0)
            return rc;
    }
    road->files = loader->files;

    road->read_depth = loader->options.read_depth;
    if (road->read_depth == 0)
        road->read_depth = clamp(READ_WINDOW_BYTES / (road->encoded_bytes_max + 1), 2, READ_DEPTH);
    return 0;
}

static int make_schedule(stoker_loader *loader, stoker_error *error)
{
    const stoker_loader_options *options = &loader->options;
    const stoker_dataset *dataset = loader->road.dataset;
    struct stk_resume resume = {
        .seed = options->seed,
        .count = dataset->info.count,
        .row_bytes = dataset->row_bytes,
        .shuffle = options->shuffle,
    };
    if (options->resume != NULL) {
        const struct stk_resume expected = resume;
        int rc = stk_state_unpack(&resume, options->resume, &expected, error);
        if (rc < 0)
            return rc;
    }
    const struct stk_schedule_options schedule = {
        .count = dataset->info.count,
        .batch_size = options->batch_size,
        .rank = options->rank,
        .world_size = options->world_size,
        .drop_last = options->drop_last,
        .span_rows = span_rows(loader),
        .epochs = options->epochs,
        .first_epoch = resume.epoch,
        .first_position = resume.position,
    };
    stk_schedule_init(&loader->road.schedule, &schedule);
    stk_sampler_init(&loader->road.sampler, dataset->info.count, options->seed, options->shuffle);
    loader->state_epoch = resume.epoch;
    loader->state_position = resume.position;
    /* Resumed after an epoch's last batch: its end is still to be told. */
    loader->end_pending = loader->road.schedule.first_batches == 0 &&
                          (options->epochs == 0 || resume.epoch < options->epochs);
    return 0;
}

static int make_slots(stoker_loader *loader, stoker_error *error)
{
    const stoker_dataset_info *set = &loader->road.dataset->info;
    const struct stk_slots_options slots = {
        .slot_count = slot_count(loader),
        .batch_size = loader->options.batch_size,
        .batch_spans = loader->road.schedule.batch_spans,
        .row_bytes = loader->road.convert.to_bytes,
        .label_bytes = stoker_dtype_bytes(set->label_dtype),
        .pin_memory = loader->options.pin_memory,
        .keep_failures = loader->options.on_bad_sample != STOKER_BAD_FAIL,
        .batches = loader->road.schedule.batches,
    };
    int rc = stk_slots_init(&loader->road.slots, &slots);
    if (rc == STOKER_EPIN) {
        const struct stk_place nowhere = STK_NOWHERE;
        return stk_error_set(error, rc, STOKER_STAGE_OPTIONS, &nowhere, "pin_memory is ON, but %s",
                             loader->road.slots.pin_reason);
    }
    return rc;
}

static int make_workers(stoker_loader *loader, stoker_error *error)
{
    loader->workers = stk_calloc(loader->worker_count, sizeof(loader->workers[0]));
    if (loader->workers == NULL)
        return STOKER_ENOMEM;
    for (; loader->workers_made < loader->worker_count; loader->workers_made++) {
        int rc = stk_worker_init(&loader->workers[loader->workers_made], &loader->road,
                                 loader->workers_made);
        if (rc < 0)
            return rc;
    }
    if (!loader->threads)
        return stk_worker_open_ring(&loader->workers[0], error);
    for (uint32_t i = 0; i < loader->worker_count; i++) {
        int rc = stk_worker_start(&loader->workers[i]);
        if (rc < 0)
            return rc;
    }
    for (uint32_t i = 0; i < loader->worker_count; i++) {
        int rc = stk_worker_wait_started(&loader->workers[i], error);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int make_road(stoker_loader *loader, stoker_error *error)
{
    bool in_memory = false;
    int rc = stk_fork_guard_init(&loader->guard);
    if (rc == 0)
        rc = stk_bad_init(&loader->bad, loader->options.on_bad_sample,
                          loader->options.max_bad_samples);
    loader->has_bad = rc == 0;
    loader->road.on_bad = loader->options.on_bad_sample;
    if (rc == 0)
        rc = make_convert(loader);
    if (rc == 0)
        rc = look_at_samples(loader, &in_memory, error);
    if (rc == 0)
        rc = make_cache(loader, in_memory);
    if (rc == 0)
        rc = make_reader(loader, error);
    if (rc == 0)
        rc = make_schedule(loader, error);
    if (rc != 0)
        return rc;
    choose_workers(loader);
    rc = make_slots(loader, error);
    loader->road.slots.spare_core = loader->cpus > loader->tuner.workers;
    loader->road.looks_ahead =
        !loader->threads || loader->road.slots.slot_count > 2 * loader->worker_count + 1;
    return rc == 0 ? make_workers(loader, error) : rc;
}

int stoker_loader_create(stoker_loader **out, const stoker_dataset *dataset,
                         const stoker_loader_options *given)
{
    if (out == NULL || dataset == NULL)
        return STOKER_EINVAL;
    stoker_error error = { .code = 0 };
    stoker_loader_options options;
    stoker_loader *loader = NULL;
    int rc = stk_options_resolve(&options, given, dataset, &error);
    if (rc == 0) {
        loader = stk_calloc(1, sizeof(*loader));
        rc = loader == NULL ? STOKER_ENOMEM : 0;
    }
    if (rc == 0) {
        loader->options = options;
        loader->road.dataset = dataset;
        rc = make_road(loader, &error);
    }
    if (rc == 0) {
        loader->created_ns = stk_now_ns();
        *out = loader;
        return STOKER_OK;
    }
    if (error.code != rc) { /* nobody told more than the code */
        const struct stk_place nowhere = STK_NOWHERE;
        (void)stk_error_set(&error, rc, STOKER_STAGE_OPTIONS, &nowhere, "loader create");
    }
    if (given != NULL && given->struct_size == sizeof(*given) && given->error != NULL)
        *given->error = error;
    stoker_loader_destroy(&loader);
    return rc;
}

/* ---- destroy ---- */

/* Whether every worker has gone; those that have not keep their memory. */
static bool stop_workers(stoker_loader *loader)
{
    if (loader->workers == NULL)
        return true;
    stk_slots_stop(&loader->road.slots);
    atomic_store(&loader->road.active_workers, UINT32_MAX); /* those at rest wake, too */
    stk_futex_wake(&loader->road.active_workers, UINT32_MAX);

    const uint64_t deadline_ns = stk_now_ns() + DESTROY_WAIT_NS;
    bool all_gone = true;
    for (uint32_t i = 0; i < loader->workers_made; i++) {
        struct stk_worker *worker = &loader->workers[i];
        if (!loader->threads)
            stk_worker_close_ring(worker, (int64_t)DESTROY_WAIT_NS);
        (void)stk_worker_join(worker, deadline_ns);
        all_gone = all_gone && !worker->stuck;
    }
    return all_gone;
}

void stoker_loader_destroy(stoker_loader **out)
{
    if (out == NULL || *out == NULL)
        return;
    stoker_loader *loader = *out;
    *out = NULL;
    if (loader->guard.page.base != NULL && stk_fork_guard_tripped(&loader->guard))
        return; /* the parent's: its threads and rings are not here */
    if (!stop_workers(loader))
        return; /* a device still writes to our memory: leak it, never free it */
    for (uint32_t i = 0; i < loader->workers_made; i++)
        stk_worker_destroy(&loader->workers[i]);
    stk_free(loader->workers);
    stk_slots_destroy(&loader->road.slots);
    stk_cache_destroy(&loader->road.cache);
    if (loader->has_bad)
        stk_bad_destroy(&loader->bad);
    stk_free(loader->files);
    stk_fork_guard_destroy(&loader->guard);
    stk_free(loader);
}

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
            .path = failure->file == UINT32_MAX ? NULL : loader->files[failure->file].path,
            .offset = failure->offset,
            .sample = failure->sample,
            .os_errno = failure->os_errno,
        };
        stoker_error report;
        (void)stk_error_set(&report, failure->code, (stoker_stage)failure->stage, &place, NULL);
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
    if (slot->failure_row != UINT32_MAX)
        return fail(loader, &slot->failure);
    if (atomic_load_explicit(&slot->bad_rows, memory_order_relaxed) > 0) {
        int rc = file_failures(loader, slot, rows);
        if (rc < 0)
            return rc;
        rows = close_gaps(loader, slot, rows);
    }
    describe(loader, slot, &place, rows, batch);
    loader->state_epoch = place.epoch;
    loader->state_position = stk_schedule_position_after(&loader->road.schedule, slots->head);
    loader->end_pending = place.last;
    slots->head++;
    slots->lent++;
    stk_ledger_add(&loader->ledger.batches, 1);
    stk_ledger_add(&loader->ledger.samples, rows);
    stk_ledger_add(&loader->ledger.bytes, rows * loader->road.convert.to_bytes);
    return STOKER_OK;
}

static bool wait_for_batch(stoker_loader *loader)
{
    struct stk_slots *slots = &loader->road.slots;
    if (stk_slots_ready(slots))
        return true;
    const int64_t wait_ns =
        loader->options.timeout_ms < 0 ? -1 : (int64_t)loader->options.timeout_ms * 1000000;
    const uint64_t before_ns = stk_now_ns();
    const bool ready =
        loader->threads
            ? stk_slots_wait_ready(slots, wait_ns)
            : stk_worker_make_batch(&loader->workers[0], slots->head,
                                    wait_ns < 0 ? UINT64_MAX : before_ns + (uint64_t)wait_ns);
    stk_ledger_add(&loader->ledger.stall_ns, stk_now_ns() - before_ns);
    stk_ledger_add(&loader->ledger.stalls, 1);
    return ready;
}

static void tune(stoker_loader *loader)
{
    const uint64_t batches = stk_ledger_read(&loader->ledger.batches);
    if (!loader->tuned || batches % TUNE_EVERY != 0)
        return;
    const uint32_t before = loader->tuner.workers;
    const uint32_t now = stk_tuner_step(&loader->tuner, stk_now_ns(), batches,
                                        stk_ledger_read(&loader->ledger.stall_ns));
    if (now == before)
        return;
    loader->road.slots.spare_core = loader->cpus > now;
    atomic_store(&loader->road.active_workers, now);
    stk_futex_wake(&loader->road.active_workers, UINT32_MAX);
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
    if (slots->lent >= slots->slot_count)
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

static void sum_memory(const stoker_loader *loader, stoker_stats *stats)
{
    const struct stk_road *road = &loader->road;
    stats->slot_bytes = road->slots.memory.bytes;
    stats->cache_bytes = stk_cache_reserved_bytes(&road->cache);
    stats->cache_held_bytes = atomic_load_explicit(&road->cache.held_bytes, memory_order_relaxed);
    for (uint32_t i = 0; i < loader->worker_count; i++)
        stats->scratch_bytes += loader->workers[i].scratch.bytes;
    stats->locked_bytes = road->slots.memory.locked ? road->slots.memory.bytes : 0;
    stats->cache = road->cache.kind;
    stats->pinned = road->slots.memory.locked;
    stats->huge_pages = road->slots.memory.huge;
    memcpy(stats->pin_reason, road->slots.pin_reason, sizeof(stats->pin_reason));
}

static void sum_reader(const stoker_loader *loader, stoker_stats *stats)
{
    const uint32_t on_pread = atomic_load(&loader->road.pread_workers);
    stats->read_depth = loader->road.read_depth;
    (void)snprintf(stats->reader, sizeof(stats->reader), "%s",
                   on_pread == loader->worker_count ? stoker_reader_pread.name
                                                    : loader->road.reader->name);
    if (on_pread > 0)
        (void)snprintf(stats->reader_reason, sizeof(stats->reader_reason),
                       "%u of %u workers got no ring and use pread", on_pread,
                       loader->worker_count);
    else
        memcpy(stats->reader_reason, loader->reader_reason, sizeof(stats->reader_reason));
}

int stoker_loader_stats(const stoker_loader *loader, stoker_stats *out)
{
    if (loader == NULL || out == NULL || out->struct_size < sizeof(size_t) ||
        out->struct_size > sizeof(*out))
        return STOKER_EINVAL;
    if (stk_fork_guard_tripped(&loader->guard))
        return STOKER_EFORKED;
    stoker_stats stats = {
        .struct_size = out->struct_size,
        .batches = stk_ledger_read(&loader->ledger.batches),
        .samples = stk_ledger_read(&loader->ledger.samples),
        .bytes = stk_ledger_read(&loader->ledger.bytes),
        .bad_samples = stk_ledger_read(&loader->ledger.bad_samples),
        .elapsed_ns = stk_now_ns() - loader->created_ns,
        .first_batch_ns = stk_ledger_read(&loader->ledger.first_batch_ns),
        .stall_ns = stk_ledger_read(&loader->ledger.stall_ns),
        .stalls = stk_ledger_read(&loader->ledger.stalls),
        .workers = loader->threads ? atomic_load(&loader->road.active_workers) : 0,
        .workers_max = loader->threads ? loader->worker_count : 0,
        .cpus = loader->cpus,
        .slots = loader->road.slots.slot_count,
        .slots_ready = stk_slots_ready_count(&loader->road.slots),
    };
    for (uint32_t i = 0; i < loader->worker_count; i++)
        stk_ledger_sum(&loader->workers[i].ledger, &stats);
    sum_memory(loader, &stats);
    sum_reader(loader, &stats);
    stk_ledger_judge(&stats);
    memcpy(out, &stats, out->struct_size);
    return STOKER_OK;
}
