/* test_signals.c - a loader whose reads wait in io_uring while ten thousand signals a second
 * arrive.
 *
 *   feeder thread ──a row every 2 ms──▶ pipe ──io_uring──▶ loader ──▶ this thread, interrupted all the time
 *
 * Files in the page cache never make the ring wait; a pipe does. A ring that takes EINTR for a
 * failure is replaced by pread and still delivers the right bytes, so the test also asks which
 * reader did the work.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "support/files/reader_file.h"
#include "support/leaks.h"
#include "support/sets/one_file_set.h"

enum { ROWS = STK_ONE_FILE_SAMPLES, ROW_BYTES = STK_ONE_FILE_ROW_BYTES, BATCH = 8, EPOCHS = 2 };

static const stoker_dataset_ops ops = { .struct_size = sizeof(stoker_dataset_ops),
                                        .name = "pipe",
                                        .describe = stk_one_file_describe,
                                        .locate = stk_one_file_locate,
                                        .file = stk_one_file_file };

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    signals++;
}

/* Write all rows of all epochs; any read may get any of them, so they are all alike. */
static void *feed(void *end)
{
    uint8_t row[ROW_BYTES];
    memset(row, 'r', sizeof(row));
    for (int i = 0; i < ROWS * EPOCHS; i++) {
        nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
        if (write(*(int *)end, row, sizeof(row)) != (ssize_t)sizeof(row))
            return NULL;
    }
    return end;
}

/* Signals go to the thread that consumes: the feeder starts with them blocked, and workers block
 * all. */
static pthread_t start_feeder(int *end)
{
    pthread_t feeder;
    sigset_t alarm_only, before;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    cr_assert_eq(pthread_sigmask(SIG_BLOCK, &alarm_only, &before), 0);
    cr_assert_eq(pthread_create(&feeder, NULL, feed, end), 0);
    cr_assert_eq(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    return feeder;
}

static uint32_t consume(stoker_loader *loader)
{
    uint32_t rows = 0;
    for (;;) {
        stoker_batch batch = STOKER_BATCH_INIT;
        const int rc = stoker_loader_next(loader, &batch, 20000);
        if (rc == STOKER_FINISHED)
            return rows;
        if (rc == STOKER_EPOCH_END)
            continue;
        cr_assert_eq(rc, STOKER_OK, "%s", stoker_strerror(rc));
        const uint8_t *bytes = batch.images.data;
        for (uint32_t i = 0; i < batch.count * ROW_BYTES; i++)
            cr_assert_eq(bytes[i], 'r');
        rows += batch.count;
        stoker_batch_release(&batch);
    }
}

static void storm_over(const stoker_dataset *dataset, int32_t workers)
{
    const struct itimerval storm = { { .tv_usec = 100 }, { .tv_usec = 100 } };
    const struct itimerval calm = { { 0 }, { 0 } };
    stoker_loader *loader = NULL;
    stoker_stats stats = { .struct_size = sizeof(stats) };
    stoker_loader_options options =
        stk_default_options(.batch_size = BATCH, .epochs = EPOCHS, .num_workers = workers,
                            .cache = STOKER_CACHE_NONE, .device = STOKER_DEVICE_CPU);
    cr_assert_eq(stoker_loader_create(&loader, dataset, &options, NULL), STOKER_OK);
    signals = 0;
    cr_assert_eq(setitimer(ITIMER_REAL, &storm, NULL), 0);
    const uint32_t rows = consume(loader);
    cr_assert_eq(setitimer(ITIMER_REAL, &calm, NULL), 0);
    cr_assert_eq(rows, ROWS * EPOCHS);
    cr_assert_gt(signals, 200, "only %d signals", (int)signals);
    cr_assert_eq(stoker_loader_stats(loader, &stats), STOKER_OK);
    cr_assert_str_eq(stats.reader, "uring", "after %d signals: %s", (int)signals,
                     stats.reader_reason);
    stoker_loader_destroy(&loader);
}

CleanTest(signals, a_storm_does_not_end_a_waiting_ring)
{
    (void)unsetenv("STOKER_READER");
    if (!stk_test_reader_works(stoker_reader_uring()))
        cr_skip_test("no io_uring here");
    const struct sigaction action = { .sa_handler = count_signal }; /* no SA_RESTART */
    cr_assert_eq(sigaction(SIGALRM, &action, NULL), 0);
    for (int32_t workers = 0; workers <= 2; workers += 2) {
        int ends[2];
        cr_assert_eq(pipe(ends), 0);
        struct stk_one_file_set set = { .path = "pipe", .fd = ends[0] };
        stoker_dataset *dataset = NULL;
        cr_assert_eq(stoker_dataset_create(&dataset, &ops, &set, NULL), STOKER_OK);
        const pthread_t feeder = start_feeder(&ends[1]);
        storm_over(dataset, workers);
        void *fed = NULL;
        cr_assert_eq(pthread_join(feeder, &fed), 0);
        cr_assert_eq(fed, &ends[1], "the pipe could not be written");
        stoker_dataset_close(&dataset);
        close(ends[0]);
        close(ends[1]);
    }
}
