/* mix.c - the calls of stoker/mix.h: how many samples each source of a mix has contributed, and new
 * weights during a run. */
#include <stoker/mix.h>

#include <inttypes.h>

#include "loader/api/loader.h"
#include "loader/base/error.h"
#include "loader/dataset/dataset.h"
#include "loader/pipeline/order/length_batches.h"

#define REFUSE(error, code, ...)                                                                   \
    stk_error_set(error, code, STOKER_STAGE_OPTIONS, &(struct stk_place)STK_NOWHERE, __VA_ARGS__)

static int check_loader(const stoker_loader *loader, stoker_error *error)
{
    if (loader == NULL)
        return REFUSE(error, STOKER_EINVAL, "mix: loader is NULL");
    if (stk_fork_guard_tripped(&loader->guard))
        return REFUSE(error, STOKER_EFORKED, "mix: the loader stayed with the parent");
    if (loader->pipeline.sampler.mix == NULL)
        return REFUSE(error, STOKER_EINVAL,
                      "mix: the loader's order is no mix: the data set is none, or options.order "
                      "replaced it");
    return 0;
}

int stoker_loader_mix_counts(const stoker_loader *loader, uint64_t *counts, uint32_t count,
                             stoker_error *error)
{
    const int rc = check_loader(loader, error);
    if (rc < 0)
        return rc;
    const struct stk_mix *mix = &loader->mix;
    if (counts == NULL || count != mix->source_count)
        return REFUSE(error, STOKER_EINVAL,
                      "mix: counts is NULL, or has room for %" PRIu32 " of %" PRIu32 " sources",
                      count, mix->source_count);
    const uint64_t position = stk_mix_position(mix, loader->state_epoch, loader->state_position);
    if (position > STK_SAMPLER_COUNT_MAX)
        return REFUSE(error, STOKER_EINVAL, "mix: more than 2^62 samples from the start");
    if (stk_course_counts(&mix->course, position, counts) != 0)
        return REFUSE(error, STOKER_ENOMEM, "mix: %" PRIu32 " sources", count);
    return STOKER_OK;
}

/* How far windows are planned, if batches have a bounded number of values. */
struct planned {
    bool windows;
    uint64_t epoch, position;
};

/* The first position that no worker can have claimed: batches up to this one have a slot, or may
 * get one before the consumer takes another batch; and that is in no planned window, of which none
 * is planned meanwhile (see stoker_loader_change_mix()). */
static uint64_t earliest_position(const stoker_loader *loader, const struct planned *planned)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    if (planned->windows)
        return stk_mix_position(&loader->mix, planned->epoch, planned->position);
    const struct stk_batch_place place =
        stk_schedule_place(&pipeline->schedule, pipeline->slots.head + pipeline->slots.slot_count);
    return stk_mix_position(&loader->mix, place.epoch, place.position - pipeline->schedule.offset);
}

static int check_change(const stoker_loader *loader, const struct planned *planned,
                        const stoker_mix_change *change, stoker_error *error)
{
    const struct stk_mix *mix = &loader->mix;
    const uint64_t before =
        stk_course_leg(&mix->course, stk_course_leg_count(&mix->course) - 1)->first;
    const uint64_t earliest = earliest_position(loader, planned);
    uint32_t wrong;
    if (change == NULL || change->weights == NULL)
        return REFUSE(error, STOKER_EINVAL, "mix: change or its weights is NULL");
    if (change->position > STK_SAMPLER_COUNT_MAX)
        return REFUSE(error, STOKER_EINVAL, "mix: change.position %" PRIu64 " exceeds 2^62",
                      change->position);
    if (change->position <= before)
        return REFUSE(error, STOKER_EINVAL,
                      "mix: change.position %" PRIu64 " is not above %" PRIu64
                      ", where the weights last changed",
                      change->position, before);
    if (change->position < earliest)
        return REFUSE(error, STOKER_EINVAL,
                      "mix: change.position %" PRIu64
                      " may be in a batch that is under way: the earliest is %" PRIu64,
                      change->position, earliest);
    if (stk_quota_check(change->weights, mix->source_count, &wrong) != STK_QUOTA_FINE)
        return REFUSE(error, STOKER_EINVAL,
                      "mix: change.weights are finite, 0 or at least 1 / %d of their sum, which is "
                      "above 0; weights[%" PRIu32 "]",
                      STOKER_MIX_RATIO_MAX, wrong < mix->source_count ? wrong : 0);
    return 0;
}

static int change(stoker_loader *loader, const struct planned *planned,
                  const stoker_mix_change *change, stoker_error *error)
{
    int rc = check_change(loader, planned, change, error);
    if (rc < 0)
        return rc;
    rc = stk_course_add(&loader->mix.course, change->position, change->weights);
    return rc < 0 ? REFUSE(error, rc, "mix: a change after %" PRIu32 " legs",
                           stk_course_leg_count(&loader->mix.course))
                  : STOKER_OK;
}

int stoker_loader_change_mix(stoker_loader *loader, const stoker_mix_change *wanted,
                             stoker_error *error)
{
    struct planned planned = { .windows = false };
    int rc = check_loader(loader, error);
    if (rc < 0)
        return rc;
    struct stk_length_batches *lengths = loader->pipeline.lengths;
    if (lengths != NULL) {
        planned.windows = true;
        planned.position = stk_length_batches_hold(lengths, &planned.epoch);
    }
    rc = change(loader, &planned, wanted, error);
    if (lengths != NULL)
        stk_length_batches_let_go(lengths);
    return rc;
}
