/* test_from_arrays.c - arrays in memory as a data set: what is given is delivered, without a copy,
 * and what is wrong is named.
 */
#include <stoker/arrays.h>

#include "support/sets/fields_of.h"
#include "support/sweep.h"

enum { COUNT = 50, PIXELS = 12 };

static uint8_t pixels[COUNT * PIXELS];
static int32_t classes[COUNT];
static double targets[COUNT * 2];
static int64_t ends[COUNT + 1];
static uint8_t text[COUNT * COUNT];

static void fill(void)
{
    ends[0] = 0;
    for (int i = 0; i < COUNT * PIXELS; i++)
        pixels[i] = (uint8_t)(i * 7);
    for (int i = 0; i < COUNT; i++) {
        classes[i] = i % 3;
        targets[2 * i] = i / 8.0;
        targets[2 * i + 1] = -i;
        ends[i + 1] = ends[i] + i % 5;
    }
    for (int i = 0; i < COUNT * COUNT; i++)
        text[i] = (uint8_t)(i * 13);
}

/* An image, a label, two numbers, and bytes of varying length. */
static void make_arrays(stoker_array arrays[4])
{
    static const char *const names[] = { "ape", "bee", "cat" };
    const stoker_array blank = STOKER_ARRAY_INIT;
    for (int i = 0; i < 4; i++)
        arrays[i] = blank;
    fill();
    arrays[0].name = "image";
    arrays[0].kind = STOKER_FIELD_KIND_IMAGE;
    arrays[0].data = pixels;
    arrays[0].dtype = STOKER_DTYPE_UINT8;
    arrays[0].rank = 3;
    arrays[0].shape[0] = 3;
    arrays[0].shape[1] = 4;
    arrays[0].shape[2] = 1;
    arrays[1].name = "label";
    arrays[1].data = classes;
    arrays[1].dtype = STOKER_DTYPE_INT32;
    arrays[1].class_count = 3;
    arrays[1].class_names = names;
    arrays[2].name = "targets";
    arrays[2].data = targets;
    arrays[2].dtype = STOKER_DTYPE_FLOAT64;
    arrays[2].rank = 1;
    arrays[2].shape[0] = 2;
    arrays[3].name = "text";
    arrays[3].kind = STOKER_FIELD_KIND_BYTES;
    arrays[3].data = text;
    arrays[3].dtype = STOKER_DTYPE_UINT8;
    arrays[3].rank = 1;
    arrays[3].offsets = ends;
}

static void check_samples(const stoker_dataset *dataset, uint32_t field_count)
{
    for (uint64_t id = 0; id < COUNT; id++) {
        struct stk_fields_of sample = stk_fields_read(dataset, id);
        const int64_t label = (int64_t)id % 3;
        const uint64_t bytes = id % 5;
        stk_fields_check(dataset, &sample, "image", pixels + id * PIXELS, 0, PIXELS);
        stk_fields_check(dataset, &sample, "label", &label, 0, sizeof(label));
        if (field_count > 2)
            stk_fields_check(dataset, &sample, "targets", targets + 2 * id, 0, 2 * sizeof(double));
        if (field_count > 3)
            stk_fields_check(dataset, &sample, "text", text + ends[id], bytes, bytes);
        stk_fields_free(&sample);
    }
}

CleanTest(from_arrays, every_field_is_what_was_given)
{
    stoker_array arrays[4];
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    make_arrays(arrays);
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, arrays, 4, COUNT, NULL, &error), STOKER_OK,
                 "%s", error.message);
    const stoker_dataset_info *info = stoker_dataset_get_info(dataset);
    cr_assert_str_eq(stoker_dataset_name(dataset), "arrays");
    cr_assert_eq(info->count, COUNT);
    cr_assert_eq(info->field_count, 4);
    cr_assert_eq(info->part_count, 2, "only the image and the text");
    cr_assert_eq(info->label_dtype, STOKER_DTYPE_INT64);
    cr_assert_eq(info->class_count, 3);
    cr_assert_str_eq(stoker_dataset_class_name(dataset, 1, 2), "cat");
    cr_assert_str_eq(stoker_dataset_class_name(dataset, 1, 0), "ape");
    cr_assert_null(stoker_dataset_class_name(dataset, 2, 0));
    cr_assert_eq(stoker_dataset_field(dataset, 3)->shape[0], 4);
    check_samples(dataset, 4);
    stoker_dataset_close(&dataset);
}

/* With one part the rows are the caller's memory, which the loader gathers from. */
CleanTest(from_arrays, rows_are_the_callers_memory)
{
    stoker_array arrays[4];
    stoker_dataset *dataset = NULL;
    make_arrays(arrays);
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, arrays, 3, COUNT, NULL, NULL), STOKER_OK);
    cr_assert_eq(stoker_dataset_get_info(dataset)->rows, (const void *)pixels);
    cr_assert_eq(stoker_dataset_get_info(dataset)->part_count, 1);
    check_samples(dataset, 3);
    stoker_dataset_close(&dataset);
}

CleanTest(from_arrays, a_loader_delivers_them)
{
    stoker_array arrays[4];
    stoker_dataset *dataset = NULL;
    stoker_loader *loader = NULL;
    stoker_error error = { .message = "" };
    stoker_loader_options options =
        stk_default_options(.batch_size = 8, .shuffle = true, .epochs = 1);
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t seen = 0;
    make_arrays(arrays);
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, arrays, 2, COUNT, NULL, NULL), STOKER_OK);
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, &error), STOKER_OK, "%s",
                 error.message);
    while (stoker_loader_next(loader, &batch, -1) == STOKER_OK) {
        for (uint32_t i = 0; i < batch.count; i++) {
            const uint8_t *row = (const uint8_t *)batch.images.data + (size_t)i * PIXELS;
            cr_assert_arr_eq(row, pixels + batch.ids[i] * PIXELS, PIXELS);
            cr_assert_eq(((const int64_t *)batch.labels.data)[i], (int64_t)batch.ids[i] % 3);
            seen++;
        }
        stoker_batch_release(&batch);
    }
    cr_assert_eq(seen, COUNT);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

static void count_destroyed(void *context)
{
    ++*(int *)context;
}

CleanTest(from_arrays, destroy_is_called_once_and_only_after_success)
{
    stoker_array arrays[4];
    stoker_dataset *dataset = NULL;
    stoker_arrays_options options = STOKER_ARRAYS_OPTIONS_INIT;
    int destroyed = 0;
    make_arrays(arrays);
    options.destroy = count_destroyed;
    options.context = &destroyed;
    options.fingerprint = 77;
    arrays[1].name = "image";
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, arrays, 2, COUNT, &options, NULL),
                 STOKER_EINVAL);
    cr_assert_eq(destroyed, 0);
    arrays[1].name = "label";
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, arrays, 2, COUNT, &options, NULL), STOKER_OK);
    cr_assert_eq(stoker_dataset_get_info(dataset)->fingerprint, 77);
    stoker_dataset_close(&dataset);
    cr_assert_eq(destroyed, 1);
}

static void expect(const stoker_array *arrays, uint32_t array_count, uint64_t count, int code,
                   const char *says)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .message = "" };
    const int rc = stoker_dataset_from_arrays(&dataset, arrays, array_count, count, NULL, &error);
    cr_assert_eq(rc, code, "%s: %s", stoker_error_name(rc), error.message);
    cr_assert_null(dataset);
    cr_assert_not_null(strstr(error.message, says), "\"%s\" is not in: %s", says, error.message);
}

CleanTest(from_arrays, what_is_wrong_is_named)
{
    stoker_array arrays[4];
    make_arrays(arrays);
    expect(NULL, 1, COUNT, STOKER_EINVAL, "1 to 128 arrays");
    expect(arrays, 0, COUNT, STOKER_EINVAL, "1 to 128 arrays");
    expect(arrays, 129, COUNT, STOKER_EINVAL, "1 to 128 arrays");
    expect(arrays, 4, 0, STOKER_EEMPTY, "0 samples");
    expect(arrays, 4, UINT64_MAX / 2, STOKER_EINVAL, "do not fit in memory");
#define WRONG(change, code, says)                                                                  \
    do {                                                                                           \
        make_arrays(arrays);                                                                       \
        change;                                                                                    \
        expect(arrays, 4, COUNT, code, says);                                                      \
    } while (0)
    WRONG(arrays[0].struct_size = 0, STOKER_EINVAL, "STOKER_ARRAY_INIT");
    WRONG(arrays[2].name = NULL, STOKER_EINVAL, "it needs a name");
    WRONG(arrays[2].name = "a name", STOKER_EINVAL, "letters, digits");
    WRONG(arrays[2].data = NULL, STOKER_EINVAL, "array \"targets\": its data are NULL");
    WRONG(arrays[2].dtype = STOKER_DTYPE_NONE, STOKER_EINVAL, "array \"targets\": it needs an");
    WRONG(arrays[2].rank = 8, STOKER_EINVAL, "up to 7 axes");
    WRONG(arrays[2].shape[0] = 0, STOKER_EINVAL, "axis 0 of its shape is 0");
    WRONG(arrays[2].shape[0] = 1 << 28, STOKER_ELIMIT, "more than 1 GiB");
    WRONG(arrays[3].rank = 0, STOKER_EINVAL, "with offsets at least one");
    WRONG(ends[7] = 0; arrays[3].offsets = ends, STOKER_EINVAL, "array \"text\": offset 7 is 0");
    WRONG(ends[0] = -1, STOKER_EINVAL, "offset 0 is -1");
    WRONG(arrays[3].kind = STOKER_FIELD_KIND_IMAGE, STOKER_EINVAL, "three axes");
}

/* A caller whose structs are longer, or end earlier, than the library's. */
CleanTest(from_arrays, structs_of_other_versions_are_read)
{
    stoker_array arrays[4];
    struct {
        stoker_array array;
        uint64_t news;
    } longer[2];
    stoker_dataset *dataset = NULL;
    make_arrays(arrays);
    for (int i = 0; i < 2; i++) {
        longer[i].array = arrays[i];
        longer[i].array.struct_size = sizeof(longer[i]);
        longer[i].news = 0;
    }
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, &longer[0].array, 2, COUNT, NULL, NULL),
                 STOKER_OK);
    check_samples(dataset, 2);
    stoker_dataset_close(&dataset);
    longer[1].news = 1; /* something that this version cannot do */
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, &longer[0].array, 2, COUNT, NULL, NULL),
                 STOKER_EINVAL);
    arrays[0].struct_size = offsetof(stoker_array, class_count);
    cr_assert_eq(stoker_dataset_from_arrays(&dataset, arrays, 1, COUNT, NULL, NULL), STOKER_EINVAL);
}

CleanTest(from_arrays, each_allocation_may_fail)
{
    stoker_array arrays[4];
    stoker_dataset *dataset = NULL;
    struct stk_sweep sweep = { .kinds = STK_FAULT_MEMORY };
    make_arrays(arrays);
    while (stk_sweep_next(&sweep))
        sweep.rc = stoker_dataset_from_arrays(&dataset, arrays, 4, COUNT, NULL, &sweep.error);
    cr_assert_geq(sweep.failed, 4);
    stoker_dataset_close(&dataset);
}
