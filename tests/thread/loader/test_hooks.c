/* test_hooks.c - hooks in several workers at once, each with a scratch of its own: for
 * ThreadSanitizer, and the rows are those of no worker at all.
 */
#include "support/runs/random_hooks.h"
#include "support/runs/scenario.h"

#include "support/thread_check.h"

static struct stk_random_hooks hooks;
static struct stk_run alone, together;

static void check(const char *spec, stoker_cache cache)
{
    stoker_dataset *dataset = NULL;
    CHECK(stoker_dataset_open(&dataset, spec, NULL, NULL) == STOKER_OK);
    stk_random_hooks_init(&hooks);
    stoker_loader_options options =
        stk_small_options(.dtype = STOKER_DTYPE_FLOAT32, .cache = cache, .row_hook = &hooks.row,
                          .batch_hook = &hooks.batch, .num_workers = 0);
    CHECK(stk_run(dataset, &options, &alone) == STOKER_FINISHED);
    options.num_workers = 4;
    CHECK(stk_run(dataset, &options, &together) == STOKER_FINISHED);
    CHECK(stk_runs_equal(&alone, &together));
    CHECK(atomic_load(&hooks.open) == 0);
    stoker_dataset_close(&dataset);
}

int main(void)
{
    check("synth:digits?count=400", STOKER_CACHE_NONE);
    check("synth:digits?count=400", STOKER_CACHE_DECODED);
    check("synth:bytes?count=500&shape=100", STOKER_CACHE_NONE);
    return 0;
}
