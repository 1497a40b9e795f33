/* caller_assist.c - see caller_assist.h. */
#include "loader/pipeline/work/caller_assist.h"

#define WINDOW_NS UINT64_C(5000000)

/* Decide, once the window is full. */
static void judge(struct stk_caller_assist *assist)
{
    struct stk_look *window = &assist->window;
    if (window->ns < WINDOW_NS)
        return;
    assist->on = window->stall_ns > window->ns / (assist->on ? 4 : 2);
    *window = (struct stk_look){ 0 };
}

bool stk_caller_assist_step(struct stk_caller_assist *assist, uint64_t now_ns, uint64_t batches,
                            uint64_t stall_ns)
{
    const struct stk_look now = { .ns = now_ns, .batches = batches, .stall_ns = stall_ns };
    struct stk_look passed;
    switch (stk_activity_step(&assist->activity, &now, WINDOW_NS, &passed)) {
    case STK_ACTIVITY_WORK:
        assist->was_away = false;
        stk_look_add(&assist->window, &passed);
        judge(assist);
        break;
    case STK_ACTIVITY_ABSENCE:
        assist->on = assist->on && !assist->was_away;
        assist->was_away = true;
        break;
    case STK_ACTIVITY_RETURN:
    case STK_ACTIVITY_UNKNOWN:
        break;
    }
    return assist->on;
}
