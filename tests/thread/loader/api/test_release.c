/* test_release.c - another thread releases batches and DLPack tensors of them: the workers continue
 * although the consumer does not call next(); or the loader is destroyed before, or meanwhile.
 */
#include <pthread.h>

#include "loader/api/lend/dlpack_layout.h"
#include "loader/base/fault.h"
#include "support/runs/memory_limit.h"
#include "support/runs/scenario.h"
#include "support/thread_check.h"

enum { SAMPLES = 120, SLOTS = 6, HELD = 4, WAIT_NS_MAX = 1000000000 };

static struct stk_file_set set;

struct returned {
    bool tensors_first;
    stoker_batch batches[HELD];
    DLManagedTensorVersioned *tensors[HELD];
};

static void *release_all(void *argument)
{
    struct returned *returned = argument;
    for (int i = 0; i < HELD; i++) {
        if (!returned->tensors_first)
            stoker_batch_release(&returned->batches[i]);
        if (returned->tensors[i] != NULL)
            returned->tensors[i]->deleter(returned->tensors[i]);
        stoker_batch_release(&returned->batches[i]);
    }
    return NULL;
}

static uint32_t slots_ready(const stoker_loader *loader)
{
    stoker_stats stats = STOKER_STATS_INIT;
    CHECK(stoker_loader_stats(loader, &stats) == STOKER_OK);
    return stats.slots_ready;
}

/* More batches are ready than there are slots that were not held. A worker that sleeps is woken
 * once half of the ring is free, so that not all slots need be full. Long waits only happen if that
 * never comes about. */
static bool are_refilled(const stoker_loader *loader)
{
    const uint64_t start_ns = stk_now_ns();
    while (slots_ready(loader) <= SLOTS - HELD && stk_now_ns() - start_ns < 20ULL * WAIT_NS_MAX)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return slots_ready(loader) > SLOTS - HELD;
}

static void take(stoker_loader *loader, stoker_batch *batch)
{
    int rc;
    while ((rc = stoker_loader_next(loader, batch, 20000)) == STOKER_EPOCH_END)
        ;
    CHECK(rc == STOKER_OK);
    CHECK(stk_file_set_matches(&set, batch));
}

static stoker_loader *make_loader(stoker_on_lent policy, int32_t workers)
{
    stoker_loader *loader = NULL;
    stoker_loader_options options =
        stk_small_options(.batch_size = 4, .prefetch_batches = SLOTS, .on_lent = policy);
    options.num_workers = workers;
    options.epochs = STOKER_EPOCHS_ENDLESS;
    stk_limit_kept(set.dataset, &options, 0); /* GROW must not do without the release */
    CHECK(stoker_loader_create(&loader, set.dataset, &options, NULL) == STOKER_OK);
    return loader;
}

static void take_all(stoker_loader *loader, struct returned *returned, bool with_tensors)
{
    for (int i = 0; i < HELD; i++) {
        returned->batches[i] = (stoker_batch)STOKER_BATCH_INIT;
        take(loader, &returned->batches[i]);
        if (with_tensors)
            CHECK(stoker_batch_to_dlpack(&returned->batches[i], STOKER_TENSOR_IMAGES, NULL,
                                         &returned->tensors[i]) == STOKER_OK);
    }
}

static void live(stoker_on_lent policy, int32_t workers, bool with_tensors)
{
    struct returned returned = { .tensors = { NULL } };
    stoker_loader *loader = make_loader(policy, workers);
    for (int round = 0; round < 10; round++) {
        pthread_t thread;
        take_all(loader, &returned, with_tensors);
        CHECK(pthread_create(&thread, NULL, release_all, &returned) == 0);
        CHECK(are_refilled(loader));
        CHECK(pthread_join(thread, NULL) == 0);
    }
    stoker_loader_destroy(&loader);
}

/* Batches outlive the loader; main() sees that the last release or deleter frees all of it.
 * meanwhile: they are released while the loader is being destroyed. */
static void outlive(stoker_on_lent policy, int32_t workers, bool with_tensors, bool meanwhile)
{
    struct returned returned = { .tensors_first = workers == 0, .tensors = { NULL } };
    stoker_loader *loader = make_loader(policy, workers);
    pthread_t thread;
    take_all(loader, &returned, with_tensors);
    if (meanwhile)
        CHECK(pthread_create(&thread, NULL, release_all, &returned) == 0);
    stoker_loader_destroy(&loader);
    for (int i = 0; i < HELD && !meanwhile; i++)
        CHECK(stk_file_set_matches(&set, &returned.batches[i]));
    if (!meanwhile)
        CHECK(pthread_create(&thread, NULL, release_all, &returned) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(void)
{
    CHECK(stk_file_set_make(&set, SAMPLES, 3, 5, 0));
    for (int32_t workers = 1; workers <= 3; workers += 2)
        for (int tensors = 0; tensors < 2; tensors++) {
            live(STOKER_ON_LENT_WAIT, workers, tensors != 0);
            live(STOKER_ON_LENT_GROW, workers, tensors != 0);
        }
    static const stoker_on_lent policies[] = { STOKER_ON_LENT_BUSY, STOKER_ON_LENT_WAIT,
                                               STOKER_ON_LENT_GROW };
    for (int i = 0; i < 120; i++) {
        const bool meanwhile = i % 3 > 0 && i / 12 % 2 == 0; /* BUSY: the consumer's thread only */
        outlive(policies[i % 3], i / 3 % 2 * 2, i / 6 % 2 == 0, meanwhile);
    }
    stk_file_set_remove(&set);
    CHECK(stk_fault_live_bytes() == 0);
    return 0;
}
