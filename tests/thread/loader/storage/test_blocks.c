/* test_blocks.c - many workers over few blocks in hardly any memory: blocks are loaded, waited for,
 * taken away and loaded again all the time, while reads fail and rings break.
 */
#include "loader/base/fault.h"
#include "support/runs/scripted_reader.h"
#include "support/sets/block_set.h"
#include "support/thread_check.h"

static struct stk_block_set set;
static uint64_t rounds;

/* Two epochs; `lossy`: some samples may be bad. Ends in the middle if `stop` > 0. */
static void walk(const stoker_loader_options *options, bool lossy, uint64_t stop)
{
    stoker_loader *loader = NULL;
    stoker_batch batch = STOKER_BATCH_INIT;
    uint64_t samples = 0;
    int rc = STOKER_OK;
    CHECK(stoker_loader_create(&loader, set.dataset, options, NULL) == STOKER_OK);
    while ((stop == 0 || samples < stop) &&
           ((rc = stoker_loader_next(loader, &batch, -1)) == STOKER_OK || rc == STOKER_EPOCH_END)) {
        if (rc == STOKER_EPOCH_END)
            continue;
        CHECK(stk_block_set_matches(&batch));
        samples += batch.count;
        stoker_batch_release(&batch);
    }
    CHECK(stop > 0 || rc == STOKER_FINISHED);
    CHECK(lossy || stop > 0 || samples == 2 * STK_BLOCK_ROWS);
    stoker_stats stats = STOKER_STATS_INIT;
    CHECK(stoker_loader_stats(loader, &stats) == STOKER_OK);
    CHECK(stats.bad_samples == 0 || lossy);
    stoker_loader_destroy(&loader);
    rounds++;
}

static void walk_with(const stoker_reader *reader, uint64_t seed, bool lossy)
{
    const int32_t workers = (int32_t)(seed % 7);
    const stoker_loader_options options =
        stk_small_options(.reader = reader, .batch_size = 1 + (uint32_t)(seed % 9),
                          .num_workers = workers, .prefetch_batches = 2 + (uint32_t)(seed % 5),
                          .shuffle = seed % 3 != 0, .read_depth = 1 + (uint32_t)(seed / 3 % 40),
                          .on_bad_sample = STOKER_ON_BAD_SKIP,
                          .cache = (stoker_cache)(1 + seed / 5 % 2), .seed = seed,
                          .block_memory_bytes = 320U * ((workers == 0 ? 1U : (uint32_t)workers) +
                                                        1U + (uint32_t)(seed % 3)));
    walk(&options, lossy, seed % 4 == 3 ? 1 + seed % 97 : 0);
}

int main(void)
{
    static const struct stk_script_rule passing[] = {
        { .what = STK_SCRIPT_SHORT,
          .amount = 40,
          .file = STK_SCRIPT_ANY_FILE,
          .skip = 5,
          .times = 30 },
        { .what = STK_SCRIPT_ERRNO,
          .amount = EAGAIN,
          .file = STK_SCRIPT_ANY_FILE,
          .skip = 9,
          .times = 2 },
    };
    static const struct stk_script_rule failing[] = {
        { .what = STK_SCRIPT_ERRNO,
          .amount = EIO,
          .file = STK_SCRIPT_ANY_FILE,
          .skip = 7,
          .times = 4 },
        { .what = STK_SCRIPT_FLIP,
          .amount = 11,
          .file = STK_SCRIPT_ANY_FILE,
          .skip = 20,
          .times = 4 },
    };
    const uint64_t start_ns = stk_now_ns();
    CHECK(stk_block_set_make(&set) == STOKER_OK);
    for (uint64_t seed = 0; seed < 400 && stk_time_left(start_ns); seed++) {
        struct stk_script script = { .rules = passing,
                                     .rule_count = (uint32_t)(seed % 3),
                                     .shuffle_seed = seed,
                                     .reap_max = (uint32_t)(seed % 3),
                                     .fail_submit = seed % 5 == 1 ? seed % 31 : 0,
                                     .fail_reap = seed % 5 == 2 ? seed % 31 : 0 };
        stk_script_install(&script);
        walk_with(&stk_scripted_reader, seed, false);
        walk_with(seed % 2 == 0 ? NULL : stoker_reader_pread(), seed, false);
        script.rules = failing;
        script.rule_count = 1 + (uint32_t)(seed % 2);
        stk_script_install(&script);
        walk_with(&stk_scripted_reader, seed, true);
    }
    stk_block_set_free(&set);
    CHECK(stk_fault_live_bytes() == 0);
    printf("%llu runs\n", (unsigned long long)rounds);
    return rounds >= 9 ? 0 : 1;
}
