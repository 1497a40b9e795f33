/* trace.c - what each thread of a loader did, handed to anyone who asks. */
#include <stoker/stoker.h>

#include "loader/api/loader.h"

int stoker_loader_trace(stoker_loader *loader, stoker_trace *trace)
{
    if (loader == NULL || trace == NULL || trace->struct_size != sizeof(*trace) ||
        (trace->events == NULL && trace->capacity > 0))
        return STOKER_EINVAL;
    if (stk_fork_guard_tripped(&loader->guard))
        return STOKER_EFORKED;
    if (loader->options.trace_events == 0)
        return STOKER_EINVAL;
    stk_trace_take(&loader->trace, trace);
    return STOKER_OK;
}

const char *stoker_trace_name(stoker_trace_kind kind)
{
#define NAME(name, text, what) text,
    static const char *const names[] = { STOKER_TRACE_KINDS(NAME) };
#undef NAME
    return (unsigned)kind < STOKER_TRACE_KIND_COUNT ? names[kind] : "unknown";
}
