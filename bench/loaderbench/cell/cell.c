/* cell.c - one cell: create, check, warm up, then loader and ceilings in turn.
 *
 *   begin    { create + first epoch + destroy, each ceiling }  only if there is a cache
 *            create -> first batch -> verified epoch -> warm-up
 *   repeat   { quiet, settle, timed epochs, each ceiling }     warm
 *            { evict, create + one epoch + destroy,            cold
 *              evict, each ceiling over one epoch }
 *   end      medians
 *
 * Between its repeats the cell rests: its ring fills up and its workers sleep.
 * Workers run ahead into the next epoch. From one epoch end to another that evens out.
 * A cold repeat has no such ends: it is timed from create to the end of the epoch.
 */
#include "bench/loaderbench/cell/consumer.h"
#include "bench/loaderbench/cell/run.h"
#include "bench/loaderbench/cell/together.h"
#include "bench/loaderbench/machine.h"
#include "bench/loaderbench/statistics.h"
#include "bench/loaderbench/timing.h"
#include "loader/base/clock.h"
#include "loader/cli/interrupt.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE_NS     UINT64_C(20000000)
#define SETTLE_GPU_NS UINT64_C(500000000) /* the clock of an idle GPU rises */

/* ---- options --------------------------------------------------------------------- */

void bench_choice_name(const struct bench_choice *choice, char out[BENCH_CHOICE_NAME_MAX])
{
    static const char *const pins[] = { "pinned if possible", "pinned", "pageable" };
    static const char *const places[] = { "where it can be", "there", "on the host" };
    char workers[16] = "auto";
    if (choice->workers != STOKER_WORKERS_AUTO)
        snprintf(workers, sizeof(workers), "%" PRId32, choice->workers);
    const int length = snprintf(
        out, BENCH_CHOICE_NAME_MAX, "workers %s, batch %" PRIu32 ", %s, %s, cache %s", workers,
        choice->batch_size,
        choice->dtype == STOKER_DTYPE_NONE ? "as stored" : stoker_dtype_name(choice->dtype),
        pins[choice->pin_memory], stoker_cache_name(choice->cache));
    if (choice->device == STOKER_DEVICE_CUDA && length < BENCH_CHOICE_NAME_MAX)
        snprintf(out + length, (size_t)(BENCH_CHOICE_NAME_MAX - length), ", %s, converted %s",
                 choice->non_blocking ? "non_blocking" : "blocking", places[choice->convert]);
}

/* The conversion that the loader does for this choice. */
static int plan_conversion(const struct bench_bench *bench, stoker_dtype dtype,
                           stoker_layout layout, struct stk_convert_plan *plan)
{
    const struct bench_arguments *arguments = bench->arguments;
    const stoker_dataset_info *info = stoker_dataset_get_info(bench->dataset);
    struct stk_convert_options options = {
        .from = info->dtype,
        .to = dtype == STOKER_DTYPE_NONE ? info->dtype : dtype,
        .layout = layout,
        .elements = stoker_dataset_field_bytes(bench->dataset, 0) / stoker_dtype_bytes(info->dtype),
        .channels = info->is_image ? (uint32_t)info->shape[info->rank - 1] : 1,
        .scale = info->dtype == STOKER_DTYPE_UINT8 ? 1.0f / 255.0f : 1.0f,
    };
    if (options.to != options.from && arguments->mean.count > 0) {
        options.mean = arguments->mean.values;
        options.std = arguments->std.values;
        options.mean_count = arguments->mean.count;
    }
    return stk_convert_plan_init(plan, &options);
}

/* Plans for the parts that convert nothing. */
static int plan_parts(struct bench_run *run)
{
    const struct bench_material *material = &run->bench->material;
    struct stk_convert_options bytes = { .from = STOKER_DTYPE_UINT8,
                                         .to = STOKER_DTYPE_UINT8,
                                         .elements =
                                             material->bytes_max > 0 ? material->bytes_max : 1,
                                         .channels = 1,
                                         .scale = 1.0f };
    int rc = plan_conversion(run->bench, STOKER_DTYPE_NONE, STOKER_LAYOUT_NHWC, &run->stored_plan);
    return rc == STOKER_OK ? stk_convert_plan_init(&run->bytes_plan, &bytes) : rc;
}

stoker_loader_options bench_cell_options(const struct bench_bench *bench,
                                         const struct bench_choice *choice)
{
    const struct bench_arguments *arguments = bench->arguments;
    stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;
    stoker_dtype stored = stoker_dataset_get_info(bench->dataset)->dtype;
    options.seed = arguments->seed;
    options.batch_size = choice->batch_size;
    options.num_workers = choice->workers;
    if (arguments->prefetch_batches > 0)
        options.prefetch_batches = arguments->prefetch_batches;
    if (arguments->read_depth > 0)
        options.read_depth = arguments->read_depth;
    options.shuffle = arguments->shuffle;
    options.device = choice->device;
    options.device_index = arguments->device_index;
    options.non_blocking = choice->non_blocking;
    options.convert_on_device = choice->convert;
    options.decode = arguments->decode;
    options.pin_memory = choice->pin_memory;
    options.cache = choice->cache;
    options.dtype = choice->dtype;
    options.layout = arguments->layout;
    options.reader = arguments->reader;
    options.transform = arguments->transform;
    if (bench_ranks_several(bench->ranks))
        options.rank = STOKER_RANK_AUTO;
    options.share_cache = arguments->share_cache;
    if (choice->dtype != STOKER_DTYPE_NONE && choice->dtype != stored &&
        arguments->mean.count > 0) {
        options.mean = arguments->mean.values;
        options.std = arguments->std.values;
        options.mean_count = arguments->mean.count;
    }
    return options;
}

/* ---- errors ---------------------------------------------------------------------- */

static void fail_cell(struct bench_run *run, int rc, const char *what)
{
    const char *story = run->error.message;
    if (run->consumer.verify != NULL && run->consumer.verify->message[0] != '\0')
        story = run->consumer.verify->message;
    snprintf(run->out->error, sizeof(run->out->error), "%s: %.440s%s%s", what,
             story[0] != '\0' ? story : stoker_strerror(rc), story[0] != '\0' ? ", " : "",
             story[0] != '\0' ? stoker_error_name(rc) : "");
    run->out->skipped = rc == STOKER_EPIN && !run->bench->arguments->pins_given;
}

/* ---- the loader ------------------------------------------------------------------ */

static int create(struct bench_run *run)
{
    uint64_t begin_ns = stk_now_ns();
    int rc = stoker_loader_create(&run->consumer.loader, run->bench->dataset, &run->options,
                                  &run->error);
    if (rc != STOKER_OK)
        return rc;
    uint64_t created_ns = stk_now_ns();
    rc = bench_run_explain(run, bench_consumer_next(&run->consumer));
    run->out->create_ms = (double)(created_ns - begin_ns) / 1e6;
    run->out->first_batch_ms = (double)(run->consumer.first_ns - begin_ns) / 1e6;
    return rc;
}

/* Consumes the rest of the epoch that verify checks. */
static int check_epoch(struct bench_run *run)
{
    struct bench_verify *verify = run->consumer.verify;
    int rc = STOKER_OK;
    while (rc == STOKER_OK && verify->checked < verify->limit)
        rc = bench_consumer_next(&run->consumer);
    if (rc != STOKER_OK && rc != STOKER_EPOCH_END)
        return bench_run_explain(run, rc);
    if (!bench_verify_ids(verify))
        return STOKER_ECORRUPT;
    return bench_together_verify(run, verify, &run->out->verified);
}

/* Runs the first epochs, untimed, while memory grows to its final size. */
static int warm_up(struct bench_run *run)
{
    bool at_end = false;
    int rc = bench_consumer_settle(&run->consumer, run->limits.seconds_max, &at_end);
    run->cut = !at_end && run->limits.epochs == 0;
    if (rc == STOKER_OK && run->choice.workers == STOKER_WORKERS_AUTO && !run->cut) {
        /* tuning takes a few decisions, each over some batches */
        uint64_t until_ns = stk_now_ns() + (uint64_t)(run->limits.seconds * 2e9);
        while (rc == STOKER_OK && stk_now_ns() < until_ns)
            rc = bench_consumer_settle(&run->consumer, run->limits.seconds_max, &at_end);
    }
    return bench_run_explain(run, rc);
}

static void record_window(struct bench_run *run, const struct bench_window *window)
{
    bench_figure_add(&run->later, window);
    bench_series_push(&run->stalls, (double)window->stats.stall_ns / (double)window->wall_ns /
                                        bench_ranks_count(run->bench->ranks));
    if (window->samples > 0)
        bench_series_push(&run->cpus,
                          (double)window->cpu_ns / 1e9 / ((double)window->samples / 1e6));
    if (window->gaps > 0)
        bench_series_push(&run->gaps, (double)window->gap_ns / window->gaps / 1e6);
    run->out->whole_epochs = run->out->whole_epochs && window->whole_epochs;
}

/* Gets a rested cell up to speed: workers wake, and the consumer finds out if it should help.
 * *rate: samples/s. */
static int settle(struct bench_run *run, bool *at_end, double *rate)
{
    bench_sleep_until_quiet();
    const uint64_t begin_ns = stk_now_ns();
    const uint64_t until_ns = begin_ns + (run->bench->gpu != NULL ? SETTLE_GPU_NS : SETTLE_NS);
    const uint64_t samples = run->consumer.samples;
    const double most = run->cut ? run->limits.seconds : run->limits.seconds_max;
    int rc;
    do
        rc = bench_consumer_settle(&run->consumer, most, at_end);
    while (rc == STOKER_OK && stk_now_ns() < until_ns);
    *rate = (double)(run->consumer.samples - samples) / stk_seconds(stk_now_ns() - begin_ns);
    return rc;
}

static int repeat_warm(struct bench_run *run)
{
    struct bench_window window = { 0 };
    struct bench_window_limits limits = run->limits;
    bool at_end = false;
    double rate = NAN;
    int rc = settle(run, &at_end, &rate);
    if (rc == STOKER_OK)
        rc = bench_together_start(run, rate, &limits);
    if (rc == STOKER_OK)
        rc = bench_consumer_window(&run->consumer, &limits, &window);
    window.whole_epochs = window.whole_epochs && at_end;
    if (rc == STOKER_OK)
        rc = bench_together_add(run, &window);
    if (rc != STOKER_OK)
        return bench_run_explain(run, rc);
    record_window(run, &window);
    bench_series_push(&run->workers, window.stats.workers);
    return bench_run_ceilings(run);
}

static int consume_once(struct bench_run *run)
{
    int rc = STOKER_OK;
    while (rc == STOKER_OK)
        rc = bench_consumer_next(&run->consumer);
    if (rc == STOKER_EPOCH_END || rc == STOKER_FINISHED)
        rc = bench_consumer_finish(&run->consumer);
    return bench_run_explain(run, rc);
}

/* Times from before create to the end of the only epoch. */
static int repeat_cold(struct bench_run *run)
{
    stoker_loader_options options = run->options;
    options.epochs = 1;
    int rc = bench_run_evict(run);
    if (rc != STOKER_OK)
        return rc;
    uint64_t samples = run->consumer.samples, bytes = run->consumer.bytes;
    uint64_t cpu_ns = bench_cpu_ns(), begin_ns = stk_now_ns();
    rc = stoker_loader_create(&run->consumer.loader, run->bench->dataset, &options, &run->error);
    if (rc == STOKER_OK)
        rc = consume_once(run);
    struct bench_window window = { .wall_ns = stk_now_ns() - begin_ns,
                                   .cpu_ns = bench_cpu_ns() - cpu_ns,
                                   .samples = run->consumer.samples - samples,
                                   .bytes = run->consumer.bytes - bytes,
                                   .whole_epochs = true };
    if (rc == STOKER_OK)
        rc = bench_run_read_stats(run);
    window.stats = run->stats; /* a separate loader: its counts are this stretch */
    stoker_loader_destroy(&run->consumer.loader);
    if (rc != STOKER_OK)
        return rc;
    record_window(run, &window);
    return bench_run_ceilings(run);
}

/* ---- the cell -------------------------------------------------------------------- */

static const char *pin_name(stoker_switch pin)
{
    return pin == STOKER_SWITCH_ON ? "on" : pin == STOKER_SWITCH_OFF ? "off" : "auto";
}

/* Fills in the device and the way to it, as asked for. */
static void describe_device(struct bench_run *run)
{
    static const char *const places[] = { "auto", "device", "host" };
    const struct bench_choice *choice = &run->choice;
    const uint32_t index = run->bench->arguments->device_index;
    struct bench_cell *out = run->out;
    if (choice->device == STOKER_DEVICE_CPU)
        snprintf(out->device, sizeof(out->device), "cpu");
    else
        snprintf(out->device, sizeof(out->device), "%s:%" PRIu32,
                 choice->device == STOKER_DEVICE_CUDA ? "cuda" : "cuda-host", index);
    if (choice->device != STOKER_DEVICE_CUDA)
        return;
    snprintf(out->non_blocking, sizeof(out->non_blocking), "%s",
             choice->non_blocking ? "on" : "off");
    snprintf(out->convert, sizeof(out->convert), "%s", places[choice->convert]);
}

static void describe_choice(struct bench_run *run)
{
    struct bench_cell *out = run->out;
    *out = (struct bench_cell){ .workers = run->choice.workers,
                                .automatic = run->choice.workers == STOKER_WORKERS_AUTO,
                                .batch_size = run->choice.batch_size,
                                .cold = run->bench->arguments->cold,
                                .whole_epochs = true,
                                .ranks = bench_ranks_count(run->bench->ranks) };
    double *const unknown[] = { &out->samples_per_s,
                                &out->samples_per_s_min,
                                &out->samples_per_s_max,
                                &out->spread,
                                &out->samples_per_s_low,
                                &out->samples_per_s_high,
                                &out->half_spread,
                                &out->bytes_per_s,
                                &out->first_batch_ms,
                                &out->create_ms,
                                &out->resume_ms,
                                &out->cpu_s_per_million,
                                &out->stall_share,
                                &out->epoch_gap_ms,
                                &out->ceiling_samples_per_s,
                                &out->ceiling_share,
                                &out->headspace_samples_per_s,
                                &out->headspace_share,
                                &out->cold_resident_share,
                                &out->cached_share,
                                &out->slowest_rank_samples_per_s };
    for (size_t index = 0; index < sizeof(unknown) / sizeof(unknown[0]); index++)
        *unknown[index] = NAN;
    out->stages = bench_figure_stages(&run->later);
    bench_run_conclude_first(run); /* it has no figures either */
    describe_device(run);
    stoker_dtype stored = stoker_dataset_get_info(run->bench->dataset)->dtype;
    stoker_dtype dtype = run->choice.dtype == STOKER_DTYPE_NONE ? stored : run->choice.dtype;
    const stoker_reader *reader = run->bench->arguments->reader;
    snprintf(out->pin_memory, sizeof(out->pin_memory), "%s", pin_name(run->choice.pin_memory));
    snprintf(out->dtype, sizeof(out->dtype), "%s", stoker_dtype_name(dtype));
    snprintf(out->cache, sizeof(out->cache), "%s", stoker_cache_name(run->choice.cache));
    if (stoker_dataset_get_info(run->bench->dataset)->is_image)
        snprintf(out->layout, sizeof(out->layout), "%s",
                 run->bench->arguments->layout == STOKER_LAYOUT_NCHW ? "nchw" : "nhwc");
    snprintf(out->reader, sizeof(out->reader), "%s", reader == NULL ? "auto" : reader->name);
}

static void describe_stats(struct bench_run *run)
{
    const stoker_stats *stats = &run->stats;
    struct bench_cell *out = run->out;
    /* While tuning it briefly tries other numbers: take the usual one. */
    out->workers = (int32_t)(run->workers.count > 0 ? (uint32_t)bench_series_median(&run->workers)
                                                    : stats->workers);
    if (run->choice.workers != STOKER_WORKERS_AUTO)
        out->workers = run->choice.workers;
    out->pinned = stats->pinned;
    out->read_depth = stats->read_depth;
    out->slots = stats->slots;
    out->slot_bytes = stats->slot_bytes;
    out->locked_bytes = stats->locked_bytes;
    out->announced_bytes = stats->slot_bytes + stats->cache_bytes + stats->scratch_bytes;
    out->device_bytes = stats->device_bytes;
    out->copy_waits = stats->copy_waits;
    if (stats->copies > 0)
        out->copy_bytes = stats->copy_bytes / stats->copies;
    if (run->choice.device == STOKER_DEVICE_CUDA)
        snprintf(out->convert, sizeof(out->convert), "%s",
                 stats->converts_on_device ? "device" : "host");
    snprintf(out->cache, sizeof(out->cache), "%s", stoker_cache_name(stats->cache));
    snprintf(out->reader, sizeof(out->reader), "%s", stats->reads > 0 ? stats->reader : "none");
}

/* Samples are counted on delivery, hits on lookup: at the edges of a stretch the two differ. If
 * nothing was read or decoded, all came from the cache. */
static double cached_share(const struct bench_run *run)
{
    const stoker_stats *total = &run->later.total;
    const bool decoded = run->stats.cache == STOKER_CACHE_DECODED;
    if (!decoded && run->stats.cache != STOKER_CACHE_ENCODED)
        return NAN;
    if (total->reads == 0 && (!decoded || total->decode_ns == 0))
        return 1;
    return fmin((double)total->cache_hits / (double)total->samples, 1);
}

/* The rate of later epochs, and of all if there is no cache. */
static void conclude_rates(struct bench_run *run)
{
    struct bench_figure *later = &run->later;
    struct bench_cell *out = run->out;
    stoker_stats judged;
    out->rate_count =
        (uint32_t)(later->rates.count < BENCH_REPEATS_MAX ? later->rates.count : BENCH_REPEATS_MAX);
    memcpy(out->rates, later->rates.values, out->rate_count * sizeof(out->rates[0])); /* unsorted */
    struct bench_statistics rates = bench_statistics_of(later->rates.values, later->rates.count);
    out->samples_per_s = rates.median;
    out->samples_per_s_min = rates.min;
    out->samples_per_s_max = rates.max;
    out->samples_per_s_low = rates.low;
    out->samples_per_s_high = rates.high;
    out->spread = rates.spread;
    out->half_spread = rates.half_spread;
    out->repeats = (uint32_t)rates.count;
    out->bytes_per_s = bench_series_median(&later->byte_rates);
    out->stages = bench_figure_stages(later);
    bench_figure_judge(later, &judged);
    snprintf(out->limit, sizeof(out->limit), "%s", stoker_limit_name(judged.limit));
    snprintf(out->verdict, sizeof(out->verdict), "%s", judged.verdict);
    out->cached_share = cached_share(run);
}

/* All ranks consume alike, so the one that takes longest holds up the others. */
static void conclude_ranks(struct bench_run *run)
{
    const uint32_t count = bench_ranks_count(run->bench->ranks);
    struct bench_cell *out = run->out;
    if (run->rank_rates == NULL)
        return;
    for (uint32_t rank = 1; rank < count; rank++)
        if (run->rank_rates[rank] < run->rank_rates[out->slowest_rank])
            out->slowest_rank = rank;
    out->slowest_rank_samples_per_s = run->rank_rates[out->slowest_rank] / out->repeats;
}

static void conclude(struct bench_run *run)
{
    struct bench_figure *later = &run->later;
    struct bench_cell *out = run->out;
    conclude_rates(run);
    conclude_ranks(run);
    out->cpu_s_per_million = bench_series_median(&run->cpus);
    out->stall_share = bench_series_median(&run->stalls);
    out->epoch_gap_ms = bench_series_median(&run->gaps);
    out->cold_resident_share = bench_statistics_of(run->resident.values, run->resident.count).max;
    if (later->has_fitting && later->fitting_rates.count > 0) {
        snprintf(out->ceiling, sizeof(out->ceiling), "%s",
                 bench_ceiling_name(bench_run_lowest(run, later)));
        out->ceiling_samples_per_s = bench_series_median(&later->fitting_rates);
        out->ceiling_share = bench_series_median(&later->shares);
    }
    out->share_count = bench_figure_shares(later, out->shares);
    out->headspace_share = out->samples_per_s / out->headspace_samples_per_s;
    bench_run_conclude_first(run);
}

static int begin_later_epochs(struct bench_run *run)
{
    run->out->rss_base_bytes = bench_rss_bytes();
    int rc = create(run);
    if (rc == STOKER_OK && run->consumer.verify != NULL)
        rc = check_epoch(run);
    if (rc != STOKER_OK)
        return rc;
    /* Memory used for checking must not count as the loader's. */
    if (run->consumer.verify != NULL)
        bench_verify_destroy(run->consumer.verify);
    run->consumer.verify = NULL;
    bool fresh = bench_rss_peak_reset();
    rc = warm_up(run);
    run->out->rss_bytes = fresh ? bench_rss_peak_bytes() : bench_rss_bytes();
    if (rc == STOKER_OK)
        rc = bench_run_read_stats(run);
    if (rc == STOKER_OK)
        bench_run_find_fitting(run, run->stats.cache);
    return rc;
}

static int prepare(struct bench_run *run)
{
    const struct bench_arguments *arguments = run->bench->arguments;
    int rc = bench_run_first_epochs(run);
    run->figure = &run->later;
    if (rc == STOKER_OK)
        rc = begin_later_epochs(run);
    if (rc == STOKER_OK && arguments->headspace) {
        rc = bench_headspace_measure(&run->consumer, arguments->seconds,
                                     &run->out->headspace_samples_per_s);
        bench_run_explain(run, rc);
    }
    if (rc == STOKER_OK)
        rc = bench_resume_measure(run->bench->dataset, &run->options, run->consumer.loader,
                                  &run->out->resume_ms, &run->error);
    if (arguments->cold)
        stoker_loader_destroy(&run->consumer.loader);
    return rc;
}

static bool wants_rows(const struct bench_bench *bench)
{
    /* the null reader writes nothing: only ids can be checked */
    return bench->arguments->reader != stoker_reader_null() ||
           bench->material.origin != BENCH_FROM_FILE;
}

static void release(struct bench_run *run)
{
    stoker_loader_destroy(&run->consumer.loader);
    bench_transform_destroy(&run->transform);
    free(run->rank_rates);
    free(run);
}

/* Sets up the transforms, for the ceilings and the check. */
static int plan_transforms(struct bench_run *run)
{
    char why[STK_TRANSFORM_WHY_BYTES] = "";
    if (!stk_transform_wanted(&run->options.transform))
        return STOKER_OK;
    int rc = bench_transform_create(&run->transform, run->bench->dataset, &run->options, why);
    if (rc != STOKER_OK)
        snprintf(run->error.message, sizeof(run->error.message), "transform: %s",
                 why[0] != '\0' ? why : "these need uint8 images");
    run->transforms = rc == STOKER_OK;
    return rc;
}

int bench_cell_begin(struct bench_run **out, struct bench_bench *bench,
                     const struct bench_choice *choice, struct bench_cell *cell)
{
    struct bench_run *run = calloc(1, sizeof(*run));
    struct bench_verify verify = { 0 };
    if (run == NULL) {
        *cell = (struct bench_cell){ .error = "out of memory" };
        return STOKER_ENOMEM;
    }
    run->bench = bench;
    run->choice = *choice;
    if (bench_ranks_several(bench->ranks))
        run->rank_rates = calloc(bench_ranks_count(bench->ranks), sizeof(*run->rank_rates));
    run->out = cell;
    describe_choice(run);
    run->options = bench_cell_options(bench, choice);
    run->consumer.gpu = bench->gpu;
    run->consumer.step_ns = (uint64_t)bench->arguments->step_us * 1000;
    run->limits = (struct bench_window_limits){ .epochs = bench->arguments->epochs,
                                                .seconds = bench->arguments->seconds,
                                                .seconds_max = bench->arguments->seconds * 10 };
    int rc =
        bench_ranks_several(bench->ranks) && run->rank_rates == NULL ? STOKER_ENOMEM : STOKER_OK;
    if (rc == STOKER_OK)
        rc = plan_conversion(bench, choice->dtype, bench->arguments->layout, &run->plan);
    if (rc == STOKER_OK)
        rc = plan_parts(run);
    if (rc == STOKER_OK)
        rc = plan_transforms(run);
    if (rc == STOKER_OK && bench->arguments->verify)
        rc = bench_verify_create(&verify, bench->dataset, &run->plan, wants_rows(bench));
    if (rc == STOKER_OK && bench->arguments->verify && run->transforms)
        rc = bench_verify_transformed(&verify, &run->transform);
    if (rc == STOKER_OK) {
        if (verify.limit > bench_together_share(bench))
            verify.limit = bench_together_share(bench);
        run->consumer.verify = bench->arguments->verify ? &verify : NULL;
        rc = prepare(run);
    }
    if (rc != STOKER_OK)
        fail_cell(run, rc, run->consumer.loader == NULL ? "create" : "run");
    run->consumer.verify = NULL;
    bench_verify_destroy(&verify);
    run->bytes = run->stats.slot_bytes + run->stats.cache_bytes + run->stats.scratch_bytes;
    rc = bench_together_begun(run, rc, &run->bytes);
    if (rc == STOKER_OK)
        *out = run;
    else
        release(run);
    return rc;
}

uint64_t bench_cell_bytes(const struct bench_run *run)
{
    return run->bytes;
}

/* What fails on one rank ends the measuring of all: they could not add it up. */
static void tell_ranks(struct bench_run *run)
{
    struct bench_ranks *ranks = run->bench->ranks;
    const char *why = run->error.message[0] != '\0' ? run->error.message : stoker_strerror(run->rc);
    if (!bench_ranks_several(ranks) || ranks->ended || run->rc == STOKER_OK ||
        run->rc == BENCH_INTERRUPTED)
        return;
    bench_ranks_end(ranks, run->rc, why);
    snprintf(ranks->why, sizeof(ranks->why), "%s", why);
    (void)bench_ranks_stop(ranks);
}

void bench_cell_repeat(struct bench_run *run)
{
    if (run->rc == STOKER_OK)
        run->rc = run->bench->arguments->cold ? repeat_cold(run) : repeat_warm(run);
    tell_ranks(run);
}

static int record_trace(struct bench_run *run)
{
    char name[BENCH_CHOICE_NAME_MAX];
    const struct bench_trace_options options = { .name = name,
                                                 .dataset = run->bench->dataset,
                                                 .loading = &run->options,
                                                 .gpu = run->consumer.gpu,
                                                 .step_ns = run->consumer.step_ns,
                                                 .seconds_max = run->limits.seconds_max };
    bench_choice_name(&run->choice, name);
    int rc = run->bench->arguments->cold ? bench_run_evict(run) : STOKER_OK;
    return rc == STOKER_OK ? bench_trace_record(&run->bench->trace, &options, &run->error) : rc;
}

double bench_cell_rate(const struct bench_run *run)
{
    const struct bench_series *rates = &run->later.rates;
    return rates->count > 0 ? rates->values[rates->count - 1] : NAN;
}

const struct bench_choice *bench_cell_choice(const struct bench_run *run)
{
    return &run->choice;
}

void bench_cell_end(struct bench_run *run)
{
    run->out->done = run->rc != BENCH_INTERRUPTED || run->later.rates.count > 0;
    if (run->rc == BENCH_INTERRUPTED && run->out->done)
        run->rc = STOKER_OK; /* earlier repeats are valid */
    if (run->rc == STOKER_OK && !run->bench->arguments->cold)
        run->rc = bench_run_read_stats(run);
    if (run->rc == STOKER_OK && run->bench->arguments->trace != NULL && !cli_interrupted())
        run->rc = record_trace(run);
    if (run->rc == STOKER_OK) {
        describe_stats(run);
        conclude(run);
    } else {
        fail_cell(run, run->rc, run->consumer.loader == NULL ? "create" : "run");
    }
    release(run);
}
