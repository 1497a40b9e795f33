/* opened_loader.h - a data set and a loader that are opened, and what a loader has to give, or the
 * test fails and says why. */
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

static inline stoker_stats stats_of(const stoker_loader *loader)
{
    stoker_stats stats = STOKER_STATS_INIT;
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    return stats;
}

/* The next batch, of this epoch or another. */
static inline stoker_batch next_batch(stoker_loader *loader)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_EPOCH_END)
        continue;
    cr_assert_eq(rc, STOKER_OK, "%s", stoker_error_name(rc));
    return batch;
}

/* Save the loader's state, from which *options then resume, and destroy the loader. */
static inline void save_and_destroy(stoker_loader **loader, stoker_loader_options *options,
                                    void *state, size_t capacity)
{
    stoker_error error = { .code = 0 };
    cr_assert_eq(stoker_loader_state(*loader, state, capacity, &options->resume_size, &error),
                 STOKER_OK, "%s", error.message);
    options->resume = state;
    stoker_loader_destroy(loader);
}

#endif
