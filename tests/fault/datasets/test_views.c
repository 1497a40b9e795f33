/* test_views.c - every allocation of every view fails in its turn: the view is not made, says so,
 * leaves nothing behind and does not hold what it would have wrapped.
 */
#include "support/files/folder_files.h"
#include "support/runs/opened_loader.h"
#include "support/sweep.h"

static stoker_dataset *sets[2];
static struct stk_memory_file numbers;

static int make_select(stoker_dataset **out, stoker_error *error)
{
    static const uint64_t ids[] = { 1, 0, 3 };
    return stoker_dataset_select(out, sets[0], ids, 3, error);
}

static int make_concat(stoker_dataset **out, stoker_error *error)
{
    return stoker_dataset_concat(out, sets, 2, error);
}

static int make_split(stoker_dataset **out, stoker_error *error)
{
    stoker_split split = STOKER_SPLIT_INIT;
    split.test = 0.5;
    return stoker_dataset_split(out, sets[0], &split, error);
}

static int make_strata(stoker_dataset **out, stoker_error *error)
{
    stoker_split split = stk_split_of(.test = 0.5, .stratified = true);
    return stoker_dataset_split(out, sets[0], &split, error);
}

static int make_balance(stoker_dataset **out, stoker_error *error)
{
    return stoker_dataset_balance(out, sets[0], error);
}

static int make_mix(stoker_dataset **out, stoker_error *error)
{
    static const double weights[] = { 0.7, 0.3 };
    static const stoker_mix_change change = { .position = 9, .weights = weights };
    stoker_mix mix = STOKER_MIX_INIT;
    mix.weights = weights;
    mix.changes = &change;
    mix.change_count = 1;
    return stoker_dataset_mix(out, sets, 2, &mix, error);
}

static int make_mix_spec(stoker_dataset **out, stoker_error *error)
{
    return stoker_dataset_open(
        out, "mix:0.7*(synth:bytes?count=20&shape=8)+0.3*(synth:bytes?count=3&shape=8)", NULL,
        error);
}

/* Everything at once, by name. */
static int make_spec(stoker_dataset **out, stoker_error *error)
{
    char spec[400];
    (void)snprintf(spec, sizeof(spec),
                   "concat:(select:%s:(synth:bytes?count=20&shape=8))+"
                   "(synth:bytes?count=3&shape=8)?test=0.5&stratified=1&weighted=balanced",
                   numbers.path);
    return stoker_dataset_open(out, spec, NULL, error);
}

/* Returns the number of allocations that were failed. */
static uint64_t sweep(int (*make)(stoker_dataset **out, stoker_error *error))
{
    stoker_dataset *view = NULL;
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    while (stk_sweep_next(&sweep)) {
        cr_assert_null(view);
        sweep.rc = make(&view, &sweep.error);
    }
    stoker_dataset_close(&view);
    cr_assert_eq(stk_fault_live_bytes(), sweep.live);
    return sweep.failed;
}

CleanTest(view_faults, each_allocation_fails_once)
{
    struct stk_folder_set folders[2];
    for (int i = 0; i < 2; i++) {
        stk_folder_make(&folders[i], 4, 2, true);
        sets[i] = folders[i].dataset;
    }
    cr_assert_eq(sweep(make_select), 5);
    cr_assert_eq(sweep(make_concat),
                 7);                   /* also the stamps of its directories, and the description */
    cr_assert_eq(sweep(make_mix), 20); /* also the plan, blocks, legs and what counts in between */
    cr_assert_gt(sweep(make_mix_spec), 15);
    cr_assert_eq(sweep(make_split), 4);
    cr_assert_eq(sweep(make_strata), 9);
    cr_assert_eq(sweep(make_balance), 6);
    numbers = stk_memory_file("1 2 3", 5);
    cr_assert_gt(sweep(make_spec), 20);
    close(numbers.fd);
    for (int i = 0; i < 2; i++)
        stk_folder_remove(&folders[i]); /* frees it: no view holds it */
}
