/* test_trace.c - on a GPU each batch is published, sent, lent and released once, and its
 * slot comes back once its copy is done; on the stand-in, whose copies are late.
 */
#include "support/gpu/cuda_run.h"
#include "support/leaks.h"
#include "support/runs/trace_events.h"

enum {
    SLOTS = 4,
    SAMPLES = 150,
    BATCH = 16,
    BATCHES = 2 * ((SAMPLES + BATCH - 1) / BATCH),
    WORK_US = 200
};

static struct stk_events all;
static struct stk_cuda_consumer consumer;
static struct stk_run run;

static void record(const stoker_dataset *dataset, const stoker_loader_options *options)
{
    stoker_loader *loader = NULL;
    all.count = 0;
    run = (struct stk_run){ 0 };
    cr_assert(stk_cuda_consumer_init(&consumer, WORK_US));
    cr_assert_eq(stoker_loader_create(&loader, dataset, options, NULL), STOKER_OK);
    stk_cuda_run_on(loader, &consumer, &run, UINT32_MAX);
    cr_assert_eq(run.rc, STOKER_FINISHED);
    do
        cr_assert_eq(stk_events_take(&all, loader, 1000), STOKER_OK);
    while (stk_events_of_kind(&all, STOKER_TRACE_PUBLISH) < BATCHES);
    cr_assert_eq(all.dropped, 0);
    stoker_loader_destroy(&loader);
    stk_cuda_consumer_destroy(&consumer);
}

static const stoker_trace_event *only(uint64_t batch, stoker_trace_kind kind)
{
    const stoker_trace_event *found = NULL;
    for (size_t i = 0; i < all.count; i++)
        if (all.events[i].kind == kind && all.events[i].batch == batch) {
            cr_assert_null(found, "%s of batch %d again", stoker_trace_name(kind), (int)batch);
            found = &all.events[i];
        }
    return found;
}

/* Published, sent, lent, released; and retired after it was sent, if anybody looked. */
static void check_order(void)
{
    for (uint64_t batch = 0; batch < BATCHES; batch++) {
        const stoker_trace_event *published = only(batch, STOKER_TRACE_PUBLISH);
        const stoker_trace_event *sent = only(batch, STOKER_TRACE_SEND);
        const stoker_trace_event *retired = only(batch, STOKER_TRACE_RETIRE);
        const stoker_trace_event *lent = only(batch, STOKER_TRACE_LEND);
        const stoker_trace_event *released = only(batch, STOKER_TRACE_RELEASE);
        cr_assert(published != NULL && sent != NULL && lent != NULL && released != NULL);
        cr_assert_geq(sent->begin_ns, published->begin_ns);
        cr_assert_geq(lent->begin_ns, sent->end_ns);
        cr_assert_geq(released->begin_ns, lent->end_ns);
        cr_assert_eq(sent->rows, lent->rows);
        cr_assert(retired == NULL || retired->begin_ns >= sent->end_ns);
    }
    cr_assert_geq(stk_events_of_kind(&all, STOKER_TRACE_RETIRE), BATCHES - SLOTS);
}

static int count_states(void *self, const char *text, size_t bytes)
{
    int *states = self; /* ready, copied, lent; each begin one more, each end one less */
    static const char *const names[] = { "ready", "copied", "lent" };
    char piece[513] = "";
    memcpy(piece, text, bytes);
    for (int i = 0; i < 3; i++) {
        char begins[64], ends[64];
        (void)snprintf(begins, sizeof(begins), "\"%s\",\"cat\":\"batch\",\"ph\":\"b\"", names[i]);
        (void)snprintf(ends, sizeof(ends), "\"%s\",\"cat\":\"batch\",\"ph\":\"e\"", names[i]);
        states[i] += (strstr(piece, begins) != NULL) - (strstr(piece, ends) != NULL);
    }
    return STOKER_OK;
}

CleanTest(cuda_trace, records_each_batch_and_its_copy_once)
{
    struct stk_file_set set;
    standin_cuda_reset(1);
    standin_cuda_delay(50);
    cr_assert(stk_file_set_make(&set, SAMPLES, 4, 5, 3));
    for (int32_t workers = 0; workers <= 2; workers++)
        for (int waits = 0; waits <= 1; waits++) {
            stoker_loader_options options =
                stk_small_options(.device = STOKER_DEVICE_CUDA, .num_workers = workers,
                                  .prefetch_batches = SLOTS, .non_blocking = waits == 0,
                                  .trace_events = 1 << 13);
            int states[3] = { 0 };
            record(set.dataset, &options);
            check_order();
            for (uint32_t thread = 0; thread <= (uint32_t)workers; thread++)
                cr_assert(stk_events_nest(&all, thread));
            const stoker_trace_run told = { .events = all.events, .count = all.count };
            const int retired = (int)stk_events_of_kind(&all, STOKER_TRACE_RETIRE);
            cr_assert_eq(stoker_trace_write(&told, 1, count_states, states), STOKER_OK);
            cr_assert_eq(states[0], 0);
            cr_assert_eq(states[1], BATCHES - retired);
            cr_assert_eq(states[2], 0);
        }
    stk_file_set_remove(&set);
    standin_cuda_reset(1); /* ends the default streams */
    cr_assert_eq(standin_cuda_live(), 0);
}
