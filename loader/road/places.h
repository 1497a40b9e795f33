/* places.h - who fills which place of the ring: whoever did so the lap before, where that can be had.
 *
 * Each place is filled by one ticket a lap. Whoever filled it last has its lines in the caches of his
 * core. To take them to another core may cost as much as to fetch them from memory, where the two share no
 * cache (measured on two cores of a Zen 3: 90 GB/s written where the lines stay, 25 where they
 * change), so each maker looks for places that were his:
 *
 *     all taken    │ reach ........ │
 *   ───────────────┼────────────────┼────▶ tickets       of those in reach: the first of one's own,
 *    B A A B A B B │ B A B A . . .  │                    else the first of anybody's
 *                    ▲ ▲
 *                    B A take these
 *
 * All atomics are relaxed: what hands a place's bytes over is its slot's free_turn (slots.h).
 */
#ifndef STK_ROAD_PLACES_H
#define STK_ROAD_PLACES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/base/memory.h"

struct stk_places {
    uint32_t count;          /* places in the ring */
    uint32_t reach;          /* tickets from the first free one that may be taken, >= 1 */
    _Atomic uint32_t *marks; /* of each: laps taken << 8 | its last maker + 1, 0 = nobody;
                                small, since all makers pass these lines round */

    /* No ticket before it is to be had; it may lag behind, and is written seldom. */
    _Alignas(STK_CACHE_LINE) _Atomic uint64_t first;
};

/* For `makers` who take, 0..makers - 1; one takes in order. 0 or STOKER_ENOMEM. */
int stk_places_init(struct stk_places *places, uint32_t count, uint32_t makers);
void stk_places_destroy(struct stk_places *places); /* all zero is allowed */

/* The first ticket that nobody has taken. */
uint64_t stk_places_first(struct stk_places *places);

/* Take one of first <= *ticket < end. False: others have taken them all meanwhile. */
bool stk_places_take(struct stk_places *places, uint32_t maker, uint64_t first, uint64_t end,
                     uint64_t *ticket);

#endif
