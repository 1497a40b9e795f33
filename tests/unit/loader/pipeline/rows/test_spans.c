/* test_spans.c - the rows of one batch are shared between the workers however slow they are.
 *
 * A decoder that waits until several others are in it, with rows of the same batch, needs no clock
 * to see that.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "loader/base/fault.h"
#include "support/leaks.h"
#include "support/runs/scenario.h"
#include "support/sets/made_set.h"

enum { COUNT = 1024, BATCH = 256, WORKERS = 4, ROW_BYTES = 16 };

/* Decoders that make a row of the first batch. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t inside;
static uint32_t most;

static void wait_for_the_others(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2; /* then they do not come */
    pthread_mutex_lock(&lock);
    inside++;
    most = inside > most ? inside : most;
    pthread_cond_broadcast(&changed);
    while (most < WORKERS && pthread_cond_timedwait(&changed, &lock, &until) == 0) {
    }
    inside--;
    pthread_mutex_unlock(&lock);
}

static int decode_together(const void *self, void *scratch, const stoker_encoded *in,
                           const stoker_decoded *out, stoker_error *error)
{
    if (in->sample < BATCH)
        wait_for_the_others();
    return stk_made_decode(self, scratch, in, out, error);
}

static const stoker_codec together = { .struct_size = sizeof(stoker_codec),
                                       .name = "together",
                                       .decode = decode_together };

static int describe(const void *self, stoker_dataset_info *out)
{
    (void)self;
    *out = (stoker_dataset_info){ .struct_size = sizeof(stoker_dataset_info),
                                  .count = COUNT,
                                  .dtype = STOKER_DTYPE_UINT8,
                                  .rank = 1,
                                  .shape = { ROW_BYTES } };
    return STOKER_OK;
}

static int locate(const void *self, const uint64_t *ids, uint32_t count, stoker_part *out,
                  stoker_error *error)
{
    (void)self;
    (void)ids;
    (void)error;
    for (uint32_t i = 0; i < count; i++)
        out[i] = (stoker_part){ .codec = &together };
    return STOKER_OK;
}

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "together",
                                        .describe = describe,
                                        .locate = locate };

static void expect_rows(const stoker_batch *batch, uint64_t first)
{
    const uint8_t *bytes = batch->images.data;
    for (uint32_t row = 0; row < batch->count; row++)
        for (uint32_t at = 0; at < ROW_BYTES; at++)
            cr_assert_eq(bytes[row * ROW_BYTES + at], stk_set_byte(first + row, at));
}

static void share_first_batch(stoker_cache cache)
{
    stoker_loader_options options = stk_default_options(.batch_size = BATCH, .num_workers = WORKERS,
                                                        .cache = cache, .epochs = 2);
    stoker_dataset *dataset;
    stoker_loader *loader;
    most = 0;
    cr_assert_eq(stoker_dataset_create(&dataset, &ops, NULL, NULL), STOKER_OK);
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
    for (uint64_t first = 0; first < 2 * COUNT;) {
        stoker_batch batch = STOKER_BATCH_INIT;
        const int rc = stoker_loader_next(loader, &batch, -1);
        if (rc == STOKER_EPOCH_END)
            continue;
        cr_assert_eq(rc, STOKER_OK);
        cr_assert_eq(batch.count, BATCH);
        expect_rows(&batch, first % COUNT);
        stoker_batch_release(&batch);
        first += BATCH;
    }
    cr_assert_eq(most, WORKERS, "%u workers made the first batch", most);
    stoker_loader_destroy(&loader);
    stoker_dataset_close(&dataset);
}

CleanTest(loader_spans, the_first_batch_is_made_by_all_workers)
{
    share_first_batch(STOKER_CACHE_AUTO);
    share_first_batch(STOKER_CACHE_NONE);
}
