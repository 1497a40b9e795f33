/* advice.c - see advice.h.
 *
 *   cells of one batch size ──▶ fastest ──▶ those whose intervals overlap its own ──▶ AUTO, or the
 *                                                                 fewest workers among them
 */
#include "bench/loaderbench/advice.h"
#include "bench/loaderbench/output/output.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* Above one of these the machine counts as busy: how far the middle half of the recommended cell's
 * repeats spreads, as a share of the median, and what share of the CPUs other programs use. */
static const double spread_max = 0.2;
static const double others_share_max = 0.25;

/* ---- choosing ------------------------------------------------------------------------ */

static bool is_measured(const struct bench_cell *cell)
{
    return isfinite(cell->samples_per_s);
}

/* Measurably: the intervals do not overlap. */
static bool is_faster(const struct bench_cell *a, const struct bench_cell *b)
{
    return a->samples_per_s_low > b->samples_per_s_high;
}

static bool is_better(const struct bench_cell *a, const struct bench_cell *b)
{
    if (b == NULL || a->automatic != b->automatic)
        return b == NULL || a->automatic;
    if (a->workers != b->workers)
        return a->workers < b->workers;
    /* Pinned or not, copied ahead or not: the faster one where that can be measured. */
    return is_faster(a, b);
}

const struct bench_cell *bench_advice_choose(const struct bench_cell *cells, size_t count,
                                             const struct bench_arguments *arguments)
{
    bool helps = false; /* there are cells with workers of their own */
    for (size_t index = 0; index < count; index++)
        helps |= is_measured(&cells[index]) && cells[index].workers > 0;
    const bool skips_none = arguments->step_us > 0 || !helps;
    const struct bench_cell *fastest = NULL;
    for (size_t index = 0; index < count; index++) {
        const struct bench_cell *cell = &cells[index];
        if (is_measured(cell) && (skips_none || cell->workers > 0 || cell->automatic) &&
            (fastest == NULL || cell->samples_per_s > fastest->samples_per_s))
            fastest = cell;
    }
    const struct bench_cell *best = NULL;
    for (size_t index = 0; fastest != NULL && index < count; index++) {
        const struct bench_cell *cell = &cells[index];
        if (is_measured(cell) && (skips_none || cell->workers > 0 || cell->automatic) &&
            !is_faster(fastest, cell) && is_better(cell, best))
            best = cell;
    }
    return best;
}

/* ---- the options to paste ------------------------------------------------------------ */

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size,
                                                         const char *format, ...)
{
    size_t used = strlen(text);
    va_list list;
    va_start(list, format);
    vsnprintf(text + used, size - used, format, list);
    va_end(list);
}

static void append_floats(char *text, size_t size, const char *name, const float *values,
                          uint32_t count)
{
    append(text, size, "options.%s = (const float[]){ ", name);
    for (uint32_t index = 0; index < count; index++) /* "%#" keeps the point that "f" needs */
        append(text, size, "%s%#.6gf", index > 0 ? ", " : "", (double)values[index]);
    append(text, size, " };\n");
}

static void append_word(char *text, size_t size, const char *name, const char *prefix,
                        const char *word, const char *remark)
{
    append(text, size, "options.%s = %s", name, prefix);
    for (; *word != '\0'; word++)
        append(text, size, "%c", *word >= 'a' && *word <= 'z' ? *word - 'a' + 'A' : *word);
    append(text, size, ";%s\n", remark);
}

static void append_number(char *text, size_t size, const char *name, uint64_t value)
{
    if (value != 0)
        append(text, size, "options.%s = %" PRIu64 ";\n", name, value);
}

static void append_size(char *text, size_t size, const char *name, stoker_size value)
{
    if (value.height != 0)
        append(text, size, "options.transform.%s = (stoker_size){ %" PRIu32 ", %" PRIu32 " };\n",
               name, value.height, value.width);
}

static void append_transform(char *text, size_t size, const stoker_transform *transform)
{
    append_size(text, size, "resize", transform->resize);
    append_number(text, size, "transform.resize_shorter", transform->resize_shorter);
    append_size(text, size, "random_resized_crop", transform->random_resized_crop);
    append_size(text, size, "center_crop", transform->center_crop);
    append_size(text, size, "random_crop", transform->random_crop);
    append_number(text, size, "transform.pad", transform->pad);
    append_number(text, size, "transform.cutout", transform->cutout);
    if (transform->flip)
        append(text, size, "options.transform.flip = true;\n");
    if (transform->decode_scale == STOKER_DECODE_SCALE_FAST)
        append(text, size, "options.transform.decode_scale = STOKER_DECODE_SCALE_FAST;\n");
}

/* The cache in use, also if the library chose it: the figures are that cache's. */
static void append_cache(char *text, size_t size, const struct bench_cell *cell,
                         const struct bench_arguments *arguments)
{
    const struct cli_list *caches = &arguments->caches;
    const bool chosen = caches->count > 1 ||
                        (caches->count == 1 && caches->values[0] != (int32_t)STOKER_CACHE_AUTO);
    append_word(text, size, "cache", "STOKER_CACHE_", cell->cache,
                chosen ? "" : " /* what AUTO chose */");
}

/* The device, unless it is the CPU, the default. */
static void append_device(char *text, size_t size, const struct bench_cell *cell,
                          const struct bench_arguments *arguments)
{
    if (arguments->device != STOKER_DEVICE_CUDA && arguments->device != STOKER_DEVICE_CUDA_HOST)
        return;
    append(text, size, "options.device = STOKER_DEVICE_%s;\n",
           arguments->device == STOKER_DEVICE_CUDA ? "CUDA" : "CUDA_HOST");
    append_number(text, size, "device_index", arguments->device_index);
    if (strcmp(cell->non_blocking, "off") == 0)
        append(text, size, "options.non_blocking = false;\n");
    if (strcmp(cell->convert, "host") == 0)
        append(text, size, "options.convert_on_device = STOKER_SWITCH_OFF;\n");
    if (arguments->decode != STOKER_DECODE_CPU)
        append(text, size, "options.decode = STOKER_DECODE_%s;\n",
               arguments->decode == STOKER_DECODE_AUTO ? "AUTO" : "DEVICE");
}

static void append_workers(char *text, size_t size, const struct bench_cell *cell)
{
    if (cell->automatic)
        append(text, size,
               "options.num_workers = STOKER_WORKERS_AUTO; /* it chose %" PRId32 " */\n",
               cell->workers);
    else
        append(text, size, "options.num_workers = %" PRId32 ";\n", cell->workers);
}

static bool pastes_mean(const struct bench_cell *cell, const struct bench_arguments *arguments)
{
    return strstr(cell->dtype, "float") != NULL && arguments->mean.count > 0 &&
           arguments->mean.count <= 4;
}

static void append_mean(char *text, size_t size, const struct bench_cell *cell,
                        const struct bench_arguments *arguments)
{
    if (!pastes_mean(cell, arguments))
        return;
    append_floats(text, size, "mean", arguments->mean.values, arguments->mean.count);
    append_floats(text, size, "std", arguments->std.values, arguments->mean.count);
    append_number(text, size, "mean_count", arguments->mean.count);
}

static void write_options(char *text, size_t size, const struct bench_cell *cell,
                          const struct bench_arguments *arguments)
{
    text[0] = '\0';
    append(text, size, "stoker_loader_options options = STOKER_LOADER_OPTIONS_INIT;\n");
    append_number(text, size, "batch_size", cell->batch_size);
    append_workers(text, size, cell);
    append_device(text, size, cell, arguments);
    if (arguments->device != STOKER_DEVICE_CPU) /* without a GPU it cannot help */
        append_word(text, size, "pin_memory", "STOKER_SWITCH_", cell->pin_memory, "");
    append_cache(text, size, cell, arguments);
    if (arguments->reader != NULL)
        append(text, size, "options.reader = stoker_reader_%s();\n", arguments->reader->name);
    append_number(text, size, "prefetch_batches", arguments->prefetch_batches);
    append_number(text, size, "read_depth", arguments->read_depth);
    if (cell->ranks > 1)
        append(text, size, "options.rank = STOKER_RANK_AUTO;\n");
    if (arguments->shuffle)
        append(text, size, "options.shuffle = true;\n");
    append_number(text, size, "seed", arguments->seed);
    append_word(text, size, "dtype", "STOKER_DTYPE_", cell->dtype, "");
    if (arguments->layout == STOKER_LAYOUT_NCHW)
        append(text, size, "options.layout = STOKER_LAYOUT_NCHW;\n");
    append_mean(text, size, cell, arguments);
    append_transform(text, size, &arguments->transform);
    text[strlen(text) - 1] = '\0'; /* the last line's end is the printer's */
}

static void append_python_size(char *text, size_t size, const char *name, stoker_size value)
{
    if (value.height != 0)
        append(text, size, "%s=(%" PRIu32 ", %" PRIu32 "), ", name, value.height, value.width);
}

static void append_python_number(char *text, size_t size, const char *name, uint32_t value)
{
    if (value != 0)
        append(text, size, "%s=%" PRIu32 ", ", name, value);
}

static void append_python_floats(char *text, size_t size, const struct bench_channels *list)
{
    for (uint32_t index = 0; index < list->count; index++)
        append(text, size, "%s%.6g%s", index == 0 ? "(" : " ", (double)list->values[index],
               index + 1 < list->count || index == 0 ? "," : "");
    append(text, size, ")");
}

/* Appends nothing if no step is set. */
static void append_python_transform(char *text, size_t size, const struct bench_cell *cell,
                                    const struct bench_arguments *arguments)
{
    const stoker_transform *transform = &arguments->transform;
    const size_t before = strlen(text);
    append(text, size, ", transform=stoker.Transform(");
    const size_t begun = strlen(text);
    append_python_size(text, size, "resize", transform->resize);
    append_python_number(text, size, "resize", transform->resize_shorter);
    append_python_size(text, size, "random_resized_crop", transform->random_resized_crop);
    append_python_size(text, size, "center_crop", transform->center_crop);
    append_python_size(text, size, "random_crop", transform->random_crop);
    append_python_number(text, size, "padding", transform->pad);
    append_python_number(text, size, "cutout", transform->cutout);
    if (transform->flip)
        append(text, size, "flip=True, ");
    if (transform->decode_scale == STOKER_DECODE_SCALE_FAST)
        append(text, size, "fast_decode=True, ");
    if (pastes_mean(cell, arguments)) {
        append(text, size, "normalize=(");
        append_python_floats(text, size, &arguments->mean);
        append(text, size, ", ");
        append_python_floats(text, size, &arguments->std);
        append(text, size, "), ");
    }
    const size_t used = strlen(text);
    text[used == begun ? before : used - 2] = '\0';
    append(text, size, used == begun ? "" : ")");
}

/* The same for the Python package. */
static void write_python(char *text, size_t size, const struct bench_cell *cell,
                         const struct bench_arguments *arguments)
{
    text[0] = '\0';
    append(text, size, "train = stoker.DataLoader(\"%s\", batch_size=%" PRIu32,
           arguments->dataset == NULL ? "" : arguments->dataset, cell->batch_size);
    if (arguments->shuffle)
        append(text, size, ", shuffle=True");
    if (cell->automatic)
        append(text, size, ", num_workers=\"auto\"");
    else
        append(text, size, ", num_workers=%" PRId32, cell->workers);
    append(text, size, ", dtype=\"%s\"", cell->dtype);
    if (arguments->layout == STOKER_LAYOUT_NCHW)
        append(text, size, ", layout=\"NCHW\"");
    if (arguments->device == STOKER_DEVICE_CUDA)
        append(text, size, ", device=\"cuda:%" PRIu32 "\"", arguments->device_index);
    append_python_transform(text, size, cell, arguments);
    if (arguments->device != STOKER_DEVICE_CPU && strcmp(cell->pin_memory, "auto") != 0)
        append(text, size, ", pin_memory=%s",
               strcmp(cell->pin_memory, "on") == 0 ? "True" : "False");
    append(text, size, ")");
}

/* ---- the verdict --------------------------------------------------------------------- */

static void append_name(char *text, size_t size, const struct bench_cell *cell)
{
    if (cell->automatic)
        append(text, size, "auto (%" PRId32 ")", cell->workers);
    else
        append(text, size, "%" PRId32, cell->workers);
}

/* A bare loop can only be slower than the loader by noise. */
static void append_share(char *text, size_t size, double share, const char *ceiling)
{
    if (isfinite(share))
        append(text, size, ", %s%.0f %% of the ceiling (%s)", share > 1 ? "~" : "",
               fmin(share, 1) * 100, ceiling);
}

/* "1, 2" of the other numbers of workers that are, or are not, measurably slower than the best. */
static uint32_t list_workers(char *text, size_t size, const struct bench_cell *best,
                             const struct bench_cell *cells, size_t count, bool slower)
{
    uint32_t listed = 0;
    text[0] = '\0';
    for (size_t index = 0; index < count; index++) {
        const struct bench_cell *cell = &cells[index];
        const bool same_way = strcmp(cell->pin_memory, best->pin_memory) == 0 &&
                              strcmp(cell->non_blocking, best->non_blocking) == 0 &&
                              strcmp(cell->convert, best->convert) == 0;
        if (cell == best || !is_measured(cell) || !same_way || is_faster(best, cell) != slower)
            continue;
        append(text, size, "%s", listed++ > 0 ? ", " : "");
        append_name(text, size, cell);
        if (slower)
            append(text, size, " (%.2f times)", cell->samples_per_s / best->samples_per_s);
    }
    return listed;
}

/* Pinned against not, with the recommended workers on a GPU. */
static void append_pinning(char *text, size_t size, const struct bench_cell *best,
                           const struct bench_cell *cells, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        const struct bench_cell *cell = &cells[index];
        if (!is_measured(cell) || cell->workers != best->workers ||
            cell->automatic != best->automatic || strcmp(cell->pin_memory, best->pin_memory) == 0 ||
            strcmp(cell->non_blocking, best->non_blocking) != 0 ||
            strcmp(cell->convert, best->convert) != 0)
            continue;
        if (is_faster(best, cell))
            append(text, size, " pin_memory %s is %.2f times as fast as %s.", best->pin_memory,
                   best->samples_per_s / cell->samples_per_s, cell->pin_memory);
        else
            append(text, size, " pin_memory %s and %s are not measurably different.",
                   best->pin_memory, cell->pin_memory);
    }
}

static void append_rate(char *text, size_t size, const struct bench_cell *best)
{
    char rate[16];
    if (best->first.separate) {
        append(text, size, "first epoch %s samples/s",
               bench_short_number(rate, best->first.samples_per_s));
        append_share(text, size, best->first.ceiling_share, best->first.ceiling);
        append(text, size, ", limited by %s; later epochs, from the %s cache, ", best->first.limit,
               best->cache);
    }
    append(text, size, "%s samples/s", bench_short_number(rate, best->samples_per_s));
    append_share(text, size, best->ceiling_share, best->ceiling);
    append(text, size, ", limited by %s.", best->limit);
}

static void append_group(char *text, size_t size, const struct bench_cell *cells, size_t count,
                         const struct bench_arguments *arguments)
{
    char list[512];
    const struct bench_cell *best = bench_advice_choose(cells, count, arguments);
    if (best == NULL)
        return;
    append(text, size, "%sBatch %" PRIu32 ", %s: num_workers ", text[0] == '\0' ? "" : " ",
           best->batch_size, best->dtype);
    append_name(text, size, best);
    append(text, size, ": ");
    append_rate(text, size, best);
    if (list_workers(list, sizeof(list), best, cells, count, false) > 0)
        append(text, size, " Not measurably different: %s.", list);
    if (list_workers(list, sizeof(list), best, cells, count, true) > 0)
        append(text, size, " Slower: %s.", list);
    if (arguments->device != STOKER_DEVICE_CPU)
        append_pinning(text, size, best, cells, count);
}

/* True if the figures are not usable; then text says why. */
static bool find_busy(char *text, size_t size, const struct bench_cell *best,
                      const struct bench_circumstances *circumstances)
{
    const double others = circumstances->others_cpus;
    const bool loaded = others > others_share_max * circumstances->cpus;
    const bool spread = best->half_spread > spread_max;
    if (!loaded && !spread)
        return false;
    append(text, size, "Machine busy: figures not usable.");
    if (loaded)
        append(text, size, " Other programs used %.1f of %" PRIu32 " CPUs meanwhile.", others,
               circumstances->cpus);
    if (spread)
        append(text, size, " Half of the repeats of one cell differ by %.0f %%.",
               best->half_spread * 100);
    append(text, size, " Keep num_workers auto, and measure again when the machine is idle.");
    return true;
}

/* The first cells are of one batch size, type and cache: their number. A cell that was not measured
 * has no cache, and stays with the cells before it. */
static size_t group_of(const struct bench_cell *cells, size_t count)
{
    const char *cache = is_measured(&cells[0]) ? cells[0].cache : NULL;
    size_t same = 1;
    for (; same < count && cells[same].batch_size == cells[0].batch_size &&
           strcmp(cells[same].dtype, cells[0].dtype) == 0;
         same++) {
        if (!is_measured(&cells[same]))
            continue;
        if (cache != NULL && strcmp(cells[same].cache, cache) != 0)
            break;
        cache = cells[same].cache;
    }
    return same;
}

void bench_advice_write(struct bench_advice *out, const struct bench_cell *cells, size_t count,
                        const struct bench_arguments *arguments,
                        const struct bench_circumstances *circumstances)
{
    const size_t size = sizeof(out->verdict);
    *out = (struct bench_advice){ .best = NULL };
    for (size_t first = 0; first < count && out->best == NULL;
         first += group_of(cells + first, count - first))
        out->best =
            bench_advice_choose(cells + first, group_of(cells + first, count - first), arguments);
    if (out->best == NULL) {
        append(out->verdict, size, "no cell could be measured");
        return;
    }
    out->busy = find_busy(out->verdict, size, out->best, circumstances);
    struct bench_cell pasted = *out->best;
    if (out->busy && pasted.workers > 0)
        pasted.automatic = true;
    write_options(out->options, sizeof(out->options), &pasted, arguments);
    write_python(out->python, sizeof(out->python), &pasted, arguments);
    if (out->busy)
        return;
    if (out->best->ranks > 1)
        append(out->verdict, size, "%" PRIu32 " ranks together.", out->best->ranks);
    for (size_t first = 0; first < count; first += group_of(cells + first, count - first))
        append_group(out->verdict, size, cells + first, group_of(cells + first, count - first),
                     arguments);
    if (arguments->step_us == 0)
        append(out->verdict, size,
               " The training step was taken to last 0 us: --step-us N gives its length.");
    if (isfinite(circumstances->pin_ms))
        append(out->verdict, size,
               " Page-locking cannot help without a GPU; it would add %s%.1f ms to the start.",
               circumstances->pin_ms < 0.1 ? "less than " : "", fmax(circumstances->pin_ms, 0.1));
}
