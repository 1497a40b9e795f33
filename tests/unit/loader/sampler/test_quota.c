/* test_quota.c - after every position each source has had its share within one sample, in exact
 * integers; any frame is what one reaches by the frames before it.
 */
#include <math.h>
#include <time.h>

#include "loader/base/rng.h"
#include "loader/sampler/quota.h"
#include "support/leaks.h"

__extension__ typedef __int128 wide;

enum { SOURCES_MAX = 1000 };

static double weights[SOURCES_MAX];
static uint64_t counts[SOURCES_MAX];

/* Draw n of a test: the same in every run. */
static double drawn(uint64_t n)
{
    return (double)(stk_mix64(n) >> 11) * 0x1p-53;
}

/* No source is a whole sample off its share after `position` positions. */
static void check_shares(const struct stk_quota *quota, uint64_t position)
{
    for (uint32_t i = 0; i < quota->source_count; i++) {
        const wide off = (wide)counts[i] * quota->sum - (wide)position * quota->shares[i].part;
        if (off >= (wide)quota->sum || -off >= (wide)quota->sum)
            cr_assert_fail("%u sources, source %u, position %llu: %g samples off",
                           quota->source_count, i, (unsigned long long)position,
                           (double)off / (double)quota->sum);
    }
}

/* Check every `every`-th position of a frame, which continues the counts. */
static void walk_frame(const struct stk_quota_frame *frame, uint32_t every)
{
    const struct stk_quota *quota = frame->quota;
    const uint64_t first = frame->number * quota->frame_length;
    for (uint32_t at = 0; at < quota->frame_length; at++) {
        const uint32_t source = frame->sources[at];
        cr_assert_lt(source, quota->source_count);
        if (counts[source] != stk_quota_before(frame, source) + frame->ranks[at])
            cr_assert_fail("rank %u at %u", frame->ranks[at], at);
        counts[source]++;
        if (at % every == 0 || at + 1 == quota->frame_length)
            check_shares(quota, first + at + 1);
    }
}

static void begin_counts(const struct stk_quota_frame *frame)
{
    for (uint32_t i = 0; i < frame->quota->source_count; i++)
        counts[i] = stk_quota_before(frame, i);
}

/* Frames from `first` on, one after the other, and the last of them again by itself. */
static void check_frames(uint32_t source_count, uint64_t first, uint32_t frames, uint32_t every)
{
    struct stk_quota quota;
    struct stk_quota_frame frame = { .quota = NULL };
    struct stk_quota_frame alone = { .quota = NULL };
    uint32_t wrong;
    cr_assert_eq(stk_quota_check(weights, source_count, &wrong), STK_QUOTA_FINE);
    cr_assert_eq(stk_quota_make(&quota, weights, source_count), 0);
    cr_assert_eq(stk_quota_frame_reserve(&frame, &quota), 0);
    cr_assert_eq(stk_quota_frame_reserve(&alone, &quota), 0);
    for (uint32_t i = 0; i < frames; i++) {
        stk_quota_frame_seek(&frame, &quota, first + i);
        if (i == 0)
            begin_counts(&frame);
        check_shares(&quota, (first + i) * quota.frame_length);
        walk_frame(&frame, every);
    }
    stk_quota_frame_seek(&alone, &quota, first + frames - 1);
    cr_assert_arr_eq(alone.sources, frame.sources, quota.frame_length * sizeof(frame.sources[0]));
    cr_assert_arr_eq(alone.ranks, frame.ranks, quota.frame_length * sizeof(frame.ranks[0]));
    stk_quota_frame_free(&frame);
    stk_quota_frame_free(&alone);
    stk_quota_free(&quota);
}

/* Every prefix of two frames, for all small weights of four sources: a weight of 0 is no source. */
CleanTest(quota, keeps_shares_for_all_small_weights)
{
    for (int all = 1; all < 6 * 6 * 6 * 6; all++) {
        for (int i = 0, rest = all; i < 4; i++, rest /= 6)
            weights[i] = rest % 6;
        check_frames(4, 0, 2, 1);
    }
}

/* Weights that have no common measure: every prefix near the start, and near 10^12. */
CleanTest(quota, keeps_shares_for_any_weights)
{
    for (uint32_t run = 0; run < 300; run++) {
        const uint32_t sources = 2 + run % 14;
        const double spread = 8 * drawn(run);
        for (uint32_t i = 0; i < sources; i++)
            weights[i] = exp(-spread * drawn(UINT64_C(1000000) + 100 * run + i));
        check_frames(sources, run % 2 == 0 ? 0 : UINT64_C(1000000000) + run, 3, 1);
    }
}

/* Heavy and light sources whose samples are due at the same time: what a rule of one step ahead
 * gets wrong. */
CleanTest(quota, keeps_shares_where_samples_are_due_together)
{
    for (uint32_t heavy = 1; heavy <= 16; heavy++)
        for (uint32_t light = 1; light <= 40; light += 13)
            for (uint32_t ratio = 2; ratio <= 50; ratio += 12) {
                for (uint32_t i = 0; i < heavy + light; i++)
                    weights[i] = i < heavy ? 1.0 : 1.0 / ratio;
                check_frames(heavy + light, 0, 2, 1);
            }
}

CleanTest(quota, keeps_shares_of_a_thousand_sources)
{
    for (uint32_t run = 0; run < 6; run++) {
        const uint32_t sources = run == 0 ? SOURCES_MAX : 200 + 160 * run;
        const double spread = run;
        for (uint32_t i = 0; i < sources; i++)
            weights[i] = run == 1 ? 1.0 : exp(-spread * drawn(5000 * run + i));
        check_frames(sources, run % 2 == 0 ? 0 : UINT64_C(700000000) * run, 2, 53);
    }
}

/* Positions near 2^62, with the smallest weight that is allowed. */
CleanTest(quota, keeps_shares_at_the_limits)
{
    weights[0] = 1.0;
    weights[1] = 1.2 / STK_QUOTA_RATIO_MAX;
    weights[2] = 0.1;
    check_frames(3, (UINT64_C(1) << 62) / (UINT64_C(2) * STK_QUOTA_RATIO_MAX) - 2, 1, 9973);
    weights[0] = 3.25e-200;
    check_frames(1, 0, 2, 1);
    for (uint32_t i = 0; i < 5; i++)
        weights[i] = 1e300 * (1 + i);
    check_frames(5, UINT64_C(1) << 50, 2, 1);
}

/* Decimal numbers are meant exactly: of ten samples, seven and three. */
CleanTest(quota, takes_decimals_exactly)
{
    static const double decimals[] = { 0.7, 0.3, 0.0, 1e-6 };
    struct stk_quota quota;
    cr_assert_eq(stk_quota_make(&quota, decimals, 2), 0);
    cr_assert_eq(quota.shares[0].part * 3, quota.shares[1].part * 7);
    stk_quota_free(&quota);
    cr_assert_eq(stk_quota_make(&quota, decimals, 4), 0);
    cr_assert_eq(quota.shares[0].part, 700000 * quota.shares[3].part);
    cr_assert_eq(quota.shares[2].part, 0);
    stk_quota_free(&quota);
}

CleanTest(quota, says_which_weight_is_wrong)
{
    static const struct {
        double weights[3];
        enum stk_quota_fault fault;
        uint32_t index;
    } rows[] = {
        { { 1, 2, 3 }, STK_QUOTA_FINE, 3 },
        { { 1, -1, 3 }, STK_QUOTA_NEGATIVE, 1 },
        { { 1, 1, (double)NAN }, STK_QUOTA_NEGATIVE, 2 },
        { { (double)INFINITY, 1, 1 }, STK_QUOTA_NEGATIVE, 0 },
        { { 0, 0, 0 }, STK_QUOTA_ALL_ZERO, 3 },
        { { 1, 0, 1e-9 }, STK_QUOTA_TOO_SMALL, 2 },
        { { 1e308, 1e308, 1e308 }, STK_QUOTA_FINE, 3 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t index = 77;
        cr_assert_eq(stk_quota_check(rows[i].weights, 3, &index), rows[i].fault, "row %zu", i);
        if (rows[i].fault != STK_QUOTA_FINE && rows[i].fault != STK_QUOTA_ALL_ZERO)
            cr_assert_eq(index, rows[i].index, "row %zu", i);
    }
}
