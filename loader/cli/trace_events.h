/* trace_events.h - collects what a loader's threads record, for --trace of the programs. */
#ifndef STK_CLI_TRACE_EVENTS_H
#define STK_CLI_TRACE_EVENTS_H

#include <stddef.h>
#include <stdint.h>
#include <stoker/trace.h>

enum {
    CLI_TRACE_THREAD_EVENTS = 1 << 14, /* options.trace_events: room in each thread's ring */
    CLI_TRACE_TAKE_EVERY = 16,         /* batches between two calls of cli_trace_take() */
    CLI_TRACE_EVENTS_MAX = 1 << 21     /* in a file, which then has half a gigabyte */
};

/* All zero is empty. */
struct cli_trace {
    stoker_trace_event *events; /* free() */
    size_t count, room;
    uint64_t dropped; /* events for which the threads' rings had no room */
};

/* Moves what the threads have recorded to *trace, which grows to at most `most` events. What does
 * not fit stays in the threads' rings, which drop and count further events. Returns the code of
 * stoker_loader_trace(). */
int cli_trace_take(struct cli_trace *trace, stoker_loader *loader, size_t most);

/* The callback that stoker_trace_write() wants for a FILE. */
int cli_trace_to_file(void *file, const char *text, size_t bytes);

#endif
