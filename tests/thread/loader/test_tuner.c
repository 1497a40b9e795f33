/* test_tuner.c - the number of workers changes while they run: some come to rest, some wake,
 * and every batch still comes, once and right.
 *
 * The tuner itself changes too rarely for a test; its word is written here as it would.
 */
#include <stdatomic.h>

#include "loader/api/loader.h"
#include "loader/base/cpu/thread.h"
#include "loader/base/fault.h"
#include "support/runs/scenario.h"
#include "support/runs/scripted_reader.h"
#include "support/thread_check.h"

enum { WORKERS = 8, BATCHES = 400 };

static struct stk_file_set set;

static void set_active(stoker_loader *loader, uint32_t workers)
{
    atomic_store(&loader->pipeline.active_workers, workers);
    stk_futex_wake(&loader->pipeline.active_workers, UINT32_MAX);
}

static void play(const stoker_reader *reader, stoker_cache cache, uint64_t seed)
{
    stoker_loader_options options =
        stk_small_options(.reader = reader, .cache = cache, .num_workers = WORKERS,
                          .prefetch_batches = 2 + (uint32_t)(seed % 30), .batch_size = 3,
                          .epochs = STOKER_EPOCHS_ENDLESS, .read_depth = 4);
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    CHECK(stoker_loader_create(&loader, set.dataset, &options, NULL) == STOKER_OK);
    for (uint32_t i = 0; i < BATCHES;) {
        const uint64_t draw = stk_mix64(seed + i);
        if (draw % 4 == 0) /* as the tuner would: 1..max, never none */
            set_active(loader, 1 + (uint32_t)(draw >> 8) % WORKERS);
        const int rc = stoker_loader_next(loader, &batch, -1);
        if (rc == STOKER_EPOCH_END)
            continue;
        CHECK(rc == STOKER_OK);
        CHECK(batch.index == i % stoker_loader_batches_per_epoch(loader));
        CHECK(stk_file_set_matches(&set, &batch));
        stoker_batch_release(&batch);
        i++;
    }
    set_active(loader, 1 + (uint32_t)(seed % WORKERS));
    stoker_loader_destroy(&loader); /* with some at rest */
}

/* And with the tuner at work: it must at least do no harm. */
static void play_auto(void)
{
    stoker_loader_options options =
        stk_small_options(.num_workers = STOKER_WORKERS_AUTO, .batch_size = 2,
                          .epochs = STOKER_EPOCHS_ENDLESS);
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    CHECK(stoker_loader_create(&loader, set.dataset, &options, NULL) == STOKER_OK);
    const uint64_t start_ns = stk_now_ns();
    while (stk_now_ns() - start_ns < UINT64_C(500000000)) {
        const int rc = stoker_loader_next(loader, &batch, -1);
        CHECK(rc == STOKER_OK || rc == STOKER_EPOCH_END);
        if (rc == STOKER_OK) {
            CHECK(stk_file_set_matches(&set, &batch));
            stoker_batch_release(&batch);
        }
    }
    stoker_loader_destroy(&loader);
}

int main(void)
{
    const uint64_t start_ns = stk_now_ns();
    uint64_t seed = 0;
    CHECK(stk_file_set_make(&set, 100, 3, 5, 0));
    for (; seed < 40 && stk_time_left(start_ns); seed++) {
        stk_script_install(&(struct stk_script){ .shuffle_seed = seed + 1 });
        play(&stk_scripted_reader, STOKER_CACHE_NONE, seed);
        play(stoker_reader_pread(), STOKER_CACHE_DECODED, seed);
    }
    play_auto();
    stk_file_set_remove(&set);
    CHECK(stk_fault_live_bytes() == 0);
    printf("%llu rounds\n", (unsigned long long)seed);
    return seed >= 2 ? 0 : 1;
}
