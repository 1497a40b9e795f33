/* subjects.h - kinds of data sets, views, hooks and orders, for tests that run a loader over each.
 *
 * A subject is a row of the table at the end. With Criterion; one test at a time.
 */
#ifndef STK_TEST_SUBJECTS_H
#define STK_TEST_SUBJECTS_H

#include <criterion/criterion.h>
#include <stoker/arrays.h>

#include "support/drawn_set.h"
#include "support/folder_files.h"
#include "support/opened_loader.h"
#include "support/random_hooks.h"
#include "support/several_set.h"

enum { FILES = 31, OWN_LENGTH = 44 };

static struct several_set several;
static struct stk_file_set files;
static struct stk_folder_set folders;
static struct stk_drawn_set drawn;
static struct stk_random_hooks hooks;

/* The caller closes it. */
static stoker_dataset *share(stoker_dataset *dataset)
{
    return stoker_dataset_share(dataset);
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
    fields[0].form = STOKER_FIELD_FORM_PADDED;
    fields[0].pad_value = 7;
    fields[0].dtype = STOKER_DTYPE_INT32;
    fields[1].name = "words";
    fields[1].form = STOKER_FIELD_FORM_PADDED_MULTIPLE;
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
    options->blend.mixup_alpha = 0.4F;
    options->blend.cutmix_alpha = 1.0F;
    options->blend.probability = 0.8F;
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
    static double weights[SEVERAL_COUNT];
    static stoker_order order = STOKER_ORDER_INIT;
    for (int i = 0; i < SEVERAL_COUNT; i++)
        weights[i] = i % 3 == 0 ? i : 0.25;
    order.kind = STOKER_ORDER_WEIGHTED;
    order.weights = weights;
    order.weight_count = SEVERAL_COUNT;
    order.length = SEVERAL_COUNT;
    options->order = &order;
    return share(several.dataset);
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

/* Some samples of each source come more than once in an epoch, and others in none. */
static stoker_dataset *open_mix(stoker_loader_options *options)
{
    static const double weights[] = { 0.3, 0.2, 0.5 };
    stoker_dataset *view = NULL;
    stoker_dataset *synth = dataset_of("synth:bytes?count=7&shape=1x40x1");
    stoker_error error = { .message = "" };
    stoker_mix mix = STOKER_MIX_INIT;
    (void)options;
    stoker_dataset *inner[3] = { folders.dataset, synth, folders.dataset };
    mix.weights = weights;
    cr_assert_eq(stoker_dataset_mix(&view, inner, 3, &mix, &error), STOKER_OK, "%s", error.message);
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
static stoker_dataset *open_twice(stoker_loader_options *options)
{
    stoker_dataset *view = NULL;
    options->transform.flip = true;
    uint64_t ids[2 * FILES];
    for (uint64_t i = 0; i < 2 * FILES; i++)
        ids[i] = i % FILES;
    cr_assert_eq(stoker_dataset_select(&view, files.dataset, ids, 2 * FILES, NULL), STOKER_OK);
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
    SHARES = 4,   /* lies in files */
    REPEATS = 8,  /* the same bytes several times, of which cache AUTO keeps no copy */
};

static const struct subject {
    const char *name;
    stoker_dataset *(*open)(stoker_loader_options *options);
    uint32_t rules;
} subjects[] = {
    { "fields of fixed sizes, in memory", open_fixed, RESUMES | COMPLETE },
    { "fields of varying length, packed", open_several, RESUMES | COMPLETE | SHARES },
    { "fields of varying length, padded", open_padded, RESUMES | COMPLETE | SHARES },
    { "images, converted and transformed", open_images, RESUMES | COMPLETE | SHARES },
    { "mixup and cutmix", open_mixed, COMPLETE | SHARES },
    { "a row hook", open_row_hook, RESUMES | COMPLETE | SHARES },
    { "a row hook and a batch hook", open_hooks, COMPLETE | SHARES },
    { "weighted", open_weighted, RESUMES | COMPLETE | SHARES },
    { "concat", open_concat, RESUMES | COMPLETE },
    { "mix", open_mix, RESUMES | COMPLETE },
    { "split", open_split, RESUMES | COMPLETE | SHARES },
    { "twice", open_twice, RESUMES | COMPLETE | SHARES | REPEATS },
    { "select", open_select, RESUMES | COMPLETE | SHARES },
    { "an order of the caller", open_own_order, RESUMES | COMPLETE | SHARES },
    { "samples that make() draws", open_made, RESUMES | COMPLETE },
    { "bad samples, substituted", open_substituted, RESUMES | COMPLETE | SHARES },
    { "bad samples, skipped", open_skipped, SHARES },
    { "the last batch filled up", open_last_padded, RESUMES | COMPLETE | SHARES },
};

enum { SUBJECTS = sizeof(subjects) / sizeof(subjects[0]) };

static inline void make_subjects(void)
{
    cr_assert(several_make(&several));
    cr_assert(stk_file_set_make(&files, FILES, 4, 5, 3));
    stk_folder_make(&folders, 11, 4, true);
}

static inline void remove_subjects(void)
{
    several_remove(&several);
    stk_file_set_remove(&files);
    stk_folder_remove(&folders);
}

/* The caller closes the data set. */
static inline stoker_dataset *open_subject(const struct subject *subject, uint32_t batch_size,
                                           uint64_t epochs, stoker_loader_options *options)
{
    several.broken_image = SEVERAL_NOTHING_BROKEN;
    several.broken_pair = SEVERAL_NOTHING_BROKEN;
    stk_random_hooks_init(&hooks);
    *options = stk_small_options();
    options->batch_size = batch_size;
    options->epochs = epochs;
    return subject->open(options);
}

#endif
