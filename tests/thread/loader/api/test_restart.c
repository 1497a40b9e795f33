/* test_restart.c - loaders put in each other's place at any moment, while workers load the cache
 * that they hand on. */
#include "loader/base/fault.h"
#include "support/runs/some_batches.h"

static struct stk_file_set set;

static void go_from_place_to_place(uint64_t seed)
{
    stoker_loader_options options = stk_small_options();
    stoker_loader *loader = NULL;
    struct stk_some_batches some = { .count = 0 };
    uint64_t draws = stk_mix64(seed);
    options.cache = draws % 2 == 0 ? STOKER_CACHE_DECODED : STOKER_CACHE_ENCODED;
    options.share_cache = draws % 3 == 0 ? STOKER_SWITCH_ON : STOKER_SWITCH_OFF;
    CHECK(stoker_loader_create(&loader, set.dataset, &options, NULL) == STOKER_OK);
    for (int i = 0; i < 3; i++) {
        draws = stk_mix64(draws);
        options.num_workers = (int32_t)(draws % 5);
        options.batch_size = 1 + (uint32_t)(draws >> 8) % 64;
        options.prefetch_batches = 2 + (uint32_t)(draws >> 16) % 6;
        stk_take_some(loader, &set, (uint32_t)(draws >> 32) % 24, &some);
        CHECK(stoker_loader_restart(&loader, &options, NULL) == STOKER_OK);
    }
    stoker_loader_destroy(&loader);
    stk_release_some(&set, &some);
}

int main(void)
{
    const uint64_t start_ns = stk_now_ns();
    uint64_t seed = 0;
    CHECK(stk_file_set_make(&set, 200, 64, 64, 0));
    const int64_t live = stk_fault_live_bytes();
    for (; seed < 100 && stk_time_left(start_ns); seed++) {
        go_from_place_to_place(seed);
        CHECK(stk_fault_live_bytes() == live);
    }
    stk_file_set_remove(&set);
    printf("%llu loaders\n", (unsigned long long)(4 * seed));
    return seed >= 2 ? 0 : 1;
}
