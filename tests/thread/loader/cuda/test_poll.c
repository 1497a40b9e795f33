/* test_poll.c - runs by poll() on stoker_loader_fd() alone, with batches on the stand-in's GPU:
 * copies that are in flight, buffers that are all lent, and batches that a release sends.
 */
#include "loader/base/fault.h"
#include "support/gpu/cuda_run.h"
#include "support/runs/polled_run.h"
#include "support/thread_check.h"

enum { SAMPLES = 96, HELD_MAX = 3 };

static struct stk_file_set set;
static uint64_t expected[STK_RUN_BATCHES_MAX], found[STK_RUN_BATCHES_MAX];

/* Hash the batches of a whole run; with `polls` next() never waits. `held` are held at a time.
 * Returns their number. */
static uint32_t run(const stoker_loader_options *options, bool polls, uint32_t held,
                    uint64_t hashes[STK_RUN_BATCHES_MAX])
{
    stoker_loader *loader = NULL;
    static struct stk_cuda_consumer consumer; /* too large for a stack */
    stoker_batch batches[HELD_MAX];
    struct stk_polled polled = { .fd = -1 };
    uint32_t count = 0;
    int rc = STOKER_OK;
    stk_batches_begin(batches, HELD_MAX);
    CHECK(stoker_loader_create(&loader, set.dataset, options, NULL) == STOKER_OK);
    CHECK(stk_cuda_consumer_init(&consumer, 20));
    if (polls)
        CHECK(stoker_loader_fd(loader, &polled.fd, NULL) == STOKER_OK);
    while (rc != STOKER_FINISHED) {
        stoker_batch *batch = &batches[count % held];
        (void)stoker_batch_release_on(batch, consumer.stream);
        rc =
            polls ? stk_polled_next(loader, &polled, batch) : stoker_loader_next(loader, batch, -1);
        CHECK(rc >= 0);
        if (rc != STOKER_OK)
            continue;
        CHECK(stoker_batch_wait_on(batch, consumer.stream) == STOKER_OK);
        stk_cuda_launch(&consumer, batch, &hashes[count++]);
    }
    for (uint32_t i = 0; i < held; i++)
        (void)stoker_batch_release_on(&batches[i], consumer.stream);
    stk_cuda_consumer_wait(&consumer);
    stk_cuda_consumer_destroy(&consumer);
    stoker_loader_destroy(&loader);
    return count;
}

int main(void)
{
    CHECK(stk_file_set_make(&set, SAMPLES, 4, 6, 0));
    stoker_loader_options options =
        stk_small_options(.device = STOKER_DEVICE_CUDA, .batch_size = 3);
    const uint32_t count = run(&options, false, 1, expected);
    for (int32_t workers = 0; workers <= 2; workers++)
        for (uint32_t slots = 2; slots <= 4; slots++)
            for (int blocks = 0; blocks < 2; blocks++) {
                options.num_workers = workers;
                options.prefetch_batches = slots;
                options.non_blocking = blocks == 0;
                CHECK(run(&options, true, slots - 1, found) == count);
                CHECK(memcmp(expected, found, count * sizeof(found[0])) == 0);
            }
    stk_file_set_remove(&set);
    CHECK(stk_fault_live_bytes() == 0);
    return 0;
}
