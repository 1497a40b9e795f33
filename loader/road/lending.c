/* lending.c - see lending.h. */
#include "loader/road/lending.h"

#define WINDOW_NS UINT64_C(5000000)

bool stk_lending_step(struct stk_lending *lending, uint64_t now_ns, uint64_t batches,
                      uint64_t stall_ns)
{
    const struct stk_look now = { now_ns, batches, stall_ns };
    struct stk_look passed;
    if (!stk_watch_step(&lending->watch, &now, WINDOW_NS, &passed))
        return lending->lends;
    struct stk_look *window = &lending->window;
    window->ns += passed.ns;
    window->stall_ns += passed.stall_ns;
    if (window->ns < WINDOW_NS)
        return lending->lends;
    lending->lends = window->stall_ns > window->ns / (lending->lends ? 4 : 2);
    *window = (struct stk_look){ 0 };
    return lending->lends;
}
