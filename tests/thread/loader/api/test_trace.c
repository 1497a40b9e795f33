/* test_trace.c - events are taken by several threads while workers and consumer record: no race,
 * no torn event, none reported twice, and with room for all none lost.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "loader/base/cpu/thread.h"
#include "loader/base/fault.h"
#include "support/runs/trace_events.h"
#include "support/sets/resident_set.h"
#include "support/thread_check.h"

enum { ROUNDS = 5, TAKERS = 2, WORKERS = 3, SAMPLES = 3000, BATCH = 8, EPOCHS = 4, ROOM = 50 };
enum { BATCHES = EPOCHS * (SAMPLES / BATCH) };

static stoker_loader *loader;
static _Atomic bool over;
static _Atomic uint64_t taken;
static _Atomic uint32_t published[BATCHES];

static void look_at(const stoker_trace_event *event)
{
    CHECK(event->kind < STOKER_TRACE_KIND_COUNT && event->thread <= WORKERS);
    CHECK(event->begin_ns > 0 && event->begin_ns <= event->end_ns && event->reserved == 0);
    CHECK(event->batch < BATCHES || event->batch == STOKER_TRACE_NO_BATCH);
    if (event->kind == STOKER_TRACE_PUBLISH)
        CHECK(atomic_fetch_add(&published[event->batch], 1U) == 0);
}

static size_t take(void)
{
    stoker_trace_event events[ROOM];
    stoker_trace trace = STOKER_TRACE_INIT;
    trace.events = events;
    trace.capacity = ROOM;
    CHECK(stoker_loader_trace(loader, &trace) == STOKER_OK);
    CHECK(trace.count <= ROOM);
    for (size_t i = 0; i < trace.count; i++)
        look_at(&events[i]);
    atomic_fetch_add(&taken, trace.count);
    return trace.count;
}

static void *take_on(void *argument)
{
    (void)argument;
    while (!atomic_load(&over))
        (void)take();
    return NULL;
}

static void consume(void)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED) {
        CHECK(rc >= 0);
        if (rc == STOKER_OK)
            stoker_batch_release(&batch);
    }
}

static uint32_t published_batches(void)
{
    uint32_t count = 0;
    for (uint32_t batch = 0; batch < BATCHES; batch++)
        count += atomic_load(&published[batch]);
    return count;
}

/* room: events per thread. Returns how many were dropped. */
static uint64_t run_once(const stoker_dataset *dataset, uint32_t room)
{
    pthread_t takers[TAKERS];
    stoker_loader_options options = stk_small_options(.num_workers = WORKERS, .batch_size = BATCH,
                                                      .epochs = EPOCHS, .trace_events = room);
    atomic_store(&over, false);
    atomic_store(&taken, 0);
    for (uint32_t batch = 0; batch < BATCHES; batch++)
        atomic_store(&published[batch], 0U);
    CHECK(stoker_loader_create(&loader, dataset, &options, NULL) == STOKER_OK);
    for (int i = 0; i < TAKERS; i++)
        CHECK(stk_thread_start(&takers[i], "test", take_on, NULL) == 0);
    consume();
    atomic_store(&over, true);
    for (int i = 0; i < TAKERS; i++)
        pthread_join(takers[i], NULL);
    stoker_trace trace = STOKER_TRACE_INIT;
    do { /* a worker may still have to write down that it published the last batch */
        while (take() > 0) {
        }
        CHECK(stoker_loader_trace(loader, &trace) == STOKER_OK);
    } while (trace.dropped == 0 && published_batches() < BATCHES);
    stoker_loader_destroy(&loader);
    return trace.dropped;
}

int main(void)
{
    struct stk_resident_set set = {
        .count = SAMPLES, .row_bytes = 16, .label_dtype = STOKER_DTYPE_INT64, .tells_rows = true
    };
    CHECK(stk_resident_set_open(&set));
    for (int round = 0; round < ROUNDS; round++) {
        CHECK(run_once(set.dataset, 1 << 16) == 0);
        CHECK(published_batches() == BATCHES);
        (void)run_once(set.dataset, 2); /* most is dropped, nothing is reported wrongly */
    }
    stk_resident_set_close(&set);
    CHECK(stk_fault_live_bytes() == 0);
    return 0;
}
