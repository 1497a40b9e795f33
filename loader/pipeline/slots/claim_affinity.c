/* claim_affinity.c - see claim_affinity.h. */
#include "loader/pipeline/slots/claim_affinity.h"

#include <assert.h>
#include <stoker/error.h>

enum {
    REACH_TURNS = 2, /* tickets per worker among which it looks for its own, */
    REACH_SHARE = 2, /* at most 1/2 of the ring: the consumer waits for the first one */
    LAG = 8,         /* tickets by which `first` may lag */
    WORKER_BITS = 8,
    TAG_MAX = (1 << WORKER_BITS) - 1, /* more workers share tags, which costs cache misses only */
    LAP_BITS = 24,
    LAP_MASK = (1 << LAP_BITS) - 1,
    LAP_SHIFT = STK_TICKET_SHARES_MAX + WORKER_BITS
};

int stk_claim_affinity_init(struct stk_claim_affinity *affinity, uint32_t count, uint32_t shares,
                            uint32_t workers)
{
    assert(shares >= 1);
    assert(shares <= STK_TICKET_SHARES_MAX);
    const uint32_t most = count / REACH_SHARE;
    affinity->count = count;
    affinity->shares = shares;
    affinity->reach = workers > 1 ? REACH_TURNS * workers : 1;
    if (affinity->reach > most)
        affinity->reach = most > 1 ? most : 1;
    atomic_init(&affinity->first, 0);
    affinity->marks = stk_calloc(count, sizeof(affinity->marks[0]));
    return affinity->marks == NULL ? STOKER_ENOMEM : 0;
}

void stk_claim_affinity_destroy(struct stk_claim_affinity *affinity)
{
    stk_free((void *)affinity->marks);
    affinity->marks = NULL;
}

/* A ticket's position, and the lap its mark shows until it is taken. */
struct cursor {
    uint64_t ticket;
    uint32_t at;
    uint32_t lap; /* may wrap: only neighboring laps are compared */
};

static struct cursor cursor_of(const struct stk_claim_affinity *affinity, uint64_t ticket)
{
    return (struct cursor){ ticket, (uint32_t)(ticket % affinity->count),
                            (uint32_t)(ticket / affinity->count) };
}

static void step_cursor(const struct stk_claim_affinity *affinity, struct cursor *cursor)
{
    cursor->ticket++;
    if (++cursor->at == affinity->count) {
        cursor->at = 0;
        cursor->lap++;
    }
}

/* Returns true if the position has shares left in the cursor's lap. */
static bool is_free(uint64_t mark, const struct cursor *cursor)
{
    return mark >> LAP_SHIFT == (cursor->lap & LAP_MASK);
}

uint64_t stk_claim_affinity_first(struct stk_claim_affinity *affinity)
{
    uint64_t before = atomic_load_explicit(&affinity->first, memory_order_relaxed);
    struct cursor cursor = cursor_of(affinity, before);
    while (
        !is_free(atomic_load_explicit(&affinity->marks[cursor.at], memory_order_relaxed), &cursor))
        step_cursor(affinity, &cursor);
    if (cursor.ticket - before >= LAG) /* moved by another thread: as good */
        (void)atomic_compare_exchange_strong_explicit(&affinity->first, &before, cursor.ticket,
                                                      memory_order_relaxed, memory_order_relaxed);
    return cursor.ticket;
}

/* The bits of shares share..share + count - 1. */
static uint64_t bits_of(uint32_t share, uint32_t count)
{
    return ((UINT64_C(1) << count) - 1) << share;
}

/* The first run of free shares, at most `wanted` long. */
static struct stk_piece find_shares(const struct stk_claim_affinity *affinity, uint32_t taken,
                                    uint64_t ticket, uint32_t wanted)
{
    struct stk_piece piece = { .ticket = ticket,
                               .share = (uint32_t)__builtin_ctzll(~(uint64_t)taken) };
    const uint64_t behind =
        (uint64_t)taken >> piece.share | bits_of(affinity->shares - piece.share, 1);
    piece.shares = (uint32_t)__builtin_ctzll(behind);
    if (piece.shares > wanted)
        piece.shares = wanted;
    return piece;
}

/* The mark of a position after this worker took *piece. */
static uint64_t mark_after(const struct stk_claim_affinity *affinity, uint32_t tag, uint32_t taken,
                           const struct stk_piece *piece, uint32_t lap)
{
    const uint64_t now = taken | bits_of(piece->share, piece->shares);
    const bool complete = now == bits_of(0, affinity->shares);
    const uint64_t laps = (complete ? lap + 1 : lap) & LAP_MASK;
    return laps << LAP_SHIFT | (uint64_t)tag << STK_TICKET_SHARES_MAX | (complete ? 0 : now);
}

static bool take_one(struct stk_claim_affinity *affinity, uint32_t tag, const struct cursor *cursor,
                     bool any, uint32_t wanted, struct stk_piece *piece)
{
    _Atomic uint64_t *mark = &affinity->marks[cursor->at];
    uint64_t seen = atomic_load_explicit(mark, memory_order_relaxed);
    const uint32_t last = seen >> STK_TICKET_SHARES_MAX & TAG_MAX;
    while (is_free(seen, cursor) && (any || last == 0 || last == tag)) {
        const uint32_t taken = (uint32_t)seen;
        *piece = find_shares(affinity, taken, cursor->ticket, wanted);
        if (atomic_compare_exchange_strong_explicit(
                mark, &seen, mark_after(affinity, tag, taken, piece, cursor->lap),
                memory_order_relaxed, memory_order_relaxed))
            return true;
        if (!any)
            return false; /* another worker has taken it meanwhile */
    }
    return false;
}

bool stk_claim_affinity_take(struct stk_claim_affinity *affinity, uint32_t worker, uint64_t first,
                             uint64_t end, uint32_t wanted, struct stk_piece *piece)
{
    assert(wanted >= 1);
    const uint32_t tag = 1 + worker % TAG_MAX;
    for (int any = wanted < affinity->shares; any <= 1; any++)
        for (struct cursor cursor = cursor_of(affinity, first); cursor.ticket < end;
             step_cursor(affinity, &cursor))
            if (take_one(affinity, tag, &cursor, any, wanted, piece))
                return true;
    return false;
}
