/* like_pytorch.c - the snippet everybody runs to choose num_workers, with this loader.
 *
 *   for num_workers in range(0, 50, 5):
 *       loader = DataLoader(..., batch_size=64, shuffle=True, num_workers=num_workers,
 *                           pin_memory=...)
 *       start = time.time()
 *       for epoch in range(1, 5):
 *           for i, data in enumerate(loader):
 *               pass
 *       print("Finish with: {} second, num_workers={}".format(...))
 */
#include "like_pytorch.h"
#include "clock.h"
#include "consumer.h"

#include <inttypes.h>

enum { EPOCHS = 4, BATCH = 64, WORKERS_END = 50, WORKERS_STEP = 5 };

/* Like the snippet, the clock starts before the first worker does. */
static int time_epochs(const struct bench_bench *bench, const struct bench_choice *choice,
                       double *seconds, stoker_error *error)
{
    struct bench_consumer consumer = { 0 };
    stoker_loader_options options = bench_cell_options(bench, choice);
    options.epochs = EPOCHS;
    options.error = error;
    uint64_t begin_ns = bench_clock_ns();
    int rc = stoker_loader_create(&consumer.loader, bench->dataset, &options);
    while (rc == STOKER_OK || rc == STOKER_EPOCH_END)
        rc = bench_consumer_next(&consumer);
    *seconds = (double)(bench_clock_ns() - begin_ns) / 1e9;

    const stoker_error *first =
        consumer.loader == NULL ? NULL : stoker_loader_error(consumer.loader);
    if (rc < 0 && first != NULL)
        *error = *first;
    stoker_loader_destroy(&consumer.loader);
    return rc == STOKER_FINISHED ? STOKER_OK : rc;
}

static int time_workers(const struct bench_bench *bench, stoker_switch pin, int32_t workers,
                        FILE *file)
{
    struct bench_choice choice = { .workers = workers,
                                   .pin_memory = pin,
                                   .batch_size = BATCH,
                                   .dtype = STOKER_FLOAT32,
                                   .cache = STOKER_CACHE_AUTO };
    stoker_error error = { 0 };
    double seconds = 0;
    int rc = time_epochs(bench, &choice, &seconds, &error);
    if (rc == STOKER_OK)
        fprintf(file, "Finish with: %.4f second, num_workers=%" PRId32 "\n", seconds, workers);
    else
        fprintf(file, "Failed with: %s, num_workers=%" PRId32 "\n",
                error.message[0] != '\0' ? error.message : stoker_strerror(rc), workers);
    fflush(file);
    return rc;
}

int bench_like_pytorch(const struct bench_bench *bench, FILE *file)
{
    int status = 0;
    for (int turn = 0; turn < 2; turn++) {
        stoker_switch pin = turn == 0 ? STOKER_ON : STOKER_OFF;
        fprintf(file, "pin_memory=%s\n", pin == STOKER_ON ? "True" : "False");
        for (int32_t workers = 0; workers < WORKERS_END; workers += WORKERS_STEP)
            if (time_workers(bench, pin, workers, file) != STOKER_OK)
                status = 1;
    }
    return status;
}
