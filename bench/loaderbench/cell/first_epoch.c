/* first_epoch.c - the first epoch of a loader with a cache, which has to read and decode
 * everything.
 *
 *   repeat: create | whole epoch, timed (cut as other epochs are) | destroy | its ceilings
 *
 * Separate loaders measure it before the cell's, because checking slows down the cell's own first
 * epoch. Files that fit are in the page cache: the samples have been read before.
 */
#include "bench/loaderbench/cell/run.h"
#include "bench/loaderbench/cell/together.h"
#include "bench/loaderbench/statistics.h"
#include "bench/loaderbench/timing.h"

#include <math.h>
#include <string.h>

enum { REPEATS_MAX = 3 }; /* each may take a whole epoch */

/* Returns true if the cell may cache samples. Rows already in memory are cached only by a GPU. */
static bool may_cache(const struct bench_run *run)
{
    return run->choice.cache != STOKER_CACHE_NONE &&
           (run->bench->material.origin != BENCH_FROM_MEMORY ||
            run->choice.device == STOKER_DEVICE_CUDA);
}

static int run_epoch(struct bench_run *run, struct bench_window *window)
{
    const struct bench_window_limits limits = { .epochs = run->limits.epochs > 0 ? 1 : 0,
                                                .seconds_max = run->limits.seconds_max };
    int rc = bench_together_first(run);
    if (rc == STOKER_OK)
        rc = bench_run_explain(run, bench_consumer_window(&run->consumer, &limits, window));
    if (rc == STOKER_OK)
        rc = bench_run_explain(run, bench_consumer_finish(&run->consumer));
    if (rc == STOKER_OK)
        rc = bench_run_read_stats(run);
    window->stats = run->stats; /* a separate loader: what was read before the window counts too */
    return rc == STOKER_OK ? bench_together_add(run, window) : rc;
}

/* Ask for the cache that AUTO takes if more epochs follow: for one epoch it takes none. */
static int name_cache(struct bench_run *run, stoker_loader_options *options)
{
    if (options->cache != STOKER_CACHE_AUTO)
        return STOKER_OK;
    int rc = stoker_loader_create(&run->consumer.loader, run->bench->dataset, options, &run->error);
    if (rc == STOKER_OK)
        rc = bench_run_read_stats(run);
    if (rc == STOKER_OK) {
        options->cache = run->stats.cache;
        stoker_loader_destroy(&run->consumer.loader);
    }
    return rc;
}

static int measure(struct bench_run *run)
{
    stoker_loader_options options = run->options;
    struct bench_window window = { 0 };
    if (bench_ranks_several(run->bench->ranks))
        options.share_cache =
            STOKER_SWITCH_OFF; /* it outlives the loader: only its first epoch would be one */
    bench_sleep_until_quiet();
    int rc = name_cache(run, &options);
    options.epochs = 1; /* no worker runs ahead into a second epoch */
    if (rc == STOKER_OK)
        rc =
            stoker_loader_create(&run->consumer.loader, run->bench->dataset, &options, &run->error);
    if (rc == STOKER_OK)
        rc = bench_run_read_stats(run);
    const bool caches = rc == STOKER_OK && run->stats.cache != STOKER_CACHE_NONE;
    if (caches)
        rc = run_epoch(run, &window);
    if (rc == STOKER_OK)
        stoker_loader_destroy(&run->consumer.loader); /* after a failure its error is needed */
    if (rc != STOKER_OK || !caches)
        return rc;
    run->out->first.whole = run->out->first.whole && window.whole_epochs;
    bench_figure_add(&run->first, &window);
    bench_run_find_fitting(run, STOKER_CACHE_NONE);
    return bench_run_ceilings(run);
}

int bench_run_first_epochs(struct bench_run *run)
{
    struct bench_verify *verify = run->consumer.verify;
    const uint32_t repeats = run->bench->arguments->repeats;
    int rc = STOKER_OK;
    run->figure = &run->first;
    run->consumer.verify = NULL;
    run->out->first.whole = true;
    for (uint32_t turn = 0; rc == STOKER_OK && turn < repeats && turn < REPEATS_MAX; turn++) {
        if (!may_cache(run) || run->first.rates.count < turn)
            break;
        rc = measure(run);
    }
    run->consumer.verify = verify;
    run->consumer.first_ns = run->consumer.samples = run->consumer.bytes = 0;
    return rc;
}

/* Without a cache every epoch is a first one. */
static void take_from_cell(struct bench_cell *cell)
{
    struct bench_first_epoch *first = &cell->first;
    *first = (struct bench_first_epoch){ .samples_per_s = cell->samples_per_s,
                                         .samples_per_s_min = cell->samples_per_s_min,
                                         .samples_per_s_max = cell->samples_per_s_max,
                                         .samples_per_s_low = cell->samples_per_s_low,
                                         .samples_per_s_high = cell->samples_per_s_high,
                                         .bytes_per_s = cell->bytes_per_s,
                                         .stages = cell->stages,
                                         .ceiling_samples_per_s = cell->ceiling_samples_per_s,
                                         .ceiling_share = cell->ceiling_share,
                                         .share_count = cell->share_count,
                                         .repeats = cell->repeats,
                                         .whole = cell->whole_epochs };
    memcpy(first->limit, cell->limit, sizeof(first->limit));
    memcpy(first->verdict, cell->verdict, sizeof(first->verdict));
    memcpy(first->ceiling, cell->ceiling, sizeof(first->ceiling));
    memcpy(first->shares, cell->shares, sizeof(first->shares));
}

void bench_run_conclude_first(struct bench_run *run)
{
    struct bench_figure *figure = &run->first;
    struct bench_first_epoch *out = &run->out->first;
    stoker_stats judged;
    if (figure->rates.count == 0) {
        take_from_cell(run->out);
        return;
    }
    const struct bench_statistics rates =
        bench_statistics_of(figure->rates.values, figure->rates.count);
    out->separate = true;
    out->samples_per_s = rates.median;
    out->samples_per_s_min = rates.min;
    out->samples_per_s_max = rates.max;
    out->samples_per_s_low = rates.low;
    out->samples_per_s_high = rates.high;
    out->repeats = (uint32_t)rates.count;
    out->bytes_per_s = bench_series_median(&figure->byte_rates);
    out->stages = bench_figure_stages(figure);
    bench_figure_judge(figure, &judged);
    snprintf(out->limit, sizeof(out->limit), "%s", stoker_limit_name(judged.limit));
    snprintf(out->verdict, sizeof(out->verdict), "%s", judged.verdict);
    out->ceiling_samples_per_s = out->ceiling_share = NAN;
    if (figure->has_fitting && figure->fitting_rates.count > 0) {
        snprintf(out->ceiling, sizeof(out->ceiling), "%s",
                 bench_ceiling_name(bench_run_lowest(run, figure)));
        out->ceiling_samples_per_s = bench_series_median(&figure->fitting_rates);
        out->ceiling_share = bench_series_median(&figure->shares);
    }
    out->share_count = bench_figure_shares(figure, out->shares);
}
