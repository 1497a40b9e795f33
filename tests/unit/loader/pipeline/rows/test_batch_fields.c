/* test_batch_fields.c - the fields of a batch by name: what they show, their types, and the options
 * for them. */
#include <stoker/cuda.h>

#include "kernels/convert/convert.h"
#include "support/leaks.h"
#include "support/runs/scenario.h"

static struct stk_file_set set;

static void begin(void)
{
    cr_assert(stk_file_set_make(&set, 100, 4, 5, 3));
}

static void finish(void)
{
    stk_file_set_remove(&set);
    stk_test_check_leaks();
}

TestSuite(batch_fields, .init = begin, .fini = finish);

static stoker_loader *make(const stoker_field_options *fields, uint32_t count)
{
    stoker_loader *loader = NULL;
    stoker_error error = { .code = 0 };
    stoker_loader_options options = stk_small_options(.fields = fields, .field_count = count);
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, &error), STOKER_OK, "%s",
                 error.message);
    return loader;
}

Test(batch_fields, images_and_labels_are_views_of_them)
{
    stoker_loader *loader = make(NULL, 0);
    stoker_batch batch = STOKER_BATCH_INIT;
    cr_assert_eq(stoker_loader_find_field(loader, "image"), 0);
    cr_assert_eq(stoker_loader_find_field(loader, "label"), 1);
    cr_assert_eq(stoker_loader_find_field(loader, "labels"), -1);
    cr_assert_eq(stoker_loader_find_field(loader, NULL), -1);
    cr_assert_eq(stoker_loader_find_field(NULL, "image"), -1);
    cr_assert_null(stoker_batch_field(&batch, "image")); /* it is not lent */
    cr_assert_null(stoker_batch_field(NULL, "image"));
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, 20000)) != STOKER_FINISHED) {
        if (rc == STOKER_EPOCH_END)
            continue;
        cr_assert_eq(rc, STOKER_OK);
        cr_assert_eq(batch.field_count, 2U);
        cr_assert_str_eq(batch.fields[0].name, "image");
        cr_assert_str_eq(batch.fields[1].name, "label");
        cr_assert_eq(stoker_batch_field(&batch, "label"), &batch.fields[1]);
        cr_assert_null(stoker_batch_field(&batch, "labels"));
        cr_assert_null(stoker_batch_field(&batch, NULL));
        cr_assert_eq(memcmp(&batch.fields[0].values, &batch.images, sizeof(batch.images)), 0);
        cr_assert_eq(memcmp(&batch.fields[1].values, &batch.labels, sizeof(batch.labels)), 0);
        cr_assert_eq(batch.images.shape[0], batch.count);
        cr_assert_eq(batch.labels.rank, 1U);
        cr_assert_eq(batch.labels.shape[0], batch.count);
        cr_assert_null(batch.fields[0].offsets);
        cr_assert_null(batch.fields[1].device_offsets);
        cr_assert(stk_file_set_matches(&set, &batch));
        stoker_batch_release(&batch);
    }
    stoker_loader_destroy(&loader);
}

/* Every type that holds what int64 labels hold. */
Test(batch_fields, a_field_is_delivered_in_the_type_that_is_asked_for)
{
    static const stoker_dtype types[] = { STOKER_DTYPE_INT64, STOKER_DTYPE_FLOAT64,
                                          STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16,
                                          STOKER_DTYPE_BFLOAT16 };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        stoker_field_options label = STOKER_FIELD_OPTIONS_INIT;
        label.name = "label";
        label.dtype = types[i];
        stoker_loader *loader = make(&label, 1);
        stoker_batch batch = STOKER_BATCH_INIT;
        cr_assert_eq(stoker_loader_next(loader, &batch, 20000), STOKER_OK);
        cr_assert_eq(batch.labels.dtype, types[i]);
        for (uint32_t row = 0; row < batch.count; row++) {
            const int64_t stored = stk_set_label(batch.ids[row]);
            unsigned char expected[8];
            const size_t bytes = stoker_dtype_bytes(types[i]);
            stk_elements_choose(STOKER_DTYPE_INT64, types[i])(&stored, expected, 1);
            cr_assert_eq(memcmp((const char *)batch.labels.data + row * bytes, expected, bytes), 0);
        }
        cr_assert_eq(memcmp(batch.fields[0].values.data, batch.images.data, 60), 0);
        stoker_batch_release(&batch);
        stoker_loader_destroy(&loader);
    }
}

static void refuse(const stoker_field_options *fields, uint32_t count, int code, const char *word)
{
    stoker_loader *loader = NULL;
    stoker_error error = { .code = 0 };
    stoker_loader_options options = stk_small_options(.fields = fields, .field_count = count);
    cr_assert_eq(stoker_loader_create(&loader, set.dataset, &options, &error), code, "%s", word);
    cr_assert(strstr(error.message, word) != NULL, "%s", error.message);
    cr_assert_null(loader);
}

Test(batch_fields, options_that_cannot_be_are_refused)
{
    const stoker_field_options plain = STOKER_FIELD_OPTIONS_INIT;
    stoker_field_options two[2] = { plain, plain };
    two[0].name = two[1].name = "label";
    refuse(two, 2, STOKER_EINVAL, "given twice");
    two[0].name = "caption";
    refuse(two, 2, STOKER_EINVAL, "\"caption\"");
    two[0].name = NULL;
    refuse(two, 1, STOKER_EINVAL, "no such field");
    two[0].name = "image";
    two[0].dtype = STOKER_DTYPE_FLOAT32;
    refuse(two, 1, STOKER_EINVAL, "options.dtype");
    two[0].name = "label";
    two[0].dtype = STOKER_DTYPE_INT32;
    refuse(two, 1, STOKER_ETYPE, "int64 cannot be converted to int32");
    two[0].dtype = STOKER_DTYPE_NONE;
    two[0].form = STOKER_FIELD_FORM_PADDED;
    refuse(two, 1, STOKER_EINVAL, "does not vary");
    two[0].form = (stoker_field_form)5;
    refuse(two, 1, STOKER_EINVAL, "form 5");
    two[0].form = STOKER_FIELD_FORM_PACKED;
    two[0].struct_size = 1;
    refuse(two, 1, STOKER_EINVAL, "stoker_field_options: struct_size 1");
    refuse(NULL, 1, STOKER_EINVAL, "field_count");
}
