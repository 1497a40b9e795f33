/* test_slots.c - the ring of slots, driven by one thread: when a slot is free, and for which side.
 *
 * With one thread every state is reached on purpose; tests/thread/loader/test_pipeline.c has the
 * races.
 */
#include <poll.h>
#include <stdatomic.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/base/event.h"
#include "loader/base/fault.h"
#include "loader/pipeline/work/consumer_wait.h"
#include "support/leaks.h"

enum { SLOTS = 3, SPANS = 2, BATCH_SIZE = 5, BATCHES = 10 };

static const struct stk_field_size sizes[] = { { .row_bytes = 12 }, { .row_bytes = 8 } };
static const struct stk_slots_options small = { .slot_count = SLOTS,
                                                .batch_size = BATCH_SIZE,
                                                .batch_spans = SPANS,
                                                .span_shares = 1,
                                                .sizes = sizes,
                                                .field_count = 2,
                                                .label = 1,
                                                .pin_memory = STOKER_SWITCH_OFF,
                                                .keep_failures = true,
                                                .batches = BATCHES };

static struct stk_slots *make(const struct stk_slots_options *options)
{
    static struct stk_slots slots;
    cr_assert_eq(stk_slots_init(&slots, options), 0);
    return &slots;
}

static void claim(struct stk_slots *slots, uint64_t expected)
{
    struct stk_piece piece = { .ticket = UINT64_MAX };
    cr_assert_eq(stk_slots_claim(slots, 0, UINT64_MAX, 1, &piece), STK_CLAIM_OK);
    cr_assert_eq(piece.ticket, expected);
}

static enum stk_claim try_claim(struct stk_slots *slots)
{
    struct stk_piece piece;
    return stk_slots_claim(slots, 0, UINT64_MAX, 1, &piece);
}

/* As the loader does it. */
static void take_head(struct stk_slots *slots)
{
    cr_assert(stk_slots_ready(slots));
    slots->head++;
    slots->lent++;
}

static void fill(struct stk_slots *slots, uint64_t batch)
{
    for (uint64_t span = 0; span < SPANS; span++) {
        claim(slots, batch * SPANS + span);
        stk_slots_shares_done(slots, batch, 1);
    }
}

CleanTest(slots, memory_of_slots_and_fields_does_not_overlap)
{
    struct stk_slots *slots = make(&small);
    uint8_t *end = slots->memory.base;
    for (uint64_t i = 0; i < SLOTS; i++) {
        const struct stk_slot *slot = stk_slots_of(slots, i);
        cr_assert_geq(slot->images, end);
        cr_assert_eq((uintptr_t)slot->images % STK_CACHE_LINE, 0);
        cr_assert_eq((uintptr_t)slot->labels % STK_CACHE_LINE, 0);
        cr_assert_geq((uint8_t *)slot->labels, slot->images + 12 * BATCH_SIZE);
        cr_assert_geq((uint8_t *)slot->ids, (uint8_t *)slot->labels + 8 * BATCH_SIZE);
        end = (uint8_t *)(slot->ids + BATCH_SIZE);
    }
    cr_assert_leq(end, (uint8_t *)slots->memory.base + slots->memory.bytes);
    stk_slots_destroy(slots);
}

CleanTest(slots, credits_end_with_the_slots_and_come_back_by_release)
{
    struct stk_slots *slots = make(&small);
    for (uint64_t ticket = 0; ticket < SLOTS * SPANS; ticket++)
        claim(slots, ticket);
    cr_assert_eq(try_claim(slots), STK_CLAIM_NO_CREDIT);
    for (uint64_t batch = 0; batch < SLOTS; batch++)
        for (int span = 0; span < SPANS; span++)
            stk_slots_shares_done(slots, batch, 1);
    cr_assert_eq(try_claim(slots), STK_CLAIM_NO_CREDIT); /* full is not free */
    take_head(slots);
    cr_assert_eq(try_claim(slots), STK_CLAIM_NO_CREDIT); /* nor is lent */
    take_head(slots);
    stk_slots_release(slots, 1); /* batch 4's slot; batch 3 comes first */
    cr_assert_eq(try_claim(slots), STK_CLAIM_NO_CREDIT);
    stk_slots_release(slots, 0);
    for (uint64_t ticket = 6; ticket < 10; ticket++)
        claim(slots, ticket);
    cr_assert_eq(try_claim(slots), STK_CLAIM_NO_CREDIT);
    stk_slots_destroy(slots);
}

CleanTest(slots, a_batch_is_ready_with_its_last_span_and_in_order)
{
    struct stk_slots *slots = make(&small);
    for (uint64_t ticket = 0; ticket < 4; ticket++)
        claim(slots, ticket);
    stk_slots_shares_done(slots, 1, 1);
    stk_slots_shares_done(slots, 1, 1);
    cr_assert_not(stk_slots_ready(slots)); /* batch 1 is, batch 0 is not */
    stk_slots_shares_done(slots, 0, 1);
    cr_assert_not(stk_slots_ready(slots));
    stk_slots_shares_done(slots, 0, 1);
    take_head(slots);
    take_head(slots);
    cr_assert_not(stk_slots_ready(slots));
    stk_slots_destroy(slots);
}

CleanTest(slots, tickets_are_over_after_the_last_batch)
{
    struct stk_slots *slots = make(&small);
    for (uint64_t batch = 0; batch < BATCHES; batch++) {
        fill(slots, batch);
        take_head(slots);
        stk_slots_release(slots, batch);
    }
    cr_assert_eq(try_claim(slots), STK_CLAIM_OVER);
    cr_assert_eq(slots->lent, 0);
    cr_assert_not(stk_slots_ready(slots));
    stk_slots_destroy(slots);
}

CleanTest(slots, no_ticket_beyond_the_batch_asked_for)
{
    struct stk_slots *slots = make(&small);
    struct stk_piece piece;
    for (int span = 0; span < SPANS; span++)
        cr_assert_eq(stk_slots_claim(slots, 0, 0, 1, &piece), STK_CLAIM_OK);
    cr_assert_eq(stk_slots_claim(slots, 0, 0, 1, &piece), STK_CLAIM_NO_CREDIT);
    cr_assert_eq(stk_slots_claim(slots, 0, 1, 1, &piece), STK_CLAIM_OK);
    stk_slots_destroy(slots);
}

static void lose(struct stk_slots *slots, uint32_t row)
{
    const struct stk_place place = { .sample = row, .offset = STOKER_NO_OFFSET };
    stoker_error error;
    (void)stk_error_set(&error, STOKER_EIO, STOKER_STAGE_READ, &place, NULL);
    stk_slot_fail(stk_slots_of(slots, 0), row, &error);
}

CleanTest(slots, the_first_failed_row_is_reported_in_any_order)
{
    static const uint32_t orders[][3] = { { 1, 2, 4 }, { 4, 1, 2 }, { 2, 4, 1 }, { 4, 2, 1 } };
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        struct stk_slots *slots = make(&small);
        for (int j = 0; j < 3; j++)
            lose(slots, orders[i][j]);
        cr_assert_eq(stk_slots_of(slots, 0)->failure_row, 1);
        cr_assert_eq(stk_slots_of(slots, 0)->failure.sample, 1);
        stk_slots_destroy(slots);
    }
}

CleanTest(slots, release_clears_what_a_batch_noted)
{
    struct stk_slots *slots = make(&small);
    struct stk_slot *slot = stk_slots_of(slots, 0);
    fill(slots, 0);
    slot->row_bad[3] = STK_ROW_SKIPPED;
    atomic_store(&slot->bad_rows, 1U);
    take_head(slots);
    stk_slots_release(slots, 0);
    cr_assert_eq(slot->row_bad[3], STK_ROW_GOOD);
    cr_assert_eq(atomic_load(&slot->bad_rows), 0);
    cr_assert_eq(slot->failure_row, UINT32_MAX);
    stk_slots_destroy(slots);
}

/* A copy of a batch given back again, while the slot is being filled again. */
CleanTest(slots, a_second_release_disturbs_nothing)
{
    struct stk_slots *slots = make(&small);
    for (uint64_t batch = 0; batch < SLOTS; batch++)
        fill(slots, batch);
    for (uint64_t batch = 0; batch < SLOTS; batch++)
        take_head(slots);
    stk_slots_release(slots, 0);
    cr_assert_not(stk_slots_head_lent(slots));
    claim(slots, SLOTS * SPANS);
    stk_slots_shares_done(slots, SLOTS, 1);
    stk_slots_release(slots, 0);
    cr_assert_eq(slots->lent, SLOTS - 1);
    claim(slots, SLOTS * SPANS + 1);
    stk_slots_shares_done(slots, SLOTS, 1);
    cr_assert(stk_slots_ready(slots), "a span was forgotten");
    take_head(slots);
    cr_assert(stk_slots_head_lent(slots));
    stk_slots_destroy(slots);
}

static bool wait_ready(struct stk_slots *slots, uint64_t wait_ns)
{
    uint64_t now_ns = stk_now_ns();
    const uint64_t before_ns = now_ns;
    const bool ready =
        stk_consumer_wait(slots, wait_ns == UINT64_MAX ? UINT64_MAX : before_ns + wait_ns, &now_ns);
    cr_assert_geq(now_ns, before_ns);
    cr_assert_leq(now_ns, stk_now_ns());
    return ready;
}

CleanTest(slots, waiting_ends_in_time_and_at_once_when_stopped)
{
    struct stk_slots *slots = make(&small);
    const uint64_t before_ns = stk_now_ns();
    cr_assert_not(wait_ready(slots, 20000000));
    const uint64_t waited_ns = stk_now_ns() - before_ns;
    cr_assert_geq(waited_ns, 20000000U);
    cr_assert_not(wait_ready(slots, 0));
    stk_slots_stop(slots);
    cr_assert_not(wait_ready(slots, UINT64_MAX));
    stk_slots_wait_credit(slots, -1);
    stk_slots_destroy(slots);
}

CleanTest(slots, each_failed_allocation_and_pin_leaves_nothing)
{
    struct stk_slots slots;
    struct stk_slots_options options = small;
    options.pin_memory = STOKER_SWITCH_ON;
    uint32_t failures = 0;
    for (uint64_t nth = 1;; nth++) {
        stk_fault_arm(STK_FAULT_MEMORY | STK_FAULT_LOCK, nth);
        const int rc = stk_slots_init(&slots, &options);
        const bool reached = stk_fault_disarm();
        if (!reached) {
            stk_slots_destroy(&slots);
            break;
        }
        failures++;
        cr_assert(rc == STOKER_ENOMEM || rc == STOKER_EPIN);
        cr_assert_eq(rc == STOKER_EPIN, slots.pin_reason[0] != '\0');
        cr_assert_eq(stk_fault_live_bytes(), 0);
    }
    cr_assert_geq(failures, 5);
}

/* ---- waking the workers ---- */

/* Fill the ring, lend `held` batches and then turn one over again and again: the largest number of
 * credits that come together before the sleeping workers are woken. */
static uint32_t credits_until_wake(uint32_t held)
{
    static const struct stk_slots_options eight = { .slot_count = 8,
                                                    .batch_size = BATCH_SIZE,
                                                    .batch_spans = 1,
                                                    .span_shares = 1,
                                                    .sizes = sizes,
                                                    .field_count = 1,
                                                    .label = STK_NO_FIELD,
                                                    .pin_memory = STOKER_SWITCH_OFF,
                                                    .batches = 1000 };
    struct stk_slots *slots = make(&eight);
    uint32_t credits = 0;
    for (uint64_t batch = 0; batch < eight.slot_count; batch++) {
        claim(slots, batch);
        stk_slots_shares_done(slots, batch, 1);
    }
    atomic_store(&slots->sleepers, 1U);
    const uint32_t word = atomic_load(&slots->worker_word);
    for (uint32_t i = 0; i < held; i++)
        take_head(slots);
    while (atomic_load(&slots->worker_word) == word && stk_slots_ready(slots)) {
        take_head(slots);
        cr_assert(stk_slots_release(slots, slots->head - held - 1));
        credits++;
    }
    cr_assert_neq(atomic_load(&slots->worker_word), word, "%u held: the ring ran dry", held);
    stk_slots_destroy(slots);
    return credits;
}

CleanTest(slots, workers_are_woken_before_a_ring_that_is_partly_held_runs_dry)
{
    cr_assert_eq(credits_until_wake(0), 4);
    for (uint32_t held = 1; held < 8; held++) {
        const uint32_t circulating = 8 - held;
        const uint32_t credits = credits_until_wake(held);
        cr_assert_leq(credits, circulating / 2 > 0 ? circulating / 2 : 1, "%u held: %u", held,
                      credits);
    }
}

/* ---- places ---- */

enum { PLACES = 16, LEFT = 0, RIGHT = 1 };

/* Two workers, batches of one span, reach 4. */
static const struct stk_slots_options shared = { .slot_count = PLACES,
                                                 .batch_size = BATCH_SIZE,
                                                 .batch_spans = 1,
                                                 .span_shares = 1,
                                                 .sizes = sizes,
                                                 .field_count = 1,
                                                 .label = STK_NO_FIELD,
                                                 .pin_memory = STOKER_SWITCH_OFF,
                                                 .batches = 3 * PLACES,
                                                 .workers = 2 };

static void claim_as(struct stk_slots *slots, uint32_t worker, uint64_t expected)
{
    struct stk_piece piece = { .ticket = UINT64_MAX };
    cr_assert_eq(stk_slots_claim(slots, worker, UINT64_MAX, 1, &piece), STK_CLAIM_OK);
    cr_assert_eq(piece.ticket, expected, "%u: %lu, not %lu", worker, (unsigned long)piece.ticket,
                 (unsigned long)expected);
}

/* Complete, deliver and give back what was claimed. */
static void turn_over(struct stk_slots *slots, uint64_t first, uint64_t count)
{
    for (uint64_t batch = first; batch < first + count; batch++)
        stk_slots_shares_done(slots, batch, 1);
    for (uint64_t batch = first; batch < first + count; batch++) {
        take_head(slots);
        cr_assert(stk_slots_release(slots, batch));
    }
}

/* One lap: the left one makes the even places, the right one the odd ones. */
static struct stk_slots *make_shared(void)
{
    struct stk_slots *slots = make(&shared);
    for (uint64_t ticket = 0; ticket < PLACES; ticket++)
        claim_as(slots, ticket % 2 == 0 ? LEFT : RIGHT, ticket);
    turn_over(slots, 0, PLACES);
    return slots;
}

CleanTest(slots, each_worker_takes_its_positions_of_the_lap_before)
{
    struct stk_slots *slots = make_shared();
    claim_as(slots, RIGHT, PLACES + 1);
    claim_as(slots, RIGHT, PLACES + 3);
    claim_as(slots, LEFT, PLACES);
    claim_as(slots, LEFT, PLACES + 2);
    claim_as(slots, LEFT, PLACES + 4);
    claim_as(slots, RIGHT, PLACES + 5);
    stk_slots_destroy(slots);
}

CleanTest(slots, without_a_position_of_its_own_a_worker_takes_the_first_and_keeps_it)
{
    struct stk_slots *slots = make_shared();
    claim_as(slots, RIGHT, PLACES + 1);
    claim_as(slots, RIGHT, PLACES + 3);
    claim_as(slots, RIGHT, PLACES); /* 5 is out of reach while 0 is there to be made */
    claim_as(slots, RIGHT, PLACES + 5);
    struct stk_piece piece;
    while (stk_slots_claim(slots, LEFT, UINT64_MAX, 1, &piece) == STK_CLAIM_OK) {
    }
    turn_over(slots, PLACES, PLACES);
    claim_as(slots, LEFT, 2 * PLACES + 2);
    claim_as(slots, RIGHT, 2 * PLACES);
    claim_as(slots, RIGHT, 2 * PLACES + 1);
    stk_slots_destroy(slots);
}

CleanTest(slots, a_workers_own_position_is_not_taken_early)
{
    struct stk_slots *slots = make_shared();
    struct stk_piece piece;
    cr_assert_eq(stk_slots_claim(slots, RIGHT, PLACES, 1, &piece), STK_CLAIM_OK);
    cr_assert_eq(piece.ticket, PLACES); /* the last batch allowed, though the left one's */
    cr_assert_eq(stk_slots_claim(slots, RIGHT, PLACES, 1, &piece), STK_CLAIM_NO_CREDIT);
    for (uint64_t i = 1; i < PLACES; i++)
        claim_as(slots, i % 2 == 0 ? LEFT : RIGHT, PLACES + i);
    turn_over(slots, PLACES, 1); /* one credit */
    cr_assert_eq(stk_slots_claim(slots, LEFT, UINT64_MAX, 1, &piece), STK_CLAIM_OK);
    cr_assert_eq(piece.ticket, 2 * PLACES);
    cr_assert_eq(stk_slots_claim(slots, LEFT, UINT64_MAX, 1, &piece), STK_CLAIM_NO_CREDIT);
    stk_slots_destroy(slots);
}

/* Whichever worker claims, in any order: each ticket once, and none is left over. */
CleanTest(slots, every_ticket_is_taken_once)
{
    struct stk_slots *slots = make(&shared);
    bool taken[3 * PLACES] = { false };
    struct stk_piece piece;
    uint64_t count = 0;
    for (uint64_t turn = 0; count < 3 * PLACES; turn++) {
        const uint32_t worker = (uint32_t)(turn * turn / 3 % 2);
        const enum stk_claim rc = stk_slots_claim(slots, worker, UINT64_MAX, 1, &piece);
        if (rc == STK_CLAIM_OK) {
            cr_assert_not(taken[piece.ticket]);
            cr_assert_lt(piece.ticket, count + slots->affinity.reach);
            taken[piece.ticket] = true;
            count++;
            stk_slots_shares_done(slots, piece.ticket, 1);
        }
        while (stk_slots_ready(slots) && slots->head < 3 * PLACES) {
            take_head(slots);
            cr_assert(stk_slots_release(slots, slots->head - 1));
        }
    }
    cr_assert_eq(stk_slots_claim(slots, LEFT, UINT64_MAX, 1, &piece), STK_CLAIM_OVER);
    stk_slots_destroy(slots);
}

/* A batch of one ticket, whose shares go to several workers. */
CleanTest(slots, a_batch_is_ready_with_its_last_part)
{
    struct stk_slots_options options = shared;
    options.span_shares = 5;
    struct stk_slots *slots = make(&options);
    struct stk_piece left;
    struct stk_piece right;
    cr_assert_eq(stk_slots_claim(slots, LEFT, UINT64_MAX, 2, &left), STK_CLAIM_OK);
    cr_assert_eq(stk_slots_claim(slots, RIGHT, UINT64_MAX, 4, &right), STK_CLAIM_OK);
    cr_assert_eq(right.ticket, 0);
    cr_assert_eq(right.share, 2);
    cr_assert_eq(right.shares, 3, "what is left");
    cr_assert_not(stk_slots_shares_done(slots, 0, right.shares));
    cr_assert_not(stk_slots_ready(slots));
    cr_assert(stk_slots_shares_done(slots, 0, left.shares));
    take_head(slots);
    cr_assert(stk_slots_release(slots, 0));

    /* And one that takes all shares counts nothing down. */
    cr_assert_eq(stk_slots_claim(slots, LEFT, UINT64_MAX, 5, &left), STK_CLAIM_OK);
    cr_assert_eq(left.ticket, 1);
    cr_assert_eq(left.shares, 5);
    cr_assert(stk_slots_shares_done(slots, 1, 5));
    stk_slots_destroy(slots);
}

/* ---- an event instead of a wake-up ---- */

static bool is_set(const struct stk_slots *slots)
{
    struct pollfd event = { .fd = atomic_load(&slots->event), .events = POLLIN };
    return poll(&event, 1, 0) == 1;
}

CleanTest(slots, the_awaited_batch_sets_the_event_once)
{
    struct stk_slots *slots = make(&small);
    int event = -1;
    cr_assert_eq(stk_event_open(&event), 0);
    stk_slots_set_event(slots); /* there is none yet */
    atomic_store(&slots->event, event);
    stk_slots_await(slots);
    cr_assert_not(is_set(slots));
    fill(slots, 0);
    cr_assert(is_set(slots));
    take_head(slots);
    stk_slots_await(slots);
    fill(slots, 1);
    cr_assert(is_set(slots));
    stk_event_clear(event);
    fill(slots, 2); /* nobody awaits this one */
    cr_assert_not(is_set(slots));
    stk_slots_await_none(slots);
    cr_assert(is_set(slots));
    stk_event_clear(event);
    stk_slots_await_none(slots); /* as it is already */
    cr_assert_not(is_set(slots));
    stk_slots_interrupt(slots);
    cr_assert(is_set(slots));
    (void)close(event);
    stk_slots_destroy(slots);
}

CleanTest(slots, workers_wake_when_the_consumer_awaits_an_event)
{
    struct stk_slots *slots = make(&small);
    const uint32_t word = atomic_load(&slots->worker_word);
    stk_slots_await(slots);
    cr_assert_eq(atomic_load(&slots->worker_word), word);
    atomic_store(&slots->sleepers, 1U);
    stk_slots_await(slots);
    cr_assert_eq(atomic_load(&slots->worker_word), word + 1);
    stk_slots_destroy(slots);
}
