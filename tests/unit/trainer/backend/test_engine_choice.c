/* test_engine_choice.c - which engine is taken, from made-up ones that keep count. */
#include "support/leaks.h"
#include "trainer/backend/cuda/engine/choice.h"

/* What one engine is, and how it answers. */
struct engine {
    struct stk_engine_notes notes;
    uint64_t workspace_bytes;
    double seconds;
    int build_rc, run_rc, time_rc;
};

struct shelf {
    const struct engine *engines;
    uint32_t built, ran, timed; /* calls */
    uint32_t last;
    struct stk_engine_failures failures;
    bool tries; /* engines run before they are taken */
};

static void notes(void *context, uint32_t index, struct stk_engine_notes *out)
{
    *out = ((const struct shelf *)context)->engines[index].notes;
}

static int build(void *context, uint32_t index, uint64_t *workspace_bytes, stoker_error *error)
{
    struct shelf *const shelf = context;
    (void)snprintf(error->message, sizeof(error->message), "cause of %d", (int)index);
    shelf->built++;
    shelf->last = index;
    *workspace_bytes = shelf->engines[index].workspace_bytes;
    return shelf->engines[index].build_rc;
}

static int time_it(void *context, double *seconds, stoker_error *error)
{
    struct shelf *const shelf = context;
    (void)error;
    shelf->timed++;
    *seconds = shelf->engines[shelf->last].seconds;
    return shelf->engines[shelf->last].time_rc;
}

static int run_it(void *context, stoker_error *error)
{
    struct shelf *const shelf = context;
    const struct engine *const engine = &shelf->engines[shelf->last];
    shelf->ran++;
    (void)snprintf(error->message, sizeof(error->message), "cause %d", (int)engine->notes.engine);
    return engine->run_rc;
}

static int choose(struct stk_engine_choice *out, struct shelf *shelf, uint32_t count,
                  const struct stk_engine_rules *rules, bool float32, stoker_error *error)
{
    const struct stk_engine_source source = {
        .context = shelf,
        .count = count,
        .notes = notes,
        .build = build,
        .run = shelf->tries ? run_it : NULL,
        .time = time_it,
        .failures = &shelf->failures,
    };
    return stk_engine_choose(out, &source, rules, float32, error);
}

#define LIMIT 1000

CleanTest(engine_choice, takes_the_first_that_builds_and_fits)
{
    const struct engine engines[] = {
        { .notes.engine = 7, .workspace_bytes = LIMIT + 1 },
        { .notes.engine = 8, .build_rc = STOKER_ENOTSUP },
        { .notes.engine = 9, .workspace_bytes = LIMIT },
        { .notes.engine = 10 },
    };
    struct shelf shelf = { .engines = engines };
    const struct stk_engine_rules rules = { .workspace_bytes_max = LIMIT };
    struct stk_engine_choice choice;
    cr_assert_eq(choose(&choice, &shelf, 4, &rules, false, NULL), STOKER_OK);
    cr_assert_eq(choice.index, 2);
    cr_assert_eq(choice.engine, 9);
    cr_assert_eq(choice.workspace_bytes, LIMIT);
    cr_assert_eq(choice.timed, 0);
    cr_assert_eq(shelf.built, 3, "the fourth is not looked at");
    cr_assert_eq(shelf.timed, 0);
}

CleanTest(engine_choice, deterministic_leaves_out_those_that_are_not)
{
    const struct engine engines[] = {
        { .notes = { .engine = 1, .nondeterministic = true } },
        { .notes = { .engine = 2, .tensor_cores = true } },
    };
    struct shelf shelf = { .engines = engines };
    struct stk_engine_rules rules = { .workspace_bytes_max = LIMIT };
    struct stk_engine_choice choice;
    cr_assert_eq(choose(&choice, &shelf, 2, &rules, true, NULL), STOKER_OK);
    cr_assert_eq(choice.engine, 1);
    rules.deterministic = true;
    cr_assert_eq(choose(&choice, &shelf, 2, &rules, true, NULL), STOKER_OK);
    cr_assert_eq(choice.engine, 2);
}

CleanTest(engine_choice, full_float32_is_about_float32_alone)
{
    const struct stk_engine_rules rules = { .full_float32 = true };
    const struct stk_engine_notes less[] = { { .tensor_cores = true },
                                             { .reduced = true },
                                             { .transformed = true } };
    for (int i = 0; i < 3; i++) {
        cr_assert_not(stk_engine_allowed(&rules, &less[i], true));
        cr_assert(stk_engine_allowed(&rules, &less[i], false));
    }
    const struct stk_engine_notes plain = { .nondeterministic = true, .compiled_when_built = true };
    cr_assert(stk_engine_allowed(&rules, &plain, true));
}

CleanTest(engine_choice, benchmark_takes_the_fastest_of_k_and_the_earlier_of_equals)
{
    const struct engine engines[] = {
        { .notes.engine = 1, .seconds = 5 },
        { .notes.engine = 2, .seconds = 1, .workspace_bytes = LIMIT + 1 },
        { .notes.engine = 3, .seconds = 3, .workspace_bytes = 30 },
        { .notes.engine = 4, .seconds = 3 },
        { .notes.engine = 5, .seconds = 2 },
    };
    const struct {
        uint32_t benchmark, timed;
        int64_t engine;
    } cases[] = { { 1, 1, 1 }, { 2, 2, 3 }, { 3, 3, 3 }, { 4, 4, 5 }, { 16, 4, 5 } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shelf shelf = { .engines = engines };
        const struct stk_engine_rules rules = { .workspace_bytes_max = LIMIT,
                                                .benchmark = cases[i].benchmark };
        struct stk_engine_choice choice;
        cr_assert_eq(choose(&choice, &shelf, 5, &rules, false, NULL), STOKER_OK);
        cr_assert_eq(choice.engine, cases[i].engine, "of %u: %d", cases[i].benchmark,
                     (int)choice.engine);
        cr_assert_eq(choice.timed, cases[i].timed);
        cr_assert_eq(shelf.timed, cases[i].timed);
    }
}

CleanTest(engine_choice, only_three_compiled_ones_are_timed)
{
    struct engine engines[8];
    memset(engines, 0, sizeof(engines));
    for (int i = 0; i < 8; i++)
        engines[i] = (struct engine){ .notes = { .engine = i, .compiled_when_built = i < 6 },
                                      .seconds = 10 - i };
    struct shelf shelf = { .engines = engines };
    const struct stk_engine_rules rules = { .workspace_bytes_max = LIMIT, .benchmark = 16 };
    struct stk_engine_choice choice;
    cr_assert_eq(choose(&choice, &shelf, 8, &rules, false, NULL), STOKER_OK);
    cr_assert_eq(shelf.built, 5, "three compiled, two that were there");
    cr_assert_eq(choice.engine, 7);
}

CleanTest(engine_choice, none_is_an_error_that_says_why)
{
    const struct engine engines[] = {
        { .notes = { .engine = 1, .nondeterministic = true } },
        { .notes.engine = 2, .build_rc = STOKER_ENOTSUP },
        { .notes.engine = 3, .workspace_bytes = 5000 },
        { .notes.engine = 4, .workspace_bytes = 4000 },
    };
    struct shelf shelf = { .engines = engines };
    const struct stk_engine_rules rules = { .workspace_bytes_max = LIMIT, .deterministic = true };
    struct stk_engine_choice choice = { .index = 77 };
    stoker_error error = { 0 };
    cr_assert_eq(choose(&choice, &shelf, 4, &rules, false, &error), STOKER_ENOTSUP);
    cr_assert_eq(choice.index, 77, "untouched");
    cr_assert(strstr(error.message,
                     "of 4 engines, 1 are not allowed, 1 are not built here, 0 failed, 2 need "
                     "more than 1000 bytes (4000 at the least)") != NULL,
              "%s", error.message);
    cr_assert_eq(choose(&choice, &shelf, 0, &rules, false, &error), STOKER_ENOTSUP);
}

CleanTest(engine_choice, other_failures_are_not_hidden)
{
    struct engine engines[] = { { .notes.engine = 1, .seconds = 1 },
                                { .notes.engine = 2, .seconds = 2 } };
    struct shelf shelf = { .engines = engines };
    const struct stk_engine_rules rules = { .workspace_bytes_max = LIMIT, .benchmark = 2 };
    struct stk_engine_choice choice;
    engines[1].build_rc = STOKER_ENOMEM;
    cr_assert_eq(choose(&choice, &shelf, 2, &rules, false, NULL), STOKER_ENOMEM);
    engines[1].build_rc = STOKER_OK;
    engines[1].time_rc = STOKER_EDEVICE;
    cr_assert_eq(choose(&choice, &shelf, 2, &rules, false, NULL), STOKER_EDEVICE);
}

/* cuDNN answers INTERNAL_ERROR or ALLOC_FAILED for single engines, too. */
CleanTest(engine_choice, one_that_fails_when_built_is_replaced_by_the_next)
{
    const struct engine engines[] = { { .notes.engine = 5, .build_rc = STOKER_EDEVICE },
                                      { .notes.engine = 6, .build_rc = STOKER_EDEVICE },
                                      { .notes.engine = 7 } };
    struct shelf shelf = { .engines = engines, .tries = true };
    const struct stk_engine_rules rules = { .workspace_bytes_max = LIMIT };
    struct stk_engine_choice choice;
    stoker_error error = { 0 };
    cr_assert_eq(choose(&choice, &shelf, 3, &rules, false, &error), STOKER_OK);
    cr_assert_eq(choice.engine, 7);
    cr_assert_eq(shelf.failures.engines, 3);
    cr_assert_str_eq(shelf.failures.first.message, "engine 5 did not build: cause of 0");
    cr_assert_eq(choose(&choice, &shelf, 2, &rules, false, &error), STOKER_ENOTSUP);
    cr_assert_not_null(strstr(error.message, "2 failed"), "%s", error.message);
    cr_assert_eq(stk_engine_result(STOKER_ENOTSUP, &shelf.failures, &error), STOKER_EDEVICE);
}

CleanTest(engine_choice, one_that_fails_when_run_is_replaced_by_the_next)
{
    const struct engine engines[] = {
        { .notes.engine = 7, .run_rc = STOKER_ENOTSUP },
        { .notes.engine = 8, .workspace_bytes = LIMIT + 1 },
        { .notes.engine = 9, .run_rc = STOKER_ENOTSUP },
        { .notes.engine = 10 },
        { .notes.engine = 11 },
    };
    struct shelf shelf = { .engines = engines, .tries = true };
    const struct stk_engine_rules rules = { .workspace_bytes_max = LIMIT };
    struct stk_engine_choice choice;
    cr_assert_eq(choose(&choice, &shelf, 5, &rules, false, NULL), STOKER_OK);
    cr_assert_eq(choice.engine, 10);
    cr_assert_eq(shelf.ran, 3, "the fifth is not run");
    cr_assert_eq(shelf.failures.engines, 1 << 0 | 1 << 2);
    cr_assert_str_eq(shelf.failures.first.message, "engine 7 did not run: cause 7");
    cr_assert_eq(choose(&choice, &shelf, 5, &rules, false, NULL), STOKER_OK);
    cr_assert_eq(choice.engine, 10);
    cr_assert_eq(shelf.ran, 4, "those that failed are not tried again");
}

CleanTest(engine_choice, if_none_runs_the_first_failure_is_reported)
{
    const struct engine engines[] = {
        { .notes.engine = 7, .run_rc = STOKER_ENOTSUP },
        { .notes.engine = 8, .run_rc = STOKER_ENOTSUP },
    };
    struct shelf shelf = { .engines = engines, .tries = true };
    const struct stk_engine_rules rules = { .workspace_bytes_max = LIMIT };
    struct stk_engine_choice choice = { .index = 77 };
    stoker_error error = { 0 };
    cr_assert_eq(choose(&choice, &shelf, 2, &rules, false, &error), STOKER_ENOTSUP);
    cr_assert_not_null(strstr(error.message, "2 failed"), "%s", error.message);
    cr_assert_eq(choice.index, 77, "untouched");
    cr_assert_eq(stk_engine_result(STOKER_ENOTSUP, &shelf.failures, &error), STOKER_EDEVICE);
    cr_assert_eq(error.code, STOKER_EDEVICE);
    cr_assert_not_null(strstr(error.message, "engine 7 did not run: cause 7"), "%s", error.message);
    cr_assert_eq(stk_engine_result(STOKER_OK, &shelf.failures, &error), STOKER_OK);
    shelf.failures = (struct stk_engine_failures){ .engines = 0 };
    cr_assert_eq(stk_engine_result(STOKER_ENOTSUP, &shelf.failures, &error), STOKER_ENOTSUP);
}

CleanTest(engine_choice, a_lost_device_ends_the_search)
{
    const struct engine engines[] = {
        { .notes.engine = 7, .run_rc = STOKER_EDEVICE },
        { .notes.engine = 8 },
    };
    struct shelf shelf = { .engines = engines, .tries = true };
    const struct stk_engine_rules rules = { .workspace_bytes_max = LIMIT };
    struct stk_engine_choice choice;
    stoker_error error = { 0 };
    cr_assert_eq(choose(&choice, &shelf, 2, &rules, false, &error), STOKER_EDEVICE);
    cr_assert_str_eq(error.message, "cause 7");
    cr_assert_eq(shelf.ran, 1);
    cr_assert_eq(shelf.failures.engines, 0);
}

CleanTest(engine_choice, a_benchmark_leaves_out_those_that_do_not_run)
{
    const struct engine engines[] = {
        { .notes.engine = 7, .seconds = 1, .time_rc = STOKER_ENOTSUP },
        { .notes.engine = 8, .seconds = 3 },
        { .notes.engine = 9, .seconds = 2 },
    };
    struct shelf shelf = { .engines = engines, .tries = true };
    const struct stk_engine_rules rules = { .workspace_bytes_max = LIMIT, .benchmark = 8 };
    struct stk_engine_choice choice;
    cr_assert_eq(choose(&choice, &shelf, 3, &rules, false, NULL), STOKER_OK);
    cr_assert_eq(choice.engine, 9);
    cr_assert_float_eq(choice.seconds, 2, 0);
    cr_assert_eq(choice.timed, 2);
    cr_assert_eq(shelf.ran, 0, "timing runs them");
    cr_assert_eq(shelf.failures.engines, 1 << 0);
    shelf.failures = (struct stk_engine_failures){ .engines = 0 };
    cr_assert_eq(choose(&choice, &shelf, 1, &rules, false, NULL), STOKER_ENOTSUP);
}
