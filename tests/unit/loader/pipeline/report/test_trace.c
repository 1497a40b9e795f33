/* test_trace.c - a trace has each span, each batch and each read once, whichever thread did it;
 * what does not fit is counted; and what nobody asked for costs nothing.
 */
#include "loader/base/fault.h"
#include "loader/reader/readers.h"
#include "support/leaks.h"
#include "support/runs/trace_events.h"
#include "support/sets/resident_set.h"

enum { SAMPLES = 403, BATCH = 32, EPOCHS = 2, BATCHES = EPOCHS * ((SAMPLES + BATCH - 1) / BATCH) };

static struct stk_events all;

/* ---- a whole run ---- */

/* A worker that published the last batch may still have to write that down. */
static void take_the_rest(stoker_loader *loader, uint64_t batches)
{
    do
        cr_assert_eq(stk_events_take(&all, loader, 1000), STOKER_OK);
    while (stk_events_of_kind(&all, STOKER_TRACE_PUBLISH) < batches || all.recorded > all.count);
}

/* Consume everything, two batches in hand, and keep every event. */
static void record_run(const stoker_dataset *dataset, const stoker_loader_options *options,
                       stoker_stats *stats)
{
    stoker_loader *loader = NULL;
    stoker_batch held = STOKER_BATCH_INIT, batch = STOKER_BATCH_INIT;
    int rc;
    all.count = 0;
    cr_assert_eq(stoker_loader_create(&loader, dataset, options, NULL), STOKER_OK);
    while ((rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED) {
        cr_assert_geq(rc, 0);
        if (rc != STOKER_OK)
            continue;
        stoker_batch_release(&held);
        held = batch;
        batch = (stoker_batch)STOKER_BATCH_INIT;
        cr_assert_eq(stk_events_take(&all, loader, 100), STOKER_OK);
    }
    stoker_batch copy = held;
    stoker_batch_release(&held);
    stoker_batch_release(&copy); /* a second time: nothing happens, and no event is recorded */
    take_the_rest(loader, BATCHES);
    *stats = (stoker_stats){ .struct_size = sizeof(*stats) };
    cr_assert_eq(stoker_loader_stats(loader, stats), STOKER_OK);
    stoker_loader_destroy(&loader);
    cr_assert_eq(all.dropped, 0);
    cr_assert_eq(all.recorded, all.count);
}

static uint32_t rows_of(uint64_t batch)
{
    const uint32_t last = SAMPLES % BATCH;
    return batch % (BATCHES / EPOCHS) == BATCHES / EPOCHS - 1 ? last : BATCH;
}

/* Each row of each batch was claimed once. */
static void check_claims(void)
{
    static uint8_t claimed[BATCHES][BATCH];
    memset(claimed, 0, sizeof(claimed));
    for (size_t i = 0; i < all.count; i++) {
        const stoker_trace_event *event = &all.events[i];
        if (event->kind != STOKER_TRACE_CLAIM)
            continue;
        cr_assert_lt(event->batch, BATCHES);
        cr_assert_leq(event->first_row + event->rows, BATCH);
        for (uint32_t row = 0; row < event->rows; row++)
            cr_assert_eq(claimed[event->batch][event->first_row + row]++, 0);
    }
    for (uint64_t batch = 0; batch < BATCHES; batch++)
        for (uint32_t row = 0; row < BATCH; row++)
            cr_assert_eq(claimed[batch][row], row < rows_of(batch));
}

/* Claimed, then published, lent and released, each once and in this order. */
static void check_batches(void)
{
    static stoker_trace_event life[BATCHES][STOKER_TRACE_KIND_COUNT];
    memset(life, 0, sizeof(life));
    for (size_t i = 0; i < all.count; i++) {
        const stoker_trace_event *event = &all.events[i];
        const bool once = event->kind == STOKER_TRACE_PUBLISH || event->kind == STOKER_TRACE_LEND ||
                          event->kind == STOKER_TRACE_RELEASE;
        if (event->batch == STOKER_TRACE_NO_BATCH)
            continue;
        stoker_trace_event *seen = &life[event->batch][event->kind];
        cr_assert(!once || seen->end_ns == 0, "%s of batch %d again",
                  stoker_trace_name(event->kind), (int)event->batch);
        if (seen->end_ns < event->end_ns)
            *seen = *event;
    }
    for (uint64_t batch = 0; batch < BATCHES; batch++) {
        const stoker_trace_event *of = life[batch];
        cr_assert_gt(of[STOKER_TRACE_CLAIM].begin_ns, 0);
        /* Not its start: a worker that is about to count down may be overtaken by another's
         * claim. */
        cr_assert_geq(of[STOKER_TRACE_PUBLISH].end_ns, of[STOKER_TRACE_CLAIM].end_ns);
        cr_assert_geq(of[STOKER_TRACE_LEND].begin_ns, of[STOKER_TRACE_PUBLISH].begin_ns);
        cr_assert_geq(of[STOKER_TRACE_RELEASE].begin_ns, of[STOKER_TRACE_LEND].end_ns);
        cr_assert_eq(of[STOKER_TRACE_LEND].rows, rows_of(batch));
    }
}

/* Each row was converted or decoded once, and each read was submitted and came back. */
static void check_rows(const stoker_stats *stats)
{
    uint64_t made = 0, submitted = 0, came = 0;
    for (size_t i = 0; i < all.count; i++) {
        const stoker_trace_event *event = &all.events[i];
        if (event->kind == STOKER_TRACE_DECODE || event->kind == STOKER_TRACE_CONVERT)
            made += event->rows;
        else if (event->kind == STOKER_TRACE_SUBMIT)
            submitted += event->rows;
        else if (event->kind == STOKER_TRACE_READ)
            came += event->rows;
    }
    cr_assert_eq(made, (uint64_t)EPOCHS * SAMPLES);
    cr_assert_eq(submitted, came);
    cr_assert_eq(came, stats->reads);
}

static void check_threads(uint32_t workers)
{
    for (uint32_t thread = 0; thread <= workers; thread++)
        cr_assert(stk_events_nest(&all, thread), "thread %u", thread);
    for (size_t i = 0; i < all.count; i++) {
        const stoker_trace_event *event = &all.events[i];
        cr_assert_lt(event->kind, STOKER_TRACE_KIND_COUNT);
        cr_assert_leq(event->thread, workers);
        cr_assert(event->thread == 0 || event->kind < STOKER_TRACE_WAIT,
                  "worker %u says that it did the consumer's %s", event->thread,
                  stoker_trace_name(event->kind));
    }
}

static void check_run(const stoker_dataset *dataset, stoker_loader_options options)
{
    for (int32_t workers = 0; workers <= 4; workers++)
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++) {
            stoker_stats stats;
            options.num_workers = workers;
            options.cache = (stoker_cache)cache;
            options.trace_events = 1 << 13;
            record_run(dataset, &options, &stats);
            check_threads((uint32_t)workers);
            check_claims();
            check_batches();
            check_rows(&stats);
        }
}

static stoker_loader_options run_options(void)
{
    return stk_small_options(.batch_size = BATCH, .epochs = EPOCHS);
}

CleanTest(trace, records_each_span_and_batch_once)
{
    struct stk_resident_set resident = { .count = SAMPLES,
                                         .row_bytes = 50000, /* several spans a batch */
                                         .label_dtype = STOKER_DTYPE_INT64,
                                         .tells_rows = true };
    struct stk_file_set files;
    stoker_dataset *drawn = NULL;
    cr_assert(stk_resident_set_open(&resident));
    cr_assert(stk_file_set_make(&files, SAMPLES, 90, 90, 0));
    cr_assert_eq(stoker_dataset_open(&drawn, "synth:digits?count=403", NULL, NULL), STOKER_OK);
    stoker_loader_options options = run_options();
    check_run(resident.dataset, options);
    check_run(drawn, options);
    check_run(files.dataset, options);
    options.reader = &stk_reader_pread;
    options.read_depth = 3;
    options.dtype = STOKER_DTYPE_FLOAT32;
    check_run(files.dataset, options);
    stoker_dataset_close(&drawn);
    stk_file_set_remove(&files);
    stk_resident_set_close(&resident);
}

/* ---- a ring that is full ---- */

static stoker_loader *open_small(stoker_dataset **dataset, uint32_t events, int32_t workers)
{
    stoker_loader *loader = NULL;
    stoker_loader_options options = run_options();
    options.num_workers = workers;
    options.trace_events = events;
    cr_assert_eq(stoker_dataset_open(dataset, "synth:digits?count=403", NULL, NULL), STOKER_OK);
    cr_assert_eq(stoker_loader_create(&loader, *dataset, &options, NULL), STOKER_OK);
    return loader;
}

static void consume(stoker_loader *loader, int batches)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    while (batches > 0)
        if (stoker_loader_next(loader, &batch, -1) == STOKER_OK) {
            stoker_batch_release(&batch);
            batches--;
        }
}

/* Without threads, what happens is the same each time: a small ring keeps the first events. */
CleanTest(trace, a_full_ring_drops_what_comes_and_counts_it)
{
    static struct stk_events whole;
    enum { ROOM = 8 };
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = open_small(&dataset, 1 << 12, 0);
    consume(loader, BATCHES);
    cr_assert_eq(stk_events_take(&whole, loader, 7), STOKER_OK); /* in small pieces, too */
    cr_assert_eq(whole.dropped, 0);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);

    loader = open_small(&dataset, ROOM - 1, 0); /* rounded up */
    consume(loader, BATCHES / 2);
    cr_assert_eq(stk_events_take(&all, loader, 1000), STOKER_OK);
    cr_assert_eq(all.count, ROOM);
    const uint64_t dropped = all.dropped;
    cr_assert_gt(dropped, 0);
    consume(loader, 1); /* there is room again */
    cr_assert_eq(stk_events_take(&all, loader, 1000), STOKER_OK);
    cr_assert_gt(all.count, ROOM);
    cr_assert_eq(all.dropped, dropped);
    consume(loader, BATCHES - BATCHES / 2 - 1);
    cr_assert_eq(stk_events_take(&all, loader, 1000), STOKER_OK);
    cr_assert_eq(all.recorded, all.count);
    cr_assert_eq(all.recorded + all.dropped, whole.recorded);
    for (size_t i = 0; i < ROOM; i++) {
        cr_assert_eq(all.events[i].kind, whole.events[i].kind);
        cr_assert_eq(all.events[i].batch, whole.events[i].batch);
    }
    cr_assert(stk_events_nest(&all, 0));
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

/* ---- rules ---- */

CleanTest(trace, memory_is_announced_and_off_takes_none)
{
    stoker_dataset *dataset = NULL;
    stoker_trace trace = STOKER_TRACE_INIT;
    int64_t live[2];
    for (uint32_t on = 0; on < 2; on++) {
        stoker_loader *loader = open_small(&dataset, on * 4000, 2);
        stoker_stats stats = { .struct_size = sizeof(stats) };
        cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
        if (on > 0)
            cr_assert_geq(stats.trace_bytes, 3U * 4096 * sizeof(stoker_trace_event));
        else
            cr_assert_eq(stats.trace_bytes, 0);
        live[on] = stk_fault_live_bytes() - (int64_t)stats.trace_bytes;
        cr_assert_eq(stoker_loader_trace(loader, &trace), on > 0 ? STOKER_OK : STOKER_EINVAL);
        stoker_loader_destroy(&loader);
        stoker_dataset_close(&dataset);
    }
    cr_assert_lt(live[1] - live[0], 1024, "more than is announced");
}

CleanTest(trace, bad_calls_are_refused)
{
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = open_small(&dataset, 16, 1);
    stoker_trace_event event;
    stoker_trace trace = STOKER_TRACE_INIT;
    cr_assert_eq(stoker_loader_trace(NULL, &trace), STOKER_EINVAL);
    cr_assert_eq(stoker_loader_trace(loader, NULL), STOKER_EINVAL);
    trace.capacity = 1;
    cr_assert_eq(stoker_loader_trace(loader, &trace), STOKER_EINVAL);
    trace.events = &event;
    cr_assert_eq(stoker_loader_trace(loader, &trace), STOKER_OK);
    trace.struct_size = 0;
    cr_assert_eq(stoker_loader_trace(loader, &trace), STOKER_EINVAL);
    struct {
        stoker_trace known;
        uint64_t unknown;
    } newer = { .known = trace, .unknown = 1 };
    newer.known.struct_size = sizeof(newer);
    cr_assert_eq(stoker_loader_trace(loader, &newer.known), STOKER_EINVAL);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
    for (int kind = 0; kind < STOKER_TRACE_KIND_COUNT; kind++)
        cr_assert_str_neq(stoker_trace_name((stoker_trace_kind)kind), "unknown");
    cr_assert_str_eq(stoker_trace_name(STOKER_TRACE_KIND_COUNT), "unknown");
    cr_assert_str_eq(stoker_trace_name((stoker_trace_kind)-1), "unknown");
}
