/* pinning.c - see pinning.h. */
#include "bench/pinning.h"
#include "bench/statistics.h"

#include <inttypes.h>
#include <math.h>
#include <stoker/error.h>
#include <string.h>

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

void bench_pinning_add(struct bench_pinning *pinning, int side, int32_t workers, double seconds)
{
    struct bench_pinning_row *row = row_of(pinning, workers);
    if (row != NULL)
        row->seconds[side] = seconds;
}

int bench_pinning_read(struct bench_pinning *out, FILE *file)
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
            bench_pinning_add(out, side, workers, seconds);
    }
    return out->count > 0 ? STOKER_OK : STOKER_EINVAL;
}

static double gain_of(const struct bench_pinning_row *row)
{
    return row->seconds[BENCH_PINNING_OFF] / row->seconds[BENCH_PINNING_ON];
}

/* The median over all workers of pageable time / pinned time: above 1 pinning gains, below 1 it costs. NaN =
 * nothing to compare. */
static double median_gain(const struct bench_pinning *pinning)
{
    double gains[BENCH_PINNING_ROWS_MAX];
    size_t count = 0;
    for (uint32_t index = 0; index < pinning->count; index++)
        if (isfinite(gain_of(&pinning->rows[index])))
            gains[count++] = gain_of(&pinning->rows[index]);
    return count == 0 ? (double)NAN : bench_statistics_of(gains, count).median;
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

static void print_verdict(const char *whose, double gain, FILE *file)
{
    if (!isfinite(gain))
        return;
    fprintf(file, "%s: with pin_memory %.2f times as fast as without (median over num_workers)\n",
            whose, gain);
}

void bench_pinning_print(const struct bench_pinning *ours, const struct bench_pinning *beside,
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
    print_verdict("this loader", median_gain(ours), file);
    if (beside != NULL)
        print_verdict("the other", median_gain(beside), file);
}
