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
 * A place has 1..32 parts, and a maker takes as many of them as it asks for. If it asks for fewer
 * than all, its rows are slow: then caches do not matter, all makers work on the first place that has
 * parts left, and the first batch is ready soonest.
 *
 * All atomics are relaxed: what hands a place's bytes over is its slot's free_turn (slots.h).
 */
#ifndef STK_PIPELINE_PLACES_H
#define STK_PIPELINE_PLACES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/base/memory.h"

enum { STK_PLACE_PARTS_MAX = 32 };

struct stk_places {
    uint32_t count;          /* places in the ring */
    uint32_t parts;          /* of each place, 1..STK_PLACE_PARTS_MAX */
    uint32_t reach;          /* tickets from the first free one that may be taken, >= 1 */
    _Atomic uint64_t *marks; /* of each place, laps completed << 40 | its last maker + 1, 0 = nobody
                                << 32 | a bit for each part taken in this lap; small, since all makers
                                pass these lines round */

    /* No ticket before it is to be had; it may lag behind, and is written seldom. */
    _Alignas(STK_CACHE_LINE) _Atomic uint64_t first;
};

/* What a maker took: parts part..part + parts - 1 of a ticket's place. */
struct stk_piece {
    uint64_t ticket;
    uint32_t part;
    uint32_t parts;
};

/* For `makers` who take, 0..makers - 1; one takes in order. 0 or STOKER_ENOMEM. */
int stk_places_init(struct stk_places *places, uint32_t count, uint32_t parts, uint32_t makers);
void stk_places_destroy(struct stk_places *places); /* all zero is allowed */

/* The first ticket of which a part is left. */
uint64_t stk_places_first(struct stk_places *places);

/* Take up to `wanted` (>= 1) parts of one ticket of first <= ticket < end. False: others have taken
 * them all meanwhile. */
bool stk_places_take(struct stk_places *places, uint32_t maker, uint64_t first, uint64_t end,
                     uint32_t wanted, struct stk_piece *piece);

#endif
