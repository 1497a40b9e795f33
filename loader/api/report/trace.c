/* trace.c - stoker_loader_trace: hands out the recorded events. */
#include <stoker/stoker.h>

#include "loader/api/loader.h"
#include "loader/base/struct_size.h"

int stoker_loader_trace(stoker_loader *loader, stoker_trace *trace)
{
    if (loader == NULL || trace == NULL ||
        !stk_struct_fits(trace, STK_SIZE_UP_TO(stoker_trace, dropped), sizeof(*trace)) ||
        (trace->events == NULL && trace->capacity > 0))
        return STOKER_EINVAL;
    if (stk_fork_guard_tripped(&loader->guard))
        return STOKER_EFORKED;
    if (loader->options.trace_events == 0)
        return STOKER_EINVAL;
    stk_trace_take(&loader->trace, trace);
    return STOKER_OK;
}
