/* advice.c - from all cells to the lines to paste into a program.
 *
 * If several batch sizes and types were swept, they are part of the choice; sweep one of
 * each to ask about the workers alone.
 */
#include "bench/loaderbench/advice.h"
#include "bench/loaderbench/output/output.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

static const double near_enough =
    0.97; /* share of the fastest rate: within the spread of repeats */

const struct bench_cell *bench_advice_choose(const struct bench_cell *cells, size_t count)
{
    double fastest = 0;
    for (size_t index = 0; index < count; index++)
        if (isfinite(cells[index].samples_per_s))
            fastest = fmax(fastest, cells[index].samples_per_s);

    const struct bench_cell *best = NULL;
    for (size_t index = 0; index < count; index++) {
        const struct bench_cell *cell = &cells[index];
        if (!isfinite(cell->samples_per_s) || cell->samples_per_s < fastest * near_enough)
            continue;
        if (best == NULL || cell->cpu_s_per_million < best->cpu_s_per_million)
            best = cell;
    }
    return best;
}

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

static void append_mean(char *text, size_t size, const struct bench_cell *cell,
                        const struct bench_arguments *arguments)
{
    const bool floats = strstr(cell->dtype, "float") != NULL;
    if (!floats || arguments->mean.count == 0 || arguments->mean.count > 4)
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

/* Returns true if another number of workers was measured. */
static bool tried_others(const struct bench_cell *best, const struct bench_cell *cells,
                         size_t count)
{
    for (size_t index = 0; index < count; index++)
        if (isfinite(cells[index].samples_per_s) && cells[index].workers != best->workers)
            return true;
    return false;
}

/* A verdict of the library, without its guess about more workers if more were measured. */
static void append_limit(char *text, size_t size, const char *verdict, bool tried)
{
    const size_t length = tried ? strcspn(verdict, ";") : strlen(verdict);
    if (length > 0)
        append(text, size, "; %.*s", (int)length, verdict);
}

static void append_share(char *text, size_t size, double share, const char *ceiling)
{
    if (isfinite(share))
        append(text, size, ", %.1f %% of the ceiling (%s)", share * 100, ceiling);
}

static void append_choice(char *text, size_t size, const struct bench_cell *best)
{
    append(text, size, "%s%" PRId32 " worker%s, batch %" PRIu32 ", %s, pin_memory %s",
           best->automatic ? "auto: " : "", best->workers, best->workers == 1 ? "" : "s",
           best->batch_size, best->dtype, best->pin_memory);
    if (best->non_blocking[0] != '\0')
        append(text, size, ", on %s, non_blocking %s, converted on the %s", best->device,
               best->non_blocking, best->convert);
}

/* "first epoch 6.53 k samples/s, 93.0 % of the ceiling (parts in turn); decode-bound; ..." */
static void append_epochs(char *text, size_t size, const struct bench_cell *best, bool tried)
{
    char rate[16];
    if (best->first.separate) {
        append(text, size, "first epoch %s samples/s",
               bench_short_number(rate, best->first.samples_per_s));
        append_share(text, size, best->first.ceiling_share, best->first.ceiling);
        append_limit(text, size, best->first.verdict, tried);
    }
    if (best->first.separate)
        append(text, size, ". Later epochs, from the %s cache: ", best->cache);
    append(text, size, "%s samples/s", bench_short_number(rate, best->samples_per_s));
    append_share(text, size, best->ceiling_share, best->ceiling);
    append_limit(text, size, best->verdict, tried);
}

/* Rows from a cache may need fewer workers than the epoch that fills it. */
static void append_fastest_first(char *text, size_t size, const struct bench_cell *best,
                                 const struct bench_cell *cells, size_t count)
{
    const struct bench_cell *fastest = best;
    char rate[16];
    for (size_t index = 0; index < count; index++)
        if (cells[index].first.samples_per_s > fastest->first.samples_per_s)
            fastest = &cells[index];
    if (!best->first.separate ||
        best->first.samples_per_s >= near_enough * fastest->first.samples_per_s)
        return;
    append(text, size, ". The first epoch is fastest with ");
    append_choice(text, size, fastest);
    append(text, size, ": %s samples/s", bench_short_number(rate, fastest->first.samples_per_s));
}

void bench_advice_write(struct bench_advice *out, const struct bench_cell *cells, size_t count,
                        const struct bench_arguments *arguments)
{
    const struct bench_cell *best = bench_advice_choose(cells, count);
    const size_t size = sizeof(out->verdict);
    *out = (struct bench_advice){ .found = best != NULL,
                                  .samples_per_s = NAN,
                                  .first_epoch_samples_per_s = NAN };
    if (best == NULL) {
        snprintf(out->verdict, size, "no cell could be measured");
        return;
    }
    const bool tried = tried_others(best, cells, count);
    out->samples_per_s = best->samples_per_s;
    out->first_epoch_samples_per_s = best->first.samples_per_s;
    if (best->ranks > 1)
        append(out->verdict, size, "%" PRIu32 " ranks together, each with ", best->ranks);
    else
        append(out->verdict, size, "With ");
    append_choice(out->verdict, size, best);
    append(out->verdict, size, ": ");
    append_epochs(out->verdict, size, best, tried);
    if (tried)
        append(out->verdict, size, "; no other number of workers was more than 3 %% faster");
    append_fastest_first(out->verdict, size, best, cells, count);
    write_options(out->options, sizeof(out->options), best, arguments);
}
