/* test_views.c - data sets made of data sets: each sample is the right one of the right set, in
 * every nesting; what does not fit is refused by name; and a set lives as long as its last view.
 */
#include <math.h>

#include "loader/dataset/dataset.h"
#include "loader/dataset/identity.h"
#include "support/files/folder_files.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/sets/label_of.h"
#include "support/sets/read_row.h"

enum { ROW_MAX = 256 };

/* ---- views that must come about ----------------------------------------------------- */

static stoker_dataset *select_of(stoker_dataset *dataset, const uint64_t *ids, uint64_t count)
{
    stoker_error error = { .message = "" };
    stoker_dataset *view = NULL;
    cr_assert_eq(stoker_dataset_select(&view, dataset, ids, count, &error), STOKER_OK, "%s",
                 error.message);
    return view;
}

static stoker_dataset *split_of(stoker_dataset *dataset, double test, uint64_t seed,
                                stoker_side side, bool stratified)
{
    stoker_error error = { .message = "" };
    stoker_dataset *view = NULL;
    stoker_split split =
        stk_split_of(.test = test, .seed = seed, .side = side, .stratified = stratified);
    cr_assert_eq(stoker_dataset_split(&view, dataset, &split, &error), STOKER_OK, "%s",
                 error.message);
    return view;
}

static stoker_dataset *concat_of(stoker_dataset *a, stoker_dataset *b)
{
    stoker_error error = { .message = "" };
    stoker_dataset *view = NULL;
    cr_assert_eq(stoker_dataset_concat(&view, (stoker_dataset *[]){ a, b }, 2, &error), STOKER_OK,
                 "%s", error.message);
    return view;
}

static stoker_dataset *balance_of(stoker_dataset *dataset)
{
    stoker_error error = { .message = "" };
    stoker_dataset *view = NULL;
    cr_assert_eq(stoker_dataset_balance(&view, dataset, &error), STOKER_OK, "%s", error.message);
    return view;
}

static uint64_t count_of(const stoker_dataset *dataset)
{
    return stoker_dataset_get_info(dataset)->count;
}

/* ---- samples ------------------------------------------------------------------------ */

static int64_t label_of(const stoker_dataset *dataset, uint64_t id)
{
    uint8_t row[ROW_MAX];
    stoker_label label = { .index = -1 };
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_read_row(dataset, id, row, sizeof(row), &label, &error), STOKER_OK, "%s",
                 error.message);
    return label.index;
}

/* Sample `id` of the view is sample `inner_id` of the data set: row, label, label by labels(),
 * encoding. */
static void expect_same_sample(const stoker_dataset *view, uint64_t id,
                               const stoker_dataset *dataset, uint64_t inner_id)
{
    uint8_t found[ROW_MAX] = { 0 };
    uint8_t expected[ROW_MAX] = { 0 };
    stoker_label label = { 0 };
    stoker_label inner = { 0 };
    stoker_error error = { .message = "" };
    cr_assert_eq(stk_read_row(view, id, found, sizeof(found), &label, &error), STOKER_OK, "%s",
                 error.message);
    cr_assert_eq(stk_read_row(dataset, inner_id, expected, sizeof(expected), &inner, &error),
                 STOKER_OK, "%s", error.message);
    cr_assert_arr_eq(found, expected, sizeof(found), "sample %llu", (unsigned long long)id);
    cr_assert_eq(label.index, inner.index);
    cr_assert_str_eq(stoker_dataset_stored_as(view, id),
                     stoker_dataset_stored_as(dataset, inner_id));
}

/* Many ids at once, so that runs are cut. */
static void expect_labels_agree(const stoker_dataset *view)
{
    enum { IDS = 1000 };
    static uint64_t ids[IDS];
    static stoker_part parts[IDS];
    static int64_t labels[IDS];
    stoker_error error;
    for (uint32_t i = 0; i < IDS; i++)
        ids[i] = stk_mix64(i) % count_of(view);
    cr_assert_eq(view->ops->locate(view->self, ids, IDS, parts, &error), STOKER_OK);
    if (view->label < 0)
        return;
    cr_assert_eq(view->ops->values(view->self, (uint32_t)view->label, ids, IDS, labels), STOKER_OK);
    for (uint32_t i = 0; i < IDS; i++)
        cr_assert_eq(labels[i], stk_label_of(view, ids[i]));
}

/* ---- select, repeat, concat ------------------------------------------------------------ */

CleanTest(views, select_takes_the_ids_in_their_order)
{
    static const uint64_t ids[] = { 7, 0, 99, 7, 50 };
    stoker_dataset *inner = dataset_of("synth:bytes?count=100&shape=4");
    stoker_dataset *view = select_of(inner, ids, 5);
    cr_assert_str_eq(stoker_dataset_name(view), "select");
    cr_assert_eq(count_of(view), 5);
    for (uint64_t i = 0; i < 5; i++)
        expect_same_sample(view, i, inner, ids[i]);
    expect_labels_agree(view);
    stoker_dataset_close(&inner);
    cr_assert_eq(label_of(view, 2), 9);
    stoker_dataset_close(&view);
}

CleanTest(views, concat_may_hold_a_set_several_times)
{
    stoker_dataset *inner = dataset_of("synth:bytes?count=7&shape=4");
    stoker_dataset *view = concat_of(inner, inner);
    cr_assert_eq(count_of(view), 14);
    for (uint64_t i = 0; i < 14; i++)
        expect_same_sample(view, i, inner, i % 7);
    stoker_dataset_close(&view);
    stoker_dataset_close(&inner);
}

CleanTest(views, concat_puts_one_after_the_other)
{
    struct stk_file_set files;
    cr_assert(stk_file_set_make(&files, 30, 2, 2, 0));
    stoker_dataset *drawn = dataset_of("synth:bytes?count=20&shape=2x2x1");
    stoker_dataset *view = concat_of(files.dataset, drawn);
    cr_assert_eq(count_of(view), 50);
    cr_assert_eq(stoker_dataset_get_info(view)->class_count, 10);
    for (uint64_t i = 0; i < 50; i++)
        expect_same_sample(view, i, i < 30 ? files.dataset : drawn, i < 30 ? i : i - 30);
    expect_labels_agree(view);
    stoker_dataset_close(&view);
    stoker_dataset_close(&drawn);
    stk_file_set_remove(&files);
}

/* Files are renumbered, and each path starts from its own folder. */
CleanTest(views, concat_keeps_files_and_folders_apart)
{
    struct stk_file_set files[2];
    struct stk_folder_set folders[2];
    stoker_dataset *inner[5] = { NULL };
    stoker_dataset *view = NULL;
    stoker_error error = { .message = "" };
    for (int i = 0; i < 2; i++) {
        cr_assert(stk_file_set_make(&files[i], (uint32_t)(3 + i), 1, STK_FOLDER_ROW, 0));
        stk_folder_make(&folders[i], (uint32_t)(4 + i), 10, true);
    }
    inner[0] = files[0].dataset;
    inner[1] = folders[0].dataset;
    inner[2] = files[1].dataset;
    inner[3] = folders[1].dataset;
    inner[4] = folders[0].dataset;
    cr_assert_eq(stoker_dataset_concat(&view, inner, 5, &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(stoker_dataset_get_info(view)->directory, STOKER_DIRECTORY_OF_FILE);
    stoker_dataset *nested = concat_of(view, folders[1].dataset);
    for (uint64_t id = 0, part = 0, begin = 0; id < count_of(view); id++) {
        if (id - begin == count_of(inner[part]))
            begin += count_of(inner[part++]);
        expect_same_sample(view, id, inner[part], id - begin);
        expect_same_sample(nested, id, inner[part], id - begin);
    }
    expect_same_sample(nested, count_of(view) + 4, folders[1].dataset, 4);
    expect_labels_agree(nested);
    stoker_dataset_close(&nested);
    stoker_dataset_close(&view);
    for (int i = 0; i < 2; i++) {
        stk_file_set_remove(&files[i]);
        stk_folder_remove(&folders[i]);
    }
}

/* A path may not lead out of the folder of its data set, into that of another one neither. */
CleanTest(views, a_link_from_one_folder_to_the_other_is_refused)
{
    struct stk_folder_set folders[2];
    stoker_error error = { .message = "" };
    uint8_t row[ROW_MAX];
    char from[512], to[512], name[64];
    for (int i = 0; i < 2; i++)
        stk_folder_make(&folders[i], 3, 10, true);
    stoker_dataset *view = concat_of(folders[0].dataset, folders[1].dataset);
    (void)stk_path_in(from, &folders[1].directory, stk_folder_name(&folders[1], 1, name));
    (void)stk_path_in(to, &folders[0].directory, stk_folder_name(&folders[0], 1, name));
    cr_assert_eq(unlink(from), 0);
    cr_assert_eq(symlink(to, from), 0);
    cr_assert_eq(stk_read_row(view, 3 + 1, row, sizeof(row), NULL, &error), STOKER_EACCES, "%s",
                 error.message);
    stoker_dataset_close(&view);
    for (int i = 0; i < 2; i++)
        stk_folder_remove(&folders[i]);
}

CleanTest(views, of_one_folder_keep_its_directory)
{
    struct stk_folder_set folder;
    stk_folder_make(&folder, 6, 3, true);
    stoker_dataset *view = concat_of(folder.dataset, folder.dataset);
    cr_assert_eq(stoker_dataset_get_info(view)->directory,
                 stoker_dataset_get_info(folder.dataset)->directory);
    cr_assert_eq(stoker_dataset_get_info(view)->file_count, 0);
    for (uint64_t i = 0; i < 12; i++)
        expect_same_sample(view, i, folder.dataset, i % 6);
    cr_assert_str_eq(stoker_dataset_class_name(view, 1, 1), "c01");
    const char *description = stoker_dataset_get_info(view)->description;
    cr_assert_not_null(strstr(description, "; "), "%s", description);
    stoker_dataset_close(&view);
    stk_folder_remove(&folder);
}

/* ---- split ------------------------------------------------------------------------------ */

/* The two sides hold every sample once; returns the size of the test side. */
static uint64_t expect_two_sides(stoker_dataset *inner, double share, uint64_t seed,
                                 bool stratified)
{
    static uint8_t seen[4096];
    const uint64_t count = count_of(inner);
    stoker_dataset *sides[2];
    cr_assert_leq(count, sizeof(seen));
    memset(seen, 0, sizeof(seen));
    for (int side = 0; side < 2; side++) {
        sides[side] = split_of(inner, share, seed, (stoker_side)side, stratified);
        for (uint64_t id = 0; id < count_of(sides[side]); id++) {
            uint8_t row[ROW_MAX];
            uint64_t word;
            cr_assert_eq(stk_read_row(sides[side], id, row, sizeof(row), NULL, NULL), 0);
            memcpy(&word, row, sizeof(word)); /* synth:bytes begins a row with the id */
            cr_assert_lt(word, count);
            cr_assert_eq(seen[word]++, 0);
            expect_same_sample(sides[side], id, inner, word);
        }
    }
    cr_assert_eq(count_of(sides[0]) + count_of(sides[1]), count);
    const uint64_t test = count_of(sides[1]);
    expect_labels_agree(sides[0]);
    for (int side = 0; side < 2; side++)
        stoker_dataset_close(&sides[side]);
    return test;
}

CleanTest(views, split_has_two_sides_of_the_right_size)
{
    static const struct {
        uint64_t count;
        double share;
        uint64_t test;
    } cases[] = { { 2, 0.5, 1 },   { 2, 1e-300, 1 },  { 2, 0.999, 1 },
                  { 10, 0.1, 1 },  { 10, 0.25, 3 },   { 10, 0.01, 1 },
                  { 10, 0.99, 9 }, { 506, 0.2, 101 }, { 1009, 0.3, 303 } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int stratified = 0; stratified < 2; stratified++) {
            char spec[64];
            (void)snprintf(spec, sizeof(spec), "synth:bytes?count=%u&shape=8",
                           (unsigned)cases[i].count);
            stoker_dataset *inner = dataset_of(spec);
            cr_assert_eq(expect_two_sides(inner, cases[i].share, i, stratified == 1),
                         cases[i].test);
            stoker_dataset_close(&inner);
        }
}

CleanTest(views, split_depends_on_the_seed_and_on_nothing_else)
{
    stoker_dataset *inner = dataset_of("synth:bytes?count=1000&shape=8");
    for (int stratified = 0; stratified < 2; stratified++) {
        stoker_dataset *first = split_of(inner, 0.1, 5, STOKER_SIDE_TEST, stratified == 1);
        stoker_dataset *again = split_of(inner, 0.1, 5, STOKER_SIDE_TEST, stratified == 1);
        stoker_dataset *other = split_of(inner, 0.1, 6, STOKER_SIDE_TEST, stratified == 1);
        uint32_t alike = 0;
        for (uint64_t id = 0; id < 100; id++) {
            uint64_t words[3];
            cr_assert_eq(stk_read_row(first, id, &words[0], 8, NULL, NULL), 0);
            cr_assert_eq(stk_read_row(again, id, &words[1], 8, NULL, NULL), 0);
            cr_assert_eq(stk_read_row(other, id, &words[2], 8, NULL, NULL), 0);
            cr_assert_eq(words[0], words[1]);
            alike += words[0] == words[2];
        }
        cr_assert_lt(alike, 50);
        stoker_dataset_close(&first);
        stoker_dataset_close(&again);
        stoker_dataset_close(&other);
    }
    stoker_dataset_close(&inner);
}

/* The same samples on every machine and in every version: a model trained before must not be tested
 * on what it saw. */
CleanTest(views, split_chooses_the_samples_that_it_always_chose)
{
    static const uint64_t plain[] = { 40, 38, 70, 55, 92 };
    static const uint64_t by_class[] = { 8, 12, 44, 60, 76 };
    stoker_dataset *inner = dataset_of("synth:bytes?count=100&shape=8");
    for (int stratified = 0; stratified < 2; stratified++) {
        stoker_dataset *test = split_of(inner, 0.05, 1, STOKER_SIDE_TEST, stratified == 1);
        cr_assert_eq(count_of(test), 5);
        for (uint64_t id = 0; id < 5; id++) {
            uint64_t word;
            cr_assert_eq(stk_read_row(test, id, &word, 8, NULL, NULL), 0);
            cr_assert_eq(word, (stratified == 1 ? by_class : plain)[id], "%d %u: %u", stratified,
                         (unsigned)id, (unsigned)word);
        }
        stoker_dataset_close(&test);
    }
    stoker_dataset_close(&inner);
}

/* 10^12 samples take no memory, and the ends of both sides are there. */
CleanTest(views, split_takes_no_memory_for_many_samples)
{
    stoker_dataset *inner = dataset_of("synth:bytes?count=1000000000000&shape=8");
    const int64_t before = stk_fault_live_bytes();
    stoker_dataset *train = split_of(inner, 0.1, 0, STOKER_SIDE_TRAIN, false);
    cr_assert_eq(count_of(train), UINT64_C(900000000000));
    cr_assert_lt(stk_fault_live_bytes() - before, 4096);
    uint64_t first, last;
    cr_assert_eq(stk_read_row(train, 0, &first, 8, NULL, NULL), 0);
    cr_assert_eq(stk_read_row(train, count_of(train) - 1, &last, 8, NULL, NULL), 0);
    cr_assert_neq(first, last);
    stoker_dataset_close(&train);
    stoker_dataset_close(&inner);
}

/* Each class has its share within one sample; 7 of 1000 classes are rarer than one test sample. */
CleanTest(views, split_by_class_gives_each_class_its_share)
{
    enum { SAMPLES = 1500, CLASSES = 10 };
    static uint64_t ids[SAMPLES];
    uint64_t all[CLASSES] = { 0 };
    uint64_t test[CLASSES] = { 0 };
    stoker_dataset *even = dataset_of("synth:bytes?count=100000&shape=8");
    for (uint32_t i = 0; i < SAMPLES; i++) { /* class c is c + 1 times as frequent as class 0 */
        uint64_t label = 0;
        for (uint64_t left = stk_mix64(i) % 55; left > label; label++)
            left -= label + 1;
        ids[i] = label + 10 * (uint64_t)i;
        all[label]++;
    }
    stoker_dataset *uneven = select_of(even, ids, SAMPLES);
    stoker_dataset *side = split_of(uneven, 0.17, 3, STOKER_SIDE_TEST, true);
    for (uint64_t id = 0, before = 0; id < count_of(side); id++) {
        uint64_t word;
        cr_assert_eq(stk_read_row(side, id, &word, 8, NULL, NULL), 0);
        cr_assert(id == 0 || word / 10 > before, "the order of the data set");
        before = word / 10;
        test[word % 10]++;
    }
    for (int i = 0; i < CLASSES; i++)
        cr_assert_lt(fabs((double)test[i] - 0.17 * (double)all[i]), 1.0);
    cr_assert_eq(count_of(side), 255);
    stoker_dataset_close(&side);
    stoker_dataset_close(&uneven);
    stoker_dataset_close(&even);
}

/* ---- weights ------------------------------------------------------------------------- */

static void expect_weights(const stoker_dataset *dataset, const double *expected, uint32_t count)
{
    cr_assert_not_null(dataset->weights);
    for (uint64_t id = 0; id < count; id++) {
        double weight = -1.0;
        cr_assert_eq(dataset->weights(dataset->self, &id, 1, &weight), STOKER_OK);
        cr_assert_eq(weight, expected[id], "weight %u: %g", (unsigned)id, weight);
    }
}

CleanTest(views, weights_follow_the_samples)
{
    static const uint64_t ids[] = { 3, 0, 1 };
    stoker_dataset *inner = dataset_of("synth:bytes?count=4&shape=8&classes=3");
    stoker_dataset *balanced = balance_of(inner);
    stoker_dataset *selected = select_of(balanced, ids, 3);
    stoker_dataset *joined = concat_of(selected, inner);
    cr_assert_null(inner->weights);
    expect_weights(balanced, (double[]){ 0.5, 1, 1, 0.5 }, 4);
    expect_weights(selected, (double[]){ 0.5, 0.5, 1 }, 3);
    expect_weights(joined, (double[]){ 0.5, 0.5, 1, 1, 1, 1, 1 }, 7);
    for (uint64_t id = 0; id < 4; id++)
        expect_same_sample(balanced, id, inner, id);
    stoker_dataset_close(&joined);
    stoker_dataset_close(&selected);
    stoker_dataset_close(&balanced);
    stoker_dataset_close(&inner);
}

/* ---- closing --------------------------------------------------------------------------- */

struct counted_set {
    int destroyed;
};

static int counted_describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                  .count = 4,
                                  .dtype = STOKER_DTYPE_UINT8,
                                  .rank = 1,
                                  .shape = { 1 } };
    return STOKER_OK;
}

static int counted_locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                          stoker_error *error)
{
    static const uint8_t rows[] = { 10, 11, 12, 13 };
    (void)self;
    (void)error;
    for (uint32_t i = 0; i < count; i++)
        out[i] = (stoker_part){ .extent = { .memory = rows + ids[i], .bytes = 1 } };
    return STOKER_OK;
}

static void counted_destroy(void *self)
{
    ((struct counted_set *)self)->destroyed++;
}

static const stoker_dataset_ops counted_ops = { .struct_size = sizeof(stoker_dataset_ops),
                                                .name = "counted",
                                                .describe = counted_describe,
                                                .locate = counted_locate,
                                                .destroy = counted_destroy };

/* ---- blocks -------------------------------------------------------------------------- */

static int blocks_describe(const void *self, stoker_dataset_info *out)
{
    const int rc = counted_describe(self, out);
    out->block_count = 2;
    return rc;
}

static uint64_t blocks_first(const void *self, uint64_t block)
{
    (void)self;
    return block * 3;
}

CleanTest(views, only_joined_sets_keep_their_blocks)
{
    struct counted_set set = { 0 };
    stoker_dataset_ops ops = counted_ops;
    stoker_dataset *plain = NULL;
    stoker_dataset *blocks = NULL;
    stoker_dataset *half = NULL;
    cr_assert_eq(stoker_dataset_create(&plain, &ops, &set, NULL), STOKER_OK);
    ops.describe = blocks_describe;
    ops.block_first = blocks_first;
    cr_assert_eq(stoker_dataset_create(&blocks, &ops, &set, NULL), STOKER_OK);
    stoker_dataset *twice = concat_of(blocks, blocks);
    stoker_dataset *thrice = concat_of(twice, blocks);
    stoker_dataset *mixed = concat_of(blocks, plain);
    cr_assert_eq(stoker_dataset_get_info(thrice)->block_count, 6);
    for (uint64_t i = 0; i < 6; i++)
        cr_assert_eq(thrice->ops->block_first(thrice->self, i), i / 2 * 4 + i % 2 * 3);
    cr_assert_eq(stoker_dataset_get_info(mixed)->block_count, 0);
    cr_assert_eq(stoker_dataset_select(&half, blocks, (const uint64_t[]){ 3, 1 }, 2, NULL), 0);
    cr_assert_eq(stoker_dataset_get_info(half)->block_count, 0);
    stoker_dataset *const made[] = { plain, blocks, twice, thrice, mixed, half };
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
        stoker_dataset_close(&(stoker_dataset *){ made[i] });
}

/* ---- owners -------------------------------------------------------------------------- */

CleanTest(views, the_last_owner_frees_the_set)
{
    struct counted_set set = { 0 };
    stoker_dataset *inner = NULL;
    stoker_error error = { .message = "" };
    cr_assert_eq(stoker_dataset_create(&inner, &counted_ops, &set, &error), STOKER_OK);
    stoker_dataset *twice = concat_of(inner, inner);
    stoker_dataset *joined = concat_of(inner, twice);
    cr_assert_eq(joined->label, -1);
    stoker_dataset_close(&inner);
    cr_assert_null(inner);
    stoker_dataset_close(&twice);
    cr_assert_eq(set.destroyed, 0);
    uint8_t row = 0;
    cr_assert_eq(stk_read_row(joined, 4 + 7, &row, 1, NULL, &error), STOKER_OK);
    cr_assert_eq(row, 13);
    stoker_dataset_close(&joined);
    cr_assert_eq(set.destroyed, 1);
}

/* The same for owners that are no views. */
CleanTest(views, a_set_may_have_several_owners)
{
    struct counted_set set = { 0 };
    stoker_dataset *first = NULL;
    cr_assert_null(stoker_dataset_share(NULL));
    cr_assert_eq(stoker_dataset_create(&first, &counted_ops, &set, NULL), STOKER_OK);
    stoker_dataset *second = stoker_dataset_share(first);
    cr_assert_eq(second, first);
    stoker_dataset_close(&first);
    cr_assert_eq(set.destroyed, 0);
    cr_assert_neq(stoker_dataset_fingerprint(second), 0);
    stoker_dataset_close(&second);
    cr_assert_eq(set.destroyed, 1);
    cr_assert_eq(stoker_dataset_fingerprint(NULL), 0);
}

/* ---- what is refused --------------------------------------------------------------------- */

static stoker_error error;

#define EXPECT_REFUSED(call, wanted, words)                                                        \
    do {                                                                                           \
        stoker_dataset *out = NULL;                                                                \
        error = (stoker_error){ .message = "" };                                                   \
        cr_assert_eq(call, wanted, "%s", error.message);                                           \
        cr_assert_null(out);                                                                       \
        cr_assert_eq(error.code, wanted);                                                          \
        cr_assert_not_null(strstr(error.message, words), "%s", error.message);                     \
    } while (0)

CleanTest(views, refuse_what_is_out_of_range)
{
    stoker_dataset *set = dataset_of("synth:bytes?count=10&shape=8");
    stoker_dataset *huge = dataset_of("synth:bytes?count=1000000000000&shape=8");
    stoker_dataset *one = dataset_of("synth:bytes?count=1&shape=8");
    const uint64_t ids[] = { 1, 2, 10 };
    stoker_split split = STOKER_SPLIT_INIT;
    EXPECT_REFUSED(stoker_dataset_select(&out, set, ids, 3, &error), STOKER_EINVAL, "ids[2] is 10");
    EXPECT_REFUSED(stoker_dataset_select(&out, set, ids, 0, &error), STOKER_EINVAL, "no ids");
    static const double shares[] = { 0.0, 1.0, -0.5, NAN, INFINITY };
    for (int i = 0; i < 5; i++) {
        split.test = shares[i];
        EXPECT_REFUSED(stoker_dataset_split(&out, set, &split, &error), STOKER_EINVAL, "test is");
    }
    split.test = 0.5;
    EXPECT_REFUSED(stoker_dataset_split(&out, one, &split, &error), STOKER_EEMPTY, "one sample");
    split.side = (stoker_side)2;
    EXPECT_REFUSED(stoker_dataset_split(&out, set, &split, &error), STOKER_EINVAL, "side 2");
    split.struct_size = 3;
    EXPECT_REFUSED(stoker_dataset_split(&out, set, &split, &error), STOKER_EINVAL, "struct_size 3");
    EXPECT_REFUSED(stoker_dataset_split(&out, set, NULL, &error), STOKER_EINVAL, "NULL");
    EXPECT_REFUSED(stoker_dataset_concat(&out, (stoker_dataset *[]){ set, NULL }, 2, &error),
                   STOKER_EINVAL, "data set 1 is NULL");
    enum { MANY = 4096 };
    static stoker_dataset *many[MANY];
    stoker_dataset *larger = NULL;
    for (int i = 0; i < MANY; i++)
        many[i] = huge;
    cr_assert_eq(stoker_dataset_concat(&larger, many, MANY, NULL), STOKER_OK);
    for (int i = 0; i < MANY; i++)
        many[i] = larger;
    EXPECT_REFUSED(stoker_dataset_concat(&out, many, MANY, &error), STOKER_ELIMIT, "2^62");
    stoker_dataset_close(&larger);
    EXPECT_REFUSED(stoker_dataset_concat(&out, &set, 0, &error), STOKER_EINVAL, "count is 0");
    cr_assert_eq(stoker_dataset_select(NULL, set, ids, 1, NULL), STOKER_EINVAL);
    stoker_dataset_close(&one);
    stoker_dataset_close(&huge);
    stoker_dataset_close(&set);
}

CleanTest(views, concat_says_which_field_differs_and_how)
{
    struct stk_folder_set folders[2];
    static const struct {
        const char *spec;
        const char *words;
    } cases[] = {
        { "synth:bytes?count=3&shape=8x9", "field \"row\": data set 1 (synth:bytes) has 8x8 uint8, "
                                           "data set 2 (synth:bytes) has 8x9 uint8" },
        { "synth:bytes?count=3&shape=8x8x1", "field 0 is \"row\" (8x8 uint8) in data set 1 "
                                             "(synth:bytes), but \"image\" (8x8x1 uint8 image)" },
        { "synth:bytes?count=3&shape=8x8&dtype=int16", "8x8 int16" },
    };
    stoker_dataset *first = dataset_of("synth:bytes?count=3&shape=8x8");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        stoker_dataset *other = dataset_of(cases[i].spec);
        EXPECT_REFUSED(stoker_dataset_concat(&out, (stoker_dataset *[]){ first, other }, 2, &error),
                       STOKER_EMISMATCH, cases[i].words);
        stoker_dataset_close(&other);
    }
    stoker_dataset_close(&first);

    struct counted_set set = { 0 };
    stoker_dataset *unlabeled = NULL;
    cr_assert_eq(stoker_dataset_create(&unlabeled, &counted_ops, &set, NULL), STOKER_OK);
    stoker_dataset *labeled = dataset_of("synth:bytes?count=3&shape=1");
    EXPECT_REFUSED(
        stoker_dataset_concat(&out, (stoker_dataset *[]){ unlabeled, labeled }, 2, &error),
        STOKER_EMISMATCH,
        "data set 1 (counted) has 1 fields, data set 2 (synth:bytes) has 2: only one has "
        "\"label\"");
    stoker_split split = stk_split_of(.test = 0.5, .stratified = true);
    EXPECT_REFUSED(stoker_dataset_split(&out, unlabeled, &split, &error), STOKER_EINVAL,
                   "no class labels");
    EXPECT_REFUSED(stoker_dataset_balance(&out, unlabeled, &error), STOKER_EINVAL,
                   "no class labels");
    stoker_dataset_close(&labeled);
    stoker_dataset_close(&unlabeled);

    char from[512], to[512], spec[400];
    for (int i = 0; i < 2; i++)
        stk_folder_make(&folders[i], 4, 2, true);
    (void)stk_path_in(from, &folders[1].directory, "c01");
    (void)stk_path_in(to, &folders[1].directory, "cat");
    cr_assert_eq(rename(from, to), 0);
    (void)snprintf(spec, sizeof(spec), "folder:%s?extensions=png", folders[1].directory.path);
    stoker_dataset *renamed = dataset_of(spec);
    EXPECT_REFUSED(
        stoker_dataset_concat(&out, (stoker_dataset *[]){ folders[0].dataset, renamed }, 2, &error),
        STOKER_EMISMATCH, "class 1 is \"c01\" in data set 1, but \"cat\" in data set 2");
    stoker_dataset_close(&renamed);
    for (int i = 0; i < 2; i++)
        stk_folder_remove(&folders[i]);
}

/* Classes of any field, not only of labels. */
CleanTest(views, keep_the_classes_of_every_field)
{
    static const float row[2] = { 1, 2 };
    static const int64_t kinds[2] = { 0, 1 };
    static const char *const names[3][2] = { { "a", "b" }, { "a", "b" }, { "a", "c" } };
    stoker_dataset *words[3];
    for (int i = 0; i < 3; i++) {
        stoker_array arrays[2] = { STOKER_ARRAY_INIT, STOKER_ARRAY_INIT };
        arrays[0].name = "row";
        arrays[0].data = row;
        arrays[0].dtype = STOKER_DTYPE_FLOAT32;
        arrays[1].name = "kind";
        arrays[1].data = kinds;
        arrays[1].dtype = STOKER_DTYPE_INT64;
        arrays[1].class_count = 2;
        arrays[1].class_names = names[i];
        cr_assert_eq(stoker_dataset_from_arrays(&words[i], arrays, 2, 2, NULL, NULL), STOKER_OK);
    }
    stoker_dataset *view = concat_of(words[0], words[1]);
    cr_assert_str_eq(stoker_dataset_class_name(view, 1, 1), "b");
    cr_assert_null(stoker_dataset_class_name(view, 0, 0));
    stoker_dataset_close(&view);
    EXPECT_REFUSED(
        stoker_dataset_concat(&out, (stoker_dataset *[]){ words[0], words[2] }, 2, &error),
        STOKER_EMISMATCH, "kind: class 1 is \"b\" in data set 1, but \"c\" in data set 2");
    for (int i = 0; i < 3; i++)
        stoker_dataset_close(&words[i]);
}

CleanTest(views, nest_up_to_a_limit)
{
    stoker_dataset *top = dataset_of("synth:bytes?count=5&shape=8");
    for (int depth = 0; depth < STOKER_VIEW_DEPTH_MAX; depth++) {
        stoker_dataset *next =
            depth % 2 == 0 ? concat_of(top, top) : split_of(top, 0.5, 1, 0, false);
        stoker_dataset_close(&top);
        top = next;
    }
    (void)label_of(top, 0);
    EXPECT_REFUSED(stoker_dataset_concat(&out, &top, 1, &error), STOKER_ELIMIT, "16 deep");
    stoker_dataset_close(&top);
}

/* ---- fingerprints ---------------------------------------------------------------------- */

static uint64_t fingerprint_of(stoker_dataset *view)
{
    const struct stk_fingerprint found = stk_fingerprint_of(view);
    stoker_dataset_close(&view);
    return (uint64_t)found.form << 32 | found.content;
}

/* Equal views have equal fingerprints; each parameter makes another. */
CleanTest(views, are_known_by_their_parameters)
{
    static const uint64_t ids[] = { 1, 2, 3 };
    static const uint64_t others[] = { 1, 3, 2 };
    stoker_dataset *set = dataset_of("synth:bytes?count=8&shape=8");
    uint64_t found[16];
    for (int round = 0; round < 2; round++) {
        uint64_t now[16];
        uint32_t count = 0;
        now[count++] = fingerprint_of(select_of(set, ids, 3));
        now[count++] = fingerprint_of(select_of(set, others, 3));
        now[count++] = fingerprint_of(select_of(set, ids, 2));
        now[count++] = fingerprint_of(concat_of(set, set));
        now[count++] = fingerprint_of(split_of(set, 0.5, 0, STOKER_SIDE_TEST, false));
        now[count++] = fingerprint_of(split_of(set, 0.5, 0, STOKER_SIDE_TRAIN, false));
        now[count++] = fingerprint_of(split_of(set, 0.5, 1, STOKER_SIDE_TRAIN, false));
        now[count++] = fingerprint_of(split_of(set, 0.51, 0, STOKER_SIDE_TRAIN, false));
        now[count++] = fingerprint_of(split_of(set, 0.5, 0, STOKER_SIDE_TRAIN, true));
        now[count++] = fingerprint_of(balance_of(set));
        for (uint32_t i = 0; i < count; i++) {
            cr_assert(round == 0 || now[i] == found[i]);
            for (uint32_t j = 0; j < i; j++)
                cr_assert_neq(now[i], now[j], "%u and %u", i, j);
            found[i] = now[i];
        }
    }
    stoker_dataset_close(&set);
}
