/* test_counters.c - a trainer's counters come back from a file as they were, and those that
 * no trainer can have written are refused.
 *
 * Method: a row that is right, each number of it replaced by lies about it. */
#include <math.h>

#include "support/leaks.h"
#include "trainer/api/counters.h"

static uint64_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static bool same_float(float a, float b)
{
    return bits_of(a) == bits_of(b);
}

static struct stk_progress fresh(bool dynamic, float scale)
{
    return (struct stk_progress){ .seed = 1, .loss_scale = { .scale = scale, .dynamic = dynamic } };
}

/* In the middle of a group: 10 of the 12 groups were updates; 3 passes of 2 ranks, of which one was
 * empty, have 9 samples. */
static struct stk_progress in_a_group(bool dynamic, float scale)
{
    struct stk_progress progress = fresh(dynamic, scale);
    progress.updates = 10;
    progress.groups = 12;
    progress.passes = 17;
    progress.group_passes = 3;
    progress.group_batches = 5;
    progress.group_samples = 9;
    progress.seed = UINT64_MAX;
    progress.loss_scale.good_updates = 7;
    return progress;
}

CleanTest(trainer_counters, what_is_written_is_read)
{
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        const struct stk_progress written = in_a_group(dynamic != 0, 64);
        const struct stk_counters counters = stk_counters_write(&written);
        struct stk_progress read = fresh(dynamic != 0, 64);
        cr_assert_null(stk_counters_read(&counters, &read));
        cr_assert_eq(read.updates, 10);
        cr_assert_eq(read.groups, 12);
        cr_assert_eq(read.passes, 17);
        cr_assert_eq(read.group_passes, 5, "passes of one rank");
        cr_assert_eq(read.group_batches, 5);
        cr_assert_eq(read.group_samples, 9);
        cr_assert_eq(read.seed, UINT64_MAX);
        cr_assert(same_float(read.loss_scale.scale, 64));
        cr_assert_eq(read.loss_scale.good_updates, dynamic != 0 ? 7 : 0);
        cr_assert_eq(read.loss_scale.dynamic, dynamic != 0);
    }
}

static void refused(const struct stk_counters *counters, bool dynamic, float scale,
                    const char *says)
{
    struct stk_progress progress = fresh(dynamic, scale);
    const char *why = stk_counters_read(counters, &progress);
    cr_assert_not_null(why, "not refused: %s", says);
    cr_assert_not_null(strstr(why, says), "\"%s\" is not in: %s", says, why);
    cr_assert_eq(progress.passes, 0, "nothing is taken over");
    cr_assert_eq(progress.seed, 1);
    cr_assert(same_float(progress.loss_scale.scale, scale));
}

CleanTest(trainer_counters, lies_are_refused)
{
    const struct {
        int counter;
        uint64_t value;
        const char *says;
    } lies[] = {
        { STK_COUNTER_VERSION, 0, "version" },
        { STK_COUNTER_VERSION, 2, "version" },
        { STK_COUNTER_UPDATES, 13, "contradict" },
        { STK_COUNTER_UPDATES, UINT64_MAX, "contradict" },
        { STK_COUNTER_GROUPS, 9, "contradict" },
        { STK_COUNTER_GROUPS, 13, "contradict" },
        { STK_COUNTER_GROUPS, 18, "contradict" },
        { STK_COUNTER_PASSES, 11, "contradict" },
        { STK_COUNTER_PASSES, 16, "contradict" },
        { STK_COUNTER_GROUP_PASSES, 6, "contradict" },
        { STK_COUNTER_GROUP_PASSES, 0, "contradict" },
        { STK_COUNTER_GROUP_PASSES, UINT64_MAX, "contradict" },
        { STK_COUNTER_GROUP_SAMPLES, 4, "contradict" },
        { STK_COUNTER_GROUP_SAMPLES, 0, "contradict" },
        { STK_COUNTER_LOSS_SCALE, 0, "invalid loss scale" },
        { STK_COUNTER_LOSS_SCALE, bits_of(-64), "invalid loss scale" },
        { STK_COUNTER_LOSS_SCALE, bits_of(INFINITY), "invalid loss scale" },
        { STK_COUNTER_LOSS_SCALE, bits_of(NAN), "invalid loss scale" },
        { STK_COUNTER_LOSS_SCALE, bits_of(64) | UINT64_C(1) << 32, "invalid loss scale" },
        { STK_COUNTER_LOSS_SCALE, bits_of(STK_LOSS_SCALE_MIN / 2), "out of range" },
        { STK_COUNTER_LOSS_SCALE, bits_of(STK_LOSS_SCALE_MAX * 2), "out of range" },
        { STK_COUNTER_GOOD_UPDATES, STK_LOSS_SCALE_GOOD_UPDATES, "contradict" },
        { STK_COUNTER_GOOD_UPDATES, UINT64_C(1) << 32, "contradict" },
    };
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        const struct stk_progress written = in_a_group(true, 64);
        struct stk_counters counters = stk_counters_write(&written);
        counters.value[lies[i].counter] = lies[i].value;
        refused(&counters, true, 64, lies[i].says);
    }
}

/* Gradients of half a group are multiplied by the scale that they were summed with. */
CleanTest(trainer_counters, a_group_continues_with_its_loss_scale_alone)
{
    struct stk_progress written = in_a_group(false, 64);
    struct stk_counters counters = stk_counters_write(&written);
    refused(&counters, false, 32, "another loss scale");
    written.group_passes = 0;
    written.group_batches = 0;
    written.group_samples = 0;
    counters = stk_counters_write(&written);
    struct stk_progress progress = fresh(false, 32);
    cr_assert_null(stk_counters_read(&counters, &progress));
    cr_assert(same_float(progress.loss_scale.scale, 32), "the one asked for now");
}
