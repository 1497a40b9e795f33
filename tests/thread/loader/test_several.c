/* test_several.c - many workers fill the fields and the cache of samples of several parts; bad
 * samples have substitutes.
 */
#include "support/sets/several_set.h"
#include "support/thread_check.h"

static void run(const struct several_set *set, int32_t workers, stoker_cache cache)
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader_options options =
        stk_small_options(.batch_size = 5, .epochs = 6, .num_workers = workers, .cache = cache,
                          .on_bad_sample = STOKER_ON_BAD_SUBSTITUTE);
    uint64_t rows = 0;
    CHECK(stoker_loader_create(&loader, set->dataset, &options, NULL) == STOKER_OK);
    for (int rc; (rc = stoker_loader_next(loader, &batch, 20000)) != STOKER_FINISHED;) {
        if (rc == STOKER_EPOCH_END)
            continue;
        CHECK(rc == STOKER_OK);
        CHECK(several_wrong(&batch, 0) == SEVERAL_FIELDS);
        rows += batch.count;
        stoker_batch_release(&batch);
    }
    CHECK(rows == 6 * SEVERAL_COUNT);
    stoker_loader_destroy(&loader);
}

int main(void)
{
    static struct several_set set;
    const uint64_t start_ns = stk_now_ns();
    CHECK(several_make(&set));
    set.broken_image = 3;
    set.broken_pair = 30;
    do
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++)
            for (int32_t workers = 2; workers <= 4; workers++)
                run(&set, workers, (stoker_cache)cache);
    while (stk_time_left(start_ns));
    several_remove(&set);
    return 0;
}
