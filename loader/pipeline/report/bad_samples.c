/* bad_samples.c - see bad_samples.h. */
#include "loader/pipeline/report/bad_samples.h"

#include <string.h>

#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"

#define NO_ID UINT64_MAX /* no sample has this id: an empty cell */

enum { SEEN_FIRST = 32 }; /* most loaders see no bad sample */

#define SUBSTITUTE_STREAM UINT64_C(0x7375627374) /* "subst": keeps these draws apart from others */

/* ---- the set of known ids ---- */

/* A table of `capacity` empty cells, or NULL. */
static uint64_t *make_seen(uint64_t capacity)
{
    uint64_t *seen = stk_calloc(capacity, sizeof(seen[0]));
    for (uint64_t i = 0; seen != NULL && i < capacity; i++)
        seen[i] = NO_ID;
    return seen;
}

/* The cell of an id, or the empty cell where it belongs. */
static uint64_t *cell_of(uint64_t *seen, uint64_t capacity, uint64_t id)
{
    uint64_t at = stk_mix64(id) & (capacity - 1);
    while (seen[at] != NO_ID && seen[at] != id)
        at = (at + 1) & (capacity - 1);
    return &seen[at];
}

/* Room for as many reports as there may be ids in a table of that capacity. */
static stoker_error *make_reports(uint64_t capacity)
{
    const uint64_t ids = capacity / 2;
    return stk_calloc(ids < STK_BAD_REPORTS_MAX ? ids : STK_BAD_REPORTS_MAX, sizeof(stoker_error));
}

/* Twice the room for reports, unless it is for all. */
static bool grow_reports(struct stk_bad_samples *bad, uint64_t capacity)
{
    if (bad->seen_capacity / 2 >= STK_BAD_REPORTS_MAX)
        return true;
    stoker_error *larger = make_reports(capacity);
    if (larger == NULL)
        return false;
    memcpy(larger, bad->reports, bad->count * sizeof(larger[0]));
    stk_free(bad->reports);
    bad->reports = larger;
    return true;
}

static int grow_seen(struct stk_bad_samples *bad)
{
    const uint64_t capacity = 2 * bad->seen_capacity;
    uint64_t *larger = make_seen(capacity);
    if (larger == NULL || !grow_reports(bad, capacity)) {
        stk_free(larger);
        return STOKER_ENOMEM;
    }
    for (uint64_t i = 0; i < bad->seen_capacity; i++)
        if (bad->seen[i] != NO_ID)
            *cell_of(larger, capacity, bad->seen[i]) = bad->seen[i];
    stk_free(bad->seen);
    bad->seen = larger;
    bad->seen_capacity = capacity;
    return 0;
}

/* Returns true if one more sample matters: there is room for its report, or a limit. */
static bool counts(const struct stk_bad_samples *bad)
{
    return bad->count < STK_BAD_REPORTS_MAX || bad->max_samples != STOKER_NO_LIMIT;
}

/* ---- filing ---- */

int stk_bad_samples_init(struct stk_bad_samples *bad, stoker_on_bad policy, uint64_t max_samples)
{
    *bad = (struct stk_bad_samples){ .policy = policy, .max_samples = max_samples };
    if (policy != STOKER_ON_BAD_FAIL) {
        bad->seen_capacity = SEEN_FIRST;
        bad->seen = make_seen(SEEN_FIRST);
        bad->reports = make_reports(SEEN_FIRST);
        if (bad->reports == NULL || bad->seen == NULL) {
            stk_free(bad->reports);
            stk_free(bad->seen);
            return STOKER_ENOMEM;
        }
    }
    pthread_mutex_init(&bad->lock, NULL);
    return 0;
}

void stk_bad_samples_destroy(struct stk_bad_samples *bad)
{
    pthread_mutex_destroy(&bad->lock);
    stk_free(bad->reports);
    stk_free(bad->seen);
    bad->reports = NULL;
    bad->seen = NULL;
}

/* The lock is held, and the sample counts. */
static int file_new(struct stk_bad_samples *bad, const stoker_error *report)
{
    if (*cell_of(bad->seen, bad->seen_capacity, report->sample) == report->sample)
        return 0;
    if (bad->count >= bad->seen_capacity / 2 && grow_seen(bad) < 0)
        return STOKER_ENOMEM;
    *cell_of(bad->seen, bad->seen_capacity, report->sample) = report->sample;
    if (bad->count < STK_BAD_REPORTS_MAX)
        bad->reports[bad->count] = *report;
    bad->count++;
    return bad->count > bad->max_samples ? STOKER_EBADSAMPLES : 0;
}

int stk_bad_samples_file(struct stk_bad_samples *bad, const stoker_error *report)
{
    pthread_mutex_lock(&bad->lock);
    const int rc = bad->seen != NULL && counts(bad) ? file_new(bad, report) : 0;
    pthread_mutex_unlock(&bad->lock);
    return rc;
}

bool stk_bad_samples_report(struct stk_bad_samples *bad, uint64_t index, stoker_error *out)
{
    pthread_mutex_lock(&bad->lock);
    bool known = bad->reports != NULL && index < bad->count && index < STK_BAD_REPORTS_MAX;
    if (known)
        *out = bad->reports[index];
    pthread_mutex_unlock(&bad->lock);
    return known;
}

uint64_t stk_bad_samples_substitute(uint64_t seed, uint64_t epoch, uint64_t position,
                                    uint32_t attempt, uint64_t count)
{
    struct stk_random draw =
        stk_philox(seed ^ SUBSTITUTE_STREAM ^ stk_mix64(attempt), epoch, position);
    uint64_t word = ((uint64_t)draw.word[1] << 32) | draw.word[0];
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)(((wide)word * count) >> 64); /* maps the word to [0, count) */
}
