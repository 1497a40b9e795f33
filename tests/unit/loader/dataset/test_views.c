/* test_views.c - loaders over views: the right sample at every position, from files, folders and
 * drawn samples; and bad samples and changed files are reported as without a view.
 */
#include "support/files/folder_files.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/sets/positions.h"
#include "support/sets/read_row.h"

enum { EPOCHS = 2 };

static struct stk_positions found;

/* Each position has the sample that its id has by stoker_dataset_read(). That no setting, world or
 * stop changes this is test_determinism.c's. */
static void check_view(const stoker_dataset *view)
{
    uint8_t row[256];
    stoker_loader_options options = stk_small_options(.batch_size = 8);
    cr_assert_eq(stk_positions_plain(&found, view, options, stoker_dataset_get_info(view)->count),
                 STOKER_FINISHED, "%s", found.error.message);
    cr_assert_eq(found.filled, EPOCHS * found.length);
    for (uint64_t at = 0; at < found.filled; at++) {
        stoker_label label = { 0 };
        stoker_error error = { .message = "" };
        cr_assert_eq(stk_read_row(view, found.ids[at], row, sizeof(row), &label, &error), 0, "%s",
                     error.message);
        uint64_t hash = stk_hash_bytes(found.ids[at], row, stoker_dataset_field_bytes(view, 0));
        hash = stk_hash_bytes(hash, &label, sizeof(label.index)); /* the other field */
        cr_assert_eq(hash, found.hashes[at], "position %llu", (unsigned long long)at);
    }
}

/* select, twice, both sides of both splits, concat with itself, a nest of them. */
static void check_views_of(stoker_dataset *set)
{
    static const uint64_t ids[] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8 };
    stoker_dataset *views[8] = { NULL };
    stoker_split split = STOKER_SPLIT_INIT;
    cr_assert_eq(stoker_dataset_select(&views[0], set, ids, 19, NULL), STOKER_OK);
    cr_assert_eq(stoker_dataset_concat(&views[1], (stoker_dataset *[]){ set, set }, 2, NULL),
                 STOKER_OK);
    split.test = 0.3;
    cr_assert_eq(stoker_dataset_split(&views[2], set, &split, NULL), STOKER_OK);
    split.side = STOKER_SIDE_TEST;
    split.stratified = true;
    cr_assert_eq(stoker_dataset_split(&views[3], set, &split, NULL), STOKER_OK);
    cr_assert_eq(
        stoker_dataset_concat(&views[4], (stoker_dataset *[]){ views[2], set, views[3] }, 3, NULL),
        STOKER_OK);
    cr_assert_eq(stoker_dataset_select(&views[5], views[4], ids, 19, NULL), STOKER_OK);
    for (int i = 0; i < 6; i++) {
        check_view(views[i]);
        stoker_dataset_close(&views[i]);
    }
}

CleanTest(view_loader, over_drawn_samples)
{
    stoker_dataset *set = dataset_of("synth:bytes?count=33&shape=5x3");
    check_views_of(set);
    stoker_dataset_close(&set);
}

CleanTest(view_loader, over_files)
{
    struct stk_file_set set;
    cr_assert(stk_file_set_make(&set, 33, 5, 3, 0));
    check_views_of(set.dataset);
    stk_file_set_remove(&set);
}

CleanTest(view_loader, over_folders)
{
    struct stk_folder_set set;
    stk_folder_make(&set, 33, 4, true);
    check_views_of(set.dataset);
    stk_folder_remove(&set);
}

/* Files, folders and drawn samples in one. */
CleanTest(view_loader, over_sets_of_every_kind)
{
    struct stk_folder_set folders[2];
    struct stk_file_set files;
    stoker_dataset *inner[4] = { NULL };
    stoker_dataset *view = NULL;
    stoker_error error = { .message = "" };
    stk_folder_make(&folders[0], 12, 4, true);
    stk_folder_make(&folders[1], 9, 4, true);
    cr_assert(stk_file_set_make(&files, 10, 1, STK_FOLDER_ROW, 0));
    inner[0] = folders[0].dataset;
    inner[1] = files.dataset;
    inner[2] = folders[1].dataset;
    inner[3] = dataset_of("synth:bytes?count=7&shape=1x40x1");
    cr_assert_eq(stoker_dataset_concat(&view, inner, 4, &error), STOKER_OK, "%s", error.message);
    check_view(view);
    stoker_dataset_close(&view);
    stoker_dataset_close(&inner[3]);
    stk_file_set_remove(&files);
    for (int i = 0; i < 2; i++)
        stk_folder_remove(&folders[i]);
}

/* The state of one view is refused by every other one. */
CleanTest(view_loader, a_state_knows_its_view)
{
    stoker_dataset *set = dataset_of("synth:bytes?count=40&shape=8");
    stoker_dataset *views[3] = { NULL };
    stoker_loader_options options = stk_small_options();
    stoker_split split = STOKER_SPLIT_INIT;
    uint8_t state[STOKER_STATE_BYTES];
    stoker_error error;
    split.test = 0.5;
    for (uint64_t i = 0; i < 2; i++) {
        split.seed = i;
        cr_assert_eq(stoker_dataset_split(&views[i], set, &split, NULL), STOKER_OK);
    }
    split.side = STOKER_SIDE_TEST;
    cr_assert_eq(stoker_dataset_split(&views[2], set, &split, NULL), STOKER_OK);
    stoker_loader *loader = loader_of(views[0], &options);
    save_and_destroy(&loader, &options, state, sizeof(state));
    for (int i = 1; i < 3; i++)
        cr_assert_eq(stoker_loader_create(&loader, views[i], &options, &error), STOKER_ESTATE);
    loader = loader_of(views[0], &options);
    stoker_loader_destroy(&loader);
    for (int i = 0; i < 3; i++)
        stoker_dataset_close(&views[i]);
    stoker_dataset_close(&set);
}

/* A file that vanishes is a bad sample with its name; others come. */
CleanTest(view_loader, a_bad_sample_of_a_view_is_named)
{
    struct stk_folder_set folders[2];
    stoker_dataset *view = NULL;
    char name[64], path[512];
    for (int i = 0; i < 2; i++)
        stk_folder_make(&folders[i], 10, 4, true);
    cr_assert_eq(
        stoker_dataset_concat(&view, (stoker_dataset *[]){ folders[0].dataset, folders[1].dataset },
                              2, NULL),
        STOKER_OK);
    cr_assert_eq(
        unlink(stk_path_in(path, &folders[1].directory, stk_folder_name(&folders[1], 6, name))), 0);
    stoker_loader_options options = stk_small_options(.on_bad_sample = STOKER_ON_BAD_SKIP);
    stoker_loader *loader = loader_of(view, &options);
    static struct stk_run run;
    stk_run_on(loader, &run, UINT32_MAX);
    cr_assert_eq(run.rc, STOKER_FINISHED);
    cr_assert_eq(run.samples, 2 * 19);
    stoker_error report;
    cr_assert_eq(stoker_loader_bad_sample(loader, 0, &report), STOKER_OK);
    cr_assert_eq(report.sample, 16);
    cr_assert_not_null(strstr(report.path, name), "%s", report.path);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&view);
    for (int i = 0; i < 2; i++)
        stk_folder_remove(&folders[i]);
}

/* A file that was changed before the view was made has changed for the view, too. */
CleanTest(view_loader, a_file_changed_before_the_view_is_noticed)
{
    struct stk_file_set set;
    stoker_dataset *view = NULL;
    stoker_loader *loader = NULL;
    stoker_error error;
    cr_assert(stk_file_set_make(&set, 33, 5, 3, 0));
    cr_assert_eq(truncate(set.images, 33 * 15), 0);
    cr_assert_eq(stoker_dataset_concat(&view, &set.dataset, 1, NULL), STOKER_OK);
    const stoker_loader_options options = stk_small_options();
    cr_assert_eq(stoker_loader_create(&loader, view, &options, &error), STOKER_ECHANGED);
    stoker_dataset_close(&view);
    stk_file_set_remove(&set);
}
