/* subjects.h - kinds of data sets, views, hooks and orders, for tests that run a loader over each.
 *
 * A subject is a row of the table at the end. Rows with GPU are about what kernels do with a batch,
 * and what cache DEVICE keeps. With Criterion; one test at a time.
 */
#ifndef STK_TEST_SUBJECTS_H
#define STK_TEST_SUBJECTS_H

#include <stoker/arrays.h>

#include "support/defaults.h"
#include "support/files/folder_files.h"
#include "support/files/image_folder.h"
#include "support/files/token_files.h"
#include "support/gpu/transform_ranges.h"
#include "support/runs/opened_loader.h"
#include "support/runs/random_hooks.h"
#include "support/sets/drawn_set.h"
#include "support/sets/made_set.h"
#include "support/sets/several_set.h"

enum { FILES = 31, OWN_LENGTH = 44 };

#define DIGITS "synth:digits?count=31"

static struct several_set several;
static struct several_set parts; /* of fixed sizes */
static struct stk_file_set files;
static struct stk_image_folder photos; /* that differ in size */
static struct stk_folder_set raw_files;
static struct stk_made_set anywhere; /* rows in a file and in memory, encoded and drawn */
static struct stk_made_set broken_anywhere;
static struct stk_made_set broken_rows; /* with broken samples */
static struct stk_directory tokens;
static struct stk_folder_set folders;
static struct stk_drawn_set drawn;
static struct stk_random_hooks hooks;

/* The caller closes it. */
static stoker_dataset *share(stoker_dataset *dataset)
{
    return stoker_dataset_share(dataset);
}

#define OPEN(name, set)                                                                            \
    static stoker_dataset *open_##name(stoker_loader_options *options)                             \
    {                                                                                              \
        (void)options;                                                                             \
        return share((set).dataset);                                                               \
    }

OPEN(several, several)
OPEN(parts, parts)
OPEN(files, files)
OPEN(photos, photos)
OPEN(folder, folders)
OPEN(raw_files, raw_files)
OPEN(anywhere, anywhere)
OPEN(broken_anywhere, broken_anywhere)
OPEN(broken_rows, broken_rows)

static stoker_dataset *open_several_in_memory(stoker_loader_options *options)
{
    several.in_memory = true;
    return open_several(options);
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

/* Any sample at any position, and more positions than samples. */
static stoker_dataset *open_uniform(stoker_loader_options *options)
{
    static stoker_order order;
    order = stk_order_of(.kind = STOKER_ORDER_UNIFORM, .length = SEVERAL_COUNT + 17);
    options->order = &order;
    return share(several.dataset);
}

/* ---- windows of blocks ------------------------------------------------------------------ */

static stoker_dataset *open_windows(stoker_loader_options *options)
{
    static stoker_order order;
    order = stk_order_of(.kind = STOKER_ORDER_WINDOW, .window_blocks = 2, .lanes = 3,
                         .block_samples = 4);
    options->order = &order;
    return share(several.dataset);
}

/* Declared blocks, so that `shuffle` means windows; two samples are bad. */
static stoker_dataset *open_blocks(stoker_loader_options *options)
{
    static stoker_order order;
    order = stk_order_of(.window_blocks = 2, .lanes = 3);
    options->order = &order;
    options->on_bad_sample = STOKER_ON_BAD_SUBSTITUTE;
    several.broken_image = 17;
    several.broken_pair = 40;
    return several_in_blocks(&several);
}

/* Each source is shuffled within its own windows: of declared blocks, or of equal ones. */
static stoker_dataset *open_mixed_windows(stoker_loader_options *options)
{
    stoker_dataset *view = NULL;
    stoker_dataset *blocks = open_blocks(options);
    stoker_dataset *plain = open_windows(options);
    stoker_mix mix = STOKER_MIX_INIT;
    mix.weights = (const double[]){ 0.4, 0.6 };
    cr_assert_eq(stoker_dataset_mix(&view, (stoker_dataset *[]){ blocks, plain }, 2, &mix, NULL),
                 0);
    stoker_dataset_close(&blocks);
    stoker_dataset_close(&plain);
    return view;
}

/* ---- views -------------------------------------------------------------------------------- */

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
    order = stk_order_of(.kind = STOKER_ORDER_OWN, .ids = backwards, .length = OWN_LENGTH);
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

/* Its hook refuses some rows. */
static stoker_dataset *open_refused(stoker_loader_options *options)
{
    (void)options;
    hooks.breaks_each = 10;
    return dataset_of(DIGITS);
}

/* ---- what kernels do with a batch, and what cache DEVICE keeps ------------------------- */

/* Samples come several times in a batch. */
static stoker_dataset *open_few_files(stoker_loader_options *options)
{
    static double weights[FILES];
    static stoker_order order;
    order = (stoker_order)STOKER_ORDER_INIT;
    for (int i = 0; i < 4; i++)
        weights[7 * i] = 1 + i;
    order.kind = STOKER_ORDER_WEIGHTED;
    order.weights = weights;
    order.weight_count = FILES;
    options->order = &order;
    return share(files.dataset);
}

static stoker_dataset *open_views(stoker_loader_options *options)
{
    stoker_dataset *side = NULL;
    stoker_dataset *joined = NULL;
    stoker_split split = STOKER_SPLIT_INIT;
    (void)options;
    split.test = 0.7;
    cr_assert_eq(stoker_dataset_split(&side, files.dataset, &split, NULL), STOKER_OK);
    stoker_dataset *inner[3] = { side, files.dataset, side };
    cr_assert_eq(stoker_dataset_concat(&joined, inner, 3, NULL), STOKER_OK);
    stoker_dataset_close(&side);
    return joined;
}

static stoker_dataset *open_parts_of_other_types(stoker_loader_options *options)
{
    static stoker_field_options fields[2];
    fields[0] = fields[1] = (stoker_field_options)STOKER_FIELD_OPTIONS_INIT;
    fields[0].name = "words"; /* wider than stored, and narrower */
    fields[0].dtype = STOKER_DTYPE_INT64;
    fields[1].name = "box";
    fields[1].dtype = STOKER_DTYPE_FLOAT16;
    options->fields = fields;
    options->field_count = 2;
    return share(parts.dataset);
}

static stoker_dataset *open_weighted_parts(stoker_loader_options *options)
{
    stoker_dataset *dataset = open_weighted(options);
    stoker_dataset_close(&dataset);
    return share(parts.dataset);
}

static stoker_dataset *open_broken_parts(stoker_loader_options *options)
{
    parts.broken_image = 17;
    parts.broken_pair = 40;
    return open_parts(options);
}

static stoker_array array_of(const char *name, stoker_dtype dtype, uint32_t rank,
                             const uint64_t shape[], const void *data)
{
    stoker_array array = STOKER_ARRAY_INIT;
    array.name = name;
    array.dtype = dtype;
    array.rank = rank;
    memcpy(array.shape, shape, rank * sizeof(shape[0]));
    array.data = data;
    return array;
}

static stoker_dataset *open_arrays(const stoker_array arrays[2])
{
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, arrays, 2, FILES, NULL, NULL), STOKER_OK);
    return dataset;
}

/* Kept as they are delivered, for no kernel converts them. */
static stoker_dataset *open_floats(stoker_loader_options *options)
{
    static float rows[FILES * 13];
    static int32_t labels[FILES];
    (void)options;
    for (int i = 0; i < FILES * 13; i++)
        rows[i] = (float)i / 7;
    for (int i = 0; i < FILES; i++)
        labels[i] = i * i;
    const stoker_array arrays[2] = {
        array_of("row", STOKER_DTYPE_FLOAT32, 1, (uint64_t[]){ 13 }, rows),
        array_of("label", STOKER_DTYPE_INT32, 0, (uint64_t[]){ 0 }, labels),
    };
    return open_arrays(arrays);
}

/* More than a block of the kernel copies, and no multiple of 8. */
static stoker_dataset *open_long_rows(stoker_loader_options *options)
{
    enum { LONG = 66001 };
    static uint8_t longs[FILES * LONG], bytes[FILES * 3];
    (void)options;
    for (uint32_t i = 0; i < FILES * LONG; i++)
        longs[i] = (uint8_t)(i * 2654435761U >> 24);
    const stoker_array arrays[2] = {
        array_of("row", STOKER_DTYPE_UINT8, 1, (uint64_t[]){ 3 }, bytes),
        array_of("long", STOKER_DTYPE_UINT8, 1, (uint64_t[]){ LONG }, longs),
    };
    return open_arrays(arrays);
}

/* The host makes the masks of images that a kernel transforms. */
static stoker_dataset *open_masks(stoker_loader_options *options)
{
    enum { HEIGHT = 13, WIDTH = 15, PIXELS = HEIGHT * WIDTH };
    static uint8_t images[FILES * PIXELS * 3], masks[FILES * PIXELS];
    static stoker_field_options field;
    for (uint32_t i = 0; i < sizeof(images); i++)
        images[i] = stk_set_byte(1, i);
    for (uint32_t i = 0; i < sizeof(masks); i++)
        masks[i] = stk_set_byte(2, i);
    stoker_array arrays[2] = {
        array_of("image", STOKER_DTYPE_UINT8, 3, (uint64_t[]){ HEIGHT, WIDTH, 3 }, images),
        array_of("mask", STOKER_DTYPE_UINT8, 3, (uint64_t[]){ HEIGHT, WIDTH, 1 }, masks),
    };
    arrays[0].kind = STOKER_FIELD_KIND_IMAGE;
    arrays[1].kind = STOKER_FIELD_KIND_MASK;
    field = (stoker_field_options)STOKER_FIELD_OPTIONS_INIT;
    field.name = "mask";
    field.dtype = STOKER_DTYPE_INT64;
    field.fill_value = options->transform.flip ? 255 : 0;
    options->fields = &field;
    options->field_count = 1;
    return open_arrays(arrays);
}

/* Ends of documents, joined: the numbers of a row depend on the rows before it. */
static stoker_dataset *open_joined(stoker_loader_options *options)
{
    static stoker_field_options field;
    char spec[512];
    field = (stoker_field_options)STOKER_FIELD_OPTIONS_INIT;
    field.name = "cu_seqlens";
    field.form = STOKER_FIELD_FORM_JOINED;
    options->fields = &field;
    options->field_count = 1;
    (void)snprintf(spec, sizeof(spec), "tokens:%s/a.bin?length=16&fields=tokens,cu_seqlens&eos=%d",
                   tokens.path, STK_EOS);
    return dataset_of(spec);
}

/* Every form and type of fields that vary. */
static stoker_dataset *open_padded_to_the_longest(stoker_loader_options *options)
{
    static stoker_field_options fields[4];
    static const stoker_dtype types[4] = { STOKER_DTYPE_INT64, STOKER_DTYPE_FLOAT32,
                                           STOKER_DTYPE_FLOAT64, STOKER_DTYPE_FLOAT32 };
    static const char *const names[4] = { "text", "words", "weight", "label" };
    for (int i = 0; i < 4; i++) {
        fields[i] = (stoker_field_options)STOKER_FIELD_OPTIONS_INIT;
        fields[i].name = names[i];
        fields[i].dtype = types[i];
    }
    fields[0].form = STOKER_FIELD_FORM_PADDED_MAX;
    fields[0].pad_value = -1;
    options->fields = fields;
    options->field_count = 4;
    return share(several.dataset);
}

/* ---- the table --------------------------------------------------------------------- */

static const stoker_transform flip = { .flip = true };
static const stoker_transform crop = {
    .random_crop = { 4, 5 }, .pad = 1, .flip = true, .cutout = 2, .fill = { 9, 8, 7 }
};
static const stoker_transform crop_wide = {
    .random_crop = { 10, 10 }, .pad = 3, .flip = true, .cutout = 4
};
static const stoker_transform resize = { .resize = { 3, 3 }, .flip = true };
static const stoker_transform resize_alone = { .resize = { 4, 7 } };
static const stoker_transform resize_cut = { .resize = { 16, 20 }, .flip = true, .cutout = 4 };
static const stoker_transform resize_crop = {
    .resize = { 20, 20 }, .random_crop = { 18, 18 }, .pad = 2, .fill = { 9, 8, 7 }
};
static const stoker_transform shorter = { .resize_shorter = 3, .center_crop = { 3, 3 } };
static const stoker_transform shorter_photo = { .resize_shorter = 18, .center_crop = { 16, 16 } };
static const stoker_transform rectangle = {
    .random_resized_crop = { 3, 4 }, STK_USUAL_AREA, STK_USUAL_RATIO, .flip = true
};
static const stoker_transform rotate_rectangle = { .random_resized_crop = { 8, 9 },
                                                   STK_USUAL_AREA,
                                                   STK_USUAL_RATIO,
                                                   .rotate_min = -30,
                                                   .rotate_max = 30 };
static const stoker_transform retouched = {
    .rotate_min = -30, .rotate_max = 30, .contrast = 0.5F, .hue = 0.1F, .blur = 5, STK_USUAL_SIGMA
};
static const stoker_transform recolor = { .resize = { 20, 18 },
                                          .random_crop = { 16, 16 },
                                          .brightness = 0.5F };

enum {
    RESUMES = 1,  /* a row depends on (seed, epoch, position) alone, not on its batch */
    COMPLETE = 2, /* every position comes */
    SHARES = 4,   /* lies in files */
    PIECES = 8,   /* the same bytes several times: the cache holds pieces of files */
    KEPT = 16,    /* cache AUTO keeps the rows in GPU memory */
    FAILS = 32,   /* at a bad sample */
    FEW = 64,     /* in a third of the settings, stopped after a third of the batches */
    GPU = 128,    /* for settings with a GPU alone, neither stopped nor dealt */
    HOOK = 256,   /* for each row */
    HOOKS = 768,  /* for each batch, too */
    SENT = GPU | COMPLETE,
    HELD = GPU | COMPLETE | KEPT,
    LACKS = GPU | KEPT,
    ENDS = GPU | KEPT | FAILS,
    ALL = RESUMES | COMPLETE | SHARES
};

#define U8   STOKER_DTYPE_UINT8
#define F16  STOKER_DTYPE_FLOAT16
#define BF16 STOKER_DTYPE_BFLOAT16
#define F32  STOKER_DTYPE_FLOAT32
#define HWC  STOKER_LAYOUT_NHWC
#define CHW  STOKER_LAYOUT_NCHW

#define AS_IS       .transform = NULL
#define BY(name)    .transform = &(name)
#define ON_HOST     .convert = STOKER_SWITCH_OFF
#define UP          .mixup = 0.6F
#define MIXED       .mixup = 0.6F, .cutmix = 1.0F
#define PADDED      .last = STOKER_LAST_PAD
#define SKIPPED     .on_bad = STOKER_ON_BAD_SKIP
#define SUBSTITUTED .on_bad = STOKER_ON_BAD_SUBSTITUTE

#define SYNTH(shape) "synth:bytes?count=31&shape=" shape

static const struct subject {
    const char *name;
    stoker_dataset *(*open)(stoker_loader_options *options); /* NULL: images.spec */
    uint32_t rules;
    struct {
        uint32_t kernels;   /* that run behind the copy of a batch; blend adds one to most */
        stoker_dtype dtype; /* NONE: open() sets all options, and what follows is not used */
        stoker_layout layout;
        const stoker_transform *transform; /* NULL: none */
        const char *spec;
        uint32_t batch_size; /* 0: the test's */
        stoker_last last;
        stoker_on_bad on_bad;
        stoker_switch convert;
        float mixup, cutmix;
    } images;
} subjects[] = {
    { "fields of fixed sizes, in memory", open_fixed, RESUMES | COMPLETE | KEPT, { 0 } },
    { "fields of varying length, packed", open_several, ALL, { 0 } },
    { "fields of varying length, in memory", open_several_in_memory, RESUMES | COMPLETE, { 0 } },
    { "fields of varying length, padded", open_padded, ALL, { 0 } },
    { "fields of varying length, cropped", open_several, ALL, { 1, F32, HWC, BY(crop) } },
    { "images, converted and transformed", open_images, ALL | KEPT, { .kernels = 4 } },
    { "mixup and cutmix", open_mixed, COMPLETE | SHARES | KEPT, { .kernels = 4 } },
    { "a row hook", open_several, ALL | HOOK, { 0 } },
    { "a row hook and a batch hook", open_several, COMPLETE | SHARES | HOOKS, { 0 } },
    { "weighted", open_weighted, ALL, { 0 } },
    { "drawn with replacement", open_uniform, ALL, { 0 } },
    { "windows of equal blocks", open_windows, ALL, { 0 } },
    { "windows of blocks", open_blocks, ALL, { 0 } },
    { "mix of windows", open_mixed_windows, ALL, { 0 } },
    { "concat", open_concat, RESUMES | COMPLETE | KEPT, { 0 } },
    { "mix", open_mix, RESUMES | COMPLETE | KEPT, { 0 } },
    { "split", open_split, ALL, { 0 } },
    { "twice", open_twice, ALL | PIECES | KEPT, { .kernels = 1 } },
    { "select", open_select, ALL, { 0 } },
    { "an order of the caller", open_own_order, ALL, { 0 } },
    { "samples that make() draws", open_made, RESUMES | COMPLETE, { 0 } },
    { "bad samples, substituted", open_substituted, ALL, { 0 } },
    { "bad samples, skipped", open_skipped, SHARES, { 0 } },
    { "the last batch filled up", open_last_padded, ALL, { 0 } },
    { "a folder of PNG files", open_folder, ALL | KEPT | FEW, { 0, U8, HWC, AS_IS } },
    { "a folder of raw files", open_raw_files, ALL | KEPT | FEW, { 0, U8, HWC, AS_IS } },
    { "rows from anywhere, mixed", open_anywhere, COMPLETE | KEPT | FEW, { 1, F32, HWC, UP } },
    { "rows from anywhere, padded",
      open_anywhere,
      COMPLETE | KEPT | FEW,
      { 1, F32, HWC, UP, PADDED } },
    { "bad rows of anywhere, mixed",
      open_broken_anywhere,
      COMPLETE | KEPT | FEW,
      { 1, F32, HWC, UP, SUBSTITUTED } },
    { "bad rows left out, mixed", open_broken_anywhere, KEPT | FEW, { 1, F32, HWC, UP, SKIPPED } },
    { "rows from anywhere, hooked",
      open_anywhere,
      RESUMES | COMPLETE | FEW | HOOK,
      { 0, U8, HWC, AS_IS } },
    { "bad rows substituted, hooked",
      open_broken_anywhere,
      RESUMES | COMPLETE | FEW | HOOK,
      { 0, U8, HWC, SUBSTITUTED } },
    { "bad rows left out, hooked", open_broken_anywhere, FEW | HOOK, { 0, U8, HWC, SKIPPED } },
    { "digits in memory, hooked", NULL, COMPLETE | FEW | HOOKS, { 0, U8, HWC, .spec = DIGITS } },
    { "refused rows, substituted",
      open_refused,
      RESUMES | COMPLETE | FEW | HOOK,
      { 0, U8, HWC, SUBSTITUTED } },
    { "refused rows, skipped", open_refused, FEW | HOOK, { 0, U8, HWC, SKIPPED } },
    { "photos, hooked",
      open_photos,
      COMPLETE | SHARES | FEW | HOOKS,
      { 0, F32, HWC, BY(rotate_rectangle) } },
    { "photos, mixed as bytes", open_photos, HELD, { 1, U8, CHW, BY(resize_cut), MIXED } },
    { "digits in memory",
      NULL,
      RESUMES | COMPLETE | KEPT | FEW,
      { 1, F16, CHW, BY(crop_wide), .spec = DIGITS } },
    { "photos, resized by the host",
      open_photos,
      ALL | FEW | KEPT,
      { 1, F32, CHW, BY(resize_cut) } },
    { "photos, resized and cropped", open_photos, HELD, { 1, F32, CHW, BY(resize_crop) } },
    { "photos, nothing random", open_photos, HELD, { 1, F32, CHW, BY(shorter_photo) } },
    { "rectangles of photos", open_photos, ALL | FEW, { 1, F32, CHW, BY(rectangle) } },

    { "one channel", NULL, HELD, { 1, F32, HWC, .spec = SYNTH("5x7x1") } },
    { "two channels", NULL, HELD, { 1, F16, CHW, .spec = SYNTH("5x7x2") } },
    { "four channels", NULL, HELD, { 1, BF16, CHW, .spec = SYNTH("5x7x4") } },
    { "planes of bytes", NULL, HELD, { 1, U8, CHW, .spec = SYNTH("5x7x3") } },
    { "five channels", NULL, HELD, { 1, F32, HWC, .spec = SYNTH("8x8x5") } },
    { "no images", NULL, HELD, { 1, F32, HWC, .spec = SYNTH("123") } },
    { "retouched", NULL, HELD, { 8, BF16, CHW, BY(retouched), .spec = SYNTH("20x18x3") } },
    { "as stored", open_files, HELD, { 0, U8, HWC, AS_IS } },
    { "cropped, flipped and cut", open_files, HELD, { 1, U8, CHW, BY(crop) } },
    { "resized", open_files, HELD, { 1, F16, CHW, BY(resize) } },
    { "a rectangle, resized", open_files, HELD, { 4, F32, CHW, BY(rectangle) } },
    { "the shorter side resized", open_files, HELD, { 1, U8, CHW, BY(shorter) } },
    { "one row a batch", open_files, HELD, { 1, F32, CHW, .batch_size = 1 } },
    { "one batch an epoch", open_files, HELD, { 1, F16, HWC, .batch_size = FILES } },
    { "the last images filled up", open_files, HELD, { 1, F32, CHW, PADDED } },
    { "the last images dropped", open_files, LACKS, { 0, U8, HWC, .last = STOKER_LAST_DROP } },
    { "few images, often", open_few_files, HELD, { 1, F32, HWC, BY(flip) } },
    { "views of images", open_views, HELD, { 0, U8, HWC, AS_IS } },
    { "hooks on images", open_files, SENT | HOOKS, { 0, F32, CHW, BY(crop) } },
    { "bytes, mixed", open_files, HELD, { 1, U8, HWC, BY(flip), MIXED } },
    { "float16, mixed", open_files, HELD, { 1, F16, HWC, BY(flip), MIXED } },
    { "bfloat16, mixed", open_files, HELD, { 1, BF16, CHW, BY(flip), MIXED } },
    { "photos, mixed", open_photos, SENT, { 1, F32, CHW, BY(rectangle), MIXED } },
    { "mixed by the host", open_files, SENT, { 0, F32, CHW, MIXED, ON_HOST } },
    { "bad rows substituted, mixed", open_broken_rows, HELD, { 1, F32, HWC, UP, SUBSTITUTED } },
    { "bad rows skipped, mixed", open_broken_rows, LACKS, { 1, F32, HWC, UP, SKIPPED } },
    { "bad rows, substituted", open_broken_rows, HELD, { 0, U8, HWC, SUBSTITUTED } },
    { "bad rows, skipped", open_broken_rows, LACKS, { 0, U8, HWC, SKIPPED } },
    { "a bad row ends the run", open_broken_rows, ENDS, { 0, U8, HWC, AS_IS } },
    { "parts of fixed sizes", open_parts, HELD, { 0, U8, HWC, AS_IS } },
    { "parts, converted", open_parts, HELD, { 1, F32, HWC, AS_IS } },
    { "parts, cropped and cut", open_parts, HELD, { 1, F16, CHW, BY(crop) } },
    { "parts, resized", open_parts, HELD, { 1, U8, CHW, BY(resize) } },
    { "parts, in other types", open_parts_of_other_types, HELD, { 0, U8, HWC, AS_IS } },
    { "parts, weighted", open_weighted_parts, HELD, { 0, U8, HWC, AS_IS } },
    { "parts, mixed by the host", open_parts, SENT, { 0, F32, HWC, .mixup = 0.5F, ON_HOST } },
    { "bad parts, skipped", open_broken_parts, LACKS, { 0, U8, HWC, SKIPPED } },
    { "bad parts, substituted", open_broken_parts, HELD, { 1, F32, HWC, SUBSTITUTED } },
    { "a bad part ends the run", open_broken_parts, ENDS, { 0, U8, HWC, AS_IS } },
    { "rows of floats", open_floats, HELD, { 0, F32, HWC, AS_IS } },
    { "rows of floats, narrowed", open_floats, HELD, { 0, BF16, HWC, AS_IS } },
    { "long rows", open_long_rows, HELD, { 0, U8, HWC, AS_IS } },
    { "masks, as stored", open_masks, HELD, { 0, U8, HWC, AS_IS } },
    { "masks, resized", open_masks, HELD, { 1, F32, CHW, BY(resize_alone) } },
    { "masks, cropped and cut", open_masks, SENT, { 1, F32, CHW, BY(crop_wide) } },
    { "masks, rotated", open_masks, SENT, { 7, F32, CHW, BY(rotate_rectangle) } },
    { "masks, mixed", open_masks, SENT, { 6, F32, CHW, BY(recolor), .cutmix = 1.0F } },
    { "ends of documents, joined", open_joined, SENT, { 0 } },
    { "varying fields, in other types", open_padded_to_the_longest, SENT, { 0 } },
};

enum { SUBJECTS = sizeof(subjects) / sizeof(subjects[0]) };

static inline enum stk_made_kind subject_kind_of(uint64_t id)
{
    return id % 7 == 3   ? STK_MADE_BROKEN
           : id % 5 == 1 ? STK_MADE_SHORT
           : id % 3 == 2 ? STK_MADE_MEMORY
                         : STK_MADE_RAW;
}

static inline void make_subjects(void)
{
    cr_assert(several_make(&several));
    cr_assert(several_make_as(&parts, true));
    cr_assert(stk_file_set_make(&files, FILES, 4, 5, 3));
    stk_folder_make(&folders, 11, 4, true);
    stk_folder_make(&raw_files, 23, 4, false);
    stk_image_folder_make(&photos, true, "");
    broken_rows =
        (struct stk_made_set){ .count = FILES, .row_bytes = 40, .kind_of = subject_kind_of };
    cr_assert(stk_made_set_open(&broken_rows));
    anywhere =
        (struct stk_made_set){ .count = FILES, .row_bytes = 40, .kind_of = stk_made_every_kind };
    cr_assert(stk_made_set_open(&anywhere));
    broken_anywhere =
        (struct stk_made_set){ .count = FILES, .row_bytes = 40, .kind_of = stk_made_some_broken };
    cr_assert(stk_made_set_open(&broken_anywhere));
    tokens = stk_directory_make();
    const struct stk_bytes file = stk_llmc_file(0, 403, 2);
    stk_file_write(&tokens, "a.bin", file.at, file.size);
}

static inline void remove_subjects(void)
{
    several_remove(&several);
    several_remove(&parts);
    stk_file_set_remove(&files);
    stk_folder_remove(&folders);
    stk_folder_remove(&raw_files);
    stk_image_folder_remove(&photos);
    stk_made_set_close(&broken_rows);
    stk_made_set_close(&anywhere);
    stk_made_set_close(&broken_anywhere);
    stk_directory_remove(&tokens);
}

/* Set what the row names; rows that are not bytes are normalized by channel. */
static inline void subject_images(const struct subject *subject, const stoker_dataset *dataset,
                                  stoker_loader_options *options)
{
    static const float means[] = { 0.5F, 0.4F, 0.3F, 0.2F };
    static const float stds[] = { 0.2F, 0.3F, 0.4F, 0.5F };
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    if (subject->images.batch_size > 0)
        options->batch_size = subject->images.batch_size;
    options->last = subject->images.last;
    options->on_bad_sample = subject->images.on_bad;
    options->convert_on_device = subject->images.convert;
    options->blend.mixup_alpha = subject->images.mixup;
    options->blend.cutmix_alpha = subject->images.cutmix;
    if (subject->images.dtype == STOKER_DTYPE_UINT8 || info->rank != 3 || info->shape[2] > 4)
        return;
    options->mean = means;
    options->std = stds;
    options->mean_count = (uint32_t)info->shape[2];
}

/* The caller closes the data set. */
static inline stoker_dataset *open_subject(const struct subject *subject, uint32_t batch_size,
                                           uint64_t epochs, stoker_loader_options *options)
{
    several.broken_image = parts.broken_image = SEVERAL_NOTHING_BROKEN;
    several.broken_pair = parts.broken_pair = SEVERAL_NOTHING_BROKEN;
    several.in_memory = false;
    stk_random_hooks_init(&hooks);
    *options = stk_small_options();
    options->batch_size = batch_size;
    options->epochs = epochs;
    if (subject->images.dtype != STOKER_DTYPE_NONE) {
        options->dtype = subject->images.dtype;
        options->layout = subject->images.layout;
        if (subject->images.transform != NULL)
            options->transform = *subject->images.transform;
    }
    stoker_dataset *dataset =
        subject->open == NULL ? dataset_of(subject->images.spec) : subject->open(options);
    options->row_hook = (subject->rules & HOOK) == 0 ? NULL : &hooks.row;
    options->batch_hook = (subject->rules & HOOKS) != HOOKS ? NULL : &hooks.batch;
    if (subject->images.dtype != STOKER_DTYPE_NONE)
        subject_images(subject, dataset, options);
    return dataset;
}

#endif
