/* like_pytorch.c - the well-known snippet for choosing num_workers, with this loader.
 *
 *   for num_workers in range(0, 50, 5):
 *       loader = DataLoader(..., batch_size=64, shuffle=True, num_workers=num_workers,
 *                           pin_memory=...)
 *       start = time.time()
 *       for epoch in range(1, 5):
 *           for i, data in enumerate(loader):
 *               pass
 *       print("Finish with: {} second, num_workers={}".format(...))
 *
 * On a GPU every batch is delivered there. Below the lines comes the effect of pinning, with that on
 * another loader (--beside).
 */
#include "bench/like_pytorch.h"
#include "bench/cell/consumer.h"
#include "bench/pinning.h"
#include "loader/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { EPOCHS = 4, BATCH = 64, WORKERS_END = 50, WORKERS_STEP = 5 };

/* Like the snippet, the clock starts before the first worker does. */
static int time_epochs(const struct bench_bench *bench, const struct bench_choice *choice,
                       double *seconds, stoker_error *error)
{
    struct bench_consumer consumer = { .gpu = bench->gpu };
    stoker_loader_options options = bench_cell_options(bench, choice);
    options.epochs = EPOCHS;
    uint64_t begin_ns = stk_now_ns();
    int rc = stoker_loader_create(&consumer.loader, bench->dataset, &options, error);
    while (rc == STOKER_OK || rc == STOKER_EPOCH_END)
        rc = bench_consumer_next(&consumer);
    if (rc == STOKER_FINISHED && bench_consumer_finish(&consumer) != STOKER_OK)
        rc = STOKER_EDEVICE;
    *seconds = (double)(stk_now_ns() - begin_ns) / 1e9;

    const stoker_error *first =
        consumer.loader == NULL ? NULL : stoker_loader_error(consumer.loader);
    if (rc < 0 && first != NULL)
        *error = *first;
    stoker_loader_destroy(&consumer.loader);
    return rc == STOKER_FINISHED ? STOKER_OK : rc;
}

static int time_workers(const struct bench_bench *bench, stoker_switch pin, int32_t workers,
                        struct bench_pinning *pinning, FILE *file)
{
    struct bench_choice choice = { .workers = workers,
                                   .pin_memory = pin,
                                   .batch_size = BATCH,
                                   .dtype = STOKER_DTYPE_FLOAT32,
                                   .cache = STOKER_CACHE_AUTO,
                                   .device = bench->arguments->device,
                                   .non_blocking = true };
    stoker_error error = { 0 };
    double seconds = 0;
    int rc = time_epochs(bench, &choice, &seconds, &error);
    if (rc == STOKER_OK) {
        fprintf(file, "Finish with: %.4f second, num_workers=%" PRId32 "\n", seconds, workers);
        bench_pinning_add(pinning, pin == STOKER_SWITCH_ON ? BENCH_PINNING_ON : BENCH_PINNING_OFF,
                          workers, seconds);
    } else
        fprintf(file, "Failed with: %s, num_workers=%" PRId32 "\n",
                error.message[0] != '\0' ? error.message : stoker_strerror(rc), workers);
    fflush(file);
    return rc;
}

int bench_like_pytorch_beside(const char *path, struct bench_pinning *beside)
{
    if (path == NULL)
        return STOKER_OK;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fprintf(stderr, "loaderbench: %s: %s\n", path, strerror(errno));
        return STOKER_EIO;
    }
    int rc = bench_pinning_read(beside, file);
    fclose(file);
    if (rc != STOKER_OK)
        fprintf(stderr, "loaderbench: %s: no 'Finish with:' line in it\n", path);
    return rc;
}

int bench_like_pytorch(const struct bench_bench *bench, const struct bench_pinning *beside,
                       FILE *file)
{
    struct bench_pinning ours = { .count = 0 };
    int status = 0;
    for (int turn = 0; turn < 2; turn++) {
        stoker_switch pin = turn == 0 ? STOKER_SWITCH_ON : STOKER_SWITCH_OFF;
        fprintf(file, "pin_memory=%s\n", pin == STOKER_SWITCH_ON ? "True" : "False");
        for (int32_t workers = 0; workers < WORKERS_END; workers += WORKERS_STEP)
            if (time_workers(bench, pin, workers, &ours, file) != STOKER_OK)
                status = 1;
    }
    bench_pinning_print(&ours, beside, file);
    return status;
}
