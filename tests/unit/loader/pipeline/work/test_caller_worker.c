/* test_caller_worker.c - the caller does a worker's share if it waits and stops if it does not, and
 * the batches are the same either way.
 *
 *   fast consumer ─▶ assists ─▶ slow consumer ─▶ stops
 *
 * Method: a set in memory whose labels take long, so that a fast consumer mostly waits; a
 * loader without workers, resumed at the same place, delivers what must come.
 */
#include <time.h>

#include "loader/api/loader.h"
#include "loader/base/cpu/thread.h"
#include "support/leaks.h"
#include "support/runs/memory_limit.h"
#include "support/runs/opened_loader.h"
#include "support/sets/resident_set.h"

enum { SAMPLES = 1000, ROW = 48 };

static int32_t timeout_ms = 20000; /* for next() */

static struct stk_resident_set slow_set(void)
{
    return (struct stk_resident_set){ .count = SAMPLES,
                                      .row_bytes = ROW,
                                      .label_dtype = STOKER_DTYPE_INT64,
                                      .tells_rows = true,
                                      .label_turns = 1000 };
}

/* No core is left to spare, so that waiting awake is not an answer. */
static stoker_loader_options crowded_options(void)
{
    stoker_loader_options options = stk_small_options();
    const uint32_t cpus = stk_cpu_count();
    options.num_workers = cpus < 2 ? 2 : (int32_t)cpus;
    options.prefetch_batches = 4 * (uint32_t)options.num_workers;
    options.epochs = STOKER_EPOCHS_ENDLESS;
    return options;
}

/* The next batch, over the ends of epochs. */
static void take(stoker_loader *loader, stoker_batch *batch)
{
    int rc;
    while ((rc = stoker_loader_next(loader, batch, timeout_ms)) == STOKER_EPOCH_END) {
    }
    cr_assert_eq(rc, STOKER_OK, "%s", stoker_error_name(rc));
}

static void take_and_release(stoker_loader *loader)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    take(loader, &batch);
    stoker_batch_release(&batch);
}

static bool assists(const stoker_loader *loader)
{
    return atomic_load(&loader->caller_assists);
}

static void wait_until_caller_assists(stoker_loader *loader)
{
    while (!assists(loader))
        take_and_release(loader);
}

static void wait_until_caller_holds_a_span(stoker_loader *loader)
{
    do {
        wait_until_caller_assists(loader);
        take_and_release(loader);
    } while (!stk_worker_holds_span(&loader->caller_worker));
}

/* A loader that continues where this one is, without workers. */
static stoker_loader *open_twin(const stoker_loader *loader, const stoker_dataset *dataset,
                                stoker_loader_options options)
{
    uint8_t state[STOKER_STATE_BYTES];
    cr_assert_eq(stoker_loader_state(loader, state, sizeof(state), &options.resume_size, NULL),
                 STOKER_OK);
    options.num_workers = 0;
    options.resume = state;
    return loader_of(dataset, &options);
}

static void expect_workers(const stoker_loader *loader, int32_t workers)
{
    stoker_stats stats = { .struct_size = sizeof(stats) };
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_eq(stats.workers, (uint32_t)workers);
    cr_assert_eq(stats.workers_max, (uint32_t)workers);
}

/* The next batches of both are the same, and are right. Returns during how many of them the caller
 * assisted. */
static uint32_t expect_same(stoker_loader *loader, stoker_loader *twin,
                            const struct stk_resident_set *set, uint32_t batches, long pause_ns)
{
    static uint64_t hashes[1024];
    uint32_t assisted = 0;
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_leq(batches, 1024);
    for (uint32_t i = 0; i < batches; i++) {
        take(loader, &batch);
        assisted += assists(loader);
        hashes[i] = stk_batch_hash(&batch);
        if (pause_ns > 0)
            nanosleep(&(struct timespec){ .tv_nsec = pause_ns }, NULL);
        stoker_batch_release(&batch);
    }
    for (uint32_t i = 0; i < batches; i++) {
        take(twin, &batch);
        cr_assert(stk_resident_set_matches(set, &batch));
        cr_assert_eq(hashes[i], stk_batch_hash(&batch), "batch %u after the caller began to assist",
                     i);
        stoker_batch_release(&batch);
    }
    return assisted;
}

static void assist_and_stop(struct stk_resident_set *set, const stoker_loader_options *options)
{
    stoker_loader *loader = loader_of(set->dataset, options);
    cr_assert(loader->has_caller_worker);
    cr_assert_not(assists(loader));
    wait_until_caller_assists(loader);
    expect_workers(loader, options->num_workers);

    stoker_loader *twin = open_twin(loader, set->dataset, *options);
    cr_assert_gt(expect_same(loader, twin, set, 1000, 0), 0);
    wait_until_caller_assists(loader);
    stoker_loader_destroy(&twin);

    twin = open_twin(loader, set->dataset, *options);
    const uint32_t assisted = expect_same(loader, twin, set, 160, 2000000);
    cr_assert_lt(assisted, 160, "the caller never stops");
    cr_assert_not(assists(loader));
    expect_workers(loader, options->num_workers);
    stoker_loader_destroy(&twin);
    stoker_loader_destroy(&loader);
}

CleanTest(caller_worker, assists_and_stops_without_changing_a_byte)
{
    struct stk_resident_set set = slow_set();
    cr_assert(stk_resident_set_open(&set));
    stoker_loader_options options = crowded_options();
    for (timeout_ms = -1; timeout_ms <= 20000; timeout_ms += 20001)
        assist_and_stop(&set, &options);
    stk_resident_set_close(&set);
}

/* A span that it claimed ahead goes with the loader. */
CleanTest(caller_worker, may_hold_a_span_when_the_loader_is_destroyed)
{
    struct stk_resident_set set = slow_set();
    cr_assert(stk_resident_set_open(&set));
    stoker_loader_options options = crowded_options();
    for (int times = 0; times < 5; times++) {
        stoker_loader *loader = loader_of(set.dataset, &options);
        wait_until_caller_holds_a_span(loader);
        cr_assert(stk_worker_holds_span(&loader->caller_worker));
        stoker_loader_destroy(&loader);
        cr_assert_null(loader);
    }
    stk_resident_set_close(&set);
}

/* A span that it holds is finished before the batch is waited for, even after it stopped. */
CleanTest(caller_worker, what_it_holds_is_finished_after_it_stops)
{
    struct stk_resident_set set = slow_set();
    cr_assert(stk_resident_set_open(&set));
    stoker_loader_options options = crowded_options();
    stoker_loader *loader = loader_of(set.dataset, &options);
    wait_until_caller_holds_a_span(loader);
    stoker_loader *twin = open_twin(loader, set.dataset, options);
    atomic_store(&loader->caller_assists, false);
    (void)expect_same(loader, twin, &set, 2 * options.prefetch_batches, 0);
    stoker_loader_destroy(&twin);
    stoker_loader_destroy(&loader);
    stk_resident_set_close(&set);
}

/* Once the cache holds every row nothing is read any more, and the caller can work, too. */
CleanTest(caller_worker, helps_with_files_once_all_of_them_are_held)
{
    struct stk_file_set files;
    /* 98 blocks of the cache, more than the ring has rows. */
    cr_assert(stk_file_set_make(&files, 100000, 8, 8, 0));
    stoker_loader_options options = crowded_options();
    options.cache = STOKER_CACHE_DECODED;
    stoker_loader *loader = loader_of(files.dataset, &options);
    cr_assert(loader->has_caller_worker);
    cr_assert_not(stk_pipeline_is_resident(&loader->pipeline));
    while (!stk_pipeline_is_resident(&loader->pipeline)) {
        cr_assert_not(assists(loader));
        take_and_release(loader);
    }
    stoker_loader *twin = open_twin(loader, files.dataset, options);
    const uint64_t read_bytes = stk_ledger_read(&loader->workers[0].ledger.read_bytes);
    static uint64_t hashes[2000];
    const uint32_t count = sizeof(hashes) / sizeof(hashes[0]);
    stoker_batch batch = STOKER_BATCH_INIT;
    /* The caller works only when no batch is ready: on a busy machine the workers may be ahead for
     * thousands of batches. */
    for (int round = 0;
         round < 50 && stk_ledger_read(&loader->caller_worker.ledger.cache_hits) == 0; round++) {
        for (uint32_t i = 0; i < count; i++) {
            atomic_store(&loader->caller_assists, true); /* overrule the judgement */
            take(loader, &batch);
            hashes[i] = stk_batch_hash(&batch);
            stoker_batch_release(&batch);
        }
        for (uint32_t i = 0; i < count; i++) {
            take(twin, &batch);
            cr_assert_eq(hashes[i], stk_batch_hash(&batch), "batch %u", i);
            stoker_batch_release(&batch);
        }
    }
    cr_assert_eq(stk_ledger_read(&loader->workers[0].ledger.read_bytes), read_bytes);
    cr_assert_gt(stk_ledger_read(&loader->caller_worker.ledger.cache_hits), 0,
                 "the caller worker did nothing");
    stoker_loader_destroy(&twin);
    stoker_loader_destroy(&loader);
    stk_file_set_remove(&files);
}

/* With a spare core no worker rests for it. */
CleanTest(caller_worker, works_beside_all_workers_if_a_core_is_spare)
{
    struct stk_resident_set set = slow_set();
    cr_assert(stk_resident_set_open(&set));
    stoker_loader_options options = crowded_options();
    options.num_workers = 1;
    stoker_loader *loader = loader_of(set.dataset, &options);
    wait_until_caller_assists(loader);
    const uint32_t spare = loader->cpus > 1 ? 1 : 0;
    cr_assert_eq(atomic_load(&loader->pipeline.active_workers), spare);
    stoker_stats stats = { .struct_size = sizeof(stats) };
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_eq(stats.workers, spare + 1);
    cr_assert_eq(stats.workers_max, 1);
    stoker_loader_destroy(&loader);
    stk_resident_set_close(&set);
}

/* Without workers there is no one to assist, and reads in flight would delay the caller. */
CleanTest(caller_worker, is_off_without_workers_or_if_files_are_read)
{
    struct stk_resident_set set = slow_set();
    struct stk_file_set files;
    cr_assert(stk_resident_set_open(&set));
    cr_assert(stk_file_set_make(&files, 100, 3, 3, 0));
    stoker_loader_options options = crowded_options();
    options.cache = STOKER_CACHE_NONE;
    stoker_loader *loader = loader_of(files.dataset, &options);
    cr_assert_not(loader->has_caller_worker);
    stoker_loader_destroy(&loader);
    options.cache = STOKER_CACHE_DECODED;
    stk_limit_cache(files.dataset, &options, 50 * 3 * 3); /* never all of them */
    loader = loader_of(files.dataset, &options);
    cr_assert_not(loader->has_caller_worker);
    stoker_loader_destroy(&loader);
    options.num_workers = 0;
    options.memory_bytes = STOKER_BYTES_AUTO;
    loader = loader_of(set.dataset, &options);
    cr_assert_not(loader->has_caller_worker);
    stoker_loader_destroy(&loader);
    stk_file_set_remove(&files);
    stk_resident_set_close(&set);
}
