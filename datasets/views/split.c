/* split.c - a view of one side of a random split.
 *
 *   permutation   | test side          | training side         |   of the ids, or of each class
 *                 0                    test samples                  count
 *
 * The share of the test side is a fraction of 2^64, so that every machine computes the same number
 * of samples. Stratified, class c has round(share x samples of classes 0..c) - round(share x
 * samples of classes 0..c-1) test samples: within one sample of its share, and all together as many
 * as without classes.
 */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "datasets/views/classes.h"
#include "loader/base/memory/memory.h"
#include "loader/base/rng.h"
#include "loader/base/struct_size.h"

#define SPLIT_STREAM UINT64_C(0x73706c6974) /* "split": not the order in which a loader shuffles */

__extension__ typedef unsigned __int128 wide;

/* Returns `share` (in units of 2^-64) of count, rounded to the nearest. */
static uint64_t tests_of(uint64_t share, uint64_t count)
{
    const wide half = (wide)1 << 63;
    return (uint64_t)(((wide)share * count + half) >> 64);
}

static uint64_t share_of(double test)
{
    return (uint64_t)ldexp(test, 64); /* exact: below 1, and what is below 2^-64 is cut */
}

/* Returns the number of test samples, with at least one sample on either side; count >= 2. */
static uint64_t test_samples(uint64_t share, uint64_t count)
{
    const uint64_t test = tests_of(share, count);
    return test == 0 ? 1 : test == count ? count - 1 : test;
}

static void begin_permutation(struct stk_sampler *permutation, struct stk_sampler_order *order,
                              uint64_t count, uint64_t seed, uint64_t number)
{
    stk_sampler_init(permutation, count, stk_mix64(seed ^ SPLIT_STREAM), true);
    stk_sampler_begin(permutation, number, order);
}

/* ---- plain ---------------------------------------------------------------------- */

static uint32_t take_permuted(const struct stk_view *view, const uint64_t *ids, uint32_t count,
                              uint64_t *mapped, const struct stk_view_source **source)
{
    const uint32_t taken = count < STK_VIEW_RUN_MAX ? count : STK_VIEW_RUN_MAX;
    for (uint32_t i = 0; i < taken; i++)
        mapped[i] = view->first_position + ids[i];
    stk_sampler_map(&view->permutation, &view->order, mapped, taken, mapped);
    *source = view->sources;
    return taken;
}

static void split_plainly(struct stk_view *view, const stoker_split *split)
{
    const uint64_t all = view->info.count;
    const uint64_t test = test_samples(share_of(split->test), all);
    begin_permutation(&view->permutation, &view->order, all, split->seed, 0);
    view->first_position = split->side == STOKER_SIDE_TEST ? 0 : test;
    view->info.count = split->side == STOKER_SIDE_TEST ? test : all - test;
    view->take_run = take_permuted;
}

/* ---- stratified ------------------------------------------------------------------- */

struct strata {
    const struct stk_view_classes *classes;
    uint64_t *tests; /* [classes] test samples */
    /* bits: 1 = the k-th sample of a class is for testing; classes one after the other */
    uint8_t *sides;
    uint64_t *seen; /* [classes] index of the class's next sample in `sides` */
    bool want_test;
    uint64_t *ids; /* [id_count] samples of the side so far */
    uint64_t id_count;
};

static bool is_test(const struct strata *strata, uint64_t index)
{
    return (strata->sides[index / 8] >> (index % 8) & 1U) != 0;
}

static int take_side(void *context, uint64_t first, const int64_t *labels, uint32_t count)
{
    struct strata *strata = context;
    for (uint32_t i = 0; i < count; i++)
        if (is_test(strata, strata->seen[labels[i]]++) == strata->want_test)
            strata->ids[strata->id_count++] = first + i;
    return STOKER_OK;
}

/* Mark the test samples of one class, which begins at `begin`, by a permutation of its samples. */
static void mark_class(struct strata *strata, uint64_t number, uint64_t begin, uint64_t seed)
{
    struct stk_sampler permutation;
    struct stk_sampler_order order;
    const uint64_t samples = strata->classes->counts[number];
    if (samples == 0)
        return;
    begin_permutation(&permutation, &order, samples, seed, number + 1);
    for (uint64_t i = 0; i < strata->tests[number]; i++) {
        uint64_t at = i;
        stk_sampler_map(&permutation, &order, &at, 1, &at);
        strata->sides[(begin + at) / 8] |= (uint8_t)(1U << ((begin + at) % 8));
    }
}

/* Move a test sample from or to the largest class that allows it, until the total is right: the
 * rule for at least one sample on either side. */
static uint64_t apportion(struct strata *strata, uint64_t share, uint64_t all)
{
    const struct stk_view_classes *classes = strata->classes;
    const uint64_t wanted = test_samples(share, all);
    uint64_t before = 0;
    uint64_t largest = 0;
    uint64_t given = 0;
    for (uint64_t i = 0; i < classes->count; i++) {
        const uint64_t after = before + classes->counts[i];
        strata->tests[i] = tests_of(share, after) - tests_of(share, before);
        given += strata->tests[i];
        before = after;
        largest = classes->counts[i] > classes->counts[largest] ? i : largest;
    }
    strata->tests[largest] += wanted - given; /* 0, 1, or -1 in two's complement */
    return wanted;
}

static int take_memory(struct strata *strata, uint64_t all)
{
    const size_t classes = (size_t)strata->classes->count;
    strata->tests = stk_calloc(classes, sizeof(strata->tests[0]));
    strata->seen = stk_calloc(classes, sizeof(strata->seen[0]));
    strata->sides = stk_calloc((size_t)(all / 8 + 1), 1);
    return strata->tests == NULL || strata->seen == NULL || strata->sides == NULL ? STOKER_ENOMEM
                                                                                  : STOKER_OK;
}

static int choose_strata(struct stk_view *view, const struct stk_view_making *making,
                         const stoker_split *split, struct strata *strata)
{
    const uint64_t all = view->info.count;
    int rc = take_memory(strata, all);
    if (rc != STOKER_OK)
        return stk_view_refuse(making, rc, "%llu samples", (unsigned long long)all);
    const uint64_t test = apportion(strata, share_of(split->test), all);
    uint64_t begin = 0;
    for (uint64_t i = 0; i < strata->classes->count; i++) {
        mark_class(strata, i, begin, split->seed);
        strata->seen[i] = begin;
        begin += strata->classes->counts[i];
    }
    const uint64_t count = strata->want_test ? test : all - test;
    strata->ids = stk_calloc((size_t)count, sizeof(strata->ids[0]));
    if (strata->ids == NULL)
        return stk_view_refuse(making, STOKER_ENOMEM, "%llu ids", (unsigned long long)count);
    rc = stk_view_classes_visit(making, view->sources[0].dataset, take_side, strata);
    assert(rc != STOKER_OK || strata->id_count == count);
    return rc;
}

static int split_by_class(struct stk_view *view, const struct stk_view_making *making,
                          const stoker_split *split)
{
    struct stk_view_classes classes;
    int rc = stk_view_classes_count(&classes, making, view->sources[0].dataset);
    if (rc != STOKER_OK)
        return rc;
    struct strata strata = { .classes = &classes, .want_test = split->side == STOKER_SIDE_TEST };
    rc = choose_strata(view, making, split, &strata);
    if (rc == STOKER_OK)
        stk_view_use_ids(view, strata.ids, strata.id_count);
    else
        stk_free(strata.ids);
    stk_free(strata.tests);
    stk_free(strata.seen);
    stk_free(strata.sides);
    stk_view_classes_free(&classes);
    return rc;
}

/* ---- the call ----------------------------------------------------------------------- */

static int check_split(const struct stk_view_making *making, const stoker_dataset *dataset,
                       const stoker_split *split)
{
    const uint64_t count = stoker_dataset_get_info(dataset)->count;
    if (!(split->test > 0.0 && split->test < 1.0))
        return stk_view_refuse(making, STOKER_EINVAL, "test is %g, but must be above 0 and below 1",
                               split->test);
    if ((unsigned)split->side > STOKER_SIDE_TEST)
        return stk_view_refuse(making, STOKER_EINVAL, "side %d is not TRAIN or TEST",
                               (int)split->side);
    if (count > STK_SAMPLER_COUNT_MAX)
        return stk_view_refuse(making, STOKER_ELIMIT, "%llu samples exceed 2^62",
                               (unsigned long long)count);
    if (count < 2)
        return stk_view_refuse(making, STOKER_EEMPTY,
                               "one sample cannot be split: each side needs one");
    return STOKER_OK;
}

int stoker_dataset_split(stoker_dataset **out, stoker_dataset *dataset, const stoker_split *given,
                         stoker_error *error)
{
    const struct stk_view_making making = { .name = "split", .error = error };
    struct stk_view *view = NULL;
    stoker_split full = STOKER_SPLIT_INIT;
    const stoker_split *split = &full;
    if (out == NULL || dataset == NULL || given == NULL)
        return stk_view_refuse(&making, STOKER_EINVAL, "out, data set or split is NULL");
    if (!stk_struct_fits(given, STK_SIZE_UP_TO(stoker_split, stratified), sizeof(full)))
        return stk_view_refuse(&making, STOKER_EINVAL, STK_STRUCT_REFUSAL, "stoker_split",
                               given->struct_size, sizeof(full), "STOKER_SPLIT_INIT");
    stk_struct_read(&full, sizeof(full), given, given->struct_size);
    int rc = check_split(&making, dataset, split);
    if (rc == STOKER_OK)
        rc = stk_view_make(&view, &making, &dataset, 1);
    if (rc != STOKER_OK)
        return rc;
    if (split->stratified) {
        rc = split_by_class(view, &making, split);
        if (rc != STOKER_OK) {
            stk_view_free(view);
            return rc;
        }
    } else {
        split_plainly(view, split);
    }
    uint64_t key = stk_view_mix(3, share_of(split->test));
    key = stk_view_mix(key, split->seed);
    key = stk_view_mix(key, (uint64_t)split->side << 1 | split->stratified);
    return stk_view_finish(out, &making, view, key);
}
