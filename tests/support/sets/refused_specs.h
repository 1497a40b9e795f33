/* refused_specs.h - what people may type that names no data set: each has its code, and nothing is
 * opened. */
#ifndef STK_TEST_REFUSED_SPECS_H
#define STK_TEST_REFUSED_SPECS_H

#include <criterion/criterion.h>
#include <stoker/stoker.h>
#include <string.h>

struct stk_refused_spec {
    const char *spec, *split;
    int code;
    const char *says; /* a part of the message; NULL = whatever it is */
};

static inline void stk_expect_refused(const struct stk_refused_spec *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct stk_refused_spec *const row = &rows[i];
        stoker_error error = { 0 };
        stoker_dataset *dataset = NULL;
        const stoker_dataset_options options = { STOKER_DATASET_OPTIONS_DEFAULTS.split =
                                                     row->split };
        const int rc = stoker_dataset_open(&dataset, row->spec, &options, &error);
        cr_assert_eq(rc, row->code, "%s: %s", row->spec, error.message);
        cr_assert_eq(error.code, row->code);
        cr_assert_null(dataset);
        if (row->says != NULL)
            cr_assert_not_null(strstr(error.message, row->says), "%s", error.message);
    }
}

#endif
