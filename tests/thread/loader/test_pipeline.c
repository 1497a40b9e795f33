/* test_pipeline.c - many workers, tiny batches, hardly any slots: each hand-over between the
 * workers and the consumer happens as often as possible, in every order of release.
 */
#include "loader/base/fault.h"
#include "support/runs/scenario.h"
#include "support/runs/scripted_reader.h"
#include "support/thread_check.h"

enum { SAMPLES = 300, HELD_MAX = 4 };

static struct stk_file_set set;
static uint64_t rounds;

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = stk_mix64(*state);
    return (uint32_t)(*state % below);
}

static void release_any(stoker_batch *held, uint32_t *count, uint64_t *state)
{
    const uint32_t out = draw(state, *count);
    CHECK(stk_file_set_matches(&set, &held[out]));
    stoker_batch_release(&held[out]);
    held[out] = held[--*count];
    held[*count] = (stoker_batch)STOKER_BATCH_INIT;
}

/* Two epochs, up to slots - 1 batches held, released in random order. */
static void walk(const stoker_loader_options *options, uint64_t state)
{
    stoker_loader *loader = NULL;
    stoker_batch held[HELD_MAX];
    stk_batches_begin(held, HELD_MAX);
    uint32_t count = 0;
    uint64_t samples = 0;
    CHECK(stoker_loader_create(&loader, set.dataset, options, NULL) == STOKER_OK);
    for (;;) {
        while (count > 0 && (count == options->prefetch_batches - 1 || draw(&state, 3) == 0))
            release_any(held, &count, &state);
        const int rc = stoker_loader_next(loader, &held[count], -1);
        if (rc == STOKER_FINISHED)
            break;
        if (rc == STOKER_BUSY) {
            CHECK(count > 0);
            release_any(held, &count, &state);
        } else if (rc == STOKER_OK) {
            samples += held[count++].count;
        } else {
            CHECK(rc == STOKER_EPOCH_END);
        }
    }
    CHECK(samples == 2 * SAMPLES);
    while (count > 0)
        release_any(held, &count, &state);
    stoker_loader_destroy(&loader);
    rounds++;
}

static void walk_with(const stoker_reader *reader, uint64_t seed)
{
    stoker_loader_options options =
        stk_small_options(.reader = reader, .batch_size = 1 + (uint32_t)(seed % 5),
                          .num_workers = 1 + (int32_t)(seed % 11),
                          .prefetch_batches = 2 + (uint32_t)(seed / 2 % 3),
                          .read_depth = 1 + (uint32_t)(seed / 3 % 9),
                          .cache = (stoker_cache)(1 + seed / 5 % 3), .seed = seed);
    walk(&options, seed);
}

int main(void)
{
    const uint64_t start_ns = stk_now_ns();
    CHECK(stk_file_set_make(&set, SAMPLES, 3, 5, 0));
    for (uint64_t seed = 0; seed < 330 && stk_time_left(start_ns); seed++) {
        stk_script_install(
            &(struct stk_script){ .shuffle_seed = seed + 1, .reap_max = (uint32_t)(seed % 3) });
        walk_with(stoker_reader_pread(), seed);
        walk_with(&stk_scripted_reader, seed);
        walk_with(NULL, seed);
    }
    stk_file_set_remove(&set);
    CHECK(stk_fault_live_bytes() == 0);
    printf("%llu runs\n", (unsigned long long)rounds);
    return rounds >= 9 ? 0 : 1;
}
