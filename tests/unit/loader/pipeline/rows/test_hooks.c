/* test_hooks.c - hooks see each row and batch once, and the geometry that was drawn; what fails is
 * reported under their name. That no setting or stop changes their bytes is test_determinism.c's.
 */
#include "support/files/image_folder.h"
#include "support/gpu/transform_ranges.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/random_hooks.h"
#include "support/sets/made_set.h"

enum { COUNT = 101, ROW = 200 };

static struct stk_random_hooks hooks;

static stoker_loader_options options_with(bool rows, bool batches)
{
    stoker_loader_options options = stk_small_options();
    stk_random_hooks_init(&hooks);
    options.row_hook = rows ? &hooks.row : NULL;
    options.batch_hook = batches ? &hooks.batch : NULL;
    return options;
}

static void open_set(struct stk_made_set *set, stk_made_kind_of *kind_of)
{
    *set = (struct stk_made_set){ .count = COUNT, .row_bytes = ROW, .kind_of = kind_of };
    cr_assert(stk_made_set_open(set));
}

CleanTest(hooks, change_rows_and_batches)
{
    static struct stk_run runs[3];
    struct stk_made_set set;
    open_set(&set, stk_made_every_kind);
    for (int i = 0; i < 3; i++) {
        const stoker_loader_options options = options_with(i > 0, i > 1);
        cr_assert_eq(stk_run(set.dataset, &options, &runs[i]), STOKER_FINISHED);
        cr_assert(i == 0 || runs[i].hashes[0] != runs[i - 1].hashes[0]);
    }
    stk_made_set_close(&set);
}

CleanTest(hooks, each_row_and_each_batch_is_seen_once)
{
    static struct stk_run run;
    stoker_dataset *dataset = dataset_of("synth:digits?count=100");
    stoker_loader_options options = options_with(true, true);
    for (options.num_workers = 0; options.num_workers <= 3; options.num_workers += 3) {
        stk_random_hooks_init(&hooks);
        cr_assert_eq(stk_run(dataset, &options, &run), STOKER_FINISHED);
        cr_assert_eq(atomic_load(&hooks.rows), 200);
        cr_assert_eq(atomic_load(&hooks.batches), (int32_t)run.batches);
        cr_assert_geq(atomic_load(&hooks.opens), 2);
    }
    stoker_dataset_close(&dataset);
}

/* ---- what a row hook sees ---- */

/* Repeats crop and flip from the geometry, on the image of the sample. */
static int check_geometry(void *self, void *scratch, stoker_row *fields, uint32_t count,
                          const stoker_hook_sample *sample, stoker_rng *rng, stoker_error *error)
{
    const struct stk_image_folder *images = self;
    static _Thread_local struct stk_picture picture;
    (void)scratch;
    (void)rng;
    (void)error;
    stk_image_size(images, sample->id, &picture);
    stk_picture_paint(&picture, sample->id);
    bool good = count == 2 && sample->source_height == picture.height &&
                sample->source_width == picture.width && sample->crop_height == picture.height &&
                sample->grid_width == picture.width &&
                fields[0].bytes_max == (size_t)sample->out_height * sample->out_width * 3;
    for (uint32_t i = 0; good && i < sample->out_height * sample->out_width; i++) {
        const uint32_t x = i % sample->out_width;
        const int32_t y = sample->y + (int32_t)(i / sample->out_width);
        const int32_t from = sample->x + (int32_t)(sample->flip ? sample->out_width - 1 - x : x);
        const bool inside =
            y >= 0 && from >= 0 && y < (int32_t)picture.height && from < (int32_t)picture.width;
        for (uint32_t c = 0; c < 3; c++) {
            const uint8_t expected = inside ? (uint8_t)picture.samples[y][from][c] : 7;
            good = good && ((const uint8_t *)fields[0].data)[(size_t)i * 3 + c] == expected;
        }
    }
    return good ? STOKER_OK : STOKER_EMISMATCH;
}

CleanTest(hooks, the_geometry_is_that_of_the_row)
{
    static struct stk_run run;
    struct stk_image_folder images;
    stk_image_folder_make(&images, false, "");
    const stoker_row_hook hook = { .struct_size = sizeof(hook),
                                   .self = &images,
                                   .apply = check_geometry };
    stoker_loader_options options = stk_small_options(.row_hook = &hook);
    options.transform = (stoker_transform){
        .random_crop = { 20, 30 }, .pad = 5, .flip = true, .fill = { 7, 7, 7 }
    };
    for (options.num_workers = 0; options.num_workers <= 2; options.num_workers += 2)
        for (int cache = STOKER_CACHE_NONE; cache <= STOKER_CACHE_DECODED; cache++) {
            options.cache = (stoker_cache)cache;
            cr_assert_eq(stk_run(images.dataset, &options, &run), STOKER_FINISHED, "cache %d",
                         cache);
        }
    stk_image_folder_remove(&images);
}

/* ---- failures ---- */

static void expect_end(const stoker_dataset *dataset, const stoker_loader_options *options,
                       int code, const char *words)
{
    static struct stk_run run;
    stoker_loader *loader = loader_of(dataset, options);
    run = (struct stk_run){ 0 };
    stk_run_on(loader, &run, UINT32_MAX);
    cr_assert_eq(run.rc, code);
    const stoker_error *error = stoker_loader_error(loader);
    cr_assert_eq(error->stage, STOKER_STAGE_HOOK);
    cr_assert_neq(strstr(error->message, words), NULL, "%s", error->message);
    stoker_loader_destroy(&loader);
    cr_assert_eq(atomic_load(&hooks.open), 0);
}

CleanTest(hooks, a_row_that_fails_ends_the_run_under_the_name_of_its_hook)
{
    stoker_dataset *dataset = dataset_of("synth:digits?count=100");
    for (int32_t workers = 0; workers <= 3; workers += 3) {
        stoker_loader_options options = options_with(true, false);
        options.num_workers = workers;
        hooks.breaks_each = 50;
        expect_end(dataset, &options, STOKER_ECORRUPT, "random row: not this one");
        hooks.code = 5;
        expect_end(dataset, &options, STOKER_EINVAL, "random row: apply() returned 5");
    }
    stoker_dataset_close(&dataset);
}

CleanTest(hooks, a_batch_that_fails_ends_the_run_under_the_name_of_its_hook)
{
    stoker_dataset *dataset = dataset_of("synth:digits?count=100");
    for (int32_t workers = 0; workers <= 3; workers += 3) {
        stoker_loader_options options = options_with(true, true);
        options.num_workers = workers;
        hooks.breaks_at = 32;
        expect_end(dataset, &options, STOKER_ECORRUPT, "random batch: nor this one");
    }
    stoker_dataset_close(&dataset);
}

/* As the data set's own bad samples. */
CleanTest(hooks, a_row_that_fails_is_skipped_or_replaced)
{
    static struct stk_run run;
    for (int on_bad = STOKER_ON_BAD_SKIP; on_bad <= STOKER_ON_BAD_SUBSTITUTE; on_bad++) {
        stoker_dataset *dataset = dataset_of("synth:digits?count=100");
        stoker_loader_options options = options_with(true, on_bad == (int)STOKER_ON_BAD_SUBSTITUTE);
        options.on_bad_sample = (stoker_on_bad)on_bad;
        hooks.breaks_each = 10;
        cr_assert_eq(stk_run(dataset, &options, &run), STOKER_FINISHED);
        cr_assert_eq(run.samples, on_bad == (int)STOKER_ON_BAD_SKIP ? 180 : 200);
        stoker_dataset_close(&dataset);
    }
}

CleanTest(hooks, open_may_fail_in_any_worker)
{
    stoker_dataset *dataset = dataset_of("synth:digits?count=100");
    for (int32_t workers = 0; workers <= 4; workers += 2)
        for (int32_t nth = 1;; nth++) {
            stoker_loader *loader = NULL;
            stoker_error error = { .code = 0 };
            stoker_loader_options options = options_with(true, true);
            options.num_workers = workers;
            hooks.fails_open = nth;
            const int rc = stoker_loader_create(&loader, dataset, &options, &error);
            stoker_loader_destroy(&loader);
            cr_assert_eq(atomic_load(&hooks.open), 0);
            if (rc == STOKER_OK) {
                cr_assert_gt(nth, 2 * workers);
                break;
            }
            cr_assert_eq(rc, STOKER_ENOMEM);
            cr_assert_eq(error.stage, STOKER_STAGE_HOOK);
            cr_assert_neq(strstr(error.message, ": open() failed"), NULL, "%s", error.message);
        }
    stoker_dataset_close(&dataset);
}

/* ---- options ---- */

static void expect_refused(const stoker_loader_options *options, const char *words)
{
    stoker_dataset *dataset = dataset_of("synth:digits?count=100");
    stoker_loader *loader = NULL;
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_loader_create(&loader, dataset, options, &error), STOKER_EINVAL);
    cr_assert_neq(strstr(error.message, words), NULL, "%s", error.message);
    stoker_dataset_close(&dataset);
}

CleanTest(hooks, what_cannot_be_is_refused_by_name)
{
    stoker_loader_options options = options_with(true, true);
    hooks.row.struct_size = 0;
    expect_refused(&options, "row_hook: struct_size 0");
    options = options_with(true, true);
    hooks.row.apply = NULL;
    expect_refused(&options, "row_hook: apply is NULL");
    options = options_with(true, true);
    hooks.batch.struct_size--;
    expect_refused(&options, "batch_hook: struct_size ");
    options = options_with(true, true);
    hooks.batch.apply = NULL;
    expect_refused(&options, "batch_hook: apply is NULL");
    options = options_with(false, true);
    options.on_bad_sample = STOKER_ON_BAD_SKIP;
    expect_refused(&options, "batch_hook: on_bad_sample SKIP");
}
