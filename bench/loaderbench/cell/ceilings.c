/* ceilings.c - the ceilings of one cell: which of them fit, and one measurement of each. */
#include "bench/loaderbench/cell/run.h"
#include "bench/loaderbench/cell/together.h"
#include "bench/loaderbench/statistics.h"
#include "loader/cli/interrupt.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static_assert((int)BENCH_CEILING_COUNT <= (int)BENCH_SHARES_MAX, "a share of each ceiling");

static bool is_encoded(const struct bench_run *run)
{
    return run->bench->material.has_codec;
}

/* The loop that reads as the loader does; whole files are read by pread alone. */
static enum bench_ceiling_kind reading_of(const struct bench_run *run)
{
    const bool uring = strcmp(run->stats.reader, "uring") == 0;
    return uring && run->bench->material.paths == NULL ? BENCH_CEILING_URING : BENCH_CEILING_PREAD;
}

/* The loop that makes rows from decoded samples in memory. */
static enum bench_ceiling_kind making_of(const struct bench_run *run)
{
    return run->transforms ? BENCH_CEILING_TRANSFORM : BENCH_CEILING_GATHER;
}

static enum bench_ceiling_kind fitting_of(const struct bench_run *run, stoker_cache cache)
{
    const struct bench_material *material = &run->bench->material;
    const bool encoded = is_encoded(run);
    if (cache == STOKER_CACHE_DECODED || material->origin == BENCH_FROM_MEMORY ||
        (cache == STOKER_CACHE_ENCODED && !encoded))
        return making_of(run);
    if (material->origin != BENCH_FROM_FILE || cache == STOKER_CACHE_ENCODED)
        return run->transforms ? BENCH_CEILING_DECODE_TRANSFORM : BENCH_CEILING_DECODE;
    return (encoded || run->transforms) && !run->bench->arguments->cold ? BENCH_CEILING_PARTS
                                                                        : reading_of(run);
}

/* Returns true if a bare loop does the same work. None starts from resized images in the cache,
 * gathers in a GPU's memory, works without a reader, or reads whole cold files through a ring. */
static bool has_loop(const struct bench_run *run, stoker_cache cache, enum bench_ceiling_kind kind)
{
    const bool reads =
        kind == BENCH_CEILING_PARTS || kind == BENCH_CEILING_URING || kind == BENCH_CEILING_PREAD;
    const bool uring = strcmp(run->stats.reader, "uring") == 0;
    const bool resized = run->transforms && cache == STOKER_CACHE_DECODED &&
                         run->transform.plan.framing.resizing == STK_RESIZE_EXACT;
    if (resized || cache == STOKER_CACHE_DEVICE)
        return false;
    if (reads && run->bench->arguments->cold && run->bench->material.paths != NULL && uring)
        return false;
    return !reads || strcmp(run->stats.reader, "null") != 0;
}

void bench_run_find_fitting(struct bench_run *run, stoker_cache cache)
{
    struct bench_figure *figure = run->figure;
    figure->fitting = fitting_of(run, cache);
    figure->has_fitting = has_loop(run, cache, figure->fitting);
    run->has_copying = run->bench->gpu != NULL && run->stats.cache != STOKER_CACHE_DEVICE;
    run->copying = run->stats.pinned ? BENCH_CEILING_PINNED : BENCH_CEILING_PAGEABLE;
}

/* The number of threads that may work at a time: the cell's workers and, if nothing is read and a
 * CPU is free, the consumer, which helps while it waits. A loader that tunes itself may use all
 * CPUs. */
static uint32_t threads_of(const struct bench_run *run)
{
    const uint32_t cpus = run->bench->cpus;
    if (run->choice.workers == STOKER_WORKERS_AUTO)
        return cpus < BENCH_THREADS_MAX ? cpus : BENCH_THREADS_MAX;
    const uint32_t workers = (uint32_t)run->choice.workers;
    const bool helps = workers > 0 && workers < cpus && run->figure->total.reads == 0;
    const uint32_t threads = workers + (helps ? 1 : 0);
    return threads < 1 ? 1 : threads > BENCH_THREADS_MAX ? BENCH_THREADS_MAX : threads;
}

/* The host's part of the work: a GPU may convert the rows. */
static const struct stk_convert_plan *host_plan_of(const struct bench_run *run)
{
    if (run->stats.converts_on_device)
        return &run->stored_plan;
    return run->transforms ? &run->transform.convert : &run->plan;
}

static struct bench_work work_of(struct bench_run *run)
{
    struct bench_work work = { .material = &run->bench->material,
                               .plan = host_plan_of(run),
                               .transform = run->transforms ? &run->transform : NULL,
                               .threads = threads_of(run),
                               .batch_size = run->choice.batch_size,
                               .read_depth = run->stats.read_depth < 1 ? 1 : run->stats.read_depth,
                               .seconds = run->bench->arguments->seconds,
                               .one_pass = run->bench->arguments->cold };
    work.ring_rows = (uint64_t)(run->stats.slots < 1 ? 1 : run->stats.slots) * work.batch_size;
    if (!work.one_pass) /* from the page cache, all reads are done when submit returns */
        work.wait_reads = work.read_depth;
    return work;
}

/* The work of a loop that only reads. Encoded samples go to a separate ring, as the loader's go to
 * its scratch memory. */
static struct bench_work reading_work_of(struct bench_run *run)
{
    struct bench_work work = work_of(run);
    if (run->transforms)
        work.plan = &run->stored_plan; /* transformed later */
    if (is_encoded(run)) {
        work.plan = &run->bytes_plan;
        work.ring_rows = (uint64_t)work.read_depth * work.threads;
    }
    return work;
}

static void note_ceiling(const struct bench_run *run, const struct bench_work *work,
                         struct bench_ceiling_row *row, bool available)
{
    const char *bounded = run->bench->material.bounded ? "on a part of the data set" : "";
    const char *cold = work->one_pass ? "one pass, file not cached" : bounded;
    snprintf(row->note, sizeof(row->note), "%s", available ? cold : "not available here");
}

/* Compares the loader's rate in this repeat with a ceiling measured right after it: on a machine
 * whose speed drifts, the two are comparable only in pairs. A pass over cold storage limits no
 * other one: NaN. */
static double share_of(const struct bench_run *run, double ceiling)
{
    if (run->bench->arguments->cold)
        return NAN;
    const struct bench_series *rates = &run->figure->rates;
    assert(rates->count > 0);
    return rates->values[rates->count - 1] / ceiling;
}

/* Measures one ceiling once and adds it to the pool. If it cannot be measured here, *rate is NaN
 * and the pool gets no value. */
static int measure_ceiling(struct bench_run *run, enum bench_ceiling_kind kind,
                           const struct bench_work *work, double *rate)
{
    *rate = NAN;
    if (cli_interrupted())
        return BENCH_INTERRUPTED;
    int rc = bench_together_ceiling(run->bench->ranks, kind, work, rate, &run->error);
    if (rc != STOKER_OK && rc != STOKER_ENOTSUP)
        return rc;
    struct bench_ceiling_row row = {
        .threads = work->threads,
        .batch_size = run->choice.batch_size,
        .ring_bytes = (work->ring_rows / work->threads > 0 ? work->ring_rows / work->threads : 1) *
                      work->plan->to_bytes,
        .read_depth = kind == BENCH_CEILING_URING ? work->read_depth : 0,
    };
    snprintf(row.name, sizeof(row.name), "%s", bench_ceiling_name(kind));
    snprintf(row.dtype, sizeof(row.dtype), "%s", stoker_dtype_name(work->plan->to));
    note_ceiling(run, work, &row, rc == STOKER_OK);
    bench_series_push(&run->figure->ceiling_shares[kind], share_of(run, *rate));
    const double row_bytes = kind == BENCH_CEILING_PINNED || kind == BENCH_CEILING_PAGEABLE
                                 ? (double)work->copy_bytes / work->batch_size
                                 : (double)work->plan->to_bytes;
    return bench_pool_add(&run->bench->pool, &row, row_bytes, *rate);
}

int bench_run_evict(struct bench_run *run)
{
    double share = NAN;
    int rc = bench_material_evict(&run->bench->material, &share);
    bench_series_push(&run->resident, share);
    return rc;
}

static int measure_one(struct bench_run *run, enum bench_ceiling_kind kind, double *rate)
{
    struct bench_work work = work_of(run);
    *rate = NAN;
    return measure_ceiling(run, kind, &work, rate);
}

static int measure_reading(struct bench_run *run, enum bench_ceiling_kind kind, double *rate)
{
    struct bench_work work = reading_work_of(run);
    *rate = NAN;
    int rc = work.one_pass ? bench_run_evict(run) : STOKER_OK;
    return rc == STOKER_OK ? measure_ceiling(run, kind, &work, rate) : rc;
}

/* Decoding alone, to rows as stored. */
static int measure_decoding(struct bench_run *run, double *rate)
{
    struct bench_work work = work_of(run);
    *rate = NAN;
    work.plan = &run->stored_plan;
    return measure_ceiling(run, BENCH_CEILING_DECODE, &work, rate);
}

/* From encoded bytes in memory to rows; compared with decoding alone it shows the cost of
 * transforms. */
static int measure_decoded(struct bench_run *run, double *rate)
{
    double alone = NAN;
    int rc = measure_decoding(run, &alone);
    return rc == STOKER_OK ? measure_one(run, BENCH_CEILING_DECODE_TRANSFORM, rate) : rc;
}

/* Seconds per sample of the work after reading. Rows delivered as stored are not converted. */
static int measure_making(struct bench_run *run, double *seconds)
{
    double making = INFINITY, converting = INFINITY;
    int rc;
    if (run->transforms) {
        rc = is_encoded(run) ? measure_decoded(run, &making)
                             : measure_one(run, BENCH_CEILING_TRANSFORM, &making);
    } else {
        rc = measure_decoding(run, &making);
        if (rc == STOKER_OK && !bench_keeps_rows(host_plan_of(run)))
            rc = measure_one(run, BENCH_CEILING_GATHER, &converting);
    }
    *seconds = 1 / making + 1 / converting;
    return rc;
}

/* The rate of doing the parts one after the other: adds their times. */
static int measure_parts(struct bench_run *run, double *rate)
{
    double reading = NAN, making_s = NAN;
    int rc = measure_reading(run, reading_of(run), &reading);
    if (rc == STOKER_OK)
        rc = measure_making(run, &making_s);
    *rate = 1 / (1 / reading + making_s);
    if (rc != STOKER_OK)
        return rc;
    const struct bench_work work = work_of(run);
    struct bench_ceiling_row row = { .threads = work.threads, .batch_size = work.batch_size };
    snprintf(row.name, sizeof(row.name), "%s", bench_ceiling_name(BENCH_CEILING_PARTS));
    snprintf(row.dtype, sizeof(row.dtype), "%s", stoker_dtype_name(run->plan.to));
    note_ceiling(run, &work, &row, isfinite(*rate));
    bench_series_push(&run->figure->ceiling_shares[BENCH_CEILING_PARTS], share_of(run, *rate));
    return bench_pool_add(&run->bench->pool, &row, (double)work.plan->to_bytes, *rate);
}

/* The copies to the GPU: one thread keeps it busy. */
static int measure_copying(struct bench_run *run, double *rate)
{
    struct bench_work work = work_of(run);
    work.threads = 1;
    work.on_gpu = true;
    work.gpu_index = run->bench->arguments->device_index;
    work.copy_bytes = run->stats.copies > 0 ? run->stats.copy_bytes / run->stats.copies
                                            : run->plan.to_bytes * work.batch_size;
    work.one_pass = false;
    return measure_ceiling(run, run->copying, &work, rate);
}

static int measure_fitting(struct bench_run *run, double *rate)
{
    switch (run->figure->fitting) {
    case BENCH_CEILING_PARTS:
        return measure_parts(run, rate);
    case BENCH_CEILING_DECODE_TRANSFORM:
        return measure_decoded(run, rate);
    case BENCH_CEILING_URING:
    case BENCH_CEILING_PREAD:
        return measure_reading(run, run->figure->fitting, rate);
    default:
        return measure_one(run, run->figure->fitting, rate);
    }
}

/* On a GPU the lower of two ceilings counts: that of the host, that of the copies. With --cold
 * there are no shares from which to name the lower one, so it is the host's. */
int bench_run_ceilings(struct bench_run *run)
{
    if (!run->bench->arguments->ceilings || !run->figure->has_fitting)
        return STOKER_OK;
    double rate = NAN, copied = NAN;
    int rc = measure_fitting(run, &rate);
    if (rc == STOKER_OK && run->has_copying)
        rc = measure_copying(run, &copied);
    if (!run->bench->arguments->cold)
        rate = fmin(rate, copied); /* if one is NaN, the other */
    bench_series_push(&run->figure->fitting_rates, rate);
    bench_series_push(&run->figure->shares, share_of(run, rate));
    return rc;
}

enum bench_ceiling_kind bench_run_lowest(struct bench_run *run, struct bench_figure *figure)
{
    const bool copies = run->has_copying && figure->ceiling_shares[run->copying].count > 0;
    /* The same rate is a larger share of the lower ceiling. */
    return copies && bench_series_median(&figure->ceiling_shares[run->copying]) >
                         bench_series_median(&figure->ceiling_shares[figure->fitting])
               ? run->copying
               : figure->fitting;
}
