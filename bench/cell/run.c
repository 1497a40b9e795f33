/* run.c - see run.h. */
#include "bench/cell/run.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "bench/statistics.h"

void bench_series_push(struct bench_series *series, double value)
{
    assert(series->count < BENCH_SERIES_MAX);
    if (isfinite(value))
        series->values[series->count++] = value;
}

double bench_series_median(struct bench_series *series)
{
    return bench_statistics_of(series->values, series->count).median;
}

int bench_run_explain(struct bench_run *run, int rc)
{
    const stoker_error *first =
        run->consumer.loader == NULL ? NULL : stoker_loader_error(run->consumer.loader);
    if (rc < 0 && first != NULL && run->error.message[0] == '\0')
        run->error = *first;
    if (rc == STOKER_EDEVICE && run->bench->gpu != NULL && run->error.message[0] == '\0')
        snprintf(run->error.message, sizeof(run->error.message), "%s",
                 bench_gpu_failure(run->bench->gpu->gpu));
    return rc;
}

int bench_run_read_stats(struct bench_run *run)
{
    run->stats = (stoker_stats){ .struct_size = sizeof(run->stats) };
    return stoker_loader_stats(run->consumer.loader, &run->stats);
}
