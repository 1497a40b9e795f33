/* test_migration.c - a loader without workers goes from thread to thread: made by one, used by a
 * second, which ends with reads under way, used by a third, destroyed by a fourth.
 *
 * The file is a pipe: a read of it is under way until the test writes, and io_uring takes back what
 * a thread that ends has asked for.
 */
#include <pthread.h>

#include "loader/base/fault.h"
#include "support/sets/one_file_set.h"
#include "support/thread_check.h"

enum { BATCH_SIZE = 4, ROW_BYTES = STK_ONE_FILE_ROW_BYTES };

static int ends[2]; /* the pipe: read, write */
static stoker_loader *loader;

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "pipe",
                                        .describe = stk_one_file_describe,
                                        .locate = stk_one_file_locate,
                                        .file = stk_one_file_file };

static void *wait_in_vain(void *unused)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    CHECK(stoker_loader_next(loader, &batch, 20) == STOKER_TIMEOUT);
    return unused;
}

static void *take_one(void *unused)
{
    stoker_batch batch = STOKER_BATCH_INIT;
    int rc;
    while ((rc = stoker_loader_next(loader, &batch, 20)) == STOKER_TIMEOUT) {
    }
    CHECK(rc == STOKER_OK && batch.count == BATCH_SIZE);
    for (size_t i = 0; i < BATCH_SIZE * ROW_BYTES; i++)
        CHECK(((const uint8_t *)batch.images.data)[i] == 0xA5);
    stoker_batch_release(&batch);
    return unused;
}

static void *end_it(void *unused)
{
    stoker_loader_destroy(&loader);
    return unused;
}

static void in_a_thread(void *(*run)(void *))
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void check_reader(void)
{
    stoker_stats stats = { .struct_size = sizeof(stats) };
    CHECK(stoker_loader_stats(loader, &stats) == STOKER_OK);
    CHECK(strcmp(stats.reader, "uring") == 0); /* and not what a broken ring is changed for */
}

int main(void)
{
    uint8_t bytes[STK_ONE_FILE_SAMPLES * ROW_BYTES / 2];
    stoker_dataset *dataset = NULL;
    memset(bytes, 0xA5, sizeof(bytes));
    CHECK(pipe(ends) == 0);
    struct stk_one_file_set set = { .path = "pipe", .fd = ends[0] };
    CHECK(stoker_dataset_create(&dataset, &ops, &set, NULL) == STOKER_OK);
    const int64_t live = stk_fault_live_bytes();
    stoker_loader_options options =
        stk_default_options(.num_workers = 0, .batch_size = BATCH_SIZE, .cache = STOKER_CACHE_NONE,
                            .reader = stoker_reader_uring());
    const int rc = stoker_loader_create(&loader, dataset, &options, NULL);
    if (rc == STOKER_EREADER)
        return 77;
    CHECK(rc == STOKER_OK);
    in_a_thread(wait_in_vain);
    check_reader();
    CHECK(write(ends[1], bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes));
    in_a_thread(take_one);
    check_reader();
    CHECK(write(ends[1], bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes)); /* all reads come back */
    in_a_thread(end_it);
    CHECK(stk_fault_live_bytes() == live);
    stoker_dataset_close(&dataset);
    return 0;
}
