/* test_bad_samples.c - samples that cannot be delivered: fail, skip or substitute, always reported,
 * never a wrong byte, and the same whichever thread works.
 */
#include <errno.h>
#include <fcntl.h>

#include "loader/pipeline/report/bad_samples.h"
#include "support/leaks.h"
#include "support/runs/scripted_reader.h"
#include "support/sets/made_set.h"

enum { COUNT = 101, ROW = 40 };

/* ---- a run with all that it reports ---- */

struct outcome {
    struct stk_run run;
    uint64_t bad_samples; /* by stats */
    uint32_t reports;
    stoker_error report[64];
    stoker_error error; /* that ended it */
};

static void play(const stoker_dataset *dataset, const stoker_loader_options *options,
                 struct outcome *outcome)
{
    stoker_loader *loader = NULL;
    stoker_stats stats = { .struct_size = sizeof(stats) };
    memset(outcome, 0, sizeof(*outcome));
    cr_assert_eq(stoker_loader_create(&loader, dataset, options, NULL), STOKER_OK);
    stk_run_on(loader, &outcome->run, UINT32_MAX);
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    outcome->bad_samples = stats.bad_samples;
    while (outcome->reports < 64 &&
           stoker_loader_bad_sample(loader, outcome->reports, &outcome->report[outcome->reports]) ==
               STOKER_OK)
        outcome->reports++;
    if (outcome->run.rc < 0) {
        outcome->error = *stoker_loader_error(loader);
        stoker_batch batch = STOKER_BATCH_INIT;
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), outcome->run.rc, "it stays");
        cr_assert_eq(stoker_loader_next(loader, &batch, -1), outcome->run.rc);
    } else {
        cr_assert_null(stoker_loader_error(loader));
    }
    stoker_loader_destroy(&loader);
}

static void expect_same_report(const stoker_error *a, const stoker_error *b)
{
    cr_assert_eq(a->code, b->code);
    cr_assert_eq(a->stage, b->stage);
    cr_assert_eq(a->os_errno, b->os_errno);
    cr_assert_eq(a->sample, b->sample);
    cr_assert_eq(a->offset, b->offset);
    cr_assert_str_eq(a->path, b->path);
    cr_assert_str_eq(a->message, b->message);
}

static void expect_same(const struct outcome *a, const struct outcome *b)
{
    cr_assert(stk_runs_equal(&a->run, &b->run), "rc %d and %d, batches %u and %u", a->run.rc,
              b->run.rc, a->run.batches, b->run.batches);
    cr_assert_eq(a->bad_samples, b->bad_samples);
    cr_assert_eq(a->reports, b->reports);
    for (uint32_t i = 0; i < a->reports; i++)
        expect_same_report(&a->report[i], &b->report[i]);
    expect_same_report(&a->error, &b->error);
}

enum { ROUTES = 9 };

/* The same by route number `route`: 1, 3 or 8 workers, with any cache. */
static void play_by_route(const stoker_dataset *dataset, stoker_loader_options options,
                          size_t route, const struct outcome *expected)
{
    static struct outcome other;
    static const int32_t workers[] = { 1, 3, 8 };
    options.num_workers = workers[route / 3];
    options.cache = (stoker_cache)(STOKER_CACHE_NONE + (int)(route % 3));
    play(dataset, &options, &other);
    expect_same(expected, &other);
}

/* Without workers, and the same by every route; the first is left in *outcome. */
static void play_all(const stoker_dataset *dataset, stoker_loader_options options,
                     struct outcome *outcome)
{
    options.num_workers = 0;
    play(dataset, &options, outcome);
    for (size_t route = 0; route < ROUTES; route++)
        play_by_route(dataset, options, route, outcome);
}

/* ---- kinds of samples ---- */

static enum stk_made_kind every_kind(uint64_t id)
{
    static const enum stk_made_kind kinds[] = { STK_MADE_RAW, STK_MADE_ENCODED, STK_MADE_MEMORY,
                                                STK_MADE_DRAWN };
    return kinds[id % 4];
}

static enum stk_made_kind some_broken(uint64_t id)
{
    return id % 10 == 3 ? STK_MADE_BROKEN : every_kind(id);
}

static enum stk_made_kind most_broken(uint64_t id)
{
    return id % 10 < 7 ? STK_MADE_BROKEN : every_kind(id);
}

static enum stk_made_kind some_short(uint64_t id)
{
    return id % 10 == 3 ? STK_MADE_SHORT : STK_MADE_RAW;
}

static enum stk_made_kind some_stubs(uint64_t id)
{
    return id % 10 == 3 ? STK_MADE_STUB : STK_MADE_MEMORY;
}

static enum stk_made_kind all_but_one_broken(uint64_t id)
{
    return id == 50 ? STK_MADE_RAW : STK_MADE_BROKEN;
}

static enum stk_made_kind all_broken(uint64_t id)
{
    (void)id;
    return STK_MADE_BROKEN;
}

static enum stk_made_kind all_raw(uint64_t id)
{
    (void)id;
    return STK_MADE_RAW;
}

/* Rows are right, and no bad id is among them. */
static void check_rows(const struct stk_made_set *set, const stoker_loader_options *options)
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_create(&loader, set->dataset, options, NULL), STOKER_OK);
    for (int rc; (rc = stoker_loader_next(loader, &batch, -1)) != STOKER_FINISHED;) {
        if (rc == STOKER_EPOCH_END)
            continue;
        cr_assert_eq(rc, STOKER_OK);
        cr_assert(stk_made_set_matches(set, &batch), "cache %s epoch %d batch %d",
                  stoker_cache_name(options->cache), (int)batch.epoch, (int)batch.index);
        for (uint32_t row = 0; row < batch.count; row++) {
            cr_assert_neq(set->kind_of(batch.ids[row]), STK_MADE_SHORT);
            cr_assert_neq(set->kind_of(batch.ids[row]), STK_MADE_STUB);
        }
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
}

static void check_rows_all(const struct stk_made_set *set, stoker_loader_options options)
{
    for (int32_t workers = 0; workers <= 3; workers++)
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++) {
            options.num_workers = workers;
            options.cache = (stoker_cache)cache;
            options.epochs = 3; /* the later ones from the cache */
            check_rows(set, &options);
        }
}

CleanTest(bad, a_set_of_every_kind_of_sample_is_read_right)
{
    struct stk_made_set set = { .count = COUNT, .row_bytes = ROW, .kind_of = every_kind };
    cr_assert(stk_made_set_open(&set));
    check_rows_all(&set, stk_small_options());
    stk_made_set_close(&set);
}

/* A raw sample of a wrong size stays bad when it comes from the cache. */
static void check_wrong_sizes(stk_made_kind_of *kind_of)
{
    static struct outcome outcome;
    struct stk_made_set set = { .count = COUNT, .row_bytes = ROW, .kind_of = kind_of };
    cr_assert(stk_made_set_open(&set));
    stoker_loader_options options = stk_small_options(.on_bad_sample = STOKER_ON_BAD_SKIP);
    check_rows_all(&set, options);
    options.epochs = 3;
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.bad_samples, 3 * 10);
    cr_assert_eq(outcome.run.samples, 3 * (COUNT - 10));
    cr_assert_eq(outcome.report[0].code, STOKER_EFORMAT);
    stk_made_set_close(&set);
    stk_test_check_leaks();
}

Test(bad, a_sample_of_wrong_size_is_bad_in_each_epoch)
{
    check_wrong_sizes(some_short);
}

Test(bad, a_sample_of_wrong_size_in_memory_is_bad_in_each_epoch)
{
    check_wrong_sizes(some_stubs);
}

/* ---- policies ---- */

CleanTest(bad, fail_ends_the_run_with_the_first_bad_row)
{
    static struct outcome outcome;
    struct stk_made_set set = { .count = COUNT, .row_bytes = ROW, .kind_of = some_broken };
    cr_assert(stk_made_set_open(&set));
    stoker_loader_options options = stk_small_options(.shuffle = false);
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.run.rc, STOKER_ECORRUPT);
    cr_assert_eq(outcome.run.batches, 0);
    cr_assert_eq(outcome.error.sample, 3);
    cr_assert_eq(outcome.error.stage, STOKER_STAGE_DECODE);
    cr_assert_not_null(strstr(outcome.error.message, "sample 3 is broken?[2J"), "%s",
                       outcome.error.message);
    cr_assert_eq(outcome.reports, 0);
    options.shuffle = true;
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.error.sample % 10, 3);
    stk_made_set_close(&set);
}

CleanTest(bad, skip_leaves_out_and_reports)
{
    static struct outcome outcome;
    struct stk_made_set set = { .count = COUNT, .row_bytes = ROW, .kind_of = some_broken };
    cr_assert(stk_made_set_open(&set));
    stoker_loader_options options = stk_small_options(.on_bad_sample = STOKER_ON_BAD_SKIP);
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.run.rc, STOKER_FINISHED);
    cr_assert_eq(outcome.run.batches, 14);
    cr_assert_eq(outcome.run.samples, 2 * (COUNT - 10));
    cr_assert_eq(outcome.bad_samples, 20);
    cr_assert_eq(outcome.reports, 10); /* in both epochs the same ones */
    bool told[COUNT] = { false };
    for (uint32_t i = 0; i < outcome.reports; i++) {
        cr_assert_eq(outcome.report[i].code, STOKER_ECORRUPT);
        cr_assert_eq(outcome.report[i].sample % 10, 3);
        cr_assert_not(told[outcome.report[i].sample]);
        told[outcome.report[i].sample] = true;
    }
    check_rows_all(&set, options);
    stk_made_set_close(&set);
}

CleanTest(bad, substitute_keeps_the_shape_and_draws_alike)
{
    static struct outcome outcome;
    struct stk_made_set set = { .count = COUNT, .row_bytes = ROW, .kind_of = some_broken };
    cr_assert(stk_made_set_open(&set));
    stoker_loader_options options = stk_small_options(.on_bad_sample = STOKER_ON_BAD_SUBSTITUTE);
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.run.rc, STOKER_FINISHED);
    cr_assert_eq(outcome.run.samples, 2 * COUNT);
    cr_assert_eq(outcome.bad_samples, 20);
    for (uint32_t i = 0; i < outcome.reports; i++)
        cr_assert_eq(outcome.report[i].sample % 10, 3,
                     "the report names the bad one, not its substitute");
    check_rows_all(&set, options);
    stk_made_set_close(&set);
}

/* If most samples are bad, most substitutes are, too: the report names the sample whose turn it
 * was. */
CleanTest(bad, a_bad_substitute_is_not_reported)
{
    static struct outcome outcome;
    struct stk_made_set set = { .count = COUNT, .row_bytes = ROW, .kind_of = most_broken };
    cr_assert(stk_made_set_open(&set));
    stoker_loader_options options =
        stk_small_options(.on_bad_sample = STOKER_ON_BAD_SUBSTITUTE, .shuffle = false);
    options.epochs = 4; /* what was tried for one batch is not counted against the next */
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.run.rc, STOKER_FINISHED);
    cr_assert_eq(outcome.run.samples, 4 * COUNT);
    cr_assert_eq(outcome.bad_samples, 4 * 71);
    cr_assert_eq(outcome.reports, 64);
    for (uint32_t i = 0; i < outcome.reports; i++)
        cr_assert_eq(outcome.report[i].sample, i / 7 * 10 + i % 7);
    stk_made_set_close(&set);
}

/* Over positions, epochs, attempts and seeds: every sample is the substitute about equally
 * often. */
CleanTest(bad, substitutes_are_drawn_from_all_samples)
{
    enum { KINDS = 4, DRAWS = 10000, SAMPLES = 100 };
    for (int kind = 0; kind < KINDS; kind++) {
        uint32_t drawn[SAMPLES] = { 0 };
        double chi = 0;
        for (uint64_t i = 0; i < DRAWS; i++) {
            const uint64_t id =
                stk_bad_samples_substitute(kind == 0 ? i : 1, kind == 1 ? i : 1, kind == 2 ? i : 1,
                                           kind == 3 ? (uint32_t)i : 1, SAMPLES);
            cr_assert_lt(id, SAMPLES);
            drawn[id]++;
        }
        for (int i = 0; i < SAMPLES; i++)
            chi += (drawn[i] - 100.0) * (drawn[i] - 100.0) / 100.0;
        cr_assert_lt(chi, 161.3, "chi-square %.1f of draws that differ in %d", chi, kind);
    }
    cr_assert_lt(stk_bad_samples_substitute(1, 2, 3, 4, UINT64_MAX), UINT64_MAX);
    cr_assert_eq(stk_bad_samples_substitute(1, 2, 3, 4, 1), 0);
}

CleanTest(bad, no_substitute_anywhere_ends_the_run)
{
    static struct outcome outcome;
    struct stk_made_set set = { .count = COUNT, .row_bytes = ROW, .kind_of = all_broken };
    cr_assert(stk_made_set_open(&set));
    stoker_loader_options options = stk_small_options(.on_bad_sample = STOKER_ON_BAD_SUBSTITUTE);
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.run.rc, STOKER_ECORRUPT);
    stk_made_set_close(&set);
}

/* Batches come empty, but for the last of the epoch: endless epochs of nothing would follow. */
CleanTest(bad, an_epoch_without_a_good_sample_ends_the_run)
{
    static struct outcome outcome;
    struct stk_made_set set = { .count = COUNT, .row_bytes = ROW, .kind_of = all_broken };
    cr_assert(stk_made_set_open(&set));
    stoker_loader_options options = stk_small_options(.on_bad_sample = STOKER_ON_BAD_SKIP);
    options.epochs = STOKER_EPOCHS_ENDLESS; /* without end */
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.run.rc, STOKER_EBADSAMPLES);
    cr_assert_eq(outcome.run.batches, 6);
    cr_assert_eq(outcome.run.samples, 0);
    cr_assert_eq(outcome.bad_samples, COUNT);
    cr_assert_not_null(strstr(outcome.error.message, "a whole epoch without one good sample"), "%s",
                       outcome.error.message);
    cr_assert_not_null(strstr(outcome.error.message, "is broken"), "%s", outcome.error.message);
    stk_made_set_close(&set);

    /* Rank 1's last batch is empty: 101 samples are 3 x 2 batches of 16, and 5 more for rank 0. */
    cr_assert(stk_made_set_open(&set));
    options.deal = STOKER_DEAL_BATCHES;
    options.world_size = 2;
    options.rank = 1;
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.run.rc, STOKER_EBADSAMPLES);
    cr_assert_not_null(strstr(outcome.error.message, "a whole epoch without one good sample"), "%s",
                       outcome.error.message);
    cr_assert_not_null(strstr(outcome.error.message, "is broken"), "%s", outcome.error.message);
    options.deal = STOKER_DEAL_POSITIONS;
    options.world_size = 1;
    options.rank = 0;
    stk_made_set_close(&set);

    set.kind_of = all_but_one_broken; /* that one is enough */
    cr_assert(stk_made_set_open(&set));
    options.epochs = 5;
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.run.rc, STOKER_FINISHED);
    cr_assert_eq(outcome.run.samples, 5);
    stk_made_set_close(&set);

    set.kind_of = some_broken; /* one or two samples of each epoch: in some both are bad */
    cr_assert(stk_made_set_open(&set));
    options.world_size = 64;
    options.epochs = 30;
    bool barren = false;
    for (options.rank = 0; options.rank < 8; options.rank++) {
        play(set.dataset, &options, &outcome);
        cr_assert_eq(outcome.run.rc, STOKER_FINISHED);
        barren = barren || outcome.bad_samples > 0;
    }
    cr_assert(barren);
    stk_made_set_close(&set);
}

/* A few bad samples end no run, however long it is. */
CleanTest(bad, a_sample_that_is_bad_in_every_epoch_counts_once)
{
    static struct outcome outcome;
    struct stk_made_set set = { .count = COUNT, .row_bytes = ROW, .kind_of = some_broken };
    cr_assert(stk_made_set_open(&set));
    stoker_loader_options options = stk_small_options(.epochs = 30, .num_workers = 1);
    for (int policy = STOKER_ON_BAD_SKIP; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++) {
        options.on_bad_sample = (stoker_on_bad)policy;
        options.max_bad_samples = 10;
        play(set.dataset, &options, &outcome);
        cr_assert_eq(outcome.run.rc, STOKER_FINISHED);
        cr_assert_eq(outcome.reports, 10);
        cr_assert_eq(outcome.bad_samples, 30 * 10);
    }
    stk_made_set_close(&set);
}

/* More than a table of a fixed size would know, with a limit far above. */
CleanTest(bad, many_bad_samples_are_distinguished)
{
    struct stk_bad_samples bad;
    stoker_error report = { .code = STOKER_EIO };
    cr_assert_eq(stk_bad_samples_init(&bad, STOKER_ON_BAD_SKIP, 10000), 0);
    for (uint64_t turn = 0; turn < 3; turn++)
        for (uint64_t i = 0; i < 10000; i++) {
            report.sample = i * i * 7919;
            cr_assert_eq(stk_bad_samples_file(&bad, &report), 0);
            cr_assert_eq(bad.count, turn == 0 ? i + 1 : 10000);
        }
    report.sample = 1;
    cr_assert_eq(stk_bad_samples_file(&bad, &report), STOKER_EBADSAMPLES);
    stk_bad_samples_destroy(&bad);
}

/* Each limit by one or two of the routes, the first and the last that ends the run by all of them:
 * a run with threads costs ten times one without. */
CleanTest(bad, one_more_than_max_ends_the_run)
{
    static struct outcome outcome;
    struct stk_made_set set = { .count = COUNT, .row_bytes = ROW, .kind_of = some_broken };
    cr_assert(stk_made_set_open(&set));
    stoker_loader_options options = stk_small_options();
    for (int policy = STOKER_ON_BAD_SKIP; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++)
        for (uint64_t most = 0; most <= 11; most++) {
            options.on_bad_sample = (stoker_on_bad)policy;
            options.max_bad_samples = most;
            options.num_workers = 0;
            play(set.dataset, &options, &outcome);
            for (size_t route = 0; route < ROUTES; route++)
                if (most == 1 || most == 9 || route % 5 == (most + (uint64_t)policy) % 5)
                    play_by_route(set.dataset, options, route, &outcome);
            cr_assert_eq(outcome.run.rc, most < 10 ? STOKER_EBADSAMPLES : STOKER_FINISHED);
            cr_assert_eq(outcome.bad_samples, most < 10 ? most + 1 : 20);
        }
    stk_made_set_close(&set);
}

/* More than are kept: counted all the same. */
CleanTest(bad, the_first_1024_reports_are_kept)
{
    struct stk_made_set set = { .count = 1200, .row_bytes = 4, .kind_of = all_but_one_broken };
    stoker_loader *loader = NULL;
    static struct stk_run run;
    stoker_error report;
    stoker_stats stats = { .struct_size = sizeof(stats) };
    cr_assert(stk_made_set_open(&set));
    stoker_loader_options options = stk_small_options(.on_bad_sample = STOKER_ON_BAD_SKIP);
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
    stk_run_on(loader, &run, UINT32_MAX);
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_eq(stats.bad_samples, 2 * 1199);
    cr_assert_eq(stoker_loader_bad_sample(loader, 1023, &report), STOKER_OK);
    cr_assert_eq(stoker_loader_bad_sample(loader, 1024, &report), STOKER_EINVAL);
    stoker_loader_destroy(&loader);
    stk_made_set_close(&set);
}

/* ---- data sets that break their word ---- */

CleanTest(bad, a_set_that_loses_a_sample_ends_the_run)
{
    static struct outcome outcome;
    struct stk_made_set set = {
        .count = COUNT, .row_bytes = ROW, .kind_of = every_kind, .lost = true
    };
    cr_assert(stk_made_set_open(&set));
    play_all(set.dataset, stk_small_options(), &outcome);
    cr_assert_eq(outcome.run.rc, STOKER_EFORMAT);
    cr_assert_eq(outcome.error.stage, STOKER_STAGE_LOCATE);
    cr_assert_null(strchr(outcome.error.message, '\n'), "%s", outcome.error.message);
    stk_made_set_close(&set);
}

static enum stk_made_kind drawn_but_one(uint64_t id)
{
    return id == 55 ? STK_MADE_RAW : STK_MADE_DRAWN;
}

CleanTest(bad, a_file_that_was_not_announced_is_a_bad_sample)
{
    static struct outcome outcome;
    struct stk_made_set set = {
        .count = COUNT, .row_bytes = ROW, .kind_of = drawn_but_one, .hides_files = true
    };
    cr_assert(stk_made_set_open(&set));
    stoker_loader_options options = stk_small_options();
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.run.rc, STOKER_EINVAL);
    cr_assert_eq(outcome.error.sample, 55);
    cr_assert_not_null(strstr(outcome.error.message, "the extent names file 0 of 0"), "%s",
                       outcome.error.message);
    options.on_bad_sample = STOKER_ON_BAD_SKIP;
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.run.samples, 2 * (COUNT - 1));
    stk_made_set_close(&set);
}

CleanTest(bad, a_sample_longer_than_announced_is_a_bad_sample)
{
    static struct outcome outcome;
    struct stk_made_set set = {
        .count = COUNT, .row_bytes = ROW, .kind_of = some_short, .bytes_max = ROW - 1
    };
    cr_assert(stk_made_set_open(&set));
    stoker_loader_options options = stk_small_options(.on_bad_sample = STOKER_ON_BAD_SKIP);
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.run.rc, STOKER_EBADSAMPLES); /* none is as announced */
    cr_assert_eq(outcome.run.samples, 0);
    cr_assert_geq(outcome.reports, 64);
    stk_made_set_close(&set);
}

/* ---- storage ---- */

static stoker_loader_options scripted_options(void)
{
    return stk_small_options(.reader = &stk_scripted_reader);
}

/* Reads of sample 20 always fail; its neighbors in the same block do not. */
CleanTest(bad, report_has_path_offset_sample_stage_and_errno)
{
    static struct outcome outcome;
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, COUNT, 8, 5, 0));
    const uint64_t offset = set.header_bytes + 20 * 40;
    const struct stk_script_rule rules[] = { { .what = STK_SCRIPT_ERRNO,
                                               .amount = EIO,
                                               .file = STK_SCRIPT_ANY_FILE,
                                               .offset = offset,
                                               .bytes = 40 } };
    stk_script_install(&(struct stk_script){ .rules = rules, .rule_count = 1 });
    stoker_loader_options options = scripted_options();
    options.on_bad_sample = STOKER_ON_BAD_SKIP;
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.run.samples, 2 * (COUNT - 1));
    cr_assert_eq(outcome.bad_samples, 2);
    cr_assert_eq(outcome.reports, 1);
    const stoker_error *report = &outcome.report[0];
    cr_assert_eq(report->code, STOKER_EIO);
    cr_assert_eq(report->stage, STOKER_STAGE_READ);
    cr_assert_eq(report->os_errno, EIO);
    cr_assert_eq(report->sample, 20);
    cr_assert_eq(report->offset, offset);
    cr_assert_not_null(strstr(report->path, "images"));
    options.on_bad_sample = STOKER_ON_BAD_FAIL;
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.error.sample, 20);
    cr_assert_eq(outcome.error.os_errno, EIO);
    options.on_bad_sample = STOKER_ON_BAD_SUBSTITUTE;
    play_all(set.dataset, options, &outcome);
    cr_assert_eq(outcome.run.samples, 2 * COUNT);
    stk_file_set_remove(&set);
}

/* The policies that continue report as much as the one that ends the run. */
CleanTest(bad, reports_keep_the_cause_in_words)
{
    static struct outcome outcome;
    struct stk_made_set set = { .count = COUNT, .row_bytes = ROW, .kind_of = some_broken };
    cr_assert(stk_made_set_open(&set));
    stoker_loader_options options = stk_small_options();
    for (int policy = STOKER_ON_BAD_SKIP; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++) {
        options.on_bad_sample = (stoker_on_bad)policy;
        play_all(set.dataset, options, &outcome);
        cr_assert_eq(outcome.reports, 10);
        for (uint32_t i = 0; i < outcome.reports; i++) {
            char words[64];
            (void)snprintf(words, sizeof(words), "sample %u is broken?[2J",
                           (unsigned)outcome.report[i].sample);
            cr_assert_not_null(strstr(outcome.report[i].message, words), "%s",
                               outcome.report[i].message);
            cr_assert_not_null(strstr(outcome.report[i].message, "00 is why"), "%s",
                               outcome.report[i].message);
        }
    }
    stk_made_set_close(&set);
}

/* The file ends after 7 bytes of sample 90, whose row has 40. */
CleanTest(bad, a_truncated_read_reports_how_much_there_was)
{
    static struct outcome outcome;
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, COUNT, 8, 5, 0));
    const uint64_t start = set.header_bytes + 90 * 40;
    const struct stk_script_rule rules[] = {
        { .what = STK_SCRIPT_SHORT,
          .amount = 7,
          .file = STK_SCRIPT_ANY_FILE,
          .offset = start,
          .bytes = 7 },
        { .what = STK_SCRIPT_EOF, .file = STK_SCRIPT_ANY_FILE, .offset = start + 7, .bytes = 4000 }
    };
    stk_script_install(&(struct stk_script){ .rules = rules, .rule_count = 2 });
    stoker_loader_options options = scripted_options();
    options.epochs = 1;
    for (int policy = STOKER_ON_BAD_FAIL; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++) {
        bool seen = false;
        options.on_bad_sample = (stoker_on_bad)policy;
        options.shuffle = policy != STOKER_ON_BAD_FAIL; /* in order, the first bad one is 90 */
        play_all(set.dataset, options, &outcome);
        const uint32_t reports = policy == STOKER_ON_BAD_FAIL ? 1 : outcome.reports;
        cr_assert_eq(reports, policy == STOKER_ON_BAD_FAIL ? 1 : COUNT - 90);
        for (uint32_t i = 0; i < reports; i++) {
            const stoker_error *told =
                policy == STOKER_ON_BAD_FAIL ? &outcome.error : &outcome.report[i];
            const char *words = told->sample == 90 ? "7 of 40 bytes read" : "0 of 40 bytes read";
            cr_assert_eq(told->code, STOKER_ETRUNCATED);
            cr_assert_not_null(strstr(told->message, words), "%s", told->message);
            seen = seen || told->sample == 90;
        }
        cr_assert(seen);
    }
    stk_file_set_remove(&set);
}

/* The sample that ends the run is a bad one, too. */
CleanTest(bad, the_sample_that_ends_the_run_is_counted)
{
    static struct outcome outcome;
    struct stk_made_set set = { .count = COUNT, .row_bytes = ROW, .kind_of = some_broken };
    cr_assert(stk_made_set_open(&set));
    play_all(set.dataset, stk_small_options(), &outcome);
    cr_assert_eq(outcome.run.rc, STOKER_ECORRUPT);
    cr_assert_eq(outcome.bad_samples, 1);
    stk_made_set_close(&set);
}

/* Blocks whose reads failed for a while are read again: the cache fills in the end. */
CleanTest(bad, storage_that_recovers_fills_the_cache)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, COUNT, 8, 5, 0));
    const struct stk_script_rule rules[] = {
        { .what = STK_SCRIPT_ERRNO, .amount = EIO, .file = STK_SCRIPT_ANY_FILE, .times = 90 }
    };
    for (int32_t workers = 0; workers <= 2; workers++)
        for (int cache = STOKER_CACHE_ENCODED; cache <= STOKER_CACHE_DECODED; cache++) {
            static struct stk_run run;
            stoker_loader *loader = NULL;
            stoker_stats stats = { .struct_size = sizeof(stats) };
            stoker_loader_options options = scripted_options();
            options.on_bad_sample = STOKER_ON_BAD_SKIP;
            options.num_workers = workers;
            options.cache = (stoker_cache)cache;
            options.prefetch_batches = 2;
            options.epochs = 5;
            stk_script_install(&(struct stk_script){ .rules = rules, .rule_count = 1 });
            cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
            memset(&run, 0, sizeof(run));
            stk_run_on(loader, &run, UINT32_MAX);
            cr_assert_eq(run.rc, STOKER_FINISHED);
            cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
            cr_assert_gt(stats.bad_samples, 0);
            cr_assert_eq(run.samples + stats.bad_samples, 5 * COUNT);
            cr_assert_eq(stats.cache_held_bytes, COUNT * 40);
            stoker_loader_destroy(&loader);
        }
    stk_file_set_remove(&set);
}

/* The file loses its second half while an epoch runs: the rest is right or reported bad, and since
 * the file is not what it was, that epoch is the last. */
CleanTest(bad, a_file_truncated_during_an_epoch_gives_no_wrong_byte)
{
    for (int32_t workers = 0; workers <= 3; workers++) {
        struct stk_file_set set;
        cr_assert(stk_file_set_make(&set, COUNT, 8, 5, 0));
        stoker_loader_options options =
            stk_small_options(.on_bad_sample = STOKER_ON_BAD_SKIP, .num_workers = workers,
                              .prefetch_batches = 2, .epochs = STOKER_EPOCHS_ENDLESS);
        stoker_loader *loader = NULL;
        stoker_batch batch = STOKER_BATCH_INIT;
        uint64_t good = 0;
        int rc;
        cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_OK);
        while ((rc = stoker_loader_next(loader, &batch, -1)) >= 0) {
            if (rc == STOKER_EPOCH_END)
                continue;
            cr_assert_leq(batch.epoch, 1);
            cr_assert(stk_file_set_matches(&set, &batch));
            good += batch.count;
            if (batch.epoch == 1 && batch.index == 0)
                cr_assert_eq(truncate(set.images, (off_t)(set.header_bytes + 50 * 40 + 7)), 0);
            stoker_batch_release(&batch);
        }
        cr_assert_eq(rc, STOKER_ECHANGED);
        cr_assert_not_null(
            strstr(stoker_loader_error(loader)->message, "size is 2023 bytes, was 4056 when"), "%s",
            stoker_loader_error(loader)->message);
        cr_assert_geq(good, COUNT);
        stoker_error report;
        for (uint64_t i = 0; stoker_loader_bad_sample(loader, i, &report) == STOKER_OK; i++) {
            cr_assert_eq(report.code, STOKER_ETRUNCATED);
            cr_assert_geq(report.sample, 50);
        }
        stoker_loader_destroy(&loader);
        cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, &report),
                     STOKER_ECHANGED);
        cr_assert_not_null(strstr(set.images, report.path), "%s", report.message);
        stk_file_set_remove(&set);
    }
}

/* Every read of a small epoch fails in its turn: one sample less or a neighbor's read again,
 * never a wrong byte. */
CleanTest(bad, each_read_fails_in_its_turn)
{
    struct stk_made_set set = { .count = 33, .row_bytes = ROW, .kind_of = all_raw };
    cr_assert(stk_made_set_open(&set));
    for (int32_t workers = 0; workers <= 2; workers++)
        for (uint64_t nth = 0; nth < 33; nth++) {
            const struct stk_script_rule rules[] = { { .what = STK_SCRIPT_ERRNO,
                                                       .amount = EIO,
                                                       .file = STK_SCRIPT_ANY_FILE,
                                                       .skip = nth,
                                                       .times = 1 } };
            stk_script_install(&(struct stk_script){ .rules = rules, .rule_count = 1 });
            stoker_loader_options options = scripted_options();
            options.on_bad_sample = STOKER_ON_BAD_SKIP;
            options.num_workers = workers;
            options.epochs = 1;
            static struct outcome outcome;
            play(set.dataset, &options, &outcome);
            cr_assert_eq(outcome.run.rc, STOKER_FINISHED);
            cr_assert_eq(outcome.run.samples, 32);
            cr_assert_eq(outcome.bad_samples, 1);
            stk_script_install(&(struct stk_script){ .rules = rules, .rule_count = 1 });
            check_rows(&set, &options);
        }
    stk_made_set_close(&set);
}
