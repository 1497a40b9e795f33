/* trace.h - --trace FILE: records what each thread of the training set's loader did. */
#ifndef STK_PROGRAMS_TRACE_H
#define STK_PROGRAMS_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/loader.h>
#include <stoker/trace.h>

#include "loader/base/io/output_file.h"

/* All zero records nothing. */
struct trace {
    const char *path; /* NULL = off */
    struct stk_output output;
    stoker_trace_event *events;
    size_t count, room;
    uint64_t dropped;
    uint32_t batches; /* since events were last taken */
};

/* Opens path for writing (loader/base/io/output_file.h); NULL records nothing. On failure *error
 * has the reason, and *trace is all zero. */
int trace_open(struct trace *trace, const char *path, stoker_error *error);

/* The value for the loader's option trace_events. */
uint32_t trace_events(const struct trace *trace);

/* Call after each batch; reads the threads' events now and then. */
void trace_step(struct trace *trace, stoker_loader *loader);

/* Call before destroying the loader; reads the rest. */
void trace_end(struct trace *trace, stoker_loader *loader);

/* Writes the trace, with `name` above its threads, and frees it. On failure *error has the reason,
 * and a regular file is unchanged. */
int trace_close(struct trace *trace, const char *name, stoker_error *error);

#endif
