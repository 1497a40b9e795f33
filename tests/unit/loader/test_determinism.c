/* test_determinism.c - the order and every byte are a pure function of (seed, epoch, position): each kind of data set,
 * view, hook and order gives the same batches in all 36 settings of support/settings.h, on the stand-in's GPU, too; and
 * the same samples if the run stops at any batch and resumes in another world, with another batch size and setting; and
 * the same batches if several ranks take them by turns (STOKER_DEAL_BATCHES).
 *
 * A subject is a row of the table below.
 */
#include <criterion/criterion.h>
#include <stoker/arrays.h>

#include "support/drawn_set.h"
#include "support/folder_files.h"
#include "support/leaks.h"
#include "support/opened_loader.h"
#include "support/positions.h"
#include "support/random_hooks.h"
#include "support/settings.h"
#include "support/several_set.h"
#ifdef STOKER_TEST_STANDIN_CUDA
#include "support/cuda_host_kernels.h"
#include "support/cuda_run.h"
#endif

enum { EPOCHS = 2, BATCH = 7, FILES = 31, OWN_LENGTH = 44 };

static struct several_set several;
static struct stk_file_set files;
static struct stk_folder_set folders;
static struct stk_drawn_set drawn;
static struct stk_random_hooks hooks;

/* ---- batches on a GPU ------------------------------------------------------------ */

#ifdef STOKER_TEST_STANDIN_CUDA
static struct stk_cuda_consumer consumer;

static void gpu_begin(void)
{
    standin_cuda_reset(1);
    standin_cuda_delay(20);
    stk_cuda_use_host_kernels();
    cr_assert(stk_cuda_consumer_init(&consumer, 0));
}

static void gpu_end(void)
{
    stk_cuda_consumer_destroy(&consumer);
    cr_assert_eq(standin_cuda_live(), 0);
    cr_assert_eq(standin_cuda_violations(), 0U);
}

static void show(struct stk_shown_batch *shown)
{
    if (shown->batch.device != STOKER_DEVICE_CUDA)
        return;
    cr_assert_eq(stoker_batch_wait_on(&shown->batch, consumer.stream), STOKER_OK);
    stk_cuda_consumer_wait(&consumer);
    shown->batch.device_ids = standin_cuda_view(shown->batch.device_ids);
    for (uint32_t i = 0; i < shown->batch.field_count; i++) {
        stoker_field *field = &shown->fields[i];
        field->values.data = standin_cuda_view(field->values.data);
        if (field->device_offsets != NULL)
            field->device_offsets = standin_cuda_view(field->device_offsets);
    }
}

static const bool gpu = true;
#else
static void gpu_begin(void)
{
}

static void gpu_end(void)
{
}

static void show(struct stk_shown_batch *shown)
{
    (void)shown;
}

static const bool gpu = false;
#endif

/* ---- subjects -------------------------------------------------------------------- */

/* The caller closes it. */
static stoker_dataset *share(stoker_dataset *dataset)
{
    stoker_dataset *shared = NULL;
    cr_assert_eq(stoker_dataset_repeat(&shared, dataset, 1, NULL), STOKER_OK);
    return shared;
}

static stoker_dataset *open_several(stoker_loader_options *options)
{
    (void)options;
    return share(several.dataset);
}

/* In memory, of fixed sizes. */
static stoker_dataset *open_fixed(stoker_loader_options *options)
{
    static uint8_t images[FILES * 12];
    static double targets[FILES * 2];
    stoker_array arrays[2] = { STOKER_ARRAY_INIT, STOKER_ARRAY_INIT };
    stoker_dataset *dataset = NULL;
    (void)options;
    for (uint32_t i = 0; i < FILES * 12; i++)
        images[i] = stk_set_byte(1, i);
    for (uint32_t i = 0; i < FILES * 2; i++)
        targets[i] = i / 4.0;
    arrays[0].name = "image";
    arrays[0].data = images;
    arrays[0].dtype = STOKER_DTYPE_UINT8;
    arrays[0].rank = 1;
    arrays[0].shape[0] = 12;
    arrays[1].name = "targets";
    arrays[1].data = targets;
    arrays[1].dtype = STOKER_DTYPE_FLOAT64;
    arrays[1].rank = 1;
    arrays[1].shape[0] = 2;
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, arrays, 2, FILES, NULL, NULL), STOKER_OK);
    return dataset;
}

static stoker_dataset *open_padded(stoker_loader_options *options)
{
    static stoker_field_options fields[2];
    fields[0] = fields[1] = (stoker_field_options)STOKER_FIELD_OPTIONS_INIT;
    fields[0].name = "text";
    fields[0].form = STOKER_FORM_PADDED;
    fields[0].pad_value = 7;
    fields[0].dtype = STOKER_DTYPE_INT32;
    fields[1].name = "words";
    fields[1].form = STOKER_FORM_PADDED_MULTIPLE;
    fields[1].multiple = 4;
    options->fields = fields;
    options->field_count = 2;
    return share(several.dataset);
}

/* Converted and transformed on the GPU, if it can. */
static stoker_dataset *open_images(stoker_loader_options *options)
{
    options->dtype = STOKER_DTYPE_FLOAT32;
    options->layout = STOKER_LAYOUT_NCHW;
    options->transform = (stoker_transform){
        .random_crop = { 4, 4 }, .pad = 1, .flip = true, .brightness = 0.3F, .hue = 0.2F
    };
    return share(files.dataset);
}

/* Which samples are mixed depends on the rows of their batch. */
static stoker_dataset *open_mixed(stoker_loader_options *options)
{
    options->mixing.mixup_alpha = 0.4F;
    options->mixing.cutmix_alpha = 1.0F;
    options->mixing.probability = 0.8F;
    return open_images(options);
}

static stoker_dataset *open_row_hook(stoker_loader_options *options)
{
    options->row_hook = &hooks.row;
    return share(several.dataset);
}

/* What a batch hook does depends on the rows of its batch. */
static stoker_dataset *open_hooks(stoker_loader_options *options)
{
    options->batch_hook = &hooks.batch;
    return open_row_hook(options);
}

static stoker_dataset *open_weighted(stoker_loader_options *options)
{
    double weights[SEVERAL_COUNT];
    stoker_dataset *weighted = NULL;
    (void)options;
    for (int i = 0; i < SEVERAL_COUNT; i++)
        weights[i] = i % 3 == 0 ? i : 0.25;
    cr_assert_eq(stoker_dataset_weight(&weighted, several.dataset, weights, SEVERAL_COUNT, NULL),
                 STOKER_OK);
    return weighted;
}

/* Read by name, read by place, and drawn. */
static stoker_dataset *open_concat(stoker_loader_options *options)
{
    stoker_dataset *view = NULL;
    stoker_dataset *synth = dataset_of("synth:bytes?count=7&shape=1x40x1");
    stoker_error error = { .message = "" };
    (void)options;
    stoker_dataset *inner[3] = { folders.dataset, synth, folders.dataset };
    cr_assert_eq(stoker_dataset_concat(&view, inner, 3, &error), STOKER_OK, "%s", error.message);
    stoker_dataset_close(&synth);
    return view;
}

static stoker_dataset *open_split(stoker_loader_options *options)
{
    stoker_dataset *view = NULL;
    stoker_split split = STOKER_SPLIT_INIT;
    (void)options;
    split.test = 0.4;
    split.seed = 3;
    cr_assert_eq(stoker_dataset_split(&view, several.dataset, &split, NULL), STOKER_OK);
    return view;
}

/* Each copy of an image is transformed in its own way. */
static stoker_dataset *open_repeat(stoker_loader_options *options)
{
    stoker_dataset *view = NULL;
    options->transform.flip = true;
    cr_assert_eq(stoker_dataset_repeat(&view, files.dataset, 2, NULL), STOKER_OK);
    return view;
}

static stoker_dataset *open_select(stoker_loader_options *options)
{
    static const uint64_t ids[] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8 };
    stoker_dataset *view = NULL;
    (void)options;
    cr_assert_eq(stoker_dataset_select(&view, several.dataset, ids, 19, NULL), STOKER_OK);
    return view;
}

static int backwards(void *self, uint64_t epoch, uint64_t position, uint64_t stride, uint32_t count,
                     uint64_t *ids, stoker_error *error)
{
    (void)self;
    (void)error;
    for (uint32_t i = 0; i < count; i++)
        ids[i] = (epoch + (position + i * stride) * (SEVERAL_COUNT - 2)) % SEVERAL_COUNT;
    return 0;
}

static stoker_dataset *open_own_order(stoker_loader_options *options)
{
    static stoker_order order;
    order = (stoker_order)STOKER_ORDER_INIT;
    order.kind = STOKER_ORDER_OWN;
    order.ids = backwards;
    order.length = OWN_LENGTH;
    options->order = &order;
    return share(several.dataset);
}

static stoker_dataset *open_made(stoker_loader_options *options)
{
    (void)options;
    return stk_drawn_open(&drawn);
}

static stoker_dataset *open_substituted(stoker_loader_options *options)
{
    several.broken_image = 17;
    several.broken_pair = 40;
    options->on_bad_sample = STOKER_ON_BAD_SUBSTITUTE;
    return share(several.dataset);
}

static stoker_dataset *open_skipped(stoker_loader_options *options)
{
    stoker_dataset *dataset = open_substituted(options);
    options->on_bad_sample = STOKER_ON_BAD_SKIP;
    return dataset;
}

static stoker_dataset *open_last_padded(stoker_loader_options *options)
{
    options->last = STOKER_LAST_PAD;
    return share(several.dataset);
}

enum {
    RESUMES = 1,  /* a row depends on (seed, epoch, position) alone, not on its batch */
    COMPLETE = 2, /* every position comes */
};

static const struct subject {
    const char *name;
    stoker_dataset *(*open)(stoker_loader_options *options);
    uint32_t rules;
} subjects[] = {
    { "fields of fixed sizes, in memory", open_fixed, RESUMES | COMPLETE },
    { "fields of varying length, packed", open_several, RESUMES | COMPLETE },
    { "fields of varying length, padded", open_padded, RESUMES | COMPLETE },
    { "images, converted and transformed", open_images, RESUMES | COMPLETE },
    { "mixup and cutmix", open_mixed, COMPLETE },
    { "a row hook", open_row_hook, RESUMES | COMPLETE },
    { "a row hook and a batch hook", open_hooks, COMPLETE },
    { "weighted", open_weighted, RESUMES | COMPLETE },
    { "concat", open_concat, RESUMES | COMPLETE },
    { "split", open_split, RESUMES | COMPLETE },
    { "repeat", open_repeat, RESUMES | COMPLETE },
    { "select", open_select, RESUMES | COMPLETE },
    { "an order of the caller", open_own_order, RESUMES | COMPLETE },
    { "samples that make() draws", open_made, RESUMES | COMPLETE },
    { "bad samples, substituted", open_substituted, RESUMES | COMPLETE },
    { "bad samples, skipped", open_skipped, 0 },
    { "the last batch filled up", open_last_padded, RESUMES | COMPLETE },
};

enum { SUBJECTS = sizeof(subjects) / sizeof(subjects[0]) };

/* ---- runs ------------------------------------------------------------------------ */

static struct stk_positions expected;
static struct stk_positions found;

static stoker_dataset *open_subject(const struct subject *subject, stoker_loader_options *options)
{
    several.broken_image = SEVERAL_NOTHING_BROKEN;
    several.broken_pair = SEVERAL_NOTHING_BROKEN;
    stk_random_hooks_init(&hooks);
    *options = stk_small_options();
    options->batch_size = BATCH;
    options->epochs = EPOCHS;
    return subject->open(options);
}

/* The plainest run: one rank, no workers, no cache, pread. */
static void expect_plain(const struct subject *subject, const stoker_dataset *dataset,
                         stoker_loader_options options)
{
    const uint64_t count = stoker_dataset_get_info(dataset)->count;
    options.reader = stoker_reader_pread();
    const int rc = stk_positions_plain(&expected, dataset, options,
                                       options.order != NULL ? options.order->length : count);
    cr_assert_eq(rc, STOKER_FINISHED, "%s: %s", subject->name, expected.error.message);
    cr_assert_null(expected.wrong, "%s: %s", subject->name, expected.wrong);
    if ((subject->rules & COMPLETE) != 0)
        cr_assert_eq(expected.filled, EPOCHS * expected.length, "%s", subject->name);
    cr_assert_neq(expected.hashes[0], expected.hashes[expected.length],
                  "%s: both epochs begin alike", subject->name);
}

static void begin(void)
{
    gpu_begin();
    cr_assert(several_make(&several));
    cr_assert(stk_file_set_make(&files, FILES, 4, 5, 3));
    stk_folder_make(&folders, 11, 4, true);
}

static void end(void)
{
    several_remove(&several);
    stk_file_set_remove(&files);
    stk_folder_remove(&folders);
    gpu_end();
    stk_test_check_leaks();
}

TestSuite(determinism, .init = begin, .fini = end, .timeout = 100);

static void check_settings(const struct subject *subject)
{
    stoker_loader_options options;
    stoker_dataset *dataset = open_subject(subject, &options);
    expect_plain(subject, dataset, options);
    for (uint32_t setting = 0; setting < STK_SETTINGS; setting++) {
        stk_setting_apply(setting, gpu, &options);
        stk_positions_begin(&found, dataset, expected.length, show);
        const int rc = stk_positions_continue(&found, options, UINT32_MAX);
        cr_assert_eq(rc, STOKER_FINISHED, "%s, setting %u: %s", subject->name, setting,
                     found.error.message);
        cr_assert_null(found.wrong, "%s, setting %u: %s", subject->name, setting, found.wrong);
        cr_assert_arr_eq(found.hashes, expected.hashes, sizeof(found.hashes), "%s, setting %u",
                         subject->name, setting);
        cr_assert_eq(found.all, expected.all, "%s, setting %u: padding, offsets or shapes differ",
                     subject->name, setting);
    }
    stoker_dataset_close(&dataset);
}

Test(determinism, every_subject_is_the_same_in_every_setting)
{
    for (int i = 0; i < SUBJECTS; i++)
        check_settings(&subjects[i]);
}

/* Some batches of one world, one of another, the rest of a third; no world, batch size, setting or way of dealing is
 * that before. */
static void stop_twice(const struct subject *subject, const stoker_dataset *dataset,
                       stoker_loader_options options, uint32_t stop)
{
    static const struct {
        uint32_t world, batch;
    } legs[] = { { 1, BATCH }, { 2, 5 }, { 3, 4 } };
    int rc = STOKER_OK;
    stk_positions_begin(&found, dataset, expected.length, show);
    for (uint32_t leg = 0; leg < 3 && rc >= 0; leg++) {
        stk_setting_apply((stop * 7 + leg * 13) % STK_SETTINGS, gpu, &options);
        options.deal = (stoker_deal)((stop + leg) % 2);
        options.world_size = legs[leg].world;
        options.batch_size = legs[leg].batch;
        rc = stk_positions_continue(&found, options, leg == 0 ? stop : leg == 1 ? 1 : UINT32_MAX);
    }
    cr_assert_eq(rc, STOKER_FINISHED, "%s, stop %u: %s", subject->name, stop, found.error.message);
    cr_assert_null(found.wrong, "%s, stop %u: %s", subject->name, stop, found.wrong);
    cr_assert(stk_positions_equal(&expected, &found, EPOCHS), "%s, stop %u", subject->name, stop);
}

Test(determinism, every_subject_resumes_at_every_batch_in_another_world)
{
    for (int i = 0; i < SUBJECTS; i++) {
        stoker_loader_options options;
        if ((subjects[i].rules & RESUMES) == 0)
            continue;
        stoker_dataset *dataset = open_subject(&subjects[i], &options);
        expect_plain(&subjects[i], dataset, options);
        for (uint32_t stop = 0; stop <= expected.batches; stop++)
            stop_twice(&subjects[i], dataset, options, stop);
        stoker_dataset_close(&dataset);
    }
}

/* ---- batches dealt to ranks ------------------------------------------------------ */

enum { PASSES_MAX = 32, WORLD_MAX = 4 };

static uint64_t passes[EPOCHS][PASSES_MAX];
static uint32_t pass_count; /* in an epoch */

/* Batch k of rank r of w is pass k * w + r of its epoch: one rank sets it, several are compared with it.
 * Returns the number of passes taken. */
static uint32_t take_passes(const struct subject *subject, const stoker_dataset *dataset,
                            const stoker_loader_options *options)
{
    static struct stk_shown_batch shown;
    const bool sets = options->world_size == 1;
    stoker_loader *loader = loader_of(dataset, options);
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc = STOKER_OK;
    uint32_t taken = 0;
    while (rc != STOKER_FINISHED) {
        rc = stoker_loader_next(loader, &batch, 20000);
        cr_assert_geq(rc, 0, "%s", subject->name);
        if (rc != STOKER_OK)
            continue;
        const uint32_t pass = (uint32_t)batch.index * options->world_size + options->rank;
        stk_shown_begin(&shown, dataset, &batch, show);
        shown.batch.index = 0;
        cr_assert_lt(pass, PASSES_MAX);
        pass_count = sets && pass >= pass_count ? pass + 1 : pass_count;
        cr_assert(sets || pass < pass_count || batch.count == batch.padded, "%s", subject->name);
        if (sets)
            passes[batch.epoch][pass] = stk_shown_hash(&shown);
        else if (pass < pass_count)
            cr_assert_eq(stk_shown_hash(&shown), passes[batch.epoch][pass],
                         "%s: rank %u of %u, pass %u", subject->name, options->rank,
                         options->world_size, pass);
        taken += pass < pass_count;
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    return taken;
}

Test(determinism, every_subject_is_dealt_by_batches)
{
    for (uint32_t i = 0; i < SUBJECTS; i++) {
        stoker_loader_options options;
        stoker_dataset *dataset = open_subject(&subjects[i], &options);
        pass_count = 0;
        options.num_workers = 0;
        options.reader = stoker_reader_pread();
        cr_assert_eq(take_passes(&subjects[i], dataset, &options), EPOCHS * pass_count);
        options.deal = STOKER_DEAL_BATCHES;
        for (options.world_size = 2; options.world_size <= WORLD_MAX; options.world_size++) {
            uint32_t taken = 0;
            for (options.rank = 0; options.rank < options.world_size; options.rank++) {
                stk_setting_apply((i + options.rank * 13 + options.world_size * 5) % STK_SETTINGS,
                                  gpu, &options);
                taken += take_passes(&subjects[i], dataset, &options);
            }
            cr_assert_eq(taken, EPOCHS * pass_count, "%s", subjects[i].name);
        }
        stoker_dataset_close(&dataset);
    }
}

/* ---- the list itself ------------------------------------------------------------- */

Test(determinism, any_two_values_of_any_two_dimensions_meet)
{
    static const uint32_t levels[STK_DIMENSIONS] = { 4, 4, 3, 3, 3, 3, 2, 2, 2 };
    for (int one = 0; one < STK_DIMENSIONS; one++)
        for (int other = 0; other < one; other++) {
            bool met[STK_LEVELS_MAX][STK_LEVELS_MAX] = { { false } };
            uint32_t pairs = 0;
            for (uint32_t i = 0; i < STK_SETTINGS; i++) {
                uint32_t at[STK_DIMENSIONS];
                const struct stk_setting setting = stk_setting_of(i);
                memcpy(at, &setting, sizeof(at));
                pairs += met[at[one]][at[other]] ? 0 : 1;
                met[at[one]][at[other]] = true;
            }
            cr_assert_eq(pairs, levels[one] * levels[other], "dimensions %d and %d", one, other);
        }
}
