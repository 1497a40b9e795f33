/* test_fields.c - batches of samples with several fields, two of which vary in length: packed and
 * padded in every form, as stored and in other types, in host memory and on the stand-in's GPU.
 * Every element of every row is checked.
 */
#include <pthread.h>

#include "kernels/convert/convert.h"
#include "loader/api/lend/dlpack_layout.h"
#include "support/gpu/cuda_run.h"
#include "support/leaks.h"
#include "support/runs/opened_loader.h"
#include "support/sets/several_set.h"

enum { BATCH = 6, WORDS = 1, TEXT = 3 };

static struct several_set set;
static struct stk_cuda_consumer consumer;

static void begin(void)
{
    standin_cuda_reset(1);
    standin_cuda_delay(20);
    cr_assert(several_make(&set));
    cr_assert(stk_cuda_consumer_init(&consumer, 0));
}

static void finish(void)
{
    stk_cuda_consumer_destroy(&consumer);
    several_remove(&set);
    cr_assert_eq(standin_cuda_live(), 0);
    cr_assert_eq(standin_cuda_violations(), 0U);
    stk_test_check_leaks();
}

TestSuite(fields, .init = begin, .fini = finish);

/* What is asked of the fields, and a batch to be checked against it. */
struct expected {
    stoker_field_form form;
    uint32_t multiple;
    double pad;
    stoker_dtype words, text; /* NONE = as stored */
};

struct check {
    const struct expected *expected;
    stoker_batch batch;
    stoker_field fields[SEVERAL_FIELDS]; /* with pointers of the host */
    const char *wrong;                   /* NULL = all is right */
};

static uint64_t length_of(uint32_t field, uint64_t id)
{
    return field == WORDS ? several_words(id) : several_text(id);
}

static uint64_t width_of(const struct expected *expected, const stoker_batch *batch, uint32_t field)
{
    uint64_t longest = 0;
    for (uint32_t row = 0; row < batch->count; row++)
        longest = length_of(field, batch->ids[row]) > longest ? length_of(field, batch->ids[row])
                                                              : longest;
    if (expected->form == STOKER_FIELD_FORM_PADDED_MULTIPLE)
        return (longest + expected->multiple - 1) / expected->multiple * expected->multiple;
    return expected->form == STOKER_FIELD_FORM_PADDED_MAX
               ? (field == WORDS ? SEVERAL_WORDS : SEVERAL_TEXT)
               : longest;
}

/* The row of a field that varies, converted as asked for. */
static bool row_matches(const stoker_field *field, uint32_t index, uint64_t id, const uint8_t *row)
{
    const stoker_dtype stored = index == WORDS ? STOKER_DTYPE_INT32 : STOKER_DTYPE_UINT8;
    uint8_t bytes[64], converted[256];
    const uint64_t length = length_of(index, id);
    for (uint32_t at = 0; at < length * stoker_dtype_bytes(stored); at++)
        bytes[at] = several_byte(id, index, at);
    stk_elements_choose(stored, field->values.dtype)(bytes, converted, length);
    return memcmp(row, converted, length * stoker_dtype_bytes(field->values.dtype)) == 0;
}

static bool is_padding(const stoker_field *field, double pad, const uint8_t *at, uint64_t count)
{
    const size_t bytes = stoker_dtype_bytes(field->values.dtype);
    double value = 0.0;
    for (uint64_t i = 0; i < count; i++) {
        int64_t number = 0;
        switch (field->values.dtype) {
        case STOKER_DTYPE_FLOAT32:
            value = (double)*(const float *)(const void *)(at + i * bytes);
            break;
        default:
            memcpy(&number, at + i * bytes, bytes);
            if (bytes == 4)
                number = (int32_t)number;
            value = (double)number;
        }
        if (value != pad)
            return false;
    }
    return true;
}

static const char *check_varying(const struct check *check, uint32_t index)
{
    const stoker_field *field = &check->fields[index];
    const struct expected *expected = check->expected;
    const bool packed = expected->form == STOKER_FIELD_FORM_PACKED;
    const size_t bytes = stoker_dtype_bytes(field->values.dtype);
    const uint64_t width = width_of(expected, &check->batch, index);
    int64_t total = 0;
    if (field->offsets == NULL || field->device_offsets == NULL || field->offsets[0] != 0)
        return "no offsets";
    for (uint32_t row = 0; row < check->batch.count; row++) {
        const uint64_t id = check->batch.ids[row];
        const uint64_t length = length_of(index, id);
        const uint8_t *at =
            (const uint8_t *)field->values.data + (packed ? (uint64_t)total : row * width) * bytes;
        total += (int64_t)length;
        if (field->offsets[row + 1] != total || field->device_offsets[row + 1] != total)
            return "offsets";
        if (!row_matches(field, index, id, at))
            return "a row that varies";
        if (!packed && !is_padding(field, expected->pad, at + length * bytes, width - length))
            return "padding";
    }
    if (field->values.rank != (packed ? 1U : 2U) ||
        field->values.shape[0] != (packed ? (uint64_t)total : check->batch.count) ||
        (!packed && field->values.shape[1] != width))
        return "shape of a field that varies";
    return NULL;
}

static const char *check_fixed(const struct check *check, uint32_t index)
{
    const stoker_tensor *values = &check->fields[index].values;
    size_t bytes = stoker_dtype_bytes(values->dtype);
    for (uint32_t axis = 1; axis < values->rank; axis++)
        bytes *= (size_t)values->shape[axis];
    if (check->fields[index].offsets != NULL || values->shape[0] != check->batch.count)
        return "shape of a fixed field";
    for (uint32_t row = 0; row < check->batch.count; row++)
        if (!several_matches(check->batch.ids[row], index,
                             (const uint8_t *)values->data + row * bytes, 0))
            return "a fixed row";
    return NULL;
}

static void check_batch(void *argument)
{
    struct check *check = argument;
    if (check->batch.device == STOKER_DEVICE_CUDA)
        for (uint32_t i = 0; i < SEVERAL_FIELDS; i++) {
            stoker_field *field = &check->fields[i];
            field->values.data = standin_cuda_view(field->values.data);
            if (field->device_offsets != NULL)
                field->device_offsets = standin_cuda_view(field->device_offsets);
        }
    for (uint32_t i = 0; i < SEVERAL_FIELDS && check->wrong == NULL; i++)
        check->wrong = i == WORDS || i == TEXT ? check_varying(check, i) : check_fixed(check, i);
}

static void look(const stoker_batch *batch, const struct expected *expected)
{
    static struct check check;
    check = (struct check){ .expected = expected, .batch = *batch };
    cr_assert_eq(batch->field_count, (uint32_t)SEVERAL_FIELDS);
    memcpy(check.fields, batch->fields, sizeof(check.fields));
    if (batch->device == STOKER_DEVICE_CUDA) {
        cr_assert_eq(stoker_batch_wait_on(batch, consumer.stream), STOKER_OK);
        standin_cuda_own_calls(true);
        cr_assert_eq(cudaLaunchHostFunc(consumer.stream, check_batch, &check), cudaSuccess);
        standin_cuda_own_calls(false);
        stk_cuda_consumer_wait(&consumer);
    } else {
        check_batch(&check);
    }
    cr_assert_null(check.wrong, "%s, form %d", check.wrong, (int)expected->form);
}

static stoker_loader_options options_of(const struct expected *expected,
                                        stoker_field_options fields[2])
{
    stoker_loader_options options = stk_small_options();
    fields[0] = fields[1] = (stoker_field_options)STOKER_FIELD_OPTIONS_INIT;
    fields[0].name = "text";
    fields[1].name = "words";
    fields[0].dtype = expected->text;
    fields[1].dtype = expected->words;
    for (int i = 0; i < 2; i++) {
        fields[i].form = expected->form;
        fields[i].pad_value = expected->pad;
        if (expected->multiple > 0)
            fields[i].multiple = expected->multiple;
    }
    options.fields = fields;
    options.field_count = 2;
    options.batch_size = BATCH;
    return options;
}

static uint64_t run(const stoker_loader_options *options, const struct expected *expected)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t samples = 0;
    int rc;
    stoker_loader *loader = loader_of(set.dataset, options);
    while ((rc = stoker_loader_next(loader, &batch, 20000)) != STOKER_FINISHED) {
        if (rc == STOKER_EPOCH_END)
            continue;
        cr_assert_eq(rc, STOKER_OK, "%s", stoker_error_name(rc));
        look(&batch, expected);
        samples += batch.count;
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
    return samples;
}

static const stoker_device devices[] = { STOKER_DEVICE_CPU, STOKER_DEVICE_CUDA_HOST,
                                         STOKER_DEVICE_CUDA };

Test(fields, every_form_on_every_device)
{
    for (int device = 0; device < 3; device++)
        for (int form = STOKER_FIELD_FORM_PACKED; form <= STOKER_FIELD_FORM_PADDED_MAX; form++)
            for (int32_t workers = 0; workers <= 3; workers += 3) {
                const struct expected expected = { .form = (stoker_field_form)form,
                                                   .multiple = form == 2 ? 5 : 0,
                                                   .pad = form == 3 ? 7.0 : 0.0 };
                stoker_field_options fields[2];
                stoker_loader_options options = options_of(&expected, fields);
                options.device = devices[device];
                options.num_workers = workers;
                options.cache = form == 1   ? STOKER_CACHE_DECODED
                                : form == 2 ? STOKER_CACHE_ENCODED
                                            : STOKER_CACHE_NONE;
                cr_assert_eq(run(&options, &expected), 2U * SEVERAL_COUNT);
            }
}

Test(fields, other_types_of_fields_that_vary)
{
    static const stoker_dtype words[] = { STOKER_DTYPE_INT64, STOKER_DTYPE_FLOAT32,
                                          STOKER_DTYPE_NONE };
    static const stoker_dtype texts[] = { STOKER_DTYPE_INT32, STOKER_DTYPE_INT64,
                                          STOKER_DTYPE_FLOAT32 };
    for (int form = STOKER_FIELD_FORM_PACKED; form <= STOKER_FIELD_FORM_PADDED_MAX; form++)
        for (int i = 0; i < 3; i++) {
            const struct expected expected = { .form = (stoker_field_form)form,
                                               .multiple = form == STOKER_FIELD_FORM_PADDED_MULTIPLE
                                                               ? 4
                                                               : 0,
                                               .pad = form == STOKER_FIELD_FORM_PACKED ? 0.0 : -1.0,
                                               .words = words[i],
                                               .text = texts[i] };
            stoker_field_options fields[2];
            stoker_loader_options options = options_of(&expected, fields);
            options.device = devices[i];
            options.num_workers = 2;
            cr_assert_eq(run(&options, &expected), 2U * SEVERAL_COUNT);
        }
}

/* A fixed field of a part becomes narrower, and two from values() wider or as wide, in every
 * batch. */
Test(fields, other_types_of_fixed_fields)
{
    static const struct {
        uint32_t field;
        const char *name;
        stoker_dtype from, to;
    } pairs[] = { { 2, "box", STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16 },
                  { 5, "weight", STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT64 },
                  { 4, "label", STOKER_DTYPE_INT64, STOKER_DTYPE_FLOAT32 } };
    stoker_field_options fields[3];
    stoker_loader_options options = stk_small_options();
    stoker_batch batch = STOKER_BATCH_INIT;
    for (int i = 0; i < 3; i++) {
        fields[i] = (stoker_field_options)STOKER_FIELD_OPTIONS_INIT;
        fields[i].name = pairs[i].name;
        fields[i].dtype = pairs[i].to;
    }
    options.fields = fields;
    options.field_count = 3;
    options.num_workers = 2;
    stoker_loader *loader = loader_of(set.dataset, &options);
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, 20000)) != STOKER_FINISHED) {
        if (rc == STOKER_EPOCH_END)
            continue;
        cr_assert_eq(rc, STOKER_OK);
        for (int i = 0; i < 3; i++) {
            const stoker_tensor *values = &batch.fields[pairs[i].field].values;
            const size_t elements = pairs[i].field == 4 ? 1 : 2;
            const size_t bytes = elements * stoker_dtype_bytes(pairs[i].to);
            cr_assert_eq(values->dtype, pairs[i].to);
            for (uint32_t row = 0; row < batch.count; row++) {
                const uint64_t id = batch.ids[row];
                const float pair[2] = { (float)id,
                                        (float)id + (pairs[i].field == 5 ? 0.5F : 0.25F) };
                const int64_t label = (int64_t)id * 3;
                unsigned char expected[16];
                stk_elements_choose(pairs[i].from, pairs[i].to)(
                    pairs[i].field == 4 ? (const void *)&label : pair, expected, elements);
                cr_assert_eq(memcmp((const char *)values->data + row * bytes, expected, bytes), 0,
                             "%s of row %u", pairs[i].name, row);
            }
        }
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
}

/* Bad samples leave gaps in fields of both kinds; padding of the last batch has all fields. */
Test(fields, bad_samples_and_a_padded_last_batch)
{
    set.broken_image = 11;
    set.broken_pair = 30;
    for (int device = 0; device < 3; device++)
        for (int policy = STOKER_ON_BAD_SKIP; policy <= STOKER_ON_BAD_SUBSTITUTE; policy++)
            for (int form = STOKER_FIELD_FORM_PACKED; form <= STOKER_FIELD_FORM_PADDED; form++) {
                const struct expected expected = { .form = (stoker_field_form)form };
                stoker_field_options fields[2];
                stoker_loader_options options = options_of(&expected, fields);
                options.device = devices[device];
                options.on_bad_sample = (stoker_on_bad)policy;
                options.last = STOKER_LAST_PAD;
                options.epochs = 1;
                options.num_workers = device;
                const uint64_t full = (SEVERAL_COUNT + BATCH - 1) / BATCH * BATCH;
                const uint64_t samples = run(&options, &expected);
                cr_assert(policy == STOKER_ON_BAD_SUBSTITUTE
                              ? samples == full
                              : samples < full && samples + 4 >= full);
            }
}

/* Small gaps between what is used of a slot are copied, too, which hides a number that was left
 * out. Behind the offsets of a few rows in a slot for many lies a gap that is too large for
 * that. */
Test(fields, a_short_batch_of_a_large_slot_has_all_offsets)
{
    enum { LARGE = 9000, COPIES = 175, LAST = SEVERAL_COUNT * COPIES - LARGE };
    static uint64_t ids[LARGE], copies[SEVERAL_COUNT * COPIES];
    const struct expected expected = { .form = STOKER_FIELD_FORM_PACKED };
    stoker_field_options fields[2];
    stoker_loader_options options = options_of(&expected, fields);
    stoker_dataset *many = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    uint32_t last = 0;
    for (uint64_t i = 0; i < SEVERAL_COUNT * COPIES; i++)
        copies[i] = i % SEVERAL_COUNT;
    cr_assert_eq(stoker_dataset_select(&many, set.dataset, copies, SEVERAL_COUNT * COPIES, NULL),
                 STOKER_OK);
    options.device = STOKER_DEVICE_CUDA;
    options.batch_size = LARGE;
    options.epochs = 1;
    options.num_workers = 1;
    options.prefetch_batches = 2;
    stoker_loader *loader = loader_of(many, &options);
    while (stoker_loader_next(loader, &batch, 20000) == STOKER_OK) {
        for (uint32_t row = 0; row < batch.count; row++)
            ids[row] = batch.ids[row] % SEVERAL_COUNT;
        last = batch.count;
        stoker_batch shown = batch;
        shown.ids = ids;
        look(&shown, &expected);
        stoker_batch_release(&batch);
    }
    cr_assert_eq(last, (uint32_t)LAST);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&many);
}

/* Kept batches, and their tensors: each field and its offsets. */
Test(fields, are_kept_and_exported)
{
    for (int device = 0; device < 3; device++) {
        const struct expected expected = { .form = STOKER_FIELD_FORM_PACKED };
        stoker_batch kept[SEVERAL_COUNT];
        stoker_field_options fields[2];
        stoker_loader_options options = options_of(&expected, fields);
        uint32_t count = 0;
        options.device = devices[device];
        options.on_lent = STOKER_ON_LENT_GROW;
        options.epochs = 1;
        stoker_loader *loader = loader_of(set.dataset, &options);
        for (;; count++) {
            kept[count] = (stoker_batch)STOKER_BATCH_INIT;
            if (stoker_loader_next(loader, &kept[count], 20000) != STOKER_OK)
                break;
        }
        cr_assert_eq(count, (uint32_t)(SEVERAL_COUNT + BATCH - 1) / BATCH);
        for (uint32_t i = 0; i < count; i++)
            look(&kept[i], &expected);
        for (uint32_t i = 0; i < count; i++)
            stoker_batch_release(&kept[i]);
        stoker_loader_destroy(&loader);
    }
}

Test(fields, have_tensors)
{
    const struct expected expected = { .form = STOKER_FIELD_FORM_PACKED };
    stoker_field_options fields[2];
    const stoker_loader_options options = options_of(&expected, fields);
    stoker_batch batch = STOKER_BATCH_INIT;
    stoker_loader *loader = loader_of(set.dataset, &options);
    cr_assert_eq(stoker_loader_next(loader, &batch, 20000), STOKER_OK);
    for (uint32_t part = 0; part < STOKER_TENSOR_LABELS + 2; part++) {
        DLManagedTensorVersioned *tensor = NULL;
        const uint32_t field = part % STOKER_TENSOR_OFFSETS;
        const bool offsets = part / STOKER_TENSOR_OFFSETS == 1;
        const int rc = stoker_batch_to_dlpack(&batch, part, NULL, &tensor);
        const bool exists = part == STOKER_TENSOR_IDS || part == STOKER_TENSOR_LABELS ||
                            (part < STOKER_TENSOR_IDS && field < SEVERAL_FIELDS &&
                             (!offsets || field == WORDS || field == TEXT));
        cr_assert_eq(rc, exists ? STOKER_OK : STOKER_EINVAL, "part %u", part);
        if (!exists)
            continue;
        const DLTensor *is = &tensor->dl_tensor;
        if (part < STOKER_TENSOR_IDS) {
            cr_assert_eq(is->data, offsets ? (const void *)batch.fields[field].offsets
                                           : batch.fields[field].values.data);
            cr_assert_eq(is->shape[0], offsets ? (int64_t)batch.count + 1
                                               : (int64_t)batch.fields[field].values.shape[0]);
        }
        tensor->deleter(tensor);
    }
    stoker_batch_release(&batch);
    stoker_loader_destroy(&loader);
}

Test(fields, a_value_that_does_not_fit_is_refused)
{
    static const struct {
        double pad;
        stoker_dtype words;
        int code;
    } cases[] = { { 0.5, STOKER_DTYPE_NONE, STOKER_EINVAL },
                  { 2147483648.0, STOKER_DTYPE_NONE, STOKER_EINVAL },
                  { -2147483648.0, STOKER_DTYPE_INT64, STOKER_EINVAL }, /* text is uint8 */
                  { 255.0, STOKER_DTYPE_NONE, STOKER_OK },
                  { 256.0, STOKER_DTYPE_INT64, STOKER_EINVAL } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct expected expected = { .form = STOKER_FIELD_FORM_PADDED,
                                           .pad = cases[i].pad,
                                           .words = cases[i].words };
        stoker_field_options fields[2];
        stoker_loader *loader = NULL;
        const stoker_loader_options options = options_of(&expected, fields);
        cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), cases[i].code,
                     "case %zu", i);
        stoker_loader_destroy(&loader);
    }
    const struct expected none = { .form = STOKER_FIELD_FORM_PADDED_MULTIPLE };
    stoker_field_options fields[2];
    stoker_loader *loader = NULL;
    const stoker_loader_options options = options_of(&none, fields);
    fields[0].multiple = 0;
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, NULL), STOKER_EINVAL);
}

/* ---- hooks ---- */

/* Append a word and cut the text in half: the lengths change. */
static int change(void *self, void *scratch, stoker_row *rows, uint32_t count,
                  const stoker_hook_sample *sample, stoker_rng *rng, stoker_error *error)
{
    (void)self, (void)scratch, (void)rng, (void)error;
    if (count != SEVERAL_FIELDS || rows[0].bytes_max != SEVERAL_IMAGE || rows[2].bytes_max != 8 ||
        rows[WORDS].bytes_max != SEVERAL_WORDS * 4 || rows[TEXT].bytes_max != SEVERAL_TEXT ||
        rows[WORDS].length != several_words(sample->id))
        return STOKER_EINVAL;
    if (rows[WORDS].length < SEVERAL_WORDS)
        ((int32_t *)rows[WORDS].data)[rows[WORDS].length++] = (int32_t)sample->id;
    rows[TEXT].length /= 2;
    return 0;
}

/* Count what the batch hook is shown. */
static int count_words(void *self, void *scratch, stoker_hook_field *fields, uint32_t count,
                       const stoker_hook_batch *batch, stoker_rng *rng, stoker_error *error)
{
    (void)self, (void)scratch, (void)rng, (void)error;
    if (count != SEVERAL_FIELDS || fields[0].lengths != NULL)
        return STOKER_EINVAL;
    for (uint32_t row = 0; row < batch->rows; row++) { /* the label says how many words there are */
        const int64_t words = (int64_t)fields[WORDS].lengths[row];
        memcpy((char *)fields[4].data + row * fields[4].row_bytes, &words, sizeof(words));
    }
    return 0;
}

Test(fields, hooks_see_all_of_them)
{
    const stoker_row_hook row_hook = { .struct_size = sizeof(row_hook), .apply = change };
    const stoker_batch_hook batch_hook = { .struct_size = sizeof(batch_hook),
                                           .apply = count_words };
    for (int32_t workers = 0; workers <= 3; workers += 3) {
        stoker_loader_options options = stk_small_options();
        stoker_batch batch = STOKER_BATCH_INIT;
        options.row_hook = &row_hook;
        options.batch_hook = &batch_hook;
        options.num_workers = workers;
        stoker_loader *loader = loader_of(set.dataset, &options);
        int rc;
        while ((rc = stoker_loader_next(loader, &batch, 20000)) != STOKER_FINISHED) {
            if (rc == STOKER_EPOCH_END)
                continue;
            cr_assert_eq(rc, STOKER_OK, "%s", stoker_loader_error(loader)->message);
            const int64_t *words = batch.fields[WORDS].offsets;
            const int64_t *texts = batch.fields[TEXT].offsets;
            for (uint32_t row = 0; row < batch.count; row++) {
                const uint64_t id = batch.ids[row];
                const int64_t more = several_words(id) < SEVERAL_WORDS;
                cr_assert_eq(words[row + 1] - words[row], (int64_t)several_words(id) + more);
                cr_assert_eq(texts[row + 1] - texts[row], (int64_t)several_text(id) / 2);
                cr_assert_eq(((const int64_t *)batch.labels.data)[row],
                             words[row + 1] - words[row]);
                if (more)
                    cr_assert_eq(
                        ((const int32_t *)batch.fields[WORDS].values.data)[words[row + 1] - 1],
                        (int32_t)id);
            }
            stoker_batch_release(&batch);
        }
        stoker_loader_destroy(&loader);
    }
}

static int set_too_long(void *self, void *scratch, stoker_row *rows, uint32_t count,
                        const stoker_hook_sample *sample, stoker_rng *rng, stoker_error *error)
{
    (void)self, (void)scratch, (void)count, (void)sample, (void)rng, (void)error;
    rows[TEXT].length = SEVERAL_TEXT + 1;
    return 0;
}

Test(fields, a_hook_may_not_set_a_length_that_does_not_fit)
{
    const stoker_row_hook hook = { .struct_size = sizeof(hook), .apply = set_too_long };
    stoker_loader_options options = stk_small_options();
    stoker_batch batch = STOKER_BATCH_INIT;
    options.row_hook = &hook;
    stoker_loader *loader = loader_of(set.dataset, &options);
    cr_assert_eq(stoker_loader_next(loader, &batch, 20000), STOKER_EINVAL);
    cr_assert(strstr(stoker_loader_error(loader)->message, "field \"text\"") != NULL);
    stoker_loader_destroy(&loader);
}
