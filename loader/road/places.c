/* places.c - see places.h. */
#include "loader/road/places.h"

#include <stoker/error.h>

enum {
    REACH_TURNS = 2, /* tickets for each maker, among which he looks for his own; */
    REACH_PART = 2,  /* at most this part of the ring: the consumer waits for the first */
    LAG = 8,         /* tickets that `first` may lag behind */
    MAKER_BITS = 8,
    TAG_MAX = (1 << MAKER_BITS) - 1, /* more makers share tags: the worse for their caches */
    LAP_MASK = (1 << (32 - MAKER_BITS)) - 1
};

int stk_places_init(struct stk_places *places, uint32_t count, uint32_t makers)
{
    const uint32_t most = count / REACH_PART;
    places->count = count;
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

static bool is_free(uint32_t mark, const struct cursor *cursor)
{
    return mark >> MAKER_BITS == (cursor->lap & LAP_MASK);
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

static bool take_one(struct stk_places *places, uint32_t tag, const struct cursor *cursor,
                     bool anybodys)
{
    _Atomic uint32_t *mark = &places->marks[cursor->at];
    uint32_t seen = atomic_load_explicit(mark, memory_order_relaxed);
    const uint32_t last = seen & TAG_MAX;
    if (!is_free(seen, cursor) || (!anybodys && last != 0 && last != tag))
        return false;
    return atomic_compare_exchange_strong_explicit(mark, &seen,
                                                   (cursor->lap + 1) << MAKER_BITS | tag,
                                                   memory_order_relaxed, memory_order_relaxed);
}

bool stk_places_take(struct stk_places *places, uint32_t maker, uint64_t first, uint64_t end,
                     uint64_t *ticket)
{
    const uint32_t tag = 1 + maker % TAG_MAX;
    for (int anybodys = 0; anybodys <= 1; anybodys++)
        for (struct cursor cursor = cursor_of(places, first); cursor.ticket < end;
             step(places, &cursor))
            if (take_one(places, tag, &cursor, anybodys)) {
                *ticket = cursor.ticket;
                return true;
            }
    return false;
}
