/* mix.c - a view of several, one after the other, and the plan of an order that draws a
 * share of the samples from each.
 *
 * The ids are those of a concat. The order is the loader's: sampler/mix.h.
 */
#include "datasets/views/view.h"
#include <stoker/mix.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "loader/base/struct_size.h"
#include "loader/dataset/dataset.h"

_Static_assert((int)STOKER_MIX_SOURCES_MAX == (int)STK_QUOTA_SOURCES_MAX, "sources of a mix");
_Static_assert((int)STOKER_MIX_CHANGES_MAX == (int)STK_COURSE_CHANGES_MAX, "changes of a mix");
_Static_assert((int)STOKER_MIX_RATIO_MAX == (int)STK_QUOTA_RATIO_MAX, "ratios of weights");

/* ---- checks ------------------------------------------------------------------------------ */

/* `of` is "" or names the change whose weights they are. */
static int check_weights(const struct stk_view_making *making, const double *weights,
                         uint32_t count, const char *of)
{
    uint32_t index;
    if (weights == NULL)
        return stk_view_refuse(making, STOKER_EINVAL, "%sweights is NULL", of);
    switch (stk_quota_check(weights, count, &index)) {
    case STK_QUOTA_NEGATIVE:
        return stk_view_refuse(making, STOKER_EINVAL,
                               "%sweights[%" PRIu32 "] is %g, but must be finite and at least 0",
                               of, index, weights[index]);
    case STK_QUOTA_ALL_ZERO:
        return stk_view_refuse(making, STOKER_EINVAL, "%sall weights are 0", of);
    case STK_QUOTA_TOO_SMALL:
        return stk_view_refuse(
            making, STOKER_EINVAL,
            "%sweights[%" PRIu32
            "] is %g, below 1 / %d of the sum: a source that comes less often is "
            "left out with weight 0",
            of, index, weights[index], STOKER_MIX_RATIO_MAX);
    case STK_QUOTA_FINE:
        break;
    }
    return STOKER_OK;
}

static int check_changes(const struct stk_view_making *making, const stoker_mix *mix,
                         uint32_t count)
{
    uint64_t before = 0;
    int rc = STOKER_OK;
    if (mix->change_count > STOKER_MIX_CHANGES_MAX)
        return stk_view_refuse(making, STOKER_EINVAL, "%" PRIu32 " changes, at most %d are allowed",
                               mix->change_count, STOKER_MIX_CHANGES_MAX);
    if (mix->change_count > 0 && mix->changes == NULL)
        return stk_view_refuse(making, STOKER_EINVAL, "changes is NULL");
    for (uint32_t i = 0; rc == STOKER_OK && i < mix->change_count; i++) {
        char of[32];
        const uint64_t position = mix->changes[i].position;
        (void)snprintf(of, sizeof(of), "changes[%" PRIu32 "].", i);
        if (position <= before || position > STK_SAMPLER_COUNT_MAX)
            return stk_view_refuse(making, STOKER_EINVAL,
                                   "%sposition %" PRIu64 " is not in %" PRIu64
                                   "..2^62: positions increase",
                                   of, position, before + 1);
        before = position;
        rc = check_weights(making, mix->changes[i].weights, count, of);
    }
    return rc;
}

static int check_mix(const struct stk_view_making *making, const stoker_mix *mix, uint32_t count)
{
    if (count > STOKER_MIX_SOURCES_MAX)
        return stk_view_refuse(making, STOKER_ELIMIT, "%" PRIu32 " data sets, at most %d", count,
                               STOKER_MIX_SOURCES_MAX);
    if (mix->epoch_samples == 0 ||
        (mix->epoch_samples > STK_SAMPLER_COUNT_MAX && mix->epoch_samples != STOKER_LENGTH_AUTO))
        return stk_view_refuse(making, STOKER_EINVAL,
                               "epoch_samples %" PRIu64 " is neither in 1..2^62 nor "
                               "STOKER_LENGTH_AUTO: begin with STOKER_MIX_INIT",
                               mix->epoch_samples);
    const int rc = check_weights(making, mix->weights, count, "");
    return rc == STOKER_OK ? check_changes(making, mix, count) : rc;
}

static int check_sources(const struct stk_view_making *making, stoker_dataset *const *datasets,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (datasets[i] != NULL && datasets[i]->weights != NULL)
            return stk_view_refuse(making, STOKER_ENOTSUP,
                                   "data set %" PRIu32 " has weights for its samples: a mix "
                                   "delivers each sample of a source once in the source's epoch",
                                   i);
    return STOKER_OK;
}

/* ---- the plan ------------------------------------------------------------------------------ */

static int add_legs(struct stk_course *course, const stoker_mix *mix)
{
    int rc = stk_course_add(course, 0, mix->weights);
    for (uint32_t i = 0; rc == STOKER_OK && i < mix->change_count; i++)
        rc = stk_course_add(course, mix->changes[i].position, mix->changes[i].weights);
    return rc;
}

static int make_plan(const struct stk_view_making *making, struct stk_view *view,
                     const stoker_mix *mix)
{
    const uint32_t count = view->source_count;
    uint64_t *ends = stk_calloc(count, sizeof(*ends));
    struct stk_blocks *blocks = stk_calloc(count, sizeof(*blocks));
    view->mix = stk_calloc(1, sizeof(*view->mix));
    if (view->mix == NULL || ends == NULL || blocks == NULL) {
        stk_free(ends);
        stk_free(blocks);
        return stk_view_refuse(making, STOKER_ENOMEM, "%" PRIu32 " sources", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        const stoker_dataset *source = view->sources[i].dataset;
        ends[i] = view->sources[i].end;
        blocks[i] = (struct stk_blocks){ .count = source->info.count,
                                         .block_count = source->info.block_count,
                                         .first = source->ops->block_first,
                                         .self = source->self };
    }
    view->mix->source_count = count;
    view->mix->id_ends = ends;
    view->mix->blocks = blocks;
    view->mix->length =
        mix->epoch_samples == STOKER_LENGTH_AUTO ? view->info.count : mix->epoch_samples;
    stk_course_init(&view->mix->course, count);
    const int rc = add_legs(&view->mix->course, mix);
    return rc == STOKER_OK
               ? rc
               : stk_view_refuse(making, rc, "the weights of %" PRIu32 " sources", count);
}

/* A hash of the plan: of the leg's position and its weights. */
static uint64_t key_of(const struct stk_mix_plan *plan)
{
    uint64_t key = stk_view_mix(6, plan->length);
    for (uint32_t i = 0; i < stk_course_leg_count(&plan->course); i++) {
        const struct stk_course_leg *leg = stk_course_leg(&plan->course, i);
        key = stk_view_mix(key, leg->first);
        for (uint32_t source = 0; source < plan->source_count; source++) {
            uint64_t bits;
            memcpy(&bits, &leg->weights[source], sizeof(bits));
            key = stk_view_mix(key, bits);
        }
    }
    return key;
}

int stoker_dataset_mix(stoker_dataset **out, stoker_dataset *const *datasets, uint32_t count,
                       const stoker_mix *given, stoker_error *error)
{
    const struct stk_view_making making = { .name = "mix", .error = error };
    struct stk_view *view = NULL;
    stoker_mix mix = STOKER_MIX_INIT;
    if (out == NULL || datasets == NULL || count == 0 || given == NULL)
        return stk_view_refuse(&making, STOKER_EINVAL,
                               "out, datasets or mix is NULL, or count is 0");
    if (!stk_struct_fits(given, STK_SIZE_UP_TO(stoker_mix, change_count), sizeof(stoker_mix)))
        return stk_view_refuse(&making, STOKER_EINVAL, STK_STRUCT_REFUSAL, "mix",
                               given->struct_size, sizeof(stoker_mix), "STOKER_MIX_INIT");
    stk_struct_read(&mix, sizeof(mix), given, given->struct_size);
    int rc = check_mix(&making, &mix, count);
    if (rc == STOKER_OK)
        rc = check_sources(&making, datasets, count);
    if (rc == STOKER_OK)
        rc = stk_view_make(&view, &making, datasets, count);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_view_join(&making, view);
    if (rc == STOKER_OK)
        rc = make_plan(&making, view, &mix);
    if (rc != STOKER_OK) {
        stk_view_free(view);
        return rc;
    }
    return stk_view_finish(out, &making, view, key_of(view->mix));
}

/* ---- questions ------------------------------------------------------------------------------- */

uint32_t stoker_mix_source_count(const stoker_dataset *dataset)
{
    return dataset == NULL || dataset->mix == NULL ? 0 : dataset->mix->source_count;
}

int stoker_mix_source(const stoker_dataset *dataset, uint64_t id, uint32_t *source,
                      uint64_t *source_id)
{
    if (stoker_mix_source_count(dataset) == 0 || id >= dataset->info.count)
        return STOKER_EINVAL;
    const struct stk_mix_plan *plan = dataset->mix;
    const uint32_t found = stk_mix_plan_source(plan, id);
    if (source != NULL)
        *source = found;
    if (source_id != NULL)
        *source_id = id - (found == 0 ? 0 : plan->id_ends[found - 1]);
    return STOKER_OK;
}

int stoker_mix_counts(const stoker_dataset *dataset, uint64_t position, uint64_t *counts,
                      uint32_t count, stoker_error *error)
{
    const struct stk_view_making making = { .name = "mix counts", .error = error };
    const uint32_t sources = stoker_mix_source_count(dataset);
    if (sources == 0 || counts == NULL)
        return stk_view_refuse(&making, STOKER_EINVAL,
                               "counts is NULL, or the data set is NULL or no mix");
    if (count != sources)
        return stk_view_refuse(&making, STOKER_EINVAL, "%" PRIu32 " counts for %" PRIu32 " sources",
                               count, sources);
    if (position > STK_SAMPLER_COUNT_MAX)
        return stk_view_refuse(&making, STOKER_EINVAL, "position %" PRIu64 " exceeds 2^62",
                               position);
    return stk_course_counts(&dataset->mix->course, position, counts) == STOKER_OK
               ? STOKER_OK
               : stk_view_refuse(&making, STOKER_ENOMEM, "%" PRIu32 " sources", sources);
}
