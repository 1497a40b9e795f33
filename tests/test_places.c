/* test_places.c - who is given which place of the ring, where counting comes to its ends.
 *
 * What makers are given in ordinary laps is in test_slots.c, with the credits; races in thread_road.c.
 */
#include <criterion/criterion.h>

#include "leaks.h"
#include "loader/base/fault.h"
#include "loader/pipeline/places.h"

enum { LAP_BITS = 24, LAPS = 1 << LAP_BITS };

static struct stk_piece take_parts(struct stk_places *places, uint32_t maker, uint32_t parts)
{
    struct stk_piece piece = { .ticket = UINT64_MAX };
    const uint64_t first = stk_places_first(places);
    cr_assert(stk_places_take(places, maker, first, first + places->reach, parts, &piece));
    return piece;
}

static uint64_t take(struct stk_places *places, uint32_t maker)
{
    return take_parts(places, maker, 1).ticket;
}

Test(places, laps_are_counted_on_when_their_bits_are_used_up)
{
    enum { COUNT = 3 };
    struct stk_places places;
    cr_assert_eq(stk_places_init(&places, COUNT, 1, 1), 0);
    const uint64_t begin = (uint64_t)COUNT * (LAPS - 2);
    atomic_store(&places.first, begin);
    for (uint32_t i = 0; i < COUNT; i++)
        atomic_store(&places.marks[i], (uint64_t)(LAPS - 2) << (64 - LAP_BITS) | UINT64_C(1) << 32);
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
    cr_assert_eq(stk_places_init(&places, COUNT, 1, MAKERS), 0);
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
    struct stk_piece piece;
    cr_assert_eq(stk_places_init(&places, 8, 1, 2), 0);
    cr_assert_eq(take(&places, 0), 0);
    cr_assert_not(stk_places_take(&places, 1, 0, 1, 1, &piece));
    cr_assert(stk_places_take(&places, 1, 0, 2, 1, &piece));
    cr_assert_eq(piece.ticket, 1);
    cr_assert_eq(stk_places_first(&places), 2);
    stk_places_destroy(&places);
    stk_test_check_leaks();
}

/* Makers that take parts share the first place; one that takes whole places looks for its own. */
Test(places, parts_are_taken_from_the_first_place_that_has_some)
{
    enum { PARTS = STK_PLACE_PARTS_MAX };
    struct stk_places places;
    cr_assert_eq(stk_places_init(&places, 8, PARTS, 4), 0);
    for (uint32_t part = 0; part < PARTS; part += 4) {
        const struct stk_piece piece = take_parts(&places, part / 4 % 4, 4);
        cr_assert_eq(piece.ticket, 0);
        cr_assert_eq(piece.part, part);
        cr_assert_eq(piece.parts, 4);
    }
    struct stk_piece piece = take_parts(&places, 0, PARTS - 1);
    cr_assert_eq(piece.ticket, 1);
    cr_assert_eq(piece.parts, PARTS - 1);
    piece = take_parts(&places, 1, PARTS);
    cr_assert_eq(piece.ticket, 2, "the rest of 1 is another's");
    cr_assert_eq(piece.parts, PARTS);
    piece = take_parts(&places, 0, PARTS);
    cr_assert_eq(piece.ticket, 1);
    cr_assert_eq(piece.part, PARTS - 1);
    cr_assert_eq(piece.parts, 1);
    stk_places_destroy(&places);
    stk_test_check_leaks();
}

/* Any number of parts, any wishes: each part once a lap. */
Test(places, each_part_is_taken_once)
{
    enum { COUNT = 6, LAPS_HERE = 3 };
    for (uint32_t parts = 1; parts <= STK_PLACE_PARTS_MAX; parts++) {
        struct stk_places places;
        uint32_t taken[LAPS_HERE * COUNT] = { 0 };
        uint32_t left = LAPS_HERE * COUNT * parts;
        cr_assert_eq(stk_places_init(&places, COUNT, parts, 3), 0);
        for (uint32_t turn = 0; left > 0; turn++) {
            const uint64_t first = stk_places_first(&places);
            uint64_t end = first + places.reach;
            end = end < LAPS_HERE * COUNT ? end : LAPS_HERE * COUNT;
            struct stk_piece piece;
            cr_assert(stk_places_take(&places, turn % 3, first, end, 1 + turn * 7 % parts, &piece));
            const uint32_t bits = (uint32_t)(((UINT64_C(1) << piece.parts) - 1) << piece.part);
            cr_assert_eq(taken[piece.ticket] & bits, 0);
            cr_assert_leq(piece.part + piece.parts, parts);
            taken[piece.ticket] |= bits;
            left -= piece.parts;
        }
        stk_places_destroy(&places);
    }
    stk_test_check_leaks();
}

Test(places, without_memory_there_are_none)
{
    struct stk_places places;
    stk_fault_arm(STK_FAULT_MEMORY, 1);
    cr_assert_lt(stk_places_init(&places, 8, 1, 2), 0);
    cr_assert(stk_fault_disarm());
    stk_places_destroy(&places);
    stk_test_check_leaks();
}
