/* test_tensor.c - element types: sizes, names, and the way back from a name. */
#include <stoker/stoker.h>

#include "support/leaks.h"

CleanTest(tensor, each_type_has_its_size_and_name)
{
    static const struct {
        stoker_dtype dtype;
        size_t bytes;
        const char *name;
    } rows[] = {
        { STOKER_DTYPE_UINT8, 1, "uint8" },       { STOKER_DTYPE_INT8, 1, "int8" },
        { STOKER_DTYPE_INT16, 2, "int16" },       { STOKER_DTYPE_INT32, 4, "int32" },
        { STOKER_DTYPE_INT64, 8, "int64" },       { STOKER_DTYPE_FLOAT16, 2, "float16" },
        { STOKER_DTYPE_BFLOAT16, 2, "bfloat16" }, { STOKER_DTYPE_FLOAT32, 4, "float32" },
        { STOKER_DTYPE_FLOAT64, 8, "float64" },   { STOKER_DTYPE_UINT16, 2, "uint16" },
        { STOKER_DTYPE_UINT32, 4, "uint32" },     { STOKER_DTYPE_UINT64, 8, "uint64" },
        { STOKER_DTYPE_BOOL, 1, "bool" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_assert_eq(stoker_dtype_bytes(rows[i].dtype), rows[i].bytes, "%s", rows[i].name);
        cr_assert_str_eq(stoker_dtype_name(rows[i].dtype), rows[i].name);
        cr_assert_eq(stoker_dtype_from_name(rows[i].name), rows[i].dtype, "%s", rows[i].name);
    }
}

CleanTest(tensor, what_is_no_type_is_none)
{
    static const stoker_dtype strange[] = { STOKER_DTYPE_NONE, (stoker_dtype)14, (stoker_dtype)1000,
                                            (stoker_dtype)0x7FFFFFFF };
    for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
        cr_assert_eq(stoker_dtype_bytes(strange[i]), 0);
        cr_assert_str_eq(stoker_dtype_name(strange[i]), "none");
    }
    static const char *const names[] = { "", "none", "uint", "uint88", "UINT8", "float" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        cr_assert_eq(stoker_dtype_from_name(names[i]), STOKER_DTYPE_NONE, "%s", names[i]);
    cr_assert_eq(stoker_dtype_from_name(NULL), STOKER_DTYPE_NONE);
}

CleanTest(tensor, the_library_is_of_the_version_of_its_headers)
{
    char expected[32];
    (void)snprintf(expected, sizeof(expected), "%d.%d.%d", STOKER_VERSION_MAJOR,
                   STOKER_VERSION_MINOR, STOKER_VERSION_PATCH);
    cr_assert_str_eq(stoker_version(), expected);
    cr_assert_str_eq(STOKER_VERSION_STRING, expected);
    cr_assert_eq(stoker_version_number(), STOKER_VERSION_NUMBER);
    cr_assert_eq(STOKER_VERSION_NUMBER,
                 STOKER_VERSION_MAJOR * 10000 + STOKER_VERSION_MINOR * 100 + STOKER_VERSION_PATCH);
}
