/* test_mixing.c - batches are mixed by whichever worker completes them, or by the consumer if rows
 * were skipped: for ThreadSanitizer, and the bytes are those of no worker at all.
 */
#include "support/sets/made_set.h"

#include "support/thread_check.h"

static struct stk_run alone, together;

static enum stk_made_kind some_broken(uint64_t id)
{
    return id % 50 == 4 ? STK_MADE_BROKEN : id % 2 == 0 ? STK_MADE_ENCODED : STK_MADE_MEMORY;
}

static void check(const stoker_dataset *dataset, stoker_on_bad on_bad)
{
    stoker_loader_options options =
        stk_small_options(.on_bad_sample = on_bad, .blend.mixup_alpha = 0.5F, .num_workers = 0);
    CHECK(stk_run(dataset, &options, &alone) == STOKER_FINISHED);
    options.num_workers = 4;
    CHECK(stk_run(dataset, &options, &together) == STOKER_FINISHED);
    CHECK(stk_runs_equal(&alone, &together));
}

int main(void)
{
    struct stk_made_set set = { .count = 400, .row_bytes = 700, .kind_of = some_broken };
    CHECK(stk_made_set_open(&set));
    check(set.dataset, STOKER_ON_BAD_SKIP);
    check(set.dataset, STOKER_ON_BAD_SUBSTITUTE);
    stk_made_set_close(&set);
    return 0;
}
