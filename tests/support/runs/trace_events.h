/* trace_events.h - all events of one loader, and whether they can be true. */
#ifndef STK_TEST_TRACE_EVENTS_H
#define STK_TEST_TRACE_EVENTS_H

#include "scenario.h"

enum { STK_EVENTS_MAX = 1 << 16 };

struct stk_events {
    stoker_trace_event events[STK_EVENTS_MAX];
    size_t count;
    uint64_t recorded;
    uint64_t dropped;
};

/* Append what there is, in steps of `step`. */
static inline int stk_events_take(struct stk_events *all, stoker_loader *loader, size_t step)
{
    stoker_trace trace = STOKER_TRACE_INIT;
    do {
        const size_t room = STK_EVENTS_MAX - all->count;
        trace.events = all->events + all->count;
        trace.capacity = room < step ? room : step;
        int rc = stoker_loader_trace(loader, &trace);
        if (rc != STOKER_OK)
            return rc;
        all->count += trace.count;
        all->recorded = trace.recorded;
        all->dropped = trace.dropped;
    } while (trace.count > 0);
    return STOKER_OK;
}

static inline uint64_t stk_events_of_kind(const struct stk_events *all, stoker_trace_kind kind)
{
    uint64_t count = 0;
    for (size_t i = 0; i < all->count; i++)
        count += all->events[i].kind == kind;
    return count;
}

/* Returns true if the events of one thread are ordered by their ends, and any two are disjoint or
 * nested. `open` holds those that no later one encloses so far. */
static inline bool stk_events_nest(const struct stk_events *all, uint32_t thread)
{
    static const stoker_trace_event *open[STK_EVENTS_MAX];
    size_t depth = 0;
    uint64_t last_ns = 0;
    for (size_t i = 0; i < all->count; i++) {
        const stoker_trace_event *event = &all->events[i];
        if (event->thread != thread)
            continue;
        if (event->end_ns < last_ns || event->end_ns < event->begin_ns)
            return false;
        last_ns = event->end_ns;
        while (depth > 0 && open[depth - 1]->begin_ns >= event->begin_ns)
            depth--;
        if (depth > 0 && open[depth - 1]->end_ns > event->begin_ns)
            return false;
        open[depth++] = event;
    }
    return true;
}

#endif
