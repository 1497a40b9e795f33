/* test_blend.c - a mixed batch is the plain batch, blended or cut as its fields say; also beside
 * bad samples. That no setting or stop changes its bytes is test_determinism.c's.
 *
 * Method: two loaders of the same order, one of them without mixing, whose batches the test mixes
 * itself.
 */
#include <math.h>

#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/sets/made_set.h"

enum { COUNT = 101, ROW = 200 };

static const stoker_field *field_of(const stoker_batch *batch, const char *name)
{
    for (uint32_t i = 0; i < batch->field_count; i++)
        if (strcmp(batch->fields[i].name, name) == 0)
            return &batch->fields[i];
    return NULL;
}

/* Bytes of one row of an array of a batch. */
static size_t row_bytes_of(const stoker_tensor *values)
{
    size_t bytes = stoker_dtype_bytes(values->dtype);
    for (uint32_t axis = 1; axis < values->rank; axis++)
        bytes *= (size_t)values->shape[axis];
    return bytes;
}

static stoker_loader_options options_with(float mixup_alpha, float cutmix_alpha)
{
    return stk_small_options(.blend.mixup_alpha = mixup_alpha, .blend.cutmix_alpha = cutmix_alpha);
}

/* ---- what a batch holds ---- */

/* How many batches of a run were of each kind. */
struct kinds {
    uint32_t plain, blended, cut;
};

static void check_numbers(const stoker_batch *plain, const stoker_batch *mixed)
{
    const int64_t *labels = plain->labels.data;
    const int64_t *others = field_of(mixed, "label_b")->values.data;
    const int64_t *partners = field_of(mixed, "partner")->values.data;
    const float *lambdas = field_of(mixed, "lambda")->values.data;
    cr_assert_eq(mixed->count, plain->count);
    cr_assert_arr_eq(mixed->labels.data, labels, plain->count * sizeof(labels[0]));
    cr_assert_arr_eq(mixed->ids, plain->ids, plain->count * sizeof(plain->ids[0]));
    const bool alone = partners[0] == 0;
    for (uint32_t row = 0; row < plain->count; row++) {
        const uint32_t other = alone ? row : (row + plain->count - 1) % plain->count;
        cr_assert_eq(partners[row], other);
        cr_assert_eq(others[row], labels[other]);
        cr_assert_eq(lambdas[row], lambdas[0]);
    }
    cr_assert(lambdas[0] >= 0.0F && lambdas[0] <= 1.0F);
    cr_assert(!alone || lambdas[0] == 1.0F);
}

static void check_blended(const stoker_batch *plain, const stoker_batch *mixed, float lambda)
{
    const size_t elements = row_bytes_of(&plain->images) / sizeof(float);
    const float *before = plain->images.data, *after = mixed->images.data;
    for (uint32_t row = 0; row < plain->count; row++)
        for (size_t i = 0; i < elements; i++) {
            const uint32_t other = (row + plain->count - 1) % plain->count;
            const volatile float first = before[row * elements + i] * lambda;
            const volatile float second = before[other * elements + i] * (1.0F - lambda);
            cr_assert_eq(after[row * elements + i], first + second, "row %u, element %zu", row, i);
        }
}

/* Each pixel is the row's own, or, in one box of all rows, its partner's. Some row differs from its
 * partner in each pixel of the box's edges. */
static void check_cut(const stoker_batch *plain, const stoker_batch *mixed, float lambda)
{
    const uint64_t *shape = plain->images.shape;
    const uint32_t height = (uint32_t)shape[1], width = (uint32_t)shape[2];
    const float *before = plain->images.data, *after = mixed->images.data;
    const size_t row_pixels = (size_t)height * width;
    uint32_t top = height, left = width, bottom = 0, right = 0;
    for (size_t i = 0; i < row_pixels * plain->count; i++)
        if (after[i] != before[i]) {
            const uint32_t y = (uint32_t)(i % row_pixels / width), x = (uint32_t)(i % width);
            top = y < top ? y : top;
            bottom = y + 1 > bottom ? y + 1 : bottom;
            left = x < left ? x : left;
            right = x + 1 > right ? x + 1 : right;
        }
    const uint32_t area = bottom > top ? (bottom - top) * (right - left) : 0;
    cr_assert_eq(lambda, (float)(1.0 - area / (double)row_pixels),
                 "lambda %g, %u of %zu pixels, %u, %u to %u, %u", (double)lambda, area, row_pixels,
                 top, left, bottom, right);
    for (size_t i = 0; i < row_pixels * plain->count; i++) {
        const size_t row = i / row_pixels, pixel = i % row_pixels;
        const bool inside = pixel / width >= top && pixel / width < bottom &&
                            pixel % width >= left && pixel % width < right;
        const size_t from = inside ? (row + plain->count - 1) % plain->count : row;
        cr_assert_eq(after[i], before[from * row_pixels + pixel], "row %zu, pixel %zu", row, pixel);
    }
}

/* Runs both loaders side by side. Images are float32 of one channel. */
static struct kinds check_run(const stoker_dataset *dataset, stoker_loader_options options)
{
    stoker_loader *mixing = loader_of(dataset, &options);
    const bool may_cut = options.blend.cutmix_alpha > 0.0F;
    options.blend.mixup_alpha = options.blend.cutmix_alpha = 0.0F;
    stoker_loader *plain = loader_of(dataset, &options);
    stoker_batch before = STOKER_BATCH_INIT, after = STOKER_BATCH_INIT;
    struct kinds kinds = { 0 };
    for (;;) {
        const int rc = stoker_loader_next(plain, &before, -1);
        cr_assert_eq(stoker_loader_next(mixing, &after, -1), rc);
        if (rc == STOKER_FINISHED)
            break;
        if (rc != STOKER_OK)
            continue;
        check_numbers(&before, &after);
        const float lambda = *(const float *)field_of(&after, "lambda")->values.data;
        const size_t bytes = row_bytes_of(&before.images) * before.count;
        const bool blends = lambda * 32768.0F == floorf(lambda * 32768.0F);
        if (memcmp(before.images.data, after.images.data, bytes) == 0) {
            kinds.plain++;
        } else if (blends && !may_cut) {
            check_blended(&before, &after, lambda);
            kinds.blended++;
        } else if (may_cut && options.blend.cutmix_share == 1.0F) {
            check_cut(&before, &after, lambda);
            kinds.cut++;
        } else {
            *(blends ? &kinds.blended : &kinds.cut) += 1;
        }
        stoker_batch_release(&before);
        stoker_batch_release(&after);
    }
    stoker_loader_destroy(&mixing);
    stoker_loader_destroy(&plain);
    return kinds;
}

CleanTest(mixing, mixup_blends_each_row_with_the_one_before)
{
    stoker_dataset *dataset = dataset_of("synth:digits?count=203");
    stoker_loader_options options = options_with(0.4F, 0.0F);
    options.dtype = STOKER_DTYPE_FLOAT32;
    const struct kinds kinds = check_run(dataset, options);
    cr_assert_geq(kinds.blended, 20);
    stoker_dataset_close(&dataset);
}

/* Images of random bytes, 19 x 13 x 1, with labels. */
static stoker_dataset *noise(void)
{
    static uint8_t images[203][19 * 13];
    static int32_t labels[203];
    stoker_array arrays[2] = { STOKER_ARRAY_INIT, STOKER_ARRAY_INIT };
    stoker_dataset *dataset = NULL;
    for (uint32_t i = 0; i < 203; i++) {
        labels[i] = (int32_t)i;
        for (uint32_t at = 0; at < 19 * 13; at++)
            images[i][at] = stk_set_byte(i, at);
    }
    arrays[0].name = "image";
    arrays[0].kind = STOKER_FIELD_KIND_IMAGE;
    arrays[0].data = images;
    arrays[0].dtype = STOKER_DTYPE_UINT8;
    arrays[0].rank = 3;
    memcpy(arrays[0].shape, (uint64_t[]){ 19, 13, 1 }, 3 * sizeof(uint64_t));
    arrays[1].name = "label";
    arrays[1].data = labels;
    arrays[1].dtype = STOKER_DTYPE_INT32;
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, arrays, 2, 203, NULL, NULL), STOKER_OK);
    return dataset;
}

CleanTest(mixing, cutmix_takes_a_box_whose_area_is_lambdas)
{
    stoker_dataset *dataset = noise();
    stoker_loader_options options = options_with(0.0F, 1.0F);
    options.dtype = STOKER_DTYPE_FLOAT32;
    options.blend.cutmix_share = 1.0F;
    const struct kinds kinds = check_run(dataset, options);
    cr_assert_geq(kinds.cut, 15);
    cr_assert_eq(kinds.blended, 0);
    stoker_dataset_close(&dataset);
}

CleanTest(mixing, probability_and_share_choose_the_batches)
{
    stoker_dataset *dataset = dataset_of("synth:digits?count=320");
    stoker_loader_options options = options_with(1.0F, 1.0F);
    options.dtype = STOKER_DTYPE_FLOAT32;
    options.batch_size = 4;
    const struct kinds both = check_run(dataset, options); /* a box's lambda may be a multiple */
    cr_assert_geq(both.blended, 40);
    cr_assert_geq(both.cut, 30);
    options.blend.probability = 0.0F;
    const struct kinds none = check_run(dataset, options);
    cr_assert_eq(none.plain, 160);
    options.blend.probability = 0.5F;
    options.blend.cutmix_share = 0.0F;
    options.blend.cutmix_alpha = 0.0F;
    const struct kinds some = check_run(dataset, options);
    cr_assert(some.plain >= 50 && some.blended >= 50, "%u, %u", some.plain, some.blended);
    stoker_dataset_close(&dataset);
}

/* The last batch of an epoch of 203 has 11 rows, that of 193 one. */
CleanTest(mixing, a_row_alone_stays_as_it_is)
{
    stoker_dataset *dataset = dataset_of("synth:digits?count=193");
    stoker_loader_options options = options_with(1.0F, 0.0F);
    options.dtype = STOKER_DTYPE_FLOAT32;
    const struct kinds kinds = check_run(dataset, options);
    cr_assert_eq(kinds.plain, 2);
    stoker_dataset_close(&dataset);
}

CleanTest(mixing, data_without_labels_have_partners_only)
{
    static float rows[64][5];
    stoker_array array = STOKER_ARRAY_INIT;
    array.name = "x";
    array.data = rows;
    array.dtype = STOKER_DTYPE_FLOAT32;
    array.rank = 1;
    array.shape[0] = 5;
    stoker_dataset *dataset = NULL;
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, &array, 1, 64, NULL, NULL), STOKER_OK);
    const stoker_loader_options options = options_with(1.0F, 0.0F);
    stoker_loader *loader = loader_of(dataset, &options);
    cr_assert_eq(stoker_loader_find_field(loader, "label_b"), -1);
    const int32_t partner = stoker_loader_find_field(loader, "partner");
    const int32_t lambda = stoker_loader_find_field(loader, "lambda");
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    cr_assert(partner > 0 && lambda > 0);
    cr_assert_eq(batch.fields[partner].values.dtype, STOKER_DTYPE_INT64);
    cr_assert_eq(batch.fields[lambda].values.dtype, STOKER_DTYPE_FLOAT32);
    cr_assert_eq(batch.fields[lambda].values.shape[0], batch.count);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

/* A label that is delivered in another type has a partner's of the same. */
CleanTest(mixing, label_b_follows_labels_type)
{
    stoker_dataset *dataset = dataset_of("synth:digits?count=64");
    stoker_loader_options options = options_with(1.0F, 0.0F);
    stoker_field_options label = STOKER_FIELD_OPTIONS_INIT;
    label.name = "label";
    label.dtype = STOKER_DTYPE_FLOAT32;
    options.fields = &label;
    options.field_count = 1;
    stoker_loader *loader = loader_of(dataset, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    const stoker_field *other = field_of(&batch, "label_b");
    cr_assert_eq(other->values.dtype, STOKER_DTYPE_FLOAT32);
    for (uint32_t row = 1; row < batch.count; row++)
        cr_assert_eq(((const float *)other->values.data)[row],
                     ((const float *)batch.labels.data)[row - 1]);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

/* Rows that are skipped are nobody's partners: what is left is mixed as a batch without them. */
CleanTest(mixing, skipped_samples_are_no_partners)
{
    struct stk_made_set set = { .count = COUNT, .row_bytes = ROW, .kind_of = stk_made_some_broken };
    cr_assert(stk_made_set_open(&set));
    stoker_loader_options options = options_with(0.7F, 0.0F);
    options.on_bad_sample = STOKER_ON_BAD_SKIP;
    options.dtype = STOKER_DTYPE_FLOAT32;
    cr_assert_geq(check_run(set.dataset, options).blended, 8);
    stk_made_set_close(&set);
}

/* A batch hook sees what was mixed. */
static int add_one(void *self, void *scratch, stoker_hook_field *fields, uint32_t count,
                   const stoker_hook_batch *batch, stoker_rng *rng, stoker_error *error)
{
    (void)self;
    (void)scratch;
    (void)rng;
    (void)error;
    for (uint32_t row = 0; row < batch->rows; row++)
        *(float *)(void *)((char *)fields[count - 1].data + row * fields[count - 1].row_bytes) +=
            1.0F;
    return count == 5 ? STOKER_OK : STOKER_EINVAL;
}

CleanTest(mixing, a_batch_hook_comes_after_it)
{
    stoker_dataset *dataset = dataset_of("synth:digits?count=64");
    stoker_loader_options options = options_with(1.0F, 0.0F);
    const stoker_batch_hook hook = { .struct_size = sizeof(hook), .apply = add_one };
    options.batch_hook = &hook;
    stoker_loader *loader = loader_of(dataset, &options);
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_next(loader, &batch, -1), STOKER_OK);
    const float lambda = *(const float *)field_of(&batch, "lambda")->values.data;
    cr_assert(lambda >= 1.0F && lambda <= 2.0F);
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

/* ---- what is refused ---- */

static void refuse(const char *spec, stoker_loader_options options, int code, const char *words)
{
    stoker_dataset *dataset = dataset_of(spec);
    stoker_loader *loader = NULL;
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), code, "%s", words);
    cr_assert_neq(strstr(error.message, words), NULL, "%s", error.message);
    stoker_dataset_close(&dataset);
}

CleanTest(mixing, what_cannot_be_mixed_is_refused_by_name)
{
    const char *const digits = "synth:digits?count=64";
    refuse(digits, options_with(-1.0F, 0.0F), STOKER_EINVAL, "blend.mixup_alpha -1");
    refuse(digits, options_with(NAN, 0.0F), STOKER_EINVAL, "blend.mixup_alpha");
    refuse(digits, options_with(0.0F, 101.0F), STOKER_EINVAL, "blend.cutmix_alpha 101");
    stoker_loader_options options = options_with(1.0F, 0.0F);
    options.blend.probability = 1.5F;
    refuse(digits, options, STOKER_EINVAL, "blend.probability 1.5");
    options = options_with(1.0F, 0.0F);
    options.blend.cutmix_share = -0.5F;
    refuse(digits, options, STOKER_EINVAL, "blend.cutmix_share -0.5");
    options = options_with(0.0F, 0.0F);
    options.blend.reserved[3] = 1;
    refuse(digits, options, STOKER_EINVAL, "blend.reserved[3]");
    options = options_with(1.0F, 0.0F);
    options.dtype = STOKER_DTYPE_INT32;
    refuse(digits, options, STOKER_ETYPE, "blend.mixup_alpha: int32 cannot be blended");
    refuse("synth:bytes?count=64&shape=30", options_with(0.0F, 1.0F), STOKER_EINVAL,
           "blend.cutmix_alpha needs images");
}

/* Fields of one number per sample, besides "image": names[0..count). */
static stoker_dataset *set_with(const char *const *names, uint32_t count)
{
    static uint8_t images[64][12];
    static float numbers[64];
    stoker_array arrays[STOKER_FIELDS_MAX];
    stoker_dataset *dataset = NULL;
    for (uint32_t i = 0; i <= count; i++) {
        arrays[i] = (stoker_array)STOKER_ARRAY_INIT;
        arrays[i].name = i == 0 ? "image" : names[i - 1];
        arrays[i].data = i == 0 ? (void *)images : (void *)numbers;
        arrays[i].dtype = i == 0 ? STOKER_DTYPE_UINT8 : STOKER_DTYPE_FLOAT32;
    }
    arrays[0].rank = 3;
    memcpy(arrays[0].shape, (uint64_t[]){ 3, 4, 1 }, 3 * sizeof(uint64_t));
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, arrays, count + 1, 64, NULL, NULL),
                 STOKER_OK);
    return dataset;
}

static void refuse_set(stoker_dataset *dataset, int code, const char *words)
{
    const stoker_loader_options options = options_with(1.0F, 0.0F);
    stoker_loader *loader = NULL;
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), code);
    cr_assert_neq(strstr(error.message, words), NULL, "%s", error.message);
    stoker_dataset_close(&dataset);
}

CleanTest(mixing, the_names_of_its_fields_must_be_free)
{
    static char names[STOKER_FIELDS_MAX][8];
    const char *many[STOKER_FIELDS_MAX], *const lambda = "lambda";
    for (uint32_t i = 0; i < STOKER_FIELDS_MAX; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "f%u", i);
        many[i] = names[i];
    }
    refuse_set(set_with(&lambda, 1), STOKER_EINVAL, "\"lambda\", which the data set has already");
    refuse_set(set_with(many, STOKER_FIELDS_MAX - 3), STOKER_ELIMIT, "more than 128");
    stoker_dataset *dataset = set_with(many, STOKER_FIELDS_MAX - 4); /* as many as there may be */
    const stoker_loader_options options = options_with(1.0F, 0.0F);
    stoker_loader *loader = loader_of(dataset, &options);
    cr_assert_eq(stoker_loader_find_field(loader, "lambda"), STOKER_FIELDS_MAX - 2);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}
