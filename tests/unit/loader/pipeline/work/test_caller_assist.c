/* test_caller_assist.c - when next() of a waiting consumer starts to do work, and when it stops. */
#include "loader/pipeline/work/caller_assist.h"
#include "support/leaks.h"

#define LOOK_NS   UINT64_C(100000)
#define WINDOW_NS UINT64_C(5000000)

struct life {
    struct stk_caller_assist assist;
    uint64_t now_ns, batches, stall_ns;
};

/* Let time pass in looks, waiting for stall_percent of it. */
static bool live(struct life *life, uint64_t ns, uint64_t stall_percent)
{
    bool on = life->assist.on;
    for (uint64_t end_ns = life->now_ns + ns; life->now_ns < end_ns;) {
        life->now_ns += LOOK_NS;
        life->batches += 16;
        life->stall_ns += LOOK_NS * stall_percent / 100;
        on = stk_caller_assist_step(&life->assist, life->now_ns, life->batches, life->stall_ns);
    }
    return on;
}

/* One look after an absence of ns. */
static bool be_away(struct life *life, uint64_t ns)
{
    life->now_ns += ns;
    life->batches += 16;
    return stk_caller_assist_step(&life->assist, life->now_ns, life->batches, life->stall_ns);
}

CleanTest(caller_assist, begins_above_a_half_and_stops_below_a_quarter)
{
    struct life life = { .now_ns = 1 };
    cr_assert_not(live(&life, 4 * WINDOW_NS, 45));
    cr_assert(live(&life, 4 * WINDOW_NS, 55));
    cr_assert(live(&life, 4 * WINDOW_NS, 30), "between the two marks it stays as it is");
    cr_assert_not(live(&life, 4 * WINDOW_NS, 20));
    cr_assert_not(live(&life, 4 * WINDOW_NS, 45));
}

CleanTest(caller_assist, takes_a_window_of_work_to_decide)
{
    struct life life = { .now_ns = 1 };
    cr_assert_not(live(&life, WINDOW_NS / 2, 90));
    cr_assert(live(&life, WINDOW_NS, 90));
}

CleanTest(caller_assist, an_absence_and_the_full_ring_after_it_change_nothing)
{
    struct life life = { .now_ns = 1 };
    cr_assert(live(&life, 4 * WINDOW_NS, 80));
    for (int turn = 0; turn < 20; turn++) {
        cr_assert(be_away(&life, 100 * WINDOW_NS), "turn %d", turn);
        cr_assert(live(&life, 2 * WINDOW_NS, 0), "turn %d: lives on the full ring", turn);
        cr_assert(live(&life, 2 * WINDOW_NS, 80), "turn %d", turn);
    }
}

CleanTest(caller_assist, a_second_absence_without_waiting_switches_it_off)
{
    struct life life = { .now_ns = 1 };
    cr_assert(live(&life, 4 * WINDOW_NS, 80));
    cr_assert(be_away(&life, 3 * WINDOW_NS));
    cr_assert(live(&life, LOOK_NS, 0));
    cr_assert_not(be_away(&life, 3 * WINDOW_NS));
    cr_assert(live(&life, 2 * WINDOW_NS, 80), "on again once it waits");
}

CleanTest(caller_assist, stops_once_what_it_returns_to_needs_no_waiting)
{
    struct life life = { .now_ns = 1 };
    cr_assert(live(&life, 4 * WINDOW_NS, 80));
    cr_assert(be_away(&life, 100 * WINDOW_NS));
    cr_assert_not(live(&life, 4 * WINDOW_NS, 10));
}
