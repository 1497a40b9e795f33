/* test_places.c - who is given which place of the ring, where counting comes to its ends.
 *
 * What makers are given in ordinary laps is in test_slots.c, with the credits; races in thread_road.c.
 */
#include <criterion/criterion.h>

#include "leaks.h"
#include "loader/base/fault.h"
#include "loader/road/places.h"

enum { LAP_BITS = 24, LAPS = 1 << LAP_BITS };

static uint64_t take(struct stk_places *places, uint32_t maker)
{
    uint64_t ticket = UINT64_MAX;
    const uint64_t first = stk_places_first(places);
    cr_assert(stk_places_take(places, maker, first, first + places->reach, &ticket));
    return ticket;
}

Test(places, laps_are_counted_on_when_their_bits_are_used_up)
{
    enum { COUNT = 3 };
    struct stk_places places;
    cr_assert_eq(stk_places_init(&places, COUNT, 1), 0);
    const uint64_t begin = (uint64_t)COUNT * (LAPS - 2);
    atomic_store(&places.first, begin);
    for (uint32_t i = 0; i < COUNT; i++)
        atomic_store(&places.marks[i], (uint32_t)(LAPS - 2) << (32 - LAP_BITS) | 1U);
    for (uint64_t ticket = begin; ticket < begin + (uint64_t)5 * COUNT; ticket++)
        cr_assert_eq(take(&places, 0), ticket);
    stk_places_destroy(&places);
    stk_test_check_leaks();
}

/* More than there are tags: some count as one, and none is left without. */
Test(places, any_number_of_makers)
{
    enum { COUNT = 2048, MAKERS = 600 };
    struct stk_places places;
    bool taken[2 * COUNT] = { false };
    cr_assert_eq(stk_places_init(&places, COUNT, MAKERS), 0);
    cr_assert_eq(places.reach, COUNT / 2);
    for (uint32_t turn = 0; turn < 2 * COUNT; turn++) {
        const uint64_t ticket = take(&places, turn * 7 % MAKERS);
        cr_assert_lt(ticket, 2 * COUNT + COUNT / 2);
        if (ticket >= 2 * COUNT)
            continue;
        cr_assert_not(taken[ticket]);
        taken[ticket] = true;
    }
    stk_places_destroy(&places);
    stk_test_check_leaks();
}

Test(places, what_others_have_taken_is_not_given)
{
    struct stk_places places;
    uint64_t ticket;
    cr_assert_eq(stk_places_init(&places, 8, 2), 0);
    cr_assert_eq(take(&places, 0), 0);
    cr_assert_not(stk_places_take(&places, 1, 0, 1, &ticket));
    cr_assert(stk_places_take(&places, 1, 0, 2, &ticket));
    cr_assert_eq(ticket, 1);
    cr_assert_eq(stk_places_first(&places), 2);
    stk_places_destroy(&places);
    stk_test_check_leaks();
}

Test(places, without_memory_there_are_none)
{
    struct stk_places places;
    stk_fault_arm(STK_FAULT_MEMORY, 1);
    cr_assert_lt(stk_places_init(&places, 8, 2), 0);
    cr_assert(stk_fault_disarm());
    stk_places_destroy(&places);
    stk_test_check_leaks();
}
