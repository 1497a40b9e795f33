/* run.c - collects the measurements of a cell. */
#include "bench/loaderbench/cell/run.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "bench/loaderbench/statistics.h"

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

/* Adds counts and times; other values are those of the last stretch. */
static void add_stats(stoker_stats *total, const stoker_stats *more)
{
    const stoker_stats before = *total;
    *total = *more;
    total->batches += before.batches;
    total->samples += before.samples;
    total->bytes += before.bytes;
    total->bad_samples += before.bad_samples;
    total->elapsed_ns += before.elapsed_ns;
    total->read_ns += before.read_ns;
    total->decode_ns += before.decode_ns;
    total->convert_ns += before.convert_ns;
    total->slot_wait_ns += before.slot_wait_ns;
    total->stall_ns += before.stall_ns;
    total->stalls += before.stalls;
    total->reads += before.reads;
    total->read_bytes += before.read_bytes;
    total->read_retries += before.read_retries;
    total->cache_hits += before.cache_hits;
    total->copies += before.copies;
    total->copy_bytes += before.copy_bytes;
    total->copy_waits += before.copy_waits;
    total->cpu_ns += before.cpu_ns;
}

void bench_figure_add(struct bench_figure *figure, const struct bench_window *window)
{
    const double seconds = (double)window->wall_ns / 1e9;
    bench_series_push(&figure->rates, (double)window->samples / seconds);
    bench_series_push(&figure->byte_rates, (double)window->bytes / seconds);
    add_stats(&figure->total, &window->stats);
}

struct bench_stages bench_figure_stages(const struct bench_figure *figure)
{
    const stoker_stats *total = &figure->total;
    const double each = total->samples > 0 ? 1e3 * (double)total->samples : NAN; /* ns to us */
    return (struct bench_stages){ .read_us = (double)total->read_ns / each,
                                  .decode_us = (double)total->decode_ns / each,
                                  .convert_us = (double)total->convert_ns / each,
                                  .slot_wait_us = (double)total->slot_wait_ns / each };
}

/* Judges all stretches together: one alone is too short. */
void bench_figure_judge(const struct bench_figure *figure, stoker_stats *out)
{
    const stoker_stats nothing = { .struct_size = sizeof(nothing) };
    if (stoker_stats_between(&nothing, &figure->total, out) != STOKER_OK)
        *out = figure->total;
}

uint32_t bench_figure_shares(struct bench_figure *figure, struct bench_share_row *out)
{
    uint32_t count = 0;
    for (int kind = 0; kind < BENCH_CEILING_COUNT; kind++) {
        struct bench_series *shares = &figure->ceiling_shares[kind];
        if (shares->count == 0)
            continue;
        snprintf(out[count].name, sizeof(out[count].name), "%s",
                 bench_ceiling_name((enum bench_ceiling_kind)kind));
        out[count++].share = bench_series_median(shares);
    }
    return count;
}
