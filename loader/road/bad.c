/* bad.c - see bad.h. */
#include "loader/road/bad.h"

#include "loader/base/memory.h"
#include "loader/base/rng.h"

#define SUBSTITUTE_STREAM UINT64_C(0x7375627374) /* "subst": keeps these draws apart from others */

int stk_bad_init(struct stk_bad *bad, stoker_on_bad policy, uint64_t max_samples)
{
    *bad = (struct stk_bad){ .policy = policy, .max_samples = max_samples };
    if (policy != STOKER_BAD_FAIL) {
        bad->reports = stk_calloc(STK_BAD_REPORTS_MAX, sizeof(bad->reports[0]));
        if (bad->reports == NULL)
            return STOKER_ENOMEM;
    }
    pthread_mutex_init(&bad->lock, NULL);
    return 0;
}

void stk_bad_destroy(struct stk_bad *bad)
{
    pthread_mutex_destroy(&bad->lock);
    stk_free(bad->reports);
    bad->reports = NULL;
}

int stk_bad_file(struct stk_bad *bad, const stoker_error *report)
{
    pthread_mutex_lock(&bad->lock);
    if (bad->reports != NULL && bad->count < STK_BAD_REPORTS_MAX)
        bad->reports[bad->count] = *report;
    bad->count++;
    int rc = bad->max_samples > 0 && bad->count > bad->max_samples ? STOKER_EBADSAMPLES : 0;
    pthread_mutex_unlock(&bad->lock);
    return rc;
}

bool stk_bad_report(struct stk_bad *bad, uint64_t index, stoker_error *out)
{
    pthread_mutex_lock(&bad->lock);
    bool known = bad->reports != NULL && index < bad->count && index < STK_BAD_REPORTS_MAX;
    if (known)
        *out = bad->reports[index];
    pthread_mutex_unlock(&bad->lock);
    return known;
}

uint64_t stk_bad_substitute(uint64_t seed, uint64_t epoch, uint64_t position, uint32_t attempt,
                            uint64_t count)
{
    struct stk_random draw =
        stk_philox(seed ^ SUBSTITUTE_STREAM ^ stk_mix64(attempt), epoch, position);
    uint64_t word = ((uint64_t)draw.word[1] << 32) | draw.word[0];
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)(((wide)word * count) >> 64); /* maps the word to [0, count) */
}
