/* test_nvtx.c - a tool sees every stage as a range with its name, as often as the trace reports
 * it; without a tool nothing is asked of anybody.
 */
#include <dlfcn.h>

#include "loader/base/fault.h"
#include "loader/pipeline/report/trace.h"
#include "support/leaks.h"
#include "support/nvtx_tool.h"
#include "support/runs/trace_events.h"

enum { SAMPLES = 100, BATCH = 16, EPOCHS = 2, BATCHES = EPOCHS * ((SAMPLES + BATCH - 1) / BATCH) };

Test(nvtx, without_a_tool_there_are_no_rings)
{
    struct stk_nvtx nvtx;
    unsetenv("NVTX_INJECTION64_PATH");
    cr_assert_not(stk_nvtx_init(&nvtx, stoker_trace_name));
    cr_assert_null(nvtx.domain);
    stk_nvtx_destroy(&nvtx);
    stk_nvtx_push(NULL, STOKER_TRACE_CLAIM, 0);
    stk_nvtx_pop(NULL);

    struct stk_trace trace;
    cr_assert_eq(stk_trace_init(&trace, 4, 0), 0);
    cr_assert_null(stk_trace_ring_of(&trace, 3));
    stk_trace_destroy(&trace);
    cr_assert_eq(stk_fault_allocations(), 0);
}

#ifdef STOKER_TEST_NVTX_TOOL

static struct stk_events all;
static struct nvtx_tool_counts counts;

static void look(void)
{
    void *tool = dlopen(STOKER_TEST_NVTX_TOOL, RTLD_LAZY | RTLD_NOLOAD);
    nvtx_tool_look_fn *tool_look = NULL;
    cr_assert_not_null(tool, "NVTX did not load the tool");
    *(void **)&tool_look = dlsym(tool, "nvtx_tool_look");
    cr_assert_not_null(tool_look);
    tool_look(&counts);
    dlclose(tool);
}

static uint64_t count_of(const uint64_t *of, stoker_trace_kind kind)
{
    for (unsigned i = 0; i < counts.name_count; i++)
        if (strcmp(counts.names[i], stoker_trace_name(kind)) == 0)
            return of[i];
    cr_assert_fail("the tool never heard of %s", stoker_trace_name(kind));
    return 0;
}

static void run(const stoker_dataset *dataset, int32_t workers, uint32_t events)
{
    stoker_loader_options options =
        stk_small_options(.num_workers = workers, .trace_events = events);
    static struct stk_run done;
    stoker_loader *loader = NULL;
    all.count = 0;
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
    done = (struct stk_run){ 0 };
    stk_run_on(loader, &done, UINT32_MAX);
    cr_assert_eq(done.rc, STOKER_FINISHED);
    stoker_stats stats = { .struct_size = sizeof(stats) };
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_eq(stats.trace_bytes > 0, events > 0);
    cr_assert_eq(stoker_loader_trace(loader, &(stoker_trace)STOKER_TRACE_INIT),
                 events > 0 ? STOKER_OK : STOKER_EINVAL);
    while (events > 0 && stk_events_of_kind(&all, STOKER_TRACE_PUBLISH) < BATCHES)
        cr_assert_eq(stk_events_take(&all, loader, 1000), STOKER_OK);
    stoker_loader_destroy(&loader);
}

/* Both have all pushes but those that came to nothing, which a trace leaves out. */
static void compare(void)
{
    uint64_t pushes = 0;
    look();
    for (unsigned i = 0; i < counts.name_count; i++)
        pushes += counts.pushes[i];
    cr_assert_eq(pushes, counts.pops);
    cr_assert_eq(counts.wrong, 0);
    cr_assert_eq(counts.domains, 0);
    cr_assert_eq(counts.name_count, STOKER_TRACE_KIND_COUNT);
    cr_assert_str_eq(counts.domain_name, "stoker");
}

static void listen(void)
{
    setenv("NVTX_INJECTION64_PATH", STOKER_TEST_NVTX_TOOL, 1);
}

CleanTest(nvtx, a_tool_sees_what_the_trace_records)
{
    static const stoker_trace_kind same[] = { STOKER_TRACE_CLAIM, STOKER_TRACE_LEND,
                                              STOKER_TRACE_RELEASE };
    stoker_dataset *dataset = NULL;
    uint64_t told[STOKER_TRACE_KIND_COUNT] = { 0 };
    listen();
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:digits?count=100", NULL, NULL), STOKER_OK);
    for (int32_t workers = 0; workers <= 3; workers++) {
        run(dataset, workers, 1 << 12);
        compare();
        for (int kind = 0; kind < STOKER_TRACE_KIND_COUNT; kind++)
            told[kind] += stk_events_of_kind(&all, (stoker_trace_kind)kind);
        for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
            cr_assert_eq(count_of(counts.pushes, same[i]), told[same[i]]);
        cr_assert_geq(count_of(counts.pushes, STOKER_TRACE_PUBLISH), told[STOKER_TRACE_PUBLISH]);
        cr_assert_geq(count_of(counts.pushes, STOKER_TRACE_DECODE), told[STOKER_TRACE_DECODE]);
        cr_assert_eq(count_of(counts.payloads, STOKER_TRACE_LEND), told[STOKER_TRACE_LEND]);
        cr_assert_eq(count_of(counts.payloads, STOKER_TRACE_CREDIT), 0);
    }
    stoker_dataset_close(&dataset);
}

/* A tool is reason enough: nothing is recorded, but the tool sees everything. */
CleanTest(nvtx, a_tool_alone_needs_no_option)
{
    stoker_dataset *dataset = NULL;
    listen();
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:digits?count=100", NULL, NULL), STOKER_OK);
    run(dataset, 2, 0);
    compare();
    cr_assert_eq(count_of(counts.pushes, STOKER_TRACE_LEND), BATCHES);
    cr_assert_eq(count_of(counts.pushes, STOKER_TRACE_RELEASE), BATCHES);
    stoker_dataset_close(&dataset);
}

/* A create that fails gives its domain back. */
CleanTest(nvtx, each_failed_create_leaves_no_domain)
{
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_loader_options options = stk_small_options(.num_workers = 2, .trace_events = 64);
    listen();
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:digits?count=100", NULL, NULL), STOKER_OK);
    const int64_t live = stk_fault_live_bytes();
    for (uint64_t nth = 1; loader == NULL; nth++) {
        cr_assert_lt(nth, 1000);
        stk_fault_arm(STK_FAULT_MEMORY | STK_FAULT_THREAD, nth);
        (void)stoker_loader_create(&loader, dataset, &options, NULL);
        (void)stk_fault_disarm();
        if (loader == NULL && nth > 20) { /* by then the tool is there */
            look();
            cr_assert_eq(counts.domains, 0);
        }
        if (loader == NULL)
            cr_assert_eq(stk_fault_live_bytes(), live);
    }
    stoker_loader_destroy(&loader);
    look();
    cr_assert_eq(counts.domains, 0);
    stoker_dataset_close(&dataset);
}

#endif
