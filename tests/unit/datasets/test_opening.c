/* test_opening.c - a data set that cannot be made names its first cause, and the file that it comes
 * from. */
#include "datasets/opening.h"
#include "support/leaks.h"

static int destroyed;
static const char *second_name;

static void destroy(void *self)
{
    (void)self;
    destroyed++;
}

static int describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(*out), .count = 3, .field_count = 2 };
    return second_name != NULL ? STOKER_OK : STOKER_EIO;
}

static int field(const void *self, uint32_t number, stoker_field_info *out)
{
    (void)self;
    *out = (stoker_field_info){ .struct_size = sizeof(*out),
                                .name = number == 0 ? "first" : second_name,
                                .dtype = STOKER_DTYPE_INT64,
                                .part = STOKER_NO_PART };
    return STOKER_OK;
}

static int values(const void *self, uint32_t number, const uint64_t *ids, uint32_t count, void *out)
{
    (void)self, (void)number;
    memcpy(out, ids, count * sizeof(ids[0]));
    return STOKER_OK;
}

static int finish(stoker_dataset **out, stoker_error *error)
{
    static const stoker_dataset_ops ops = { .struct_size = sizeof(ops),
                                            .name = "own",
                                            .describe = describe,
                                            .field = field,
                                            .values = values,
                                            .destroy = destroy };
    struct stk_opening opening = STK_OPENING_INIT("own", &stk_storage_local, error);
    (void)snprintf(opening.path, sizeof(opening.path), "some/folder");
    destroyed = 0;
    return stk_opening_finish(&opening, STOKER_OK, out, &ops, NULL);
}

CleanTest(opening, keeps_the_first_cause)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .code = 0 };
    second_name = "first";
    cr_assert_eq(finish(&dataset, &error), STOKER_EINVAL);
    cr_assert_null(dataset);
    cr_assert_eq(destroyed, 1);
    cr_assert_eq(error.code, STOKER_EINVAL);
    cr_assert_str_eq(error.message, "some/folder: own: two fields have the name \"first\"");
    cr_assert_str_eq(error.path, "some/folder");
    second_name = NULL;
    cr_assert_eq(finish(&dataset, &error), STOKER_EIO);
    cr_assert_not_null(strstr(error.message, "some/folder: own: describe() failed"), "%s",
                       error.message);
    cr_assert_eq(finish(&dataset, NULL), STOKER_EIO); /* nobody asks why */
}

CleanTest(opening, a_data_set_takes_what_was_opened)
{
    stoker_dataset *dataset = NULL;
    second_name = "second";
    cr_assert_eq(finish(&dataset, NULL), STOKER_OK);
    cr_assert_eq(destroyed, 0);
    stoker_dataset_close(&dataset);
    cr_assert_eq(destroyed, 1);
}
