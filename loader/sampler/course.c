/* course.c - see course.h. */
#include "loader/sampler/course.h"

#include <assert.h>
#include <string.h>

#include "loader/base/memory/memory.h"

#include <stoker/error.h>

enum { FIRST_ROOM = 8 };

void stk_course_init(struct stk_course *course, uint32_t source_count)
{
    memset(course, 0, sizeof(*course));
    course->source_count = source_count;
}

uint32_t stk_course_leg_count(const struct stk_course *course)
{
    return atomic_load_explicit(&course->leg_count, memory_order_acquire);
}

const struct stk_course_leg *stk_course_leg(const struct stk_course *course, uint32_t index)
{
    return atomic_load_explicit(&course->table, memory_order_acquire)->legs[index];
}

/* ---- adding ------------------------------------------------------------------------------- */

/* A table with room for another leg. */
static int make_room(struct stk_course *course)
{
    struct stk_course_table *old = atomic_load_explicit(&course->table, memory_order_relaxed);
    const uint32_t count = atomic_load_explicit(&course->leg_count, memory_order_relaxed);
    if (old != NULL && count < old->room)
        return STOKER_OK;
    const uint32_t room = count < FIRST_ROOM ? FIRST_ROOM : 2 * count;
    struct stk_course_table *table = stk_calloc(1, sizeof(*table) + room * sizeof(table->legs[0]));
    if (table == NULL)
        return STOKER_ENOMEM;
    table->older = old;
    table->room = room;
    if (old != NULL)
        memcpy(table->legs, old->legs, count * sizeof(table->legs[0]));
    atomic_store_explicit(&course->table, table, memory_order_release);
    return STOKER_OK;
}

static void append_leg(struct stk_course *course, const struct stk_course_leg *leg)
{
    const uint32_t count = atomic_load_explicit(&course->leg_count, memory_order_relaxed);
    atomic_load_explicit(&course->table, memory_order_relaxed)->legs[count] = leg;
    atomic_store_explicit(&course->leg_count, count + 1, memory_order_release);
}

static void free_leg(const struct stk_course_leg *leg)
{
    struct stk_course_leg *own = (struct stk_course_leg *)leg;
    if (own == NULL)
        return;
    stk_quota_free(&own->quota);
    stk_free(own->before);
    stk_free(own->weights);
    stk_free(own);
}

static struct stk_course_leg *make_leg(uint32_t source_count, uint64_t first, const double *weights)
{
    struct stk_course_leg *leg = stk_calloc(1, sizeof(*leg));
    if (leg == NULL)
        return NULL;
    leg->first = first;
    leg->before = stk_calloc(source_count, sizeof(leg->before[0]));
    leg->weights = stk_calloc(source_count, sizeof(leg->weights[0]));
    if (leg->before == NULL || leg->weights == NULL ||
        stk_quota_make(&leg->quota, weights, source_count) != STOKER_OK) {
        free_leg(leg);
        return NULL;
    }
    memcpy(leg->weights, weights, source_count * sizeof(weights[0]));
    return leg;
}

int stk_course_add(struct stk_course *course, uint64_t first, const double *weights)
{
    const uint32_t count = atomic_load_explicit(&course->leg_count, memory_order_relaxed);
    assert(count > 0 ? first > stk_course_leg(course, count - 1)->first : first == 0);
    assert(first <= UINT64_C(1) << 62);
    if (count > STK_COURSE_CHANGES_MAX)
        return STOKER_ELIMIT;
    struct stk_course_leg *leg = make_leg(course->source_count, first, weights);
    int rc = leg == NULL ? STOKER_ENOMEM : make_room(course);
    if (rc == STOKER_OK && count > 0)
        rc = stk_course_counts(course, first, leg->before);
    if (rc == STOKER_OK)
        append_leg(course, leg);
    else
        free_leg(leg);
    return rc;
}

int stk_course_continue(struct stk_course *course, const struct stk_course *from)
{
    const uint32_t legs = stk_course_leg_count(from);
    stk_course_init(course, from->source_count);
    for (uint32_t i = 0; i < legs; i++) {
        if (make_room(course) != STOKER_OK) {
            stk_course_free(course);
            return STOKER_ENOMEM;
        }
        append_leg(course, stk_course_leg(from, i));
        course->borrowed++;
    }
    return STOKER_OK;
}

void stk_course_free(struct stk_course *course)
{
    struct stk_course_table *table = atomic_load_explicit(&course->table, memory_order_relaxed);
    const uint32_t count = atomic_load_explicit(&course->leg_count, memory_order_relaxed);
    for (uint32_t i = course->borrowed; i < count; i++)
        free_leg(table->legs[i]);
    while (table != NULL) {
        struct stk_course_table *older = table->older;
        stk_free(table);
        table = older;
    }
    stk_course_init(course, 0);
}

/* ---- looking up ------------------------------------------------------------------------------ */

const struct stk_course_leg *stk_course_at(const struct stk_course *course, uint64_t position,
                                           uint64_t *end)
{
    uint32_t low = 0;
    uint32_t high = stk_course_leg_count(course);
    assert(high > 0);
    *end = UINT64_MAX;
    while (high - low > 1) { /* leg `low` begins at or before the position, leg `high` behind it */
        const uint32_t middle = low + (high - low) / 2;
        const struct stk_course_leg *leg = stk_course_leg(course, middle);
        if (leg->first <= position) {
            low = middle;
        } else {
            high = middle;
            *end = leg->first;
        }
    }
    return stk_course_leg(course, low);
}

int stk_course_counts(const struct stk_course *course, uint64_t position, uint64_t *counts)
{
    uint64_t end;
    struct stk_quota_frame frame = { .quota = NULL };
    const struct stk_course_leg *leg =
        stk_course_at(course, position == 0 ? 0 : position - 1, &end);
    const uint64_t behind = position - leg->first;
    if (stk_quota_frame_reserve(&frame, &leg->quota) != STOKER_OK)
        return STOKER_ENOMEM;
    stk_quota_frame_seek(&frame, &leg->quota, behind / leg->quota.frame_length);
    for (uint32_t i = 0; i < course->source_count; i++)
        counts[i] = leg->before[i] + stk_quota_before(&frame, i);
    for (uint64_t at = 0; at < behind % leg->quota.frame_length; at++)
        counts[frame.sources[at]]++;
    stk_quota_frame_free(&frame);
    return STOKER_OK;
}
