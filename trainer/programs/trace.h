/* trace.h - --trace FILE: what the training set's loader did, thread by thread. */
#ifndef STK_PROGRAMS_TRACE_H
#define STK_PROGRAMS_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/loader.h>
#include <stoker/trace.h>

#include "loader/base/output_file.h"

/* All zero records nothing. */
struct trace {
    const char *path; /* NULL = off */
    struct stk_output output;
    stoker_trace_event *events;
    size_t count, room;
    uint64_t dropped;
    uint32_t batches; /* since events were last taken */
};

/* Open path for writing (loader/base/output_file.h). path NULL: nothing is recorded.
 * On failure *error says why, and *trace is all zero. */
int trace_open(struct trace *trace, const char *path, stoker_error *error);

/* What the loader's option trace_events is to be. */
uint32_t trace_events(const struct trace *trace);

/* After each batch: now and then it takes what the loader's threads wrote down. */
void trace_step(struct trace *trace, stoker_loader *loader);

/* Before the loader goes: take the rest. */
void trace_end(struct trace *trace, stoker_loader *loader);

/* Write it, with `name` above its threads, and free. On failure *error says why, and a regular file is
 * unchanged. */
int trace_close(struct trace *trace, const char *name, stoker_error *error);

#endif
