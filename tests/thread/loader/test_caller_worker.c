/* test_caller_worker.c - the caller assists, stops and assists again while batches are held and
 * released in any order: a span that it claimed in one call is finished in a later one.
 */
#include <time.h>

#include "loader/api/loader.h"
#include "loader/base/cpu/thread.h"
#include "loader/base/fault.h"
#include "support/sets/resident_set.h"
#include "support/thread_check.h"

enum { SAMPLES = 500, HELD_MAX = 4, BATCHES = 1200 };

static struct stk_resident_set set = { .count = SAMPLES,
                                       .row_bytes = 40,
                                       .label_dtype = STOKER_DTYPE_INT64,
                                       .tells_rows = true,
                                       .label_turns = 400 };

struct walk {
    stoker_loader *loader;
    uint64_t random;
    int32_t timeout_ms;
    stoker_batch held[HELD_MAX];
    uint32_t count;
    uint32_t taken;
    uint64_t id_sum;   /* sum of the ids in the epoch so far */
    uint32_t assisted; /* batches delivered while the caller assisted */
    uint32_t turns;    /* changes between assisting and not */
};

static uint32_t draw(struct walk *walk, uint32_t below)
{
    walk->random = stk_mix64(walk->random);
    return (uint32_t)(walk->random % below);
}

static void release_any(struct walk *walk)
{
    const uint32_t out = draw(walk, walk->count);
    CHECK(stk_resident_set_matches(&set, &walk->held[out]));
    stoker_batch_release(&walk->held[out]);
    walk->held[out] = walk->held[--walk->count];
    walk->held[walk->count] = (stoker_batch)STOKER_BATCH_INIT;
}

/* Hundreds of batches in a row without a pause, then some with one, so that
 * the caller starts and stops assisting. */
static void pause_at_times(struct walk *walk)
{
    if (walk->taken / 200 % 2 == 1 && draw(walk, 4) == 0)
        nanosleep(&(struct timespec){ .tv_nsec = 1 + (long)draw(walk, 3000000) }, NULL);
}

static void take(struct walk *walk, bool assisted)
{
    const stoker_batch *batch = &walk->held[walk->count++];
    for (uint32_t row = 0; row < batch->count; row++)
        walk->id_sum += batch->ids[row];
    walk->taken++;
    const bool assists = atomic_load(&walk->loader->caller_assists);
    walk->assisted += assists;
    walk->turns += assists != assisted;
}

static void step(struct walk *walk)
{
    while (walk->count == HELD_MAX || (walk->count > 0 && draw(walk, 3) != 0))
        release_any(walk);
    const bool assisted = atomic_load(&walk->loader->caller_assists);
    const int rc = stoker_loader_next(walk->loader, &walk->held[walk->count], walk->timeout_ms);
    if (rc == STOKER_OK) {
        take(walk, assisted);
        pause_at_times(walk);
    } else if (rc == STOKER_EPOCH_END) {
        CHECK(walk->id_sum == (uint64_t)SAMPLES * (SAMPLES - 1) / 2); /* each sample once */
        walk->id_sum = 0;
    } else if (rc == STOKER_BUSY) {
        CHECK(walk->count > 0);
        release_any(walk);
    } else {
        CHECK(rc == STOKER_TIMEOUT);
    }
}

/* One loader's life; what is held at the end, here and by the caller worker, goes with it. */
static struct walk walk_with(uint64_t seed)
{
    const uint32_t cpus = stk_cpu_count();
    struct walk walk = { .random = seed,
                         .timeout_ms = seed % 3 == 0   ? 0
                                       : seed % 3 == 1 ? -1
                                                       : 20000 };
    stoker_loader_options options = stk_small_options(.seed = seed, .epochs = STOKER_EPOCHS_ENDLESS,
                                                      .batch_size = 5 + (uint32_t)(seed % 20));
    /* Half of them with a core to spare, where there are two. */
    options.num_workers = seed % 2 == 0 ? 1 : (int32_t)(cpus < 2 ? 2 : cpus);
    options.prefetch_batches = HELD_MAX + 1 + (uint32_t)(seed * 5 % 15);
    CHECK(stoker_loader_create(&walk.loader, set.dataset, &options, NULL) == STOKER_OK);
    CHECK(walk.loader->has_caller_worker);
    stk_batches_begin(walk.held, HELD_MAX);
    while (walk.taken < BATCHES)
        step(&walk);
    for (int i = 0; i < HELD_MAX; i++)
        stoker_batch_release(&walk.held[i]);
    stoker_loader_destroy(&walk.loader);
    return walk;
}

int main(void)
{
    const uint64_t start_ns = stk_now_ns();
    uint64_t rounds = 0;
    uint64_t assisted = 0;
    uint64_t turns = 0;
    CHECK(stk_resident_set_open(&set));
    for (uint64_t seed = 1; seed <= 8 && stk_time_left(start_ns); seed++, rounds++) {
        const struct walk walk = walk_with(seed);
        assisted += walk.assisted;
        turns += walk.turns;
    }
    stk_resident_set_close(&set);
    CHECK(stk_fault_live_bytes() == 0);
    printf("%llu loaders, the caller assisted in %llu batches, %llu changes\n",
           (unsigned long long)rounds, (unsigned long long)assisted, (unsigned long long)turns);
    return rounds >= 2 && assisted > 0 && turns > 1 ? 0 : 1;
}
