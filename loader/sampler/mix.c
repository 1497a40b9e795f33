/* mix.c - see mix.h. */
#include "loader/sampler/mix.h"

#include <assert.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/sampler/window.h"

#define MIX_STREAM UINT64_C(0x6d697820736574) /* "mix set": keeps the sources' keys apart */

enum { BLOCK = STK_SAMPLER_BLOCK };

struct stk_mix_cursor {
    const struct stk_mix *mix;
    const struct stk_course_leg *leg; /* the last position lay in it; NULL = none yet */
    uint64_t leg_end;
    uint32_t leg_count; /* the course had that many when leg_end was looked up */
    struct stk_quota_frame frame;
    bool *has_order;                 /* [source_count] */
    struct stk_sampler_order *order; /* [source_count] of the epoch that each source is in */
};

/* Where a position leads. */
struct target {
    uint32_t source;
    uint64_t epoch; /* counts this source alone */
    uint64_t position;
};

uint32_t stk_mix_plan_source(const struct stk_mix_plan *plan, uint64_t id)
{
    uint32_t low = 0;
    uint32_t high = plan->source_count - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (id < plan->id_ends[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

const struct stk_mix_source *stk_mix_source(const struct stk_mix *mix, uint64_t id)
{
    uint32_t low = 0;
    uint32_t high = mix->source_count;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (id < mix->sources[middle].first_id)
            high = middle;
        else
            low = middle;
    }
    return &mix->sources[low];
}

int stk_mix_make(struct stk_mix *mix, const struct stk_mix_plan *plan, uint64_t seed, bool shuffle)
{
    *mix = (struct stk_mix){
        .source_count = plan->source_count,
        .length = plan->length,
        .shuffle = shuffle,
    };
    mix->sources = stk_calloc(plan->source_count, sizeof(mix->sources[0]));
    if (mix->sources == NULL || stk_course_continue(&mix->course, &plan->course) != STOKER_OK) {
        stk_mix_free(mix);
        return STOKER_ENOMEM;
    }
    for (uint32_t i = 0; i < plan->source_count; i++) {
        struct stk_mix_source *source = &mix->sources[i];
        source->first_id = i == 0 ? 0 : plan->id_ends[i - 1];
        stk_sampler_init(&source->sampler, plan->id_ends[i] - source->first_id,
                         stk_mix64(seed ^ stk_mix64(MIX_STREAM + i)), shuffle);
    }
    return STOKER_OK;
}

void stk_mix_free(struct stk_mix *mix)
{
    for (uint32_t i = 0; mix->sources != NULL && i < mix->source_count; i++)
        stk_window_free(mix->sources[i].sampler.window);
    stk_free(mix->sources);
    stk_course_free(&mix->course);
    mix->sources = NULL;
}

uint64_t stk_mix_position(const struct stk_mix *mix, uint64_t epoch, uint64_t position)
{
    uint64_t at;
    if (__builtin_mul_overflow(epoch, mix->length, &at) ||
        __builtin_add_overflow(at, position, &at) || at > STK_SAMPLER_COUNT_MAX)
        return UINT64_MAX;
    return at;
}

/* ---- cursor -------------------------------------------------------------------------------- */

struct stk_mix_cursor *stk_mix_cursor_make(const struct stk_mix *mix)
{
    struct stk_mix_cursor *cursor = stk_calloc(1, sizeof(*cursor));
    if (cursor == NULL)
        return NULL;
    int rc = STOKER_OK;
    cursor->mix = mix;
    cursor->has_order = stk_calloc(mix->source_count, sizeof(cursor->has_order[0]));
    cursor->order = stk_calloc(mix->source_count, sizeof(cursor->order[0]));
    for (uint32_t i = 0; rc == STOKER_OK && i < stk_course_leg_count(&mix->course); i++)
        rc = stk_quota_frame_reserve(&cursor->frame, &stk_course_leg(&mix->course, i)->quota);
    if (rc != STOKER_OK || cursor->has_order == NULL || cursor->order == NULL) {
        stk_mix_cursor_free(cursor);
        return NULL;
    }
    return cursor;
}

void stk_mix_cursor_free(struct stk_mix_cursor *cursor)
{
    if (cursor == NULL)
        return;
    for (uint32_t i = 0; cursor->order != NULL && i < cursor->mix->source_count; i++)
        if (cursor->order[i].line != NULL)
            stk_window_leave(cursor->mix->sources[i].sampler.window, &cursor->order[i].line);
    stk_quota_frame_free(&cursor->frame);
    stk_free(cursor->has_order);
    stk_free(cursor->order);
    stk_free(cursor);
}

/* ---- positions ------------------------------------------------------------------------------ */

/* Enter the leg of a position. A leg that was added since may begin before leg_end. */
static int enter_leg(const struct stk_mix *mix, struct stk_mix_cursor *cursor, uint64_t position)
{
    const uint32_t legs = stk_course_leg_count(&mix->course);
    if (cursor->leg != NULL && legs == cursor->leg_count && position >= cursor->leg->first &&
        position < cursor->leg_end)
        return STOKER_OK;
    const struct stk_course_leg *leg = stk_course_at(&mix->course, position, &cursor->leg_end);
    const int rc = stk_quota_frame_reserve(&cursor->frame, &leg->quota);
    cursor->leg = rc == STOKER_OK ? leg : NULL;
    cursor->leg_count = legs;
    return rc;
}

static int find_target(const struct stk_mix *mix, struct stk_mix_cursor *cursor, uint64_t position,
                       struct target *target)
{
    const int rc = enter_leg(mix, cursor, position);
    if (rc != STOKER_OK)
        return rc;
    const struct stk_course_leg *leg = cursor->leg;
    const uint64_t behind = position - leg->first;
    const uint32_t length = leg->quota.frame_length;
    stk_quota_frame_seek(&cursor->frame, &leg->quota, behind / length);
    const uint32_t source = cursor->frame.sources[behind % length];
    const uint64_t n = leg->before[source] + stk_quota_before(&cursor->frame, source) +
                       cursor->frame.ranks[behind % length];
    const uint64_t count = mix->sources[source].sampler.count;
    *target = (struct target){ .source = source, .epoch = n / count, .position = n % count };
    return STOKER_OK;
}

/* ---- ids ------------------------------------------------------------------------------------ */

/* Enter the epoch of a target. */
static int enter_epoch(const struct stk_mix *mix, struct stk_mix_cursor *cursor,
                       const struct target *target)
{
    const struct stk_sampler *sampler = &mix->sources[target->source].sampler;
    struct stk_sampler_order *order = &cursor->order[target->source];
    if (!mix->shuffle || (cursor->has_order[target->source] && order->epoch == target->epoch))
        return STOKER_OK;
    stk_sampler_begin(sampler, target->epoch, order);
    const int rc = sampler->window == NULL
                       ? STOKER_OK
                       : stk_window_begin(sampler->window, target->epoch, &order->line);
    cursor->has_order[target->source] = rc == STOKER_OK;
    return rc;
}

/* The ids of those of n <= BLOCK targets that lie in the epoch of target `first`; *done gets their
 * bits. */
static int map_alike(const struct stk_mix *mix, struct stk_mix_cursor *cursor,
                     const struct target *targets, uint32_t n, uint32_t first, uint64_t *done,
                     uint64_t *ids)
{
    const struct target *like = &targets[first];
    const struct stk_mix_source *source = &mix->sources[like->source];
    uint64_t mapped[BLOCK];
    uint32_t rows[BLOCK];
    uint32_t count = 0;
    const int rc = enter_epoch(mix, cursor, like);
    if (rc != STOKER_OK)
        return rc;
    for (uint32_t i = first; i < n; i++)
        if (targets[i].source == like->source && targets[i].epoch == like->epoch) {
            mapped[count] = targets[i].position;
            rows[count++] = i;
            *done |= UINT64_C(1) << i;
        }
    const struct stk_sampler_order *order = &cursor->order[like->source];
    const struct stk_window *window = source->sampler.window;
    for (uint32_t i = 0; window != NULL && i < count; i++)
        mapped[i] = stk_window_id(window, order->line, mapped[i]);
    if (mix->shuffle && window == NULL)
        stk_sampler_map(&source->sampler, order, mapped, count, mapped);
    for (uint32_t i = 0; i < count; i++)
        ids[rows[i]] = source->first_id + mapped[i];
    return STOKER_OK;
}

static int map_block(const struct stk_mix *mix, struct stk_mix_cursor *cursor, uint64_t position,
                     uint64_t stride, uint32_t n, uint64_t *ids)
{
    struct target targets[BLOCK];
    uint64_t done = 0;
    int rc = STOKER_OK;
    for (uint32_t i = 0; i < n; i++) {
        rc = find_target(mix, cursor, position + i * stride, &targets[i]);
        if (rc != STOKER_OK)
            return rc;
    }
    for (uint32_t i = 0; rc == STOKER_OK && i < n; i++)
        if ((done >> i & 1) == 0)
            rc = map_alike(mix, cursor, targets, n, i, &done, ids);
    return rc;
}

static int refuse_position(int code, uint64_t epoch, uint64_t position, stoker_error *error)
{
    return stk_error_set(
        error, code, STOKER_STAGE_LOCATE, NULL,
        code == STOKER_ELIMIT
            ? "mix, epoch %llu, position %llu: more than 2^62 samples from the start"
            : "mix, epoch %llu, position %llu: no memory for changed weights or an epoch's blocks",
        (unsigned long long)epoch, (unsigned long long)position);
}

int stk_mix_ids(const struct stk_mix *mix, struct stk_mix_cursor *cursor, uint64_t epoch,
                uint64_t first, uint64_t stride, uint32_t n, uint64_t *ids, stoker_error *error)
{
    if (n == 0)
        return STOKER_OK;
    const uint64_t last = stk_mix_position(mix, epoch, first + (n - 1) * stride);
    if (last >= STK_SAMPLER_COUNT_MAX)
        return refuse_position(STOKER_ELIMIT, epoch, first, error);
    const uint64_t position = last - (n - 1) * stride;
    for (uint32_t done = 0; done < n; done += BLOCK) {
        const uint32_t block = n - done < BLOCK ? n - done : BLOCK;
        const int rc = map_block(mix, cursor, position + done * stride, stride, block, ids + done);
        if (rc != STOKER_OK)
            return refuse_position(rc, epoch, first + done * stride, error);
    }
    return STOKER_OK;
}
