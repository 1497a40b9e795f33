/* counters.c - see counters.h. */
#include "trainer/api/counters.h"

#include <math.h>
#include <string.h>

struct stk_counters stk_counters_write(const struct stk_progress *progress)
{
    uint32_t scale_bits;
    memcpy(&scale_bits, &progress->loss_scale.scale, sizeof(scale_bits));
    return (
        struct stk_counters){ .value = {
                                  [STK_COUNTER_VERSION] = STK_COUNTERS_VERSION,
                                  [STK_COUNTER_UPDATES] = progress->updates,
                                  [STK_COUNTER_GROUPS] = progress->groups,
                                  [STK_COUNTER_PASSES] = progress->passes,
                                  [STK_COUNTER_GROUP_PASSES] = progress->group_batches,
                                  [STK_COUNTER_GROUP_SAMPLES] = progress->group_samples,
                                  [STK_COUNTER_SEED] = progress->seed,
                                  [STK_COUNTER_LOSS_SCALE] = scale_bits,
                                  [STK_COUNTER_GOOD_UPDATES] = progress->loss_scale.good_updates,
                              } };
}

/* Finds numbers that no save writes. */
static const char *check(const uint64_t *value, float scale)
{
    if (value[STK_COUNTER_VERSION] != STK_COUNTERS_VERSION)
        return "counters of another version";
    if (value[STK_COUNTER_UPDATES] > value[STK_COUNTER_GROUPS] ||
        value[STK_COUNTER_GROUPS] > value[STK_COUNTER_PASSES] ||
        value[STK_COUNTER_GROUP_PASSES] > value[STK_COUNTER_PASSES] - value[STK_COUNTER_GROUPS] ||
        value[STK_COUNTER_GROUP_PASSES] > value[STK_COUNTER_GROUP_SAMPLES] ||
        (value[STK_COUNTER_GROUP_PASSES] == 0) != (value[STK_COUNTER_GROUP_SAMPLES] == 0) ||
        value[STK_COUNTER_GOOD_UPDATES] >= STK_LOSS_SCALE_GOOD_UPDATES)
        return "counters that contradict each other";
    if (value[STK_COUNTER_LOSS_SCALE] > UINT32_MAX || !isfinite(scale) || scale <= 0)
        return "an invalid loss scale";
    return NULL;
}

const char *stk_counters_read(const struct stk_counters *counters, struct stk_progress *progress)
{
    const uint64_t *value = counters->value;
    const uint32_t scale_bits = (uint32_t)value[STK_COUNTER_LOSS_SCALE];
    float scale;
    memcpy(&scale, &scale_bits, sizeof(scale));
    const char *why = check(value, scale);
    if (why != NULL)
        return why;
    const bool dynamic = progress->loss_scale.dynamic;
    if (dynamic && !(scale >= STK_LOSS_SCALE_MIN && scale <= STK_LOSS_SCALE_MAX))
        return "a loss scale out of range";
    if (!dynamic && value[STK_COUNTER_GROUP_PASSES] > 0 &&
        !(scale >= progress->loss_scale.scale && scale <= progress->loss_scale.scale))
        return "gradients summed with another loss scale";
    progress->updates = value[STK_COUNTER_UPDATES];
    progress->groups = value[STK_COUNTER_GROUPS];
    progress->passes = value[STK_COUNTER_PASSES];
    progress->group_passes = value[STK_COUNTER_GROUP_PASSES];
    progress->group_batches = value[STK_COUNTER_GROUP_PASSES];
    progress->group_samples = value[STK_COUNTER_GROUP_SAMPLES];
    progress->seed = value[STK_COUNTER_SEED];
    if (dynamic) {
        progress->loss_scale.scale = scale;
        progress->loss_scale.good_updates = (uint32_t)value[STK_COUNTER_GOOD_UPDATES];
    }
    return NULL;
}
