/* test_claim_affinity.c - which ring position a worker gets, and counters at their limits.
 *
 * What workers are given in ordinary laps is in test_slots.c, with the credits; races in
 * tests/thread/loader/test_pipeline.c.
 */
#include "loader/base/fault.h"
#include "loader/pipeline/slots/claim_affinity.h"
#include "support/leaks.h"

enum { LAP_BITS = 24, LAPS = 1 << LAP_BITS };

static struct stk_piece take_shares(struct stk_claim_affinity *affinity, uint32_t worker,
                                    uint32_t shares)
{
    struct stk_piece piece = { .ticket = UINT64_MAX };
    const uint64_t first = stk_claim_affinity_first(affinity);
    cr_assert(
        stk_claim_affinity_take(affinity, worker, first, first + affinity->reach, shares, &piece));
    return piece;
}

static uint64_t take(struct stk_claim_affinity *affinity, uint32_t worker)
{
    return take_shares(affinity, worker, 1).ticket;
}

CleanTest(claim_affinity, the_lap_counter_may_wrap)
{
    enum { COUNT = 3 };
    struct stk_claim_affinity affinity;
    cr_assert_eq(stk_claim_affinity_init(&affinity, COUNT, 1, 1), 0);
    const uint64_t begin = (uint64_t)COUNT * (LAPS - 2);
    atomic_store(&affinity.first, begin);
    for (uint32_t i = 0; i < COUNT; i++)
        atomic_store(&affinity.marks[i], (uint64_t)(LAPS - 2) << (64 - LAP_BITS) | UINT64_C(1)
                                                                                       << 32);
    for (uint64_t ticket = begin; ticket < begin + (uint64_t)5 * COUNT; ticket++)
        cr_assert_eq(take(&affinity, 0), ticket);
    stk_claim_affinity_destroy(&affinity);
}

/* More workers than tags: some share one, and each is served. */
CleanTest(claim_affinity, any_number_of_workers)
{
    enum { COUNT = 2048, WORKERS = 600 };
    struct stk_claim_affinity affinity;
    bool taken[2 * COUNT] = { false };
    cr_assert_eq(stk_claim_affinity_init(&affinity, COUNT, 1, WORKERS), 0);
    cr_assert_eq(affinity.reach, COUNT / 2);
    for (uint32_t turn = 0; turn < 2 * COUNT; turn++) {
        const uint64_t ticket = take(&affinity, turn * 7 % WORKERS);
        cr_assert_lt(ticket, 2 * COUNT + COUNT / 2);
        if (ticket >= 2 * COUNT)
            continue;
        cr_assert_not(taken[ticket]);
        taken[ticket] = true;
    }
    stk_claim_affinity_destroy(&affinity);
}

CleanTest(claim_affinity, what_others_have_taken_is_left_out)
{
    struct stk_claim_affinity affinity;
    struct stk_piece piece;
    cr_assert_eq(stk_claim_affinity_init(&affinity, 8, 1, 2), 0);
    cr_assert_eq(take(&affinity, 0), 0);
    cr_assert_not(stk_claim_affinity_take(&affinity, 1, 0, 1, 1, &piece));
    cr_assert(stk_claim_affinity_take(&affinity, 1, 0, 2, 1, &piece));
    cr_assert_eq(piece.ticket, 1);
    cr_assert_eq(stk_claim_affinity_first(&affinity), 2);
    stk_claim_affinity_destroy(&affinity);
}

/* Workers that take shares all do so from the first position; one that takes whole positions looks
 * for its own. */
CleanTest(claim_affinity, parts_come_from_the_first_position_that_has_some)
{
    enum { SHARES = STK_TICKET_SHARES_MAX };
    struct stk_claim_affinity affinity;
    cr_assert_eq(stk_claim_affinity_init(&affinity, 8, SHARES, 4), 0);
    for (uint32_t share = 0; share < SHARES; share += 4) {
        const struct stk_piece piece = take_shares(&affinity, share / 4 % 4, 4);
        cr_assert_eq(piece.ticket, 0);
        cr_assert_eq(piece.share, share);
        cr_assert_eq(piece.shares, 4);
    }
    struct stk_piece piece = take_shares(&affinity, 0, SHARES - 1);
    cr_assert_eq(piece.ticket, 1);
    cr_assert_eq(piece.shares, SHARES - 1);
    piece = take_shares(&affinity, 1, SHARES);
    cr_assert_eq(piece.ticket, 2, "the rest of 1 is another's");
    cr_assert_eq(piece.shares, SHARES);
    piece = take_shares(&affinity, 0, SHARES);
    cr_assert_eq(piece.ticket, 1);
    cr_assert_eq(piece.share, SHARES - 1);
    cr_assert_eq(piece.shares, 1);
    stk_claim_affinity_destroy(&affinity);
}

/* For any number of shares, asked for in any amounts, each share is taken once a lap. */
CleanTest(claim_affinity, each_part_is_taken_once)
{
    enum { COUNT = 6, LAPS_HERE = 3 };
    for (uint32_t shares = 1; shares <= STK_TICKET_SHARES_MAX; shares++) {
        struct stk_claim_affinity affinity;
        uint32_t taken[LAPS_HERE * COUNT] = { 0 };
        uint32_t left = LAPS_HERE * COUNT * shares;
        cr_assert_eq(stk_claim_affinity_init(&affinity, COUNT, shares, 3), 0);
        for (uint32_t turn = 0; left > 0; turn++) {
            const uint64_t first = stk_claim_affinity_first(&affinity);
            uint64_t end = first + affinity.reach;
            end = end < LAPS_HERE * COUNT ? end : LAPS_HERE * COUNT;
            struct stk_piece piece;
            cr_assert(stk_claim_affinity_take(&affinity, turn % 3, first, end,
                                              1 + turn * 7 % shares, &piece));
            const uint32_t bits = (uint32_t)(((UINT64_C(1) << piece.shares) - 1) << piece.share);
            cr_assert_eq(taken[piece.ticket] & bits, 0);
            cr_assert_leq(piece.share + piece.shares, shares);
            taken[piece.ticket] |= bits;
            left -= piece.shares;
        }
        stk_claim_affinity_destroy(&affinity);
    }
}

CleanTest(claim_affinity, without_memory_init_fails)
{
    struct stk_claim_affinity affinity;
    stk_fault_arm(STK_FAULT_MEMORY, 1);
    cr_assert_lt(stk_claim_affinity_init(&affinity, 8, 1, 2), 0);
    cr_assert(stk_fault_disarm());
    stk_claim_affinity_destroy(&affinity);
}
