/* lending.c - see lending.h. */
#include "loader/pipeline/lending.h"

#define WINDOW_NS UINT64_C(5000000)

/* Judge a window of work that is complete. */
static void judge(struct stk_lending *lending)
{
    struct stk_look *window = &lending->window;
    if (window->ns < WINDOW_NS)
        return;
    lending->lends = window->stall_ns > window->ns / (lending->lends ? 4 : 2);
    *window = (struct stk_look){ 0 };
}

bool stk_lending_step(struct stk_lending *lending, uint64_t now_ns, uint64_t batches,
                      uint64_t stall_ns)
{
    const struct stk_look now = { .ns = now_ns, .batches = batches, .stall_ns = stall_ns };
    struct stk_look passed;
    switch (stk_watch_step(&lending->watch, &now, WINDOW_NS, &passed)) {
    case STK_WATCHED_WORK:
        lending->was_away = false;
        stk_look_add(&lending->window, &passed);
        judge(lending);
        break;
    case STK_WATCHED_ABSENCE:
        lending->lends = lending->lends && !lending->was_away;
        lending->was_away = true;
        break;
    case STK_WATCHED_RETURN:
    case STK_WATCHED_NOTHING:
        break;
    }
    return lending->lends;
}
