/* opened_loader.h - a data set and a loader that are opened, or the test fails and says why. */
#ifndef STK_TEST_OPENED_LOADER_H
#define STK_TEST_OPENED_LOADER_H

#include <criterion/criterion.h>
#include <stoker/stoker.h>

static inline stoker_dataset *dataset_of(const char *spec)
{
    stoker_dataset *dataset = NULL;
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_dataset_open(&dataset, spec, NULL, &error), STOKER_OK, "%s", error.message);
    return dataset;
}

static inline stoker_loader *loader_of(const stoker_dataset *dataset,
                                       const stoker_loader_options *options)
{
    stoker_loader *loader = NULL;
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_loader_create(&loader, dataset, options, &error), STOKER_OK, "%s",
                 error.message);
    return loader;
}

#endif
