/* places.c - see places.h. */
#include "loader/pipeline/places.h"

#include <assert.h>
#include <stoker/error.h>

enum {
    REACH_TURNS = 2, /* tickets for each maker, among which he looks for his own; */
    REACH_PART = 2,  /* at most this part of the ring: the consumer waits for the first */
    LAG = 8,         /* tickets that `first` may lag behind */
    MAKER_BITS = 8,
    TAG_MAX = (1 << MAKER_BITS) - 1, /* more makers share tags: the worse for their caches */
    LAP_BITS = 24,
    LAP_MASK = (1 << LAP_BITS) - 1,
    LAP_SHIFT = STK_PLACE_PARTS_MAX + MAKER_BITS
};

int stk_places_init(struct stk_places *places, uint32_t count, uint32_t parts, uint32_t makers)
{
    assert(parts >= 1);
    assert(parts <= STK_PLACE_PARTS_MAX);
    const uint32_t most = count / REACH_PART;
    places->count = count;
    places->parts = parts;
    places->reach = makers > 1 ? REACH_TURNS * makers : 1;
    if (places->reach > most)
        places->reach = most > 1 ? most : 1;
    atomic_init(&places->first, 0);
    places->marks = stk_calloc(count, sizeof(places->marks[0]));
    return places->marks == NULL ? STOKER_ENOMEM : 0;
}

void stk_places_destroy(struct stk_places *places)
{
    stk_free((void *)places->marks);
    places->marks = NULL;
}

/* A ticket's place, and the mark that it has until it is taken. */
struct cursor {
    uint64_t ticket;
    uint32_t at;
    uint32_t lap; /* may wrap: neighbours alone are compared */
};

static struct cursor cursor_of(const struct stk_places *places, uint64_t ticket)
{
    return (struct cursor){ ticket, (uint32_t)(ticket % places->count),
                            (uint32_t)(ticket / places->count) };
}

static void step(const struct stk_places *places, struct cursor *cursor)
{
    cursor->ticket++;
    if (++cursor->at == places->count) {
        cursor->at = 0;
        cursor->lap++;
    }
}

/* Returns true if parts of the place are left in the cursor's lap. */
static bool is_free(uint64_t mark, const struct cursor *cursor)
{
    return mark >> LAP_SHIFT == (cursor->lap & LAP_MASK);
}

uint64_t stk_places_first(struct stk_places *places)
{
    uint64_t before = atomic_load_explicit(&places->first, memory_order_relaxed);
    struct cursor cursor = cursor_of(places, before);
    while (!is_free(atomic_load_explicit(&places->marks[cursor.at], memory_order_relaxed), &cursor))
        step(places, &cursor);
    if (cursor.ticket - before >= LAG) /* if somebody else has moved it, that will do */
        (void)atomic_compare_exchange_strong_explicit(&places->first, &before, cursor.ticket,
                                                      memory_order_relaxed, memory_order_relaxed);
    return cursor.ticket;
}

/* The bits of `count` parts from `part` on. */
static uint64_t bits_of(uint32_t part, uint32_t count)
{
    return ((UINT64_C(1) << count) - 1) << part;
}

/* The first run of parts that are not taken, at most `wanted` long. */
static struct stk_piece find_parts(const struct stk_places *places, uint32_t taken, uint64_t ticket,
                                   uint32_t wanted)
{
    struct stk_piece piece = { .ticket = ticket,
                               .part = (uint32_t)__builtin_ctzll(~(uint64_t)taken) };
    const uint64_t behind = (uint64_t)taken >> piece.part | bits_of(places->parts - piece.part, 1);
    piece.parts = (uint32_t)__builtin_ctzll(behind);
    if (piece.parts > wanted)
        piece.parts = wanted;
    return piece;
}

/* The mark of a place of which this maker has taken a piece more. */
static uint64_t mark_after(const struct stk_places *places, uint32_t tag, uint32_t taken,
                           const struct stk_piece *piece, uint32_t lap)
{
    const uint64_t now = taken | bits_of(piece->part, piece->parts);
    const bool complete = now == bits_of(0, places->parts);
    const uint64_t laps = (complete ? lap + 1 : lap) & LAP_MASK;
    return laps << LAP_SHIFT | (uint64_t)tag << STK_PLACE_PARTS_MAX | (complete ? 0 : now);
}

static bool take_one(struct stk_places *places, uint32_t tag, const struct cursor *cursor,
                     bool anybodys, uint32_t wanted, struct stk_piece *piece)
{
    _Atomic uint64_t *mark = &places->marks[cursor->at];
    uint64_t seen = atomic_load_explicit(mark, memory_order_relaxed);
    const uint32_t last = seen >> STK_PLACE_PARTS_MAX & TAG_MAX;
    while (is_free(seen, cursor) && (anybodys || last == 0 || last == tag)) {
        const uint32_t taken = (uint32_t)seen;
        *piece = find_parts(places, taken, cursor->ticket, wanted);
        if (atomic_compare_exchange_strong_explicit(
                mark, &seen, mark_after(places, tag, taken, piece, cursor->lap),
                memory_order_relaxed, memory_order_relaxed))
            return true;
        if (!anybodys)
            return false; /* somebody else's by now */
    }
    return false;
}

bool stk_places_take(struct stk_places *places, uint32_t maker, uint64_t first, uint64_t end,
                     uint32_t wanted, struct stk_piece *piece)
{
    assert(wanted >= 1);
    const uint32_t tag = 1 + maker % TAG_MAX;
    for (int anybodys = wanted < places->parts; anybodys <= 1; anybodys++)
        for (struct cursor cursor = cursor_of(places, first); cursor.ticket < end;
             step(places, &cursor))
            if (take_one(places, tag, &cursor, anybodys, wanted, piece))
                return true;
    return false;
}
