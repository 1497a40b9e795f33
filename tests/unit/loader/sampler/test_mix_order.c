/* test_mix_order.c - the order of a mix, without a loader: any rank of any world that begins at any
 * position has the ids that one run has there, whatever the weights changed to on the way; each
 * source's epochs are permutations of its samples.
 */
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/sampler/mix.h"
#include "support/leaks.h"

enum { SOURCES = 5, LENGTH = 9000, EPOCHS = 3, RESUMES = 10000, BATCH_MAX = 97, SEED = 11 };

static const uint64_t ends[SOURCES] = { 40, 1040, 1043, 3043, 12000 };
static uint64_t expected[EPOCHS * LENGTH];

/* A number below `bound` that follows from n. */
static uint64_t below(uint64_t n, uint64_t bound)
{
    return stk_mix64(n) % bound;
}

static void make_plan(struct stk_mix_plan *plan)
{
    static const double first[SOURCES] = { 0.05, 0.15, 0.01, 0.29, 0.5 };
    memset(plan, 0, sizeof(*plan));
    plan->source_count = SOURCES;
    plan->length = LENGTH;
    plan->id_ends = ends;
    stk_course_init(&plan->course, SOURCES);
    cr_assert_eq(stk_course_add(&plan->course, 0, first), 0);
}

/* Change the weights; one of the sources may stop. */
static void change(struct stk_course *course, uint64_t position, uint64_t n)
{
    double weights[SOURCES];
    for (uint32_t i = 0; i < SOURCES; i++)
        weights[i] = 0.01 + (double)below(n * 16 + i, 1000) / 1000.0;
    weights[n % SOURCES] = n % 2 == 0 ? 0.0 : weights[n % SOURCES];
    cr_assert_eq(stk_course_add(course, position, weights), 0);
}

/* Where change `n` of a course is. */
static uint64_t change_at(uint64_t n)
{
    return 1 + n * 2900 + below(n + 500, 2900);
}

static void take_ids(const struct stk_mix *mix, struct stk_mix_cursor *cursor, uint64_t position,
                     uint64_t stride, uint32_t n, uint64_t *ids)
{
    stoker_error error = { .message = "" };
    cr_assert_eq(
        stk_mix_ids(mix, cursor, position / LENGTH, position % LENGTH, stride, n, ids, &error), 0,
        "%s", error.message);
}

static void expect_run(const struct stk_mix *mix)
{
    struct stk_mix_cursor *cursor = stk_mix_cursor_make(mix);
    for (uint64_t at = 0; at < EPOCHS * LENGTH; at += 60)
        take_ids(mix, cursor, at, 1, 60, &expected[at]);
    stk_mix_cursor_free(cursor);
}

static void make_run(struct stk_mix *mix, struct stk_mix_plan *plan, bool shuffle)
{
    make_plan(plan);
    for (uint64_t n = 0; n < 4; n++)
        change(&plan->course, change_at(n), n);
    cr_assert_eq(stk_mix_make(mix, plan, SEED, shuffle), 0);
    for (uint64_t n = 4; n < 9; n++)
        change(&mix->course, change_at(n), n);
    expect_run(mix);
}

static void end_run(struct stk_mix *mix, struct stk_mix_plan *plan)
{
    stk_mix_free(mix);
    stk_course_free(&plan->course);
}

/* One leg of a run: a loader that knows the weights up to some change, and learns the others after
 * it began. */
static void resume_somewhere(const struct stk_mix_plan *plan, uint64_t n)
{
    const uint64_t known = 4 + below(n * 8, 6); /* changes */
    const uint64_t world = 1 + below(n * 8 + 1, 64);
    const uint64_t rank = below(n * 8 + 2, world);
    const uint32_t batch = 1 + (uint32_t)below(n * 8 + 3, BATCH_MAX);
    uint64_t position = below(n * 8 + 4, EPOCHS * LENGTH);
    uint64_t ids[BATCH_MAX];
    struct stk_mix mix;
    cr_assert_eq(stk_mix_make(&mix, plan, SEED, true), 0);
    for (uint64_t i = 4; i < known; i++)
        change(&mix.course, change_at(i), i);
    struct stk_mix_cursor *cursor = stk_mix_cursor_make(&mix);
    for (uint64_t i = known, begun = 0; begun < 2; begun++, position += world * batch) {
        const uint64_t end = position + world * batch;
        for (; i < 9 && change_at(i) < end; i++)
            change(&mix.course, change_at(i), i);
        if (end > EPOCHS * LENGTH || position / LENGTH != (end - 1) / LENGTH)
            break;
        take_ids(&mix, cursor, position + rank, world, batch, ids);
        for (uint32_t row = 0; row < batch; row++)
            if (ids[row] != expected[position + rank + row * world])
                cr_assert_fail("resume %llu: rank %llu of %llu, batch of %u, position %llu, row %u",
                               (unsigned long long)n, (unsigned long long)rank,
                               (unsigned long long)world, batch, (unsigned long long)position, row);
    }
    stk_mix_cursor_free(cursor);
    stk_mix_free(&mix);
}

CleanTest(mix_order, resumes_anywhere_in_any_world)
{
    struct stk_mix_plan plan;
    struct stk_mix mix;
    make_run(&mix, &plan, true);
    for (uint64_t n = 0; n < RESUMES; n++)
        resume_somewhere(&plan, n);
    end_run(&mix, &plan);
}

/* ---- a source's own epochs ------------------------------------------------------------------ */

static uint32_t source_of(uint64_t id)
{
    uint32_t source = 0;
    while (id >= ends[source])
        source++;
    return source;
}

/* All samples of a source that came, in order. Returns their number. */
static uint64_t samples_of(uint32_t source, uint64_t *ids)
{
    uint64_t count = 0;
    for (uint64_t at = 0; at < EPOCHS * LENGTH; at++)
        if (source_of(expected[at]) == source)
            ids[count++] = expected[at] - (source == 0 ? 0 : ends[source - 1]);
    return count;
}

/* Every complete epoch of the source has each of its samples once. Returns how many begin as the
 * one before. */
static uint32_t check_epochs(uint32_t source, const uint64_t *ids, uint64_t count, bool shuffle)
{
    const uint64_t size = ends[source] - (source == 0 ? 0 : ends[source - 1]);
    uint8_t *seen = stk_calloc(size, 1);
    uint32_t alike = 0;
    for (uint64_t at = 0; at < count; at++) {
        if (at % size == 0)
            memset(seen, 0, size);
        cr_assert_lt(ids[at], size);
        cr_assert_eq(seen[ids[at]]++, 0, "source %u, sample %llu comes again", source,
                     (unsigned long long)at);
        if (!shuffle)
            cr_assert_eq(ids[at], at % size);
        if (at >= size && at % size == size - 1)
            alike +=
                memcmp(&ids[at + 1 - size], &ids[at + 1 - 2 * size], size * sizeof(ids[0])) == 0;
    }
    stk_free(seen);
    return alike;
}

static void check_sources(bool shuffle)
{
    struct stk_mix_plan plan;
    struct stk_mix mix;
    uint64_t counts[SOURCES];
    uint64_t *ids = stk_calloc(EPOCHS * LENGTH, sizeof(*ids));
    make_run(&mix, &plan, shuffle);
    cr_assert_eq(stk_course_counts(&mix.course, EPOCHS * LENGTH, counts), 0);
    for (uint32_t source = 0; source < SOURCES; source++) {
        const uint64_t count = samples_of(source, ids);
        cr_assert_eq(count, counts[source]);
        const uint32_t alike = check_epochs(source, ids, count, shuffle);
        if (shuffle && source != 2) /* three samples have six orders only */
            cr_assert_eq(alike, 0);
    }
    cr_assert_gt(samples_of(0, ids), 20 * 40); /* many epochs of the small source */
    stk_free(ids);
    end_run(&mix, &plan);
}

CleanTest(mix_order, gives_each_source_epochs_of_its_own)
{
    check_sources(true);
    check_sources(false);
}

/* The same data twice: two permutations. */
CleanTest(mix_order, shuffles_equal_sources_apart)
{
    static const uint64_t twice[] = { 1000, 2000 };
    static const double halves[] = { 1, 1 };
    struct stk_mix_plan plan = { .source_count = 2, .length = 2000, .id_ends = twice };
    struct stk_mix mix;
    uint64_t ids[200];
    uint32_t alike = 0;
    stk_course_init(&plan.course, 2);
    cr_assert_eq(stk_course_add(&plan.course, 0, halves), 0);
    cr_assert_eq(stk_mix_make(&mix, &plan, SEED, true), 0);
    struct stk_mix_cursor *cursor = stk_mix_cursor_make(&mix);
    cr_assert_eq(stk_mix_ids(&mix, cursor, 0, 0, 1, 200, ids, NULL), 0);
    for (uint32_t at = 0; at < 200; at += 2)
        alike += ids[at] % 1000 == ids[at + 1] % 1000;
    cr_assert_lt(alike, 5);
    stk_mix_cursor_free(cursor);
    end_run(&mix, &plan);
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* Counts at any position are what one counts on the way there; a change begins a new account. */
CleanTest(mix_order, counts_sources_at_any_position)
{
    struct stk_mix_plan plan;
    struct stk_mix mix;
    uint64_t counts[SOURCES];
    uint64_t walked[SOURCES] = { 0 };
    make_run(&mix, &plan, false);
    for (uint64_t at = 0; at < EPOCHS * LENGTH; at++) {
        if (at % 411 == 0 || at == change_at(3) || at == change_at(7)) {
            cr_assert_eq(stk_course_counts(&mix.course, at, counts), 0);
            cr_assert_arr_eq(counts, walked, sizeof(counts), "position %llu",
                             (unsigned long long)at);
        }
        walked[source_of(expected[at])]++;
    }
    cr_assert_eq(stk_course_counts(&mix.course, UINT64_C(1000000000000), counts), 0);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < SOURCES; i++)
        sum += counts[i];
    cr_assert_eq(sum, UINT64_C(1000000000000));
    end_run(&mix, &plan);
}

CleanTest(mix_order, ends_at_two_to_the_62)
{
    struct stk_mix_plan plan;
    struct stk_mix mix;
    uint64_t id;
    stoker_error error = { .message = "" };
    make_plan(&plan);
    cr_assert_eq(stk_mix_make(&mix, &plan, SEED, true), 0);
    struct stk_mix_cursor *cursor = stk_mix_cursor_make(&mix);
    cr_assert_eq(stk_mix_ids(&mix, cursor, (UINT64_C(1) << 62) / LENGTH - 1, 0, 1, 1, &id, &error),
                 0);
    cr_assert_eq(stk_mix_ids(&mix, cursor, (UINT64_C(1) << 62) / LENGTH + 1, 0, 1, 1, &id, &error),
                 STOKER_ELIMIT);
    cr_assert_not_null(strstr(error.message, "2^62"));
    cr_assert_eq(stk_mix_ids(&mix, cursor, UINT64_MAX - 1, 0, 1, 1, &id, &error), STOKER_ELIMIT);
    stk_mix_cursor_free(cursor);
    end_run(&mix, &plan);
}
