/* test_field_options.c - every option that is about a field, on every kind of field: it changes
 * what is delivered as it says, or create refuses it and names it. Nothing is ignored in silence.
 *
 * Method: one data set per kind of field 0. A table says what each option does to each kind.
 * Accepted options must change the batch; type, scale, mean and std are compared with the formula,
 * element by element.
 */
#include <math.h>

#include "kernels/convert/convert.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/runs/scenario.h"

enum { COUNT = 9, LONGEST = 7, BYTES_MAX = 6 * 5 * 5 * 2 };

/* ---- kinds of field 0 ---- */

enum kind {
    U8_IMAGE,
    U16_IMAGE,
    WIDE_IMAGE,
    MASK,
    FLOATS,
    DOUBLES,
    NUMBERS,
    TOKENS,
    BOXES,
    TEXT,
    KINDS
};

static const stoker_field_info kinds[KINDS] = {
    [U8_IMAGE] = { .kind = STOKER_FIELD_KIND_IMAGE,
                   .dtype = STOKER_DTYPE_UINT8,
                   .rank = 3,
                   .shape = { 6, 5, 3 } },
    [U16_IMAGE] = { .kind = STOKER_FIELD_KIND_IMAGE,
                    .dtype = STOKER_DTYPE_UINT16,
                    .rank = 3,
                    .shape = { 6, 5, 3 } },
    [WIDE_IMAGE] = { .kind = STOKER_FIELD_KIND_IMAGE,
                     .dtype = STOKER_DTYPE_UINT8,
                     .rank = 3,
                     .shape = { 6, 5, 5 } },
    [MASK] = { .kind = STOKER_FIELD_KIND_MASK,
               .dtype = STOKER_DTYPE_UINT8,
               .rank = 3,
               .shape = { 6, 5, 1 } },
    [FLOATS] = { .dtype = STOKER_DTYPE_FLOAT32, .rank = 1, .shape = { 4 } },
    [DOUBLES] = { .dtype = STOKER_DTYPE_FLOAT64, .rank = 1, .shape = { 4 } },
    [NUMBERS] = { .dtype = STOKER_DTYPE_INT32, .rank = 1, .shape = { 4 } },
    [TOKENS] = { .dtype = STOKER_DTYPE_INT16, .rank = 1, .shape = { LONGEST }, .varies = true },
    [BOXES] = { .dtype = STOKER_DTYPE_UINT8, .rank = 2, .shape = { LONGEST, 3 }, .varies = true },
    [TEXT] = { .kind = STOKER_FIELD_KIND_BYTES,
               .dtype = STOKER_DTYPE_UINT8,
               .rank = 1,
               .shape = { LONGEST },
               .varies = true },
};

static const char *const names[KINDS] = { "uint8 image", "uint16 image", "wide image", "mask",
                                          "floats",      "doubles",      "numbers",    "tokens",
                                          "boxes",       "text" };

/* Field 0, and an image and an array beside it. */
struct set {
    enum kind kind;
    stoker_dataset *dataset;
    uint8_t bytes[COUNT][BYTES_MAX];
};

static size_t elements_of(enum kind kind, uint64_t id)
{
    const stoker_field_info *info = &kinds[kind];
    size_t elements = 1;
    for (uint32_t axis = 0; axis < info->rank; axis++)
        elements *=
            axis == 0 && info->varies ? (size_t)(id % (LONGEST + 1)) : (size_t)info->shape[axis];
    return elements;
}

static int describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    out->count = COUNT;
    out->field_count = 3;
    out->part_count = 2;
    return STOKER_OK;
}

static int field(const void *self, uint32_t number, stoker_field_info *out)
{
    const struct set *set = self;
    *out = number == 0 ? kinds[set->kind]
           : number == 1
               ? kinds[U8_IMAGE]
               : (stoker_field_info){ .dtype = STOKER_DTYPE_INT16, .rank = 1, .shape = { 3 } };
    out->struct_size = sizeof(*out);
    out->name = number == 0 ? "first" : number == 1 ? "image" : "array";
    out->part = number == 0 ? 0 : 1;
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *parts,
                  stoker_error *error)
{
    const struct set *set = self;
    (void)error;
    for (uint32_t i = 0; i < count; i++) {
        const size_t bytes =
            elements_of(set->kind, ids[i]) * stoker_dtype_bytes(kinds[set->kind].dtype);
        parts[2 * i] =
            (stoker_part){ .extent = { .memory = set->bytes[ids[i]], .bytes = (uint32_t)bytes } };
        parts[2 * i + 1] = (stoker_part){ .extent = { .memory = set->bytes[ids[i]], .bytes = 96 } };
    }
    return STOKER_OK;
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "kinds",
                                        .describe = describe,
                                        .field = field,
                                        .locate = locate };

static void make(struct set *set, enum kind kind)
{
    *set = (struct set){ .kind = kind };
    for (uint64_t id = 0; id < COUNT; id++)
        for (size_t at = 0; at < BYTES_MAX; at++)
            set->bytes[id][at] = (uint8_t)stk_mix64(id * 1000 + at);
    for (uint64_t id = 0; id < COUNT; id++)
        for (size_t i = 0; i < 4; i++) {
            const float number = (float)(id * 10 + i) / 4;
            const double wide = (double)number;
            if (kind == FLOATS)
                memcpy(set->bytes[id] + i * sizeof(number), &number, sizeof(number));
            if (kind == DOUBLES)
                memcpy(set->bytes[id] + i * sizeof(wide), &wide, sizeof(wide));
        }
    cr_assert_eq(stoker_dataset_create(&set->dataset, &ops, set, NULL), STOKER_OK);
}

/* Element i of a sample's field 0. */
static float value_of(const struct set *set, uint64_t id, size_t i)
{
    const uint8_t *at = set->bytes[id] + i * stoker_dtype_bytes(kinds[set->kind].dtype);
    uint16_t word;
    int16_t small;
    int32_t number;
    float value;
    double wide;
    switch (kinds[set->kind].dtype) {
    case STOKER_DTYPE_UINT16:
        memcpy(&word, at, sizeof(word));
        return (float)word;
    case STOKER_DTYPE_INT16:
        memcpy(&small, at, sizeof(small));
        return (float)small;
    case STOKER_DTYPE_INT32:
        memcpy(&number, at, sizeof(number));
        return (float)number;
    case STOKER_DTYPE_FLOAT32:
        memcpy(&value, at, sizeof(value));
        return value;
    case STOKER_DTYPE_FLOAT64:
        memcpy(&wide, at, sizeof(wide));
        return (float)wide;
    default:
        return (float)*at;
    }
}

/* ---- one batch of all samples ---- */

struct seen {
    int rc;
    stoker_error error;
    uint64_t hash; /* field 0: type, shape and values */
    size_t elements;
    float values[COUNT * BYTES_MAX]; /* if they are float32, NHWC */
};

static struct seen seen;

static void take(const stoker_tensor *tensor)
{
    size_t bytes = stoker_dtype_bytes(tensor->dtype);
    seen.elements = 1;
    for (uint32_t axis = 0; axis < tensor->rank; axis++)
        seen.elements *= (size_t)tensor->shape[axis];
    bytes *= seen.elements;
    seen.hash = stk_hash_bytes((uint64_t)tensor->dtype, tensor->shape,
                               tensor->rank * sizeof(tensor->shape[0]));
    seen.hash = stk_hash_bytes(seen.hash, tensor->data, bytes);
    if (tensor->dtype == STOKER_DTYPE_FLOAT32)
        memcpy(seen.values, tensor->data, bytes);
}

static void run(const struct set *set, const stoker_loader_options *options)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader *loader = NULL;
    memset(&seen, 0, sizeof(seen));
    seen.rc = stoker_loader_create(&loader, set->dataset, options, &seen.error);
    if (seen.rc == STOKER_OK) {
        cr_assert_eq(stoker_loader_next(loader, &batch, 20000), STOKER_OK);
        take(&batch.fields[0].values);
    }
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
}

static stoker_loader_options options_of(void)
{
    return stk_default_options(.batch_size = COUNT, .num_workers = 0, .seed = 3);
}

/* ---- the table ---- */

typedef void set_option(stoker_loader_options *options, stoker_field_options *first);

static float two[5] = { 0.5F, 2, 3, 4, 5 };

#define OPTION(name, ...)                                                                          \
    static void name(stoker_loader_options *o, stoker_field_options *f)                            \
    {                                                                                              \
        (void)o, (void)f;                                                                          \
        __VA_ARGS__;                                                                               \
    }
OPTION(set_dtype, o->dtype = STOKER_DTYPE_BFLOAT16)
OPTION(set_planes, o->layout = STOKER_LAYOUT_NCHW)
OPTION(set_scale, o->scale = 0.5F)
OPTION(set_mean, o->mean = two; o->mean_count = 1)
OPTION(set_std, o->std = two; o->mean_count = 1)
OPTION(set_flip, o->transform.flip = true)
OPTION(set_cutout, o->transform.cutout = 3)
OPTION(set_resize, o->transform.resize = (stoker_size){ 3, 4 })
OPTION(set_shorter, o->transform.resize_shorter = 4;
       o->transform.center_crop = (stoker_size){ 4, 4 })
OPTION(set_resized, o->transform.random_resized_crop = (stoker_size){ 3, 3 })
OPTION(set_crop, o->transform.random_crop = (stoker_size){ 3, 3 })
OPTION(set_center, o->transform.center_crop = (stoker_size){ 3, 3 })
OPTION(set_rotate, o->transform.rotate_min = o->transform.rotate_max = 20)
OPTION(set_color, o->transform.brightness = 0.5F)
OPTION(set_blur, o->transform.blur = 3)
OPTION(set_fast, o->transform.decode_scale = STOKER_DECODE_SCALE_FAST)
OPTION(set_pad, o->transform.pad = 2)
OPTION(set_area, o->transform.area_min = o->transform.area_max = 0.5F)
OPTION(set_sigma, o->transform.sigma_min = o->transform.sigma_max = 1)
OPTION(set_field_dtype, o->field_count = 1; f->dtype = STOKER_DTYPE_FLOAT32)
OPTION(set_form, o->field_count = 1; f->form = STOKER_FIELD_FORM_PADDED)
OPTION(set_multiple, o->field_count = 1; f->form = STOKER_FIELD_FORM_PADDED_MULTIPLE;
       f->multiple = 4)
OPTION(set_pad_value, o->field_count = 1; f->form = STOKER_FIELD_FORM_PADDED; f->pad_value = 1)
OPTION(set_multiple_alone, o->field_count = 1; f->multiple = 4)
OPTION(set_fill_value, o->field_count = 1; f->fill_value = 1)
OPTION(set_value_alone, o->field_count = 1; f->pad_value = 1)
OPTION(set_unknown, o->field_count = 1; f->name = "second")

/* Applied to the kinds in the mask, refused for the others by a message with the word. */
#define ON(kind) (1U << (kind))

static const struct option {
    const char *word;
    set_option *set;
    unsigned applied;
} table[] = {
    { "dtype", set_dtype, ON(KINDS) - 1 },
    { "layout", set_planes, ON(U8_IMAGE) | ON(U16_IMAGE) | ON(WIDE_IMAGE) },
    { "scale", set_scale, ON(FLOATS) }, /* the others are not delivered as floats */
    { "mean", set_mean, ON(FLOATS) },
    { "std", set_std, ON(FLOATS) },
    { "transform", set_flip, ON(U8_IMAGE) },
    { "transform", set_cutout, ON(U8_IMAGE) },
    { "transform", set_resize, ON(U8_IMAGE) },
    { "transform", set_shorter, ON(U8_IMAGE) },
    { "transform", set_resized, ON(U8_IMAGE) },
    { "transform", set_crop, ON(U8_IMAGE) },
    { "transform", set_center, ON(U8_IMAGE) },
    { "transform", set_rotate, ON(U8_IMAGE) },
    { "transform", set_color, ON(U8_IMAGE) },
    { "transform", set_blur, ON(U8_IMAGE) },
    { "transform", set_fast, 0 }, /* parts of steps that are not set */
    { "transform", set_pad, 0 },
    { "transform", set_area, 0 },
    { "transform", set_sigma, 0 },
    { "options.dtype", set_field_dtype, 0 },
    { "form", set_form, ON(TOKENS) | ON(BOXES) | ON(TEXT) },
    { "form", set_multiple, ON(TOKENS) | ON(BOXES) | ON(TEXT) },
    { "form", set_pad_value, ON(TOKENS) | ON(BOXES) | ON(TEXT) },
    { "multiple", set_multiple_alone, 0 },
    { "pad_value", set_value_alone, 0 },
    { "fill_value", set_fill_value, 0 }, /* see test_masks.c */
    { "no such field", set_unknown, 0 },
};

CleanTest(field_options, are_applied_or_refused_by_name)
{
    static struct set set;
    for (int kind = 0; kind < KINDS; kind++) {
        make(&set, (enum kind)kind);
        stoker_loader_options plain = options_of();
        run(&set, &plain);
        cr_assert_eq(seen.rc, STOKER_OK, "%s: %s", names[kind], seen.error.message);
        const uint64_t unchanged = seen.hash;
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
            stoker_loader_options options = options_of();
            stoker_field_options first = STOKER_FIELD_OPTIONS_INIT;
            first.name = "first";
            options.fields = &first;
            table[i].set(&options, &first);
            run(&set, &options);
            if ((table[i].applied & ON(kind)) != 0) {
                cr_assert_eq(seen.rc, STOKER_OK, "%s, option %zu: %s", names[kind], i,
                             seen.error.message);
                cr_assert_neq(seen.hash, unchanged, "%s, option %zu is ignored", names[kind], i);
            } else {
                cr_assert_lt(seen.rc, 0, "%s, option %zu is accepted", names[kind], i);
                cr_assert_not_null(strstr(seen.error.message, table[i].word), "%s, option %zu: %s",
                                   names[kind], i, seen.error.message);
            }
        }
        stoker_dataset_close(&set.dataset);
    }
}

/* ---- type, scale, mean and std ---- */

static void check_formula(const struct set *set, double scale, const float *mean, const float *std,
                          uint32_t count)
{
    size_t at = 0;
    for (uint64_t id = 0; id < COUNT; id++)
        for (size_t i = 0; i < elements_of(set->kind, id); i++, at++) {
            const double by = std != NULL ? (double)std[i % count] : 1;
            const float factor = (float)(scale / by);
            const float bias = mean != NULL ? (float)(-(double)mean[i % count] / by) : 0;
            const float expected = fmaf(value_of(set, id, i), factor, bias);
            cr_assert_eq(seen.values[at], expected, "%s, sample %d, element %zu: %g, not %g",
                         names[set->kind], (int)id, i, (double)seen.values[at], (double)expected);
        }
    cr_assert_eq(at, seen.elements, "%s", names[set->kind]);
}

CleanTest(field_options, scale_mean_and_std_hold_for_every_kind)
{
    static const float means[5] = { 1, -2, 3.5F, 0, 7 }, stds[5] = { 2, 0.5F, 4, 1, 3 };
    static struct set set;
    for (int kind = 0; kind < KINDS; kind++) {
        const stoker_field_info *info = &kinds[kind];
        const bool bytes = info->dtype == STOKER_DTYPE_UINT8;
        make(&set, (enum kind)kind);
        stoker_loader_options options = options_of();
        options.dtype = STOKER_DTYPE_FLOAT32;
        run(&set, &options); /* 1/255 of bytes */
        cr_assert_eq(seen.rc, STOKER_OK, "%s: %s", names[kind], seen.error.message);
        check_formula(&set, bytes ? (double)(1.0F / 255.0F) : 1, NULL, NULL, 1);
        options.scale = -0.25F;
        run(&set, &options);
        check_formula(&set, -0.25, NULL, NULL, 1);
        options.mean = means;
        options.std = stds;
        options.mean_count = 1;
        run(&set, &options);
        check_formula(&set, -0.25, means, stds, 1);
        const bool is_list = info->varies && info->rank == 1;
        options.mean_count = is_list ? LONGEST : (uint32_t)info->shape[info->rank - 1];
        run(&set, &options);
        if (is_list) { /* it has no channels */
            cr_assert_eq(seen.rc, STOKER_EINVAL);
            cr_assert_not_null(strstr(seen.error.message, "mean_count 7"));
        } else {
            cr_assert_eq(seen.rc, STOKER_OK, "%s: %s", names[kind], seen.error.message);
            check_formula(&set, -0.25, means, stds, options.mean_count);
        }
        stoker_dataset_close(&set.dataset);
    }
}

/* Types of other sizes: rows grow, or shrink, in place while they are scaled. */
CleanTest(field_options, a_varying_field_is_scaled_in_any_float_type)
{
    static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT16, STOKER_DTYPE_BFLOAT16 };
    static struct set set;
    for (int kind = TOKENS; kind < KINDS; kind++)
        for (int i = 0; i < 2; i++) {
            static float exact[COUNT * BYTES_MAX];
            make(&set, (enum kind)kind);
            stoker_loader_options options = options_of();
            stoker_batch batch = STOKER_BATCH_INIT;
            options.scale = 0.125F;
            options.mean = two;
            options.mean_count = 1;
            options.dtype = STOKER_DTYPE_FLOAT32;
            run(&set, &options);
            memcpy(exact, seen.values, sizeof(exact));
            const size_t elements = seen.elements;
            options.dtype = types[i];
            stoker_loader *loader = loader_of(set.dataset, &options);
            cr_assert_eq(stoker_loader_next(loader, &batch, 20000), STOKER_OK);
            const uint16_t *found = batch.fields[0].values.data;
            for (size_t at = 0; at < elements; at++)
                cr_assert_eq(found[at], i == 0 ? stk_float16_from_float(exact[at])
                                               : stk_bfloat16_from_float(exact[at]));
            stoker_batch_release(&batch);
            stoker_loader_destroy(&loader);
            stoker_dataset_close(&set.dataset);
        }
}

/* ---- other fields ---- */

static char said[4096];

static void listen(void *self, stoker_log_level level, const char *message)
{
    (void)self;
    if (level < STOKER_LOG_WARNING)
        return;
    strncat(said, message, sizeof(said) - strlen(said) - 1);
    strncat(said, "\n", sizeof(said) - strlen(said) - 1);
}

/* Images beside field 0 stay as stored, which the program hears. */
CleanTest(field_options, an_image_beside_field_0_is_left_alone_with_a_warning)
{
    static struct set set;
    make(&set, U8_IMAGE);
    for (int i = 0; i < 3; i++) {
        stoker_batch batch = STOKER_BATCH_INIT;
        stoker_loader_options options = options_of();
        options.on_log = listen;
        said[0] = '\0';
        if (i == 1)
            set_crop(&options, NULL);
        if (i == 2)
            set_planes(&options, NULL);
        stoker_loader *loader = loader_of(set.dataset, &options);
        cr_assert_eq(stoker_loader_next(loader, &batch, 20000), STOKER_OK);
        const stoker_tensor *image = &batch.fields[1].values;
        cr_assert_eq(image->shape[1], 6);
        cr_assert_eq(image->shape[3], 3);
        cr_assert_eq(memcmp((const uint8_t *)image->data + 90, set.bytes[1], 90), 0);
        cr_assert_eq(strstr(said, "transform is for field 0 and masks: the image \"image\"") !=
                         NULL,
                     i == 1, "%s", said);
        cr_assert_eq(strstr(said, "layout is for field 0: \"image\" stays NHWC") != NULL, i == 2,
                     "%s", said);
        stoker_batch_release(&batch);
        stoker_loader_destroy(&loader);
    }
    stoker_dataset_close(&set.dataset);
}

/* options.fields is for the others: types and forms; see also test_batch_fields. */
CleanTest(field_options, another_field_takes_its_own_type_alone)
{
    static struct set set;
    stoker_loader_options options = options_of();
    stoker_field_options array = STOKER_FIELD_OPTIONS_INIT;
    make(&set, FLOATS);
    array.name = "array";
    array.dtype = STOKER_DTYPE_FLOAT32;
    options.fields = &array;
    options.field_count = 1;
    options.scale = 0.5F; /* for field 0 */
    stoker_loader *loader = loader_of(set.dataset, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_next(loader, &batch, 20000), STOKER_OK);
    const float *found = batch.fields[2].values.data;
    for (uint64_t id = 0; id < COUNT; id++)
        for (int i = 0; i < 3; i++) {
            int16_t stored;
            memcpy(&stored, set.bytes[id] + 90 + i * 2, sizeof(stored));
            cr_assert_eq(found[id * 3 + (uint64_t)i], (float)stored);
        }
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    array.dtype = STOKER_DTYPE_INT8; /* narrower */
    run(&set, &options);
    cr_assert_eq(seen.rc, STOKER_ETYPE);
    cr_assert_not_null(strstr(seen.error.message, "\"array\": dtype"));
    stoker_dataset_close(&set.dataset);
}
