/* trace_events.c - see trace_events.h. */
#include "loader/cli/trace_events.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { GROWTH_EVENTS = 1 << 16 };

/* Makes room for more. False: out of memory, or `most` events are there. */
static bool grow_events(struct cli_trace *trace, size_t most)
{
    if (trace->count < trace->room)
        return true;
    const size_t room = trace->room + GROWTH_EVENTS < most ? trace->room + GROWTH_EVENTS : most;
    stoker_trace_event *events =
        room > trace->room ? realloc(trace->events, room * sizeof(*events)) : NULL;
    if (events == NULL)
        return false;
    trace->events = events;
    trace->room = room;
    return true;
}

int cli_trace_take(struct cli_trace *trace, stoker_loader *loader, size_t most)
{
    stoker_trace taken = STOKER_TRACE_INIT;
    do {
        const bool fits = grow_events(trace, most);
        taken.events = fits ? trace->events + trace->count : NULL;
        taken.capacity = fits ? trace->room - trace->count : 0;
        const int rc = stoker_loader_trace(loader, &taken);
        if (rc != STOKER_OK)
            return rc;
        trace->count += fits ? taken.count : 0;
        trace->dropped = taken.dropped;
    } while (taken.capacity > 0 && taken.count == taken.capacity);
    return STOKER_OK;
}

int cli_trace_to_file(void *file, const char *text, size_t bytes)
{
    return fwrite(text, 1, bytes, file) == bytes ? STOKER_OK : STOKER_EIO;
}
