/* late.h - when is a request late? Later than 95 in 100 of the recent ones. */
#ifndef STK_REMOTE_LATE_H
#define STK_REMOTE_LATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    STK_LATE_RECENT = 64,
    STK_LATE_FIRST = 20, /* requests before one can be late */
    STK_LATE_LEAST_NS = 50000000,
    STK_LATE_SHARE = 32 /* at most one in this many requests is sent twice */
};

struct stk_late {
    uint64_t recent_ns[STK_LATE_RECENT];
    uint64_t count;    /* requests that have ended well */
    uint64_t hedges;   /* sent twice */
    uint64_t after_ns; /* a request is late after this time; UINT64_MAX = not known yet */
};

static inline int stk_late_compare(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Note how long a request took. */
static inline void stk_late_note(struct stk_late *late, uint64_t took_ns)
{
    uint64_t sorted[STK_LATE_RECENT];
    late->recent_ns[late->count++ % STK_LATE_RECENT] = took_ns;
    if (late->count < STK_LATE_FIRST || late->count % 16 != 4)
        return;
    const uint64_t known = late->count < STK_LATE_RECENT ? late->count : STK_LATE_RECENT;
    memcpy(sorted, late->recent_ns, sizeof(sorted[0]) * known);
    qsort(sorted, known, sizeof(sorted[0]), stk_late_compare);
    const uint64_t at_ns = sorted[(known * 95 - 1) / 100];
    late->after_ns = at_ns < STK_LATE_LEAST_NS ? STK_LATE_LEAST_NS : at_ns;
}

/* Returns true if one more request may be sent twice. */
static inline bool stk_late_may_hedge(const struct stk_late *late)
{
    return late->count >= STK_LATE_FIRST && late->hedges * STK_LATE_SHARE < late->count;
}

#endif
