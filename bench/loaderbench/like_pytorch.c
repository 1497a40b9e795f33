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
 * Its lines are printed in its order, but measured with and without pinning in turn, so that a
 * machine that slows down meanwhile slows both. On a GPU every batch is delivered there. Below the
 * lines comes the effect of pinning, with that on another loader (--beside).
 */
#include "bench/loaderbench/like_pytorch.h"
#include "bench/loaderbench/cell/consumer.h"
#include "bench/loaderbench/statistics.h"
#include "loader/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- the effect of pinning ------------------------------------------------------------- */

static struct bench_pinning_row *row_of(struct bench_pinning *pinning, int32_t workers)
{
    for (uint32_t index = 0; index < pinning->count; index++)
        if (pinning->rows[index].workers == workers)
            return &pinning->rows[index];
    if (pinning->count == BENCH_PINNING_ROWS_MAX)
        return NULL;
    struct bench_pinning_row *row = &pinning->rows[pinning->count++];
    *row = (struct bench_pinning_row){ .workers = workers, .seconds = { NAN, NAN } };
    return row;
}

/* Adds one time; ignores it if the table is full. */
static void add_time(struct bench_pinning *pinning, int side, int32_t workers, double seconds)
{
    struct bench_pinning_row *row = row_of(pinning, workers);
    if (row != NULL)
        row->seconds[side] = seconds;
}

/* Reads "pin_memory=True" and "Finish with: 1.5 second, num_workers=5" lines and skips others.
 * STOKER_EINVAL: there was none. */
static int read_times(struct bench_pinning *out, FILE *file)
{
    char line[256];
    int side = BENCH_PINNING_ON;
    *out = (struct bench_pinning){ .count = 0 };
    while (fgets(line, sizeof(line), file) != NULL) {
        double seconds;
        int32_t workers;
        if (strncmp(line, "pin_memory=True", 15) == 0)
            side = BENCH_PINNING_ON;
        else if (strncmp(line, "pin_memory=False", 16) == 0)
            side = BENCH_PINNING_OFF;
        else if (sscanf(line, "Finish with: %lf second, num_workers=%" SCNd32, &seconds,
                        &workers) == 2 &&
                 isfinite(seconds) && seconds > 0)
            add_time(out, side, workers, seconds);
    }
    return out->count > 0 ? STOKER_OK : STOKER_EINVAL;
}

static double gain_of(const struct bench_pinning_row *row)
{
    return row->seconds[BENCH_PINNING_OFF] / row->seconds[BENCH_PINNING_ON];
}

/* Pageable time / pinned time over all workers: above 1 pinning gains, below 1 it costs. */
static struct bench_statistics gains_of(const struct bench_pinning *pinning)
{
    double gains[BENCH_PINNING_ROWS_MAX];
    size_t count = 0;
    for (uint32_t index = 0; index < pinning->count; index++)
        if (isfinite(gain_of(&pinning->rows[index])))
            gains[count++] = gain_of(&pinning->rows[index]);
    return bench_statistics_of(gains, count);
}

static void print_times(const struct bench_pinning_row *row, FILE *file)
{
    for (int side = 0; side < 2; side++)
        if (row != NULL && isfinite(row->seconds[side]))
            fprintf(file, " %9.4f", row->seconds[side]);
        else
            fprintf(file, " %9s", "-");
    if (row != NULL && isfinite(gain_of(row)))
        fprintf(file, " %5.2f", gain_of(row));
    else
        fprintf(file, " %5s", "-");
}

/* Numbers of workers are repeats here: if the middle four fifths of their gains are on both sides
 * of 1, pinning changes nothing that can be measured. */
static void print_gain(const char *whose, const struct bench_pinning *pinning, FILE *file)
{
    const struct bench_statistics gains = gains_of(pinning);
    if (gains.count == 0)
        return;
    fprintf(file,
            "%s: with pin_memory %.2f times as fast as without (%.2f to %.2f over num_workers)%s\n",
            whose, gains.median, gains.min, gains.max,
            gains.low <= 1 && gains.high >= 1 ? ": not measurably different" : "");
}

/* Prints a row per number of workers and a verdict. beside: NULL = ours alone. */
static void print_effect(const struct bench_pinning *ours, const struct bench_pinning *beside,
                         FILE *file)
{
    fprintf(file, "\n%11s %9s %9s %5s%s\n", "num_workers", "pinned", "pageable", "gain",
            beside != NULL ? " |  beside: pinned, pageable, gain" : "");
    for (uint32_t index = 0; index < ours->count; index++) {
        const int32_t workers = ours->rows[index].workers;
        fprintf(file, "%11" PRId32, workers);
        print_times(&ours->rows[index], file);
        if (beside != NULL) {
            const struct bench_pinning_row *other = NULL;
            for (uint32_t at = 0; at < beside->count; at++)
                if (beside->rows[at].workers == workers)
                    other = &beside->rows[at];
            fputs(" |", file);
            print_times(other, file);
        }
        fputc('\n', file);
    }
    print_gain("this loader", ours, file);
    if (beside != NULL)
        print_gain("the other", beside, file);
}

/* ---- the experiment -------------------------------------------------------------------- */

enum { EPOCHS = 4, BATCH = 64, WORKERS_END = 50, WORKERS_STEP = 5, LINE_BYTES = 512 };

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

/* One line of the snippet. The text stays in *line until both columns are complete. */
static int time_workers(const struct bench_bench *bench, int side, int32_t workers,
                        struct bench_pinning *pinning, char line[LINE_BYTES])
{
    struct bench_choice choice = { .workers = workers,
                                   .pin_memory = side == BENCH_PINNING_ON ? STOKER_SWITCH_ON
                                                                          : STOKER_SWITCH_OFF,
                                   .batch_size = BATCH,
                                   .dtype = STOKER_DTYPE_FLOAT32,
                                   .cache = STOKER_CACHE_AUTO,
                                   .device = bench->arguments->device,
                                   .non_blocking = true };
    stoker_error error = { 0 };
    double seconds = 0;
    int rc = time_epochs(bench, &choice, &seconds, &error);
    if (rc == STOKER_OK) {
        snprintf(line, LINE_BYTES, "Finish with: %.4f second, num_workers=%" PRId32, seconds,
                 workers);
        add_time(pinning, side, workers, seconds);
    } else
        snprintf(line, LINE_BYTES, "Failed with: %.400s, num_workers=%" PRId32,
                 error.message[0] != '\0' ? error.message : stoker_strerror(rc), workers);
    if (!bench->arguments->quiet)
        fprintf(stderr, "loaderbench: pin_memory=%s: %s\n",
                side == BENCH_PINNING_ON ? "True" : "False", line);
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
    int rc = read_times(beside, file);
    fclose(file);
    if (rc != STOKER_OK)
        fprintf(stderr, "loaderbench: %s: no 'Finish with:' line in it\n", path);
    return rc;
}

int bench_like_pytorch(const struct bench_bench *bench, const struct bench_pinning *beside,
                       FILE *file)
{
    enum { ROWS = WORKERS_END / WORKERS_STEP };
    static char lines[2][ROWS][LINE_BYTES];
    struct bench_pinning ours = { .count = 0 };
    int status = 0;
    for (int row = 0; row < ROWS; row++)
        for (int turn = 0; turn < 2; turn++) {
            const int side = (turn + row) % 2 == 0 ? BENCH_PINNING_ON : BENCH_PINNING_OFF;
            if (time_workers(bench, side, row * WORKERS_STEP, &ours, lines[side][row]) != STOKER_OK)
                status = 1;
        }
    for (int turn = 0; turn < 2; turn++) {
        const int side = turn == 0 ? BENCH_PINNING_ON : BENCH_PINNING_OFF;
        fprintf(file, "pin_memory=%s\n", turn == 0 ? "True" : "False");
        for (int row = 0; row < ROWS; row++)
            fprintf(file, "%s\n", lines[side][row]);
    }
    print_effect(&ours, beside, file);
    if (bench->arguments->device == STOKER_DEVICE_CPU)
        fputs("no GPU here: page-locking cannot help, and differences above are noise\n", file);
    return status;
}
