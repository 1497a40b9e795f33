/* trace.c - see trace.h. */
#include "bench/loaderbench/trace.h"
#include "bench/loaderbench/cell/consumer.h"
#include "bench/loaderbench/timing.h"
#include "loader/base/clock.h"
#include "loader/cli/trace_events.h"

#include <stdlib.h>
#include <string.h>

enum {
    EPOCHS = 2,        /* the second one reads from the cache */
    LAST_NS = 1000000, /* between two tries to read the last events */
    LAST_TRIES = 100   /* and how often */
};

struct bench_trace_run {
    char name[BENCH_TRACE_NAME_MAX];
    struct cli_trace trace;
};

static size_t count_of(const struct bench_trace_run *run, stoker_trace_kind kind)
{
    size_t count = 0;
    for (size_t index = 0; index < run->trace.count; index++)
        count += run->trace.events[index].kind == kind;
    return count;
}

/* Takes the rest. A worker may have published the last batch but not recorded it yet. */
static int take_last(struct bench_trace_run *run, stoker_loader *loader, size_t most)
{
    int rc = cli_trace_take(&run->trace, loader, most);
    for (int tries = 0; rc == STOKER_OK && tries < LAST_TRIES && run->trace.dropped == 0 &&
                        count_of(run, STOKER_TRACE_PUBLISH) < count_of(run, STOKER_TRACE_LEND);
         tries++) {
        bench_sleep_ns(LAST_NS);
        rc = cli_trace_take(&run->trace, loader, most);
    }
    return rc;
}

static int consume(struct bench_trace_run *run, const struct bench_trace_options *options,
                   stoker_loader *loader, size_t most)
{
    struct bench_consumer consumer = { .loader = loader,
                                       .gpu = options->gpu,
                                       .step_ns = options->step_ns };
    uint64_t end_ns = stk_now_ns() + (uint64_t)(options->seconds_max * 1e9);
    int rc = STOKER_OK;
    for (uint32_t batches = 1; rc >= 0 && rc != STOKER_FINISHED; batches++) {
        rc = bench_consumer_next(&consumer);
        if (rc < 0 || batches % CLI_TRACE_TAKE_EVERY != 0)
            continue;
        int taken = cli_trace_take(&run->trace, loader, most);
        if (taken != STOKER_OK)
            return taken;
        if (stk_now_ns() >= end_ns)
            break;
    }
    return rc < 0 ? rc : take_last(run, loader, most);
}

int bench_trace_record(struct bench_trace *trace, const struct bench_trace_options *options,
                       stoker_error *error)
{
    stoker_loader_options loading = *options->loading;
    stoker_loader *loader = NULL;
    struct bench_trace_run run = { .name = "" };
    struct bench_trace_run *runs = realloc(trace->runs, (trace->count + 1) * sizeof(*runs));
    if (runs == NULL)
        return STOKER_ENOMEM;
    trace->runs = runs;
    loading.epochs = EPOCHS;
    loading.trace_events = CLI_TRACE_THREAD_EVENTS;
    if (loading.pin_memory == STOKER_SWITCH_ON)
        loading.pin_memory =
            STOKER_SWITCH_AUTO; /* beside the cell's own slots, locking may exceed the limit */
    int rc = stoker_loader_create(&loader, options->dataset, &loading, error);
    if (rc == STOKER_OK)
        rc = consume(&run, options, loader, CLI_TRACE_EVENTS_MAX - trace->events);
    if (rc < 0 && loader != NULL && stoker_loader_error(loader) != NULL)
        *error = *stoker_loader_error(loader);
    stoker_loader_destroy(&loader);
    if (rc != STOKER_OK) {
        free(run.trace.events);
        return rc;
    }
    snprintf(run.name, sizeof(run.name), "%s", options->name);
    trace->events += run.trace.count;
    trace->runs[trace->count++] = run;
    return STOKER_OK;
}

int bench_trace_write(const struct bench_trace *trace, FILE *file)
{
    stoker_trace_run *runs = calloc(trace->count + 1, sizeof(*runs));
    if (runs == NULL)
        return STOKER_ENOMEM;
    for (size_t index = 0; index < trace->count; index++) {
        const struct bench_trace_run *run = &trace->runs[index];
        runs[index] = (stoker_trace_run){ .name = run->name,
                                          .events = run->trace.events,
                                          .count = run->trace.count,
                                          .dropped = run->trace.dropped };
    }
    int rc = stoker_trace_write(runs, trace->count, cli_trace_to_file, file);
    free(runs);
    return rc;
}

void bench_trace_destroy(struct bench_trace *trace)
{
    for (size_t index = 0; index < trace->count; index++)
        free(trace->runs[index].trace.events);
    free(trace->runs);
    *trace = (struct bench_trace){ .count = 0 };
}
