/* test_stats.c - stats and reports of bad samples are asked for by other threads while the
 * loader runs: no race, no torn text, and no count that goes down.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "loader/base/cpu/thread.h"
#include "loader/base/fault.h"
#include "support/sets/made_set.h"
#include "support/thread_check.h"

enum { WATCHERS = 3, LOOKS_MIN = 50 };

static stoker_loader *loader;
static _Atomic bool over;
static _Atomic uint64_t looks;

static enum stk_made_kind some_broken(uint64_t id)
{
    return id % 5 == 0 ? STK_MADE_BROKEN : id % 2 == 0 ? STK_MADE_ENCODED : STK_MADE_RAW;
}

static void *watch(void *argument)
{
    stoker_stats before = { .struct_size = sizeof(before) };
    (void)argument;
    while (!atomic_load(&over)) {
        stoker_stats stats = { .struct_size = sizeof(stats) };
        stoker_error report;
        CHECK(stoker_loader_stats(loader, &stats) == STOKER_OK);
        CHECK(stats.batches >= before.batches && stats.samples >= before.samples);
        CHECK(stats.reads >= before.reads && stats.bad_samples >= before.bad_samples);
        CHECK(stats.elapsed_ns >= before.elapsed_ns && stats.stall_ns >= before.stall_ns);
        CHECK(stats.slots_ready <= stats.slots);
        CHECK(memchr(stats.verdict, '\0', sizeof(stats.verdict)) != NULL);
        if (stats.bad_samples > 0) {
            CHECK(stoker_loader_bad_sample(loader, stats.bad_samples % 3 != 0 ? 0 : 1, &report) ==
                      STOKER_OK ||
                  stats.bad_samples < 2);
        }
        if (stoker_loader_error(loader) != NULL)
            CHECK(stoker_loader_error(loader)->code == STOKER_EBADSAMPLES);
        before = stats;
        atomic_fetch_add(&looks, 1U);
    }
    return NULL;
}

int main(void)
{
    struct stk_made_set set = { .count = 21000, .row_bytes = 40, .kind_of = some_broken };
    pthread_t watchers[WATCHERS];
    stoker_batch batch = STOKER_BATCH_INIT;
    CHECK(stk_made_set_open(&set));
    stoker_loader_options options =
        stk_small_options(.num_workers = 3, .batch_size = 4, .epochs = STOKER_EPOCHS_ENDLESS,
                          .on_bad_sample = STOKER_ON_BAD_SKIP);
    options.max_bad_samples = 4000; /* the run ends with an error, which watchers see */
    CHECK(stoker_loader_create(&loader, set.dataset, &options, NULL) == STOKER_OK);
    for (int i = 0; i < WATCHERS; i++)
        CHECK(stk_thread_start(&watchers[i], "test", watch, NULL) == 0);
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) >= 0) {
        if (rc != STOKER_OK)
            continue;
        CHECK(stk_made_set_matches(&set, &batch));
        stoker_batch_release(&batch);
    }
    CHECK(rc == STOKER_EBADSAMPLES);
    while (atomic_load(&looks) < LOOKS_MIN)
        stk_spin_pause();
    atomic_store(&over, true);
    for (int i = 0; i < WATCHERS; i++)
        pthread_join(watchers[i], NULL);
    stoker_loader_destroy(&loader);
    stk_made_set_close(&set);
    CHECK(stk_fault_live_bytes() == 0);
    printf("%llu looks\n", (unsigned long long)atomic_load(&looks));
    return 0;
}
