/* claim_affinity.h - assigns ring positions to workers, preferring the worker that filled the
 * position last lap.
 *
 * One ticket fills each position per lap. The cache lines of a position lie in the core that filled
 * it last; where two cores share no cache, moving them may cost as much as fetching them from
 * memory (two cores of a Zen 3: 90 GB/s written if the lines stay, 25 if they move). So each worker
 * looks for its own positions:
 *
 *     all taken    │ reach ........ │
 *   ───────────────┼────────────────┼────▶ tickets       within reach: the first of the worker's own,
 *    B A A B A B B │ B A B A . . .  │                    else the first of any
 *                    ▲ ▲
 *                    B A take these
 *
 * A position has 1..32 shares, and a worker takes as many as it asks for. If it asks for fewer than
 * all, its rows are slow to make: then caches do not matter, all workers take from the first
 * position that has shares left, and the first batch is ready soonest.
 *
 * All atomics are relaxed: the slot's free_turn (slots.h) orders the bytes.
 */
#ifndef STK_PIPELINE_CLAIM_AFFINITY_H
#define STK_PIPELINE_CLAIM_AFFINITY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/base/memory/memory.h"

enum { STK_TICKET_SHARES_MAX = 32 };

struct stk_claim_affinity {
    uint32_t count;  /* positions in the ring */
    uint32_t shares; /* per position, 1..STK_TICKET_SHARES_MAX */
    uint32_t reach;  /* tickets from the first free one that may be taken, >= 1 */

    /* One word per position: laps completed << 40 | last worker + 1 (0: none yet) << 32 | one bit
     * per share taken in this lap. Small, since these lines move between all workers. */
    _Atomic uint64_t *marks;

    /* No earlier ticket is free. May lag; written seldom. */
    _Alignas(STK_CACHE_LINE) _Atomic uint64_t first;
};

/* What a worker took: shares share..share + shares - 1 of a ticket. */
struct stk_piece {
    uint64_t ticket;
    uint32_t share;
    uint32_t shares;
};

/* Allocate for workers 0..workers - 1; a single one takes tickets in order. Returns 0 or
 * STOKER_ENOMEM. */
int stk_claim_affinity_init(struct stk_claim_affinity *affinity, uint32_t count, uint32_t shares,
                            uint32_t workers);
void stk_claim_affinity_destroy(struct stk_claim_affinity *affinity); /* all zero is allowed */

/* The first ticket that has a share left. */
uint64_t stk_claim_affinity_first(struct stk_claim_affinity *affinity);

/* Take up to `wanted` (>= 1) shares of one ticket in first <= ticket < end. Returns false if others
 * have taken them all meanwhile. */
bool stk_claim_affinity_take(struct stk_claim_affinity *affinity, uint32_t worker, uint64_t first,
                             uint64_t end, uint32_t wanted, struct stk_piece *piece);

#endif
