/* test_destroy.c - loaders made and destroyed over and over, at any moment: before the
 * first batch, with batches lent, with reads in flight that take their time.
 */
#include <time.h>

#include "loader/base/fault.h"
#include "support/runs/scripted_reader.h"
#include "support/runs/some_batches.h"

static struct stk_file_set set;

static void live_and_die(const stoker_reader *reader, uint64_t seed)
{
    const uint64_t draws = stk_mix64(seed);
    stoker_loader_options options =
        stk_small_options(.reader = reader, .num_workers = (int32_t)(draws % 7),
                          .batch_size = 1 + (uint32_t)(draws >> 8) % 16,
                          .prefetch_batches = 2 + (uint32_t)(draws >> 16) % 6,
                          .cache = (stoker_cache)(1 + (draws >> 24) % 3));
    stoker_loader *loader = NULL;
    CHECK(stoker_loader_create(&loader, set.dataset, &options, NULL) == STOKER_OK);
    struct stk_some_batches some = { .count = 0 };
    stk_take_some(loader, &set, (uint32_t)(draws >> 32) % 12, &some);
    if (seed % 4 == 0)
        nanosleep(&(struct timespec){ .tv_nsec = (long)(draws >> 40) % 300000 }, NULL);
    stoker_loader_destroy(&loader);
    CHECK(loader == NULL);
    stoker_loader_destroy(&loader);
    stk_release_some(&set, &some);
}

int main(void)
{
    static const struct stk_script_rule slow[] = {
        { .what = STK_SCRIPT_DELAY, .amount = 2, .file = STK_SCRIPT_ANY_FILE, .skip = 20 }
    };
    const uint64_t start_ns = stk_now_ns();
    uint64_t seed = 0;
    CHECK(stk_file_set_make(&set, 200, 3, 5, 0));
    const int64_t live = stk_fault_live_bytes();
    for (; seed < 600 && stk_time_left(start_ns); seed++) {
        stk_script_install(&(struct stk_script){ .rules = slow, .rule_count = 1 });
        live_and_die(&stk_scripted_reader, seed);
        const struct stk_script_counts counts = stk_script_counts();
        CHECK(counts.reads == counts.reaped && counts.opens == counts.closes);
        live_and_die(NULL, seed);
        CHECK(stk_fault_live_bytes() == live);
    }
    stk_file_set_remove(&set);
    printf("%llu lives\n", (unsigned long long)(2 * seed));
    return seed >= 5 ? 0 : 1;
}
