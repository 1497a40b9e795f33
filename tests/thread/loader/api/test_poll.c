/* test_poll.c - runs by poll() on stoker_loader_fd() alone: no wake-up is lost whatever the ring,
 * batches are those of an ordinary run, and interrupts and batches that another thread returns
 * reach a consumer that sleeps in poll().
 */
#include <pthread.h>
#include <stdatomic.h>

#include "loader/base/cpu/thread.h"
#include "loader/base/fault.h"
#include "support/runs/memory_limit.h"
#include "support/runs/polled_run.h"
#include "support/sets/made_set.h"
#include "support/thread_check.h"

enum { SAMPLES = 400, ROW = 24 };

static struct stk_file_set memory;
static struct stk_run expected, found;

static enum stk_made_kind encoded(uint64_t id)
{
    return id % 3 == 0 ? STK_MADE_ENCODED : STK_MADE_RAW;
}

static stoker_loader *make(const stoker_dataset *dataset, const stoker_loader_options *options,
                           struct stk_polled *polled)
{
    stoker_loader *loader = NULL;
    int again = -1;
    *polled = (struct stk_polled){ .fd = -1 };
    CHECK(stoker_loader_create(&loader, dataset, options, NULL) == STOKER_OK);
    CHECK(stoker_loader_fd(loader, &polled->fd, NULL) == STOKER_OK && polled->fd >= 0);
    CHECK(stoker_loader_fd(loader, &again, NULL) == STOKER_OK && again == polled->fd);
    return loader;
}

static void compare(const stoker_dataset *dataset, stoker_loader_options *options, uint32_t held)
{
    struct stk_polled polled;
    stoker_loader *loader = make(dataset, options, &polled);
    found = (struct stk_run){ 0 };
    stk_polled_run(loader, &polled, held, UINT32_MAX, &found);
    CHECK(found.rc == STOKER_FINISHED);
    CHECK(stk_fd_is_readable(polled.fd, 0)); /* for ever */
    CHECK(stk_runs_equal(&expected, &found));
    stoker_loader_destroy(&loader);
}

static void run_all(const stoker_dataset *dataset)
{
    stoker_loader_options options = stk_small_options(.batch_size = 3, .num_workers = 0);
    CHECK(stk_run(dataset, &options, &expected) == STOKER_FINISHED);
    compare(dataset, &options, 1);
    for (int32_t workers = 1; workers <= 3; workers++)
        for (uint32_t slots = 2; slots <= 5; slots++) {
            options.num_workers = workers;
            options.prefetch_batches = slots;
            compare(dataset, &options, 1);
            compare(dataset, &options, slots - 1);
        }
}

/* ---- another thread interrupts, and returns batches ---- */

static _Atomic bool over;

static void *interrupt_often(void *argument)
{
    stoker_loader *loader = argument;
    while (!atomic_load(&over)) {
        CHECK(stoker_loader_interrupt(loader) == STOKER_OK);
        stk_spin_pause();
    }
    return NULL;
}

static void be_interrupted(void)
{
    stoker_loader_options options = stk_small_options(.num_workers = 2, .epochs = 1);
    struct stk_polled polled;
    pthread_t thread;
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader *loader = make(memory.dataset, &options, &polled);
    uint32_t interrupts = 0, batches = 0;
    int rc;
    atomic_store(&over, false);
    CHECK(pthread_create(&thread, NULL, interrupt_often, loader) == 0);
    while ((rc = stk_polled_next(loader, &polled, &batch)) != STOKER_EPOCH_END) {
        CHECK(rc == STOKER_OK || rc == STOKER_INTERRUPTED);
        batches += rc == STOKER_OK;
        if (rc == STOKER_INTERRUPTED && ++interrupts == 1000)
            atomic_store(&over, true);
        stoker_batch_release(&batch);
    }
    atomic_store(&over, true);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(batches == stoker_loader_batches_per_epoch(loader));
    stoker_loader_destroy(&loader);
}

struct held {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    stoker_batch batches[2];
    uint32_t count;
    bool over;
};

static void *return_batches(void *argument)
{
    struct held *held = argument;
    pthread_mutex_lock(&held->lock);
    while (!held->over || held->count > 0) {
        if (held->count == 0) {
            pthread_cond_wait(&held->moved, &held->lock);
            continue;
        }
        stoker_batch batch = held->batches[--held->count];
        pthread_cond_signal(&held->moved);
        pthread_mutex_unlock(&held->lock);
        stoker_batch_release(&batch);
        pthread_mutex_lock(&held->lock);
    }
    pthread_mutex_unlock(&held->lock);
    return NULL;
}

/* All slots are lent at times: only what another thread returns lets the run continue. */
static void have_returned(stoker_on_lent on_lent)
{
    struct held held = { .count = 0 };
    stoker_loader_options options = stk_small_options(.num_workers = 2, .batch_size = 3,
                                                      .prefetch_batches = 2, .on_lent = on_lent);
    struct stk_polled polled;
    pthread_t thread;
    stk_limit_kept(memory.dataset, &options, 0);
    stoker_loader *loader = make(memory.dataset, &options, &polled);
    pthread_mutex_init(&held.lock, NULL);
    pthread_cond_init(&held.moved, NULL);
    CHECK(pthread_create(&thread, NULL, return_batches, &held) == 0);
    uint64_t samples = 0, busy = 0;
    int rc;
    do {
        stoker_batch batch = STOKER_BATCH_INIT;
        rc = stk_polled_next(loader, &polled, &batch);
        CHECK(rc >= 0); /* nothing was returned yet: as a timeout */
        busy += rc == STOKER_BUSY;
        if (rc != STOKER_OK)
            continue;
        CHECK(stk_file_set_matches(&memory, &batch));
        samples += batch.count;
        pthread_mutex_lock(&held.lock);
        while (held.count == 2)
            pthread_cond_wait(&held.moved, &held.lock);
        held.batches[held.count++] = batch;
        pthread_cond_signal(&held.moved);
        pthread_mutex_unlock(&held.lock);
    } while (rc != STOKER_FINISHED);
    CHECK(samples == (uint64_t)memory.count * options.epochs);
    CHECK(busy <= 4 * samples); /* it sleeps in poll(), and does not call in a circle */
    pthread_mutex_lock(&held.lock);
    held.over = true;
    pthread_cond_signal(&held.moved);
    pthread_mutex_unlock(&held.lock);
    CHECK(pthread_join(thread, NULL) == 0);
    pthread_cond_destroy(&held.moved);
    pthread_mutex_destroy(&held.lock);
    stoker_loader_destroy(&loader);
}

int main(void)
{
    struct stk_made_set files = { .count = SAMPLES, .row_bytes = ROW, .kind_of = encoded };
    CHECK(stk_file_set_make(&memory, SAMPLES, 4, 6, 0));
    CHECK(stk_made_set_open(&files));
    run_all(memory.dataset);
    run_all(files.dataset);
    be_interrupted();
    have_returned(STOKER_ON_LENT_WAIT);
    have_returned(STOKER_ON_LENT_GROW);
    stk_made_set_close(&files);
    stk_file_set_remove(&memory);
    CHECK(stk_fault_live_bytes() == 0);
    return 0;
}
