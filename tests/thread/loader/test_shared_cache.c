/* test_shared_cache.c - several loaders of one process share a cache: rows are loaded once, seen
 * whole, and by all. */
#include <stdatomic.h>

#include "loader/base/cpu/thread.h"
#include "support/runs/scenario.h"
#include "support/thread_check.h"

enum { LOADERS = 3, SAMPLES = 500, EPOCHS = 8 };

static struct stk_file_set set;
static _Atomic uint64_t reads;
static _Atomic uint32_t sharers;

static void *run(void *argument)
{
    stoker_loader_options options =
        stk_small_options(.cache = (uintptr_t)argument % 2 == 0 ? STOKER_CACHE_AUTO
                                                                : STOKER_CACHE_DECODED,
                          .share_cache = STOKER_SWITCH_ON, .epochs = EPOCHS,
                          .num_workers = (int32_t)((uintptr_t)argument % 3),
                          .seed = (uintptr_t)argument);
    stoker_loader *loader = NULL;
    CHECK(stoker_loader_create(&loader, set.dataset, &options, NULL) == STOKER_OK);
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED) {
        CHECK(rc >= 0);
        if (rc != STOKER_OK)
            continue;
        CHECK(stk_file_set_matches(&set, &batch));
        stoker_batch_release(&batch);
    }
    stoker_stats stats = STOKER_STATS_INIT;
    CHECK(stoker_loader_stats(loader, &stats) == STOKER_OK);
    atomic_fetch_add(&reads, stats.reads);
    if (stats.cache_sharers > atomic_load(&sharers))
        atomic_store(&sharers, stats.cache_sharers);
    stoker_loader_destroy(&loader);
    return NULL;
}

int main(void)
{
    CHECK(stk_file_set_make(&set, SAMPLES, 12, 12, 0));
    for (int round = 0; round < 3; round++) {
        pthread_t threads[LOADERS];
        for (uintptr_t i = 0; i < LOADERS; i++)
            CHECK(stk_thread_start(&threads[i], "test", run, (void *)(i + 1)) == 0);
        for (int i = 0; i < LOADERS; i++)
            pthread_join(threads[i], NULL);
    }
    printf("%llu reads, %u sharers\n", (unsigned long long)reads, sharers);
    CHECK(atomic_load(&reads) < (uint64_t)3 * LOADERS * EPOCHS * SAMPLES); /* the cache was used */
    stk_file_set_remove(&set);
    return 0;
}
