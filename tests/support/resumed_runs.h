/* resumed_runs.h - a run that stops after each of its batches, and continues in another loader with
 * other workers. */
#ifndef STK_TEST_RESUMED_RUNS_H
#define STK_TEST_RESUMED_RUNS_H

#include <criterion/criterion.h>

#include "support/opened_loader.h"
#include "support/scenario.h"

/* Every such pair of runs must deliver what `expected` did, by its hash of batches. */
static inline void stk_check_resumed(const stoker_dataset *dataset,
                                     const stoker_loader_options *options,
                                     const struct stk_run *expected,
                                     uint64_t (*hash)(const stoker_batch *batch))
{
    static struct stk_run run;
    for (uint32_t stop = 1; stop < expected->batches; stop++) {
        stoker_state state;
        stoker_loader *loader = loader_of(dataset, options);
        run = (struct stk_run){ 0 };
        stk_run_hashed(loader, &run, stop, hash);
        cr_assert_eq(stoker_loader_state(loader, &state), STOKER_OK);
        stoker_loader_destroy(&loader);
        stoker_loader_options later = *options;
        later.num_workers = 2;
        later.resume = &state;
        loader = loader_of(dataset, &later);
        stk_run_hashed(loader, &run, UINT32_MAX, hash);
        stoker_loader_destroy(&loader);
        cr_assert(stk_runs_equal(expected, &run), "stopped after %u", stop);
    }
}

#endif
