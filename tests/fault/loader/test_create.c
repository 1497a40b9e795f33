/* test_create.c - each allocation, mapping, thread start and pin of create fails in its
 * turn: create comes up, or says so and leaves nothing; and a second try comes up.
 */
#include "loader/base/fault.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/random_hooks.h"
#include "support/runs/scenario.h"

static struct stk_run expected;
static struct stk_run found;
static uint32_t faults; /* that were reached, over all sweeps */

static bool is_documented(unsigned kind, int rc, stoker_switch pin)
{
    if (rc == STOKER_OK)
        return kind == STK_FAULT_LOCK && pin == STOKER_SWITCH_AUTO;
    return (kind == STK_FAULT_MEMORY && rc == STOKER_ENOMEM) ||
           (kind == STK_FAULT_THREAD && rc == STOKER_ETHREAD) ||
           (kind == STK_FAULT_LOCK && pin == STOKER_SWITCH_ON && rc == STOKER_EPIN);
}

/* Create with the nth hit failing. False: there was no nth any more. */
static bool fail_nth(const stoker_dataset *dataset, stoker_loader_options options, unsigned kind,
                     uint64_t nth)
{
    stoker_loader *loader = NULL;
    stoker_error error = { .code = 0 };
    const int64_t live = stk_fault_live_bytes();
    stk_fault_arm(kind, nth);
    const int rc = stoker_loader_create(&loader, dataset, &options, &error);
    const bool reached = stk_fault_disarm();
    if (!reached) {
        cr_assert_eq(rc, STOKER_OK);
        stoker_loader_destroy(&loader);
        return false;
    }
    faults++;
    cr_assert(is_documented(kind, rc, options.pin_memory), "kind %u nth %llu: %s", kind,
              (unsigned long long)nth, stoker_error_name(rc));
    cr_assert_eq(error.code, rc);
    if (rc != STOKER_OK) {
        cr_assert_null(loader);
        cr_assert_gt(error.message[0], 0);
    } else {
        found = (struct stk_run){ 0 };
        stk_run_on(loader, &found, UINT32_MAX);
        cr_assert(stk_runs_equal(&expected, &found));
        stoker_loader_destroy(&loader);
    }
    cr_assert_eq(stk_fault_live_bytes(), live, "kind %u nth %llu leaks", kind,
                 (unsigned long long)nth);
    return true;
}

static void sweep(const stoker_dataset *dataset, const stoker_loader_options *options)
{
    static const unsigned kinds[] = { STK_FAULT_MEMORY, STK_FAULT_THREAD, STK_FAULT_LOCK };
    cr_assert_eq(stk_run(dataset, options, &expected), STOKER_FINISHED);
    for (int i = 0; i < 3; i++) {
        uint64_t nth = 1;
        while (fail_nth(dataset, *options, kinds[i], nth)) {
            cr_assert_lt(nth, 10000);
            nth++;
        }
    }
    (void)stk_run(dataset, options, &found); /* the retry */
    cr_assert(stk_runs_equal(&expected, &found));
}

static void sweep_all(const stoker_dataset *dataset, stoker_loader_options options)
{
    for (int32_t workers = STOKER_WORKERS_AUTO; workers <= 4; workers++)
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++)
            for (int policy = STOKER_ON_BAD_FAIL; policy <= STOKER_ON_BAD_SKIP; policy++) {
                options.num_workers = workers;
                options.cache = (stoker_cache)cache;
                options.on_bad_sample = (stoker_on_bad)policy;
                sweep(dataset, &options);
            }
}

CleanTest(fault_create, of_files_by_pread)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, 40, 3, 3, 0));
    stoker_loader_options options =
        stk_small_options(.reader = stoker_reader_pread(), .prefetch_batches = 3);
    sweep_all(set.dataset, options);
    stk_file_set_remove(&set);
    cr_assert_eq(stk_fault_live_bytes(), 0);
    cr_assert_gt(faults, 300);
}

CleanTest(fault_create, with_hooks)
{
    static struct stk_random_hooks hooks;
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, 40, 3, 3, 0));
    stk_random_hooks_init(&hooks);
    stoker_loader_options options =
        stk_small_options(.reader = stoker_reader_pread(), .row_hook = &hooks.row,
                          .batch_hook = &hooks.batch);
    for (options.num_workers = 0; options.num_workers <= 2; options.num_workers += 2) {
        sweep(set.dataset, &options);
        cr_assert_eq(atomic_load(&hooks.open), 0);
    }
    stk_file_set_remove(&set);
}

/* Put another loader in a loader's place with the nth hit failing. False: there was no nth any
 * more. */
static bool fail_nth_of_restart(const stoker_dataset *dataset, const stoker_loader_options *options,
                                unsigned kind, uint64_t nth)
{
    stoker_loader *loader = NULL;
    const int64_t live = stk_fault_live_bytes();
    cr_assert_eq(stoker_loader_create(&loader, dataset, options, NULL), STOKER_OK);
    found = (struct stk_run){ 0 };
    stk_run_on(loader, &found, 3);
    stk_fault_arm(kind, nth);
    const int rc = stoker_loader_restart(&loader, options, NULL);
    const bool reached = stk_fault_disarm();
    cr_assert(rc == STOKER_OK || (reached && is_documented(kind, rc, options->pin_memory)));
    cr_assert_eq(loader != NULL, rc == STOKER_OK);
    found = (struct stk_run){ 0 };
    if (rc == STOKER_OK) {
        stk_run_on(loader, &found, UINT32_MAX);
        cr_assert(stk_runs_equal(&expected, &found));
    }
    stoker_loader_destroy(&loader);
    cr_assert_eq(stk_fault_live_bytes(), live);
    return reached;
}

CleanTest(fault_create, in_the_place_of_another)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, 40, 3, 3, 0));
    stoker_loader_options options =
        stk_small_options(.cache = STOKER_CACHE_DECODED, .num_workers = 2, .prefetch_batches = 3);
    cr_assert_eq(stk_run(set.dataset, &options, &expected), STOKER_FINISHED);
    uint64_t nth = 1;
    while (fail_nth_of_restart(set.dataset, &options, STK_FAULT_MEMORY, nth))
        nth++;
    cr_assert_gt(nth, 20);
    for (nth = 1; fail_nth_of_restart(set.dataset, &options, STK_FAULT_THREAD, nth); nth++)
        ;
    cr_assert_gt(nth, 1);
    stk_file_set_remove(&set);
}

/* Each allocation of a change of weights fails: nothing has changed, and a second try changes
 * them. */
static void sweep_change(stoker_loader *loader)
{
    static const double weights[] = { 0.01, 0.99 };
    const stoker_mix_change change = { .position = 90, .weights = weights };
    int rc = STOKER_ENOMEM;
    for (uint64_t nth = 1; rc != STOKER_OK; nth++) {
        stoker_error error = { .message = "" };
        const int64_t live = stk_fault_live_bytes();
        stk_fault_arm(STK_FAULT_MEMORY, nth);
        rc = stoker_loader_change_mix(loader, &change, &error);
        if (!stk_fault_disarm())
            break;
        cr_assert_eq(rc, STOKER_ENOMEM, "allocation %u", (unsigned)nth);
        cr_assert_gt(error.message[0], 0);
        cr_assert_eq(stk_fault_live_bytes(), live, "allocation %u", (unsigned)nth);
        size_t size = 0;
        cr_assert_eq(stoker_loader_state(loader, NULL, 0, &size, NULL), STOKER_OK);
        cr_assert_eq(size, STOKER_STATE_BYTES);
    }
    cr_assert_eq(rc, STOKER_OK);
}

/* From the start, and from a state that has a change. */
CleanTest(fault_create, with_a_mix)
{
    stoker_dataset *mix = NULL;
    stoker_loader *loader = NULL;
    uint8_t state[160];
    cr_assert_eq(stoker_dataset_open(&mix,
                                     "mix:0.7*(synth:bytes?count=40&shape=8)+0.3*(synth:bytes?"
                                     "count=3&shape=8)?epoch_samples=60",
                                     NULL, NULL),
                 STOKER_OK);
    stoker_loader_options options = stk_small_options(.prefetch_batches = 3, .num_workers = 0);
    sweep(mix, &options);
    cr_assert_eq(stoker_loader_create(&loader, mix, &options, NULL), STOKER_OK);
    sweep_change(loader);
    save_and_destroy(&loader, &options, state, sizeof(state));
    cr_assert_eq(options.resume_size, STOKER_STATE_BYTES + 3 * 8);
    for (options.num_workers = 0; options.num_workers <= 2; options.num_workers += 2)
        sweep(mix, &options);
    stoker_dataset_close(&mix);
}

CleanTest(fault_create, with_mixing)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, 40, 3, 3, 0));
    stoker_loader_options options =
        stk_small_options(.reader = stoker_reader_pread(), .blend.mixup_alpha = 0.5F,
                          .blend.cutmix_alpha = 0.5F);
    for (options.num_workers = 0; options.num_workers <= 2; options.num_workers += 2)
        sweep(set.dataset, &options);
    stk_file_set_remove(&set);
}

/* Whatever reader is best here: its own memory is swept as well. */
CleanTest(fault_create, of_files_by_the_chosen_reader)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, 40, 3, 3, 0));
    stoker_loader_options options = stk_small_options(.pin_memory = STOKER_SWITCH_ON,
                                                      .num_workers = 2, .cache = STOKER_CACHE_NONE);
    cr_assert_eq(stk_run(set.dataset, &options, &expected), STOKER_FINISHED);
    for (uint64_t nth = 1;; nth++) {
        stoker_loader *loader = NULL;
        stk_fault_arm(STK_FAULT_ANY, nth);
        const int rc = stoker_loader_create(&loader, set.dataset, &options, NULL);
        const bool reached = stk_fault_disarm();
        if (rc == STOKER_OK) { /* a worker without memory for a ring reads without one */
            found = (struct stk_run){ 0 };
            stk_run_on(loader, &found, UINT32_MAX);
            cr_assert(stk_runs_equal(&expected, &found), "nth %d", (int)nth);
        } else {
            cr_assert(rc == STOKER_ENOMEM || rc == STOKER_ETHREAD || rc == STOKER_EPIN, "%s",
                      stoker_error_name(rc));
            cr_assert_null(loader);
        }
        stoker_loader_destroy(&loader);
        if (!reached)
            break;
    }
    stk_file_set_remove(&set);
}

CleanTest(fault_create, of_drawn_samples)
{
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_open(&dataset, "synth:bytes?count=40&shape=9", NULL, NULL),
                 STOKER_OK);
    stoker_loader_options options = stk_small_options();
    for (int pin = STOKER_SWITCH_AUTO; pin <= STOKER_SWITCH_OFF; pin++) {
        options.pin_memory = (stoker_switch)pin;
        sweep_all(dataset, options);
    }
    options.trace_events = 100;
    sweep_all(dataset, options);
    stoker_dataset_close(&dataset);
}
