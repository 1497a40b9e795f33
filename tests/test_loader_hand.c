/* test_loader_hand.c - the consumer's own hand: lent where it waits, taken back where it does not,
 * and nobody sees it in what is delivered.
 *
 *   quick consumer ─▶ lent ─▶ slow consumer ─▶ taken back
 *
 * Method: a set in memory whose labels take long, so that a quick consumer mostly waits; a
 * loader without workers, resumed at the same place, tells what must come.
 */
#include <criterion/criterion.h>
#include <time.h>

#include "leaks.h"
#include "loader/api/loader.h"
#include "loader/base/clock.h"
#include "loader/base/thread.h"
#include "opened_loader.h"
#include "resident_set.h"

enum { SAMPLES = 1000, ROW = 48 };

static const uint64_t lent_within_ns = UINT64_C(5000000000);

static struct stk_resident_set slow_set(void)
{
    return (struct stk_resident_set){ .count = SAMPLES,
                                      .row_bytes = ROW,
                                      .label_dtype = STOKER_INT64,
                                      .tells_rows = true,
                                      .has_labels = true,
                                      .label_turns = 1000 };
}

/* No core is left to spare, so that waiting awake is not an answer. */
static stoker_loader_options crowded_options(void)
{
    stoker_loader_options options = stk_small_options();
    const uint32_t cpus = stk_cpu_count();
    options.num_workers = cpus < 2 ? 2 : (int32_t)cpus;
    options.prefetch_batches = 4 * (uint32_t)options.num_workers;
    options.epochs = 0;
    return options;
}

/* The next batch, over the ends of epochs. */
static void take(stoker_loader *loader, stoker_batch *batch)
{
    int rc;
    while ((rc = stoker_loader_next(loader, batch)) == STOKER_EPOCH_END) {
    }
    cr_assert_eq(rc, STOKER_OK, "%s", stoker_error_name(rc));
}

static void take_and_release(stoker_loader *loader)
{
    stoker_batch batch;
    take(loader, &batch);
    stoker_batch_release(&batch);
}

static bool is_lent(const stoker_loader *loader)
{
    return atomic_load(&loader->lends_hand);
}

static void wait_until_lent(stoker_loader *loader)
{
    const uint64_t start_ns = stk_now_ns();
    while (!is_lent(loader)) {
        cr_assert_lt(stk_now_ns() - start_ns, lent_within_ns, "the hand is never lent");
        take_and_release(loader);
    }
}

static void wait_until_hand_is_full(stoker_loader *loader)
{
    const uint64_t start_ns = stk_now_ns();
    do {
        cr_assert_lt(stk_now_ns() - start_ns, lent_within_ns, "the hand never holds a span");
        wait_until_lent(loader);
        take_and_release(loader);
    } while (!stk_worker_holds_span(&loader->hand));
}

/* A loader that goes on where this one is, without workers. */
static stoker_loader *open_twin(const stoker_loader *loader, const stoker_dataset *dataset,
                                stoker_loader_options options)
{
    stoker_state state;
    cr_assert_eq(stoker_loader_state(loader, &state), STOKER_OK);
    options.num_workers = 0;
    options.resume = &state;
    return loader_of(dataset, &options);
}

static void expect_workers(const stoker_loader *loader, int32_t workers)
{
    stoker_stats stats = { .struct_size = sizeof(stats) };
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_eq(stats.workers, (uint32_t)workers);
    cr_assert_eq(stats.workers_max, (uint32_t)workers);
}

/* The next batches of both are the same, and are right. Tells in how many of them the hand was
 * lent. */
static uint32_t expect_same(stoker_loader *loader, stoker_loader *twin,
                            const struct stk_resident_set *set, uint32_t batches, long pause_ns)
{
    static uint64_t hashes[1024];
    uint32_t lent = 0;
    stoker_batch batch;
    cr_assert_leq(batches, 1024);
    for (uint32_t i = 0; i < batches; i++) {
        take(loader, &batch);
        lent += is_lent(loader);
        hashes[i] = stk_batch_hash(&batch);
        if (pause_ns > 0)
            nanosleep(&(struct timespec){ .tv_nsec = pause_ns }, NULL);
        stoker_batch_release(&batch);
    }
    for (uint32_t i = 0; i < batches; i++) {
        take(twin, &batch);
        cr_assert(stk_resident_set_matches(set, &batch));
        cr_assert_eq(hashes[i], stk_batch_hash(&batch), "batch %u after the hand was lent", i);
        stoker_batch_release(&batch);
    }
    return lent;
}

static void lend_and_take_back(struct stk_resident_set *set, const stoker_loader_options *options)
{
    stoker_loader *loader = loader_of(set->dataset, options);
    cr_assert(loader->has_hand);
    cr_assert_not(is_lent(loader));
    wait_until_lent(loader);
    expect_workers(loader, options->num_workers);

    stoker_loader *twin = open_twin(loader, set->dataset, *options);
    cr_assert_gt(expect_same(loader, twin, set, 1000, 0), 0);
    wait_until_lent(loader);
    stoker_loader_destroy(&twin);

    twin = open_twin(loader, set->dataset, *options);
    const uint32_t lent = expect_same(loader, twin, set, 160, 2000000);
    cr_assert_lt(lent, 160, "the hand is never taken back");
    cr_assert_not(is_lent(loader));
    expect_workers(loader, options->num_workers);
    stoker_loader_destroy(&twin);
    stoker_loader_destroy(&loader);
}

Test(hand, is_lent_and_taken_back_unseen, .timeout = 60)
{
    struct stk_resident_set set = slow_set();
    cr_assert(stk_resident_set_open(&set));
    stoker_loader_options options = crowded_options();
    for (options.timeout_ms = -1; options.timeout_ms <= 20000; options.timeout_ms += 20001)
        lend_and_take_back(&set, &options);
    stk_resident_set_close(&set);
    stk_test_check_leaks();
}

/* What it claimed ahead goes with the loader. */
Test(hand, may_hold_a_span_when_the_loader_is_destroyed, .timeout = 60)
{
    struct stk_resident_set set = slow_set();
    cr_assert(stk_resident_set_open(&set));
    stoker_loader_options options = crowded_options();
    for (int times = 0; times < 5; times++) {
        stoker_loader *loader = loader_of(set.dataset, &options);
        wait_until_hand_is_full(loader);
        cr_assert(stk_worker_holds_span(&loader->hand));
        stoker_loader_destroy(&loader);
        cr_assert_null(loader);
    }
    stk_resident_set_close(&set);
    stk_test_check_leaks();
}

/* A span that the hand holds is done before the batch is waited for, even once nothing is lent. */
Test(hand, what_it_holds_is_done_after_it_is_taken_back, .timeout = 60)
{
    struct stk_resident_set set = slow_set();
    cr_assert(stk_resident_set_open(&set));
    stoker_loader_options options = crowded_options();
    stoker_loader *loader = loader_of(set.dataset, &options);
    wait_until_hand_is_full(loader);
    stoker_loader *twin = open_twin(loader, set.dataset, options);
    atomic_store(&loader->lends_hand, false);
    (void)expect_same(loader, twin, &set, 2 * options.prefetch_batches, 0);
    stoker_loader_destroy(&twin);
    stoker_loader_destroy(&loader);
    stk_resident_set_close(&set);
    stk_test_check_leaks();
}

/* Once the cache holds every row nothing is read any more, and the hand is as good as the workers. */
Test(hand, helps_with_files_once_all_of_them_are_held, .timeout = 60)
{
    struct stk_file_set files;
    cr_assert(stk_file_set_make(&files, SAMPLES, 8, 8, 0));
    stoker_loader_options options = crowded_options();
    options.cache = STOKER_CACHE_DECODED;
    stoker_loader *loader = loader_of(files.dataset, &options);
    cr_assert(loader->has_hand);
    cr_assert_not(stk_pipeline_is_resident(&loader->pipeline));
    while (!stk_pipeline_is_resident(&loader->pipeline)) {
        cr_assert_not(is_lent(loader));
        take_and_release(loader);
    }
    stoker_loader *twin = open_twin(loader, files.dataset, options);
    const uint64_t read_bytes = stk_ledger_read(&loader->workers[0].ledger.read_bytes);
    static uint64_t hashes[2000];
    const uint32_t count = sizeof(hashes) / sizeof(hashes[0]);
    stoker_batch batch;
    for (uint32_t i = 0; i < count; i++) {
        atomic_store(&loader->lends_hand, true); /* whatever was judged */
        take(loader, &batch);
        hashes[i] = stk_batch_hash(&batch);
        stoker_batch_release(&batch);
    }
    for (uint32_t i = 0; i < count; i++) {
        take(twin, &batch);
        cr_assert_eq(hashes[i], stk_batch_hash(&batch), "batch %u", i);
        stoker_batch_release(&batch);
    }
    cr_assert_eq(stk_ledger_read(&loader->workers[0].ledger.read_bytes), read_bytes);
    cr_assert_gt(stk_ledger_read(&loader->hand.ledger.cache_hits), 0, "the hand did nothing");
    stoker_loader_destroy(&twin);
    stoker_loader_destroy(&loader);
    stk_file_set_remove(&files);
    stk_test_check_leaks();
}

/* With a core to spare nobody rests for it. */
Test(hand, works_beside_all_workers_where_a_core_is_spare, .timeout = 60)
{
    struct stk_resident_set set = slow_set();
    cr_assert(stk_resident_set_open(&set));
    stoker_loader_options options = crowded_options();
    options.num_workers = 1;
    stoker_loader *loader = loader_of(set.dataset, &options);
    wait_until_lent(loader);
    const uint32_t spare = loader->cpus > 1 ? 1 : 0;
    cr_assert_eq(atomic_load(&loader->pipeline.active_workers), spare);
    stoker_stats stats = { .struct_size = sizeof(stats) };
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_eq(stats.workers, spare + 1);
    cr_assert_eq(stats.workers_max, 1);
    stoker_loader_destroy(&loader);
    stk_resident_set_close(&set);
    stk_test_check_leaks();
}

/* Without workers there is nobody to help, and reads in flight would keep the consumer. */
Test(hand, is_no_use_without_workers_or_where_files_are_read)
{
    struct stk_resident_set set = slow_set();
    struct stk_file_set files;
    cr_assert(stk_resident_set_open(&set));
    cr_assert(stk_file_set_make(&files, 100, 3, 3, 0));
    stoker_loader_options options = crowded_options();
    options.cache = STOKER_CACHE_NONE;
    stoker_loader *loader = loader_of(files.dataset, &options);
    cr_assert_not(loader->has_hand);
    stoker_loader_destroy(&loader);
    options.cache = STOKER_CACHE_DECODED;
    options.cache_bytes = 50 * 3 * 3; /* never all of them */
    loader = loader_of(files.dataset, &options);
    cr_assert_not(loader->has_hand);
    stoker_loader_destroy(&loader);
    options.num_workers = 0;
    loader = loader_of(set.dataset, &options);
    cr_assert_not(loader->has_hand);
    stoker_loader_destroy(&loader);
    stk_file_set_remove(&files);
    stk_resident_set_close(&set);
    stk_test_check_leaks();
}
