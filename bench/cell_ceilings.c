/* cell_ceilings.c - the ceilings of one cell: which fits, and one turn of each. */
#include "cell_run.h"
#include "statistics.h"

#include <assert.h>
#include <math.h>
#include <string.h>

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

bool bench_run_find_fitting(const struct bench_run *run, enum bench_ceiling_kind *kind)
{
    const struct bench_material *material = &run->bench->material;
    bool raw = !material->has_codec;
    if (run->stats.cache == STOKER_CACHE_DECODED || material->origin == BENCH_FROM_MEMORY ||
        (run->stats.cache == STOKER_CACHE_ENCODED && raw)) {
        *kind = BENCH_CEILING_GATHER_SAME;
        return true;
    }
    if (material->origin != BENCH_FROM_FILE || run->stats.cache == STOKER_CACHE_ENCODED) {
        *kind = BENCH_CEILING_DECODE;
        return true;
    }
    *kind = strcmp(run->stats.reader, "uring") == 0 ? BENCH_CEILING_URING : BENCH_CEILING_PREAD;
    return raw && strcmp(run->stats.reader, "null") != 0;
}

static struct bench_work work_of(struct bench_run *run)
{
    struct bench_work work = { .material = &run->bench->material,
                               .plan = &run->plan,
                               .threads = run->stats.workers < 1 ? 1 : run->stats.workers,
                               .batch_size = run->choice.batch_size,
                               .read_depth = run->stats.read_depth < 1 ? 1 : run->stats.read_depth,
                               .seconds = run->bench->arguments->seconds,
                               .one_pass = run->bench->arguments->cold };
    work.ring_rows = (uint64_t)(run->stats.slots < 1 ? 1 : run->stats.slots) * work.batch_size;
    if (!work.one_pass) /* in the page cache all reads are done when submit returns */
        work.wait_reads = work.read_depth;
    return work;
}

static void note_ceiling(const struct bench_run *run, const struct bench_work *work,
                         struct bench_ceiling_row *row, bool available)
{
    const char *bounded = run->bench->material.bounded ? "on a part of the data set" : "";
    const char *cold = work->one_pass ? "one pass, file not cached" : bounded;
    snprintf(row->note, sizeof(row->note), "%s", available ? cold : "not available here");
}

/* Measure one ceiling once and put it into the pool. A ceiling that does not exist here
 * is noted there with no value; *rate is NaN then. */
static int measure_ceiling(struct bench_run *run, enum bench_ceiling_kind kind,
                           const struct bench_work *work, double *rate)
{
    *rate = NAN;
    int rc = bench_ceiling_measure(kind, work, rate, &run->error);
    if (rc != STOKER_OK && rc != STOKER_ENOTSUP)
        return rc;
    bool ring = kind == BENCH_CEILING_URING;
    struct bench_ceiling_row row = {
        .threads = work->threads,
        .batch_size = run->choice.batch_size,
        .ring_bytes = (work->ring_rows / work->threads > 0 ? work->ring_rows / work->threads : 1) *
                      run->plan.to_bytes,
        .read_depth = ring ? work->read_depth : 0,
    };
    snprintf(row.name, sizeof(row.name), "%s", bench_ceiling_name(kind));
    snprintf(row.dtype, sizeof(row.dtype), "%s", stoker_dtype_name(run->plan.to));
    note_ceiling(run, work, &row, rc == STOKER_OK);
    return bench_pool_add(&run->bench->pool, &row, (double)run->plan.to_bytes, *rate);
}

static int measure_best_ring(struct bench_run *run, double *rate)
{
    struct bench_work work = work_of(run);
    uint32_t piece = 0;
    int rc = bench_pool_piece(&run->bench->pool, &work, &piece, &run->error);
    if (rc != STOKER_OK)
        return rc;
    work.batch_size = piece;
    work.ring_rows = (uint64_t)piece * work.threads;
    return measure_ceiling(run, BENCH_CEILING_GATHER_BEST, &work, rate);
}

int bench_run_evict(struct bench_run *run)
{
    double share = NAN;
    int rc = bench_source_file_evict(&run->bench->material.file, &share);
    bench_series_push(&run->resident, share);
    return rc;
}

static int measure_one(struct bench_run *run, enum bench_ceiling_kind kind, double *rate)
{
    struct bench_work work = work_of(run);
    *rate = NAN;
    int rc = work.one_pass ? bench_run_evict(run) : STOKER_OK;
    return rc == STOKER_OK ? measure_ceiling(run, kind, &work, rate) : rc;
}

/* What the loader reached in this repeat, against a ceiling measured right after it: on a machine
 * whose speed drifts the two are only comparable in pairs. */
static double share_of(const struct bench_run *run, double ceiling)
{
    assert(run->rates.count > 0);
    return run->rates.values[run->rates.count - 1] / ceiling;
}

int bench_run_ceilings(struct bench_run *run)
{
    if (!run->bench->arguments->ceilings || !run->has_fitting)
        return STOKER_OK;
    double rate = NAN;
    int rc = measure_one(run, run->fitting, &rate);
    bench_series_push(&run->fitting_rates, rate);
    bench_series_push(&run->shares, share_of(run, rate));
    if (rc != STOKER_OK)
        return rc;
    if (run->fitting == BENCH_CEILING_URING)
        return measure_one(run, BENCH_CEILING_PREAD, &rate);
    if (run->fitting != BENCH_CEILING_GATHER_SAME)
        return STOKER_OK;
    rc = measure_best_ring(run, &rate);
    bench_series_push(&run->best_shares, share_of(run, rate));
    if (rc == STOKER_OK && run->bench->material.has_codec)
        rc = measure_one(run, BENCH_CEILING_DECODE, &rate);
    return rc;
}
