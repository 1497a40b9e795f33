/* advice.c - from all cells to the line to paste into a program.
 *
 * Batch size and type are part of the choice when several were swept; sweep one of
 * each to ask about the workers alone.
 */
#include "advice.h"
#include "output.h"

#include "kernels/transform.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

static const double near_enough = 0.97; /* of the fastest: within what repeats differ by */

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
    append(text, size, ", .%s = (const float[]){ ", name);
    for (uint32_t index = 0; index < count; index++) /* "%#" keeps the point that "f" needs */
        append(text, size, "%s%#.6gf", index > 0 ? ", " : "", (double)values[index]);
    append(text, size, " }");
}

static void append_upper(char *text, size_t size, const char *prefix, const char *word)
{
    append(text, size, "%s", prefix);
    for (; *word != '\0'; word++)
        append(text, size, "%c", *word >= 'a' && *word <= 'z' ? *word - 'a' + 'A' : *word);
}

static void append_size(char *text, size_t size, const char *name, stoker_size value)
{
    if (value.height != 0)
        append(text, size, " .%s = { %" PRIu32 ", %" PRIu32 " },", name, value.height, value.width);
}

static void append_number(char *text, size_t size, const char *name, uint32_t value)
{
    if (value != 0)
        append(text, size, " .%s = %" PRIu32 ",", name, value);
}

static void append_transform(char *text, size_t size, const stoker_transform *transform)
{
    append(text, size, ", .transform = {");
    append_size(text, size, "resize", transform->resize);
    append_number(text, size, "resize_shorter", transform->resize_shorter);
    append_size(text, size, "random_resized_crop", transform->random_resized_crop);
    append_size(text, size, "centre_crop", transform->centre_crop);
    append_size(text, size, "random_crop", transform->random_crop);
    append_number(text, size, "pad", transform->pad);
    append_number(text, size, "cutout", transform->cutout);
    if (transform->flip)
        append(text, size, " .flip = true,");
    append(text, size, " }");
}

/* Where samples are kept, if that was chosen. */
static void append_cache(char *text, size_t size, const struct bench_cell *cell,
                         const struct bench_arguments *arguments)
{
    const struct bench_list *caches = &arguments->caches;
    const bool chosen = caches->count > 1 ||
                        (caches->count == 1 && caches->values[0] != (int32_t)STOKER_CACHE_AUTO);
    if (chosen || strcmp(cell->cache, "device") == 0)
        append_upper(text, size, ", .cache = STOKER_CACHE_", cell->cache);
}

/* Where batches go; nothing for the CPU, which is the default. */
static void append_device(char *text, size_t size, const struct bench_cell *cell,
                          const struct bench_arguments *arguments)
{
    if (arguments->device != STOKER_DEVICE_CUDA && arguments->device != STOKER_DEVICE_CUDA_HOST)
        return;
    append(text, size, ", .device = STOKER_DEVICE_%s",
           arguments->device == STOKER_DEVICE_CUDA ? "CUDA" : "CUDA_HOST");
    if (arguments->device_index != 0)
        append(text, size, ", .device_index = %" PRIu32, arguments->device_index);
    if (strcmp(cell->convert, "host") == 0)
        append(text, size, ", .convert_on_device = STOKER_OFF");
}

static void write_options(char *text, size_t size, const struct bench_cell *cell,
                          const struct bench_arguments *arguments)
{
    text[0] = '\0';
    append(text, size,
           "stoker_loader_options options = { .struct_size = sizeof(stoker_loader_options), "
           ".timeout_ms = -1, .non_blocking = %s, .batch_size = %" PRIu32,
           strcmp(cell->non_blocking, "off") == 0 ? "false" : "true", cell->batch_size);
    append_device(text, size, cell, arguments);
    if (cell->automatic)
        append(text, size, ", .num_workers = STOKER_WORKERS_AUTO");
    else
        append(text, size, ", .num_workers = %" PRId32, cell->workers);
    append_cache(text, size, cell, arguments);
    if (arguments->reader != NULL)
        append(text, size, ", .reader = &stoker_reader_%s", arguments->reader->name);
    if (arguments->prefetch_batches > 0)
        append(text, size, ", .prefetch_batches = %" PRIu32, arguments->prefetch_batches);
    if (arguments->read_depth > 0)
        append(text, size, ", .read_depth = %" PRIu32, arguments->read_depth);
    if (arguments->shuffle)
        append(text, size, ", .shuffle = true");
    if (arguments->seed != 0)
        append(text, size, ", .seed = %" PRIu64, arguments->seed);
    append_upper(text, size, ", .pin_memory = STOKER_", cell->pin_memory);
    append_upper(text, size, ", .dtype = STOKER_", cell->dtype);
    bool floats = strstr(cell->dtype, "float") != NULL;
    if (floats && arguments->mean_count > 0 && arguments->mean_count <= 4) {
        append_floats(text, size, "mean", arguments->mean, arguments->mean_count);
        append_floats(text, size, "std", arguments->std, arguments->mean_count);
        append(text, size, ", .mean_count = %" PRIu32, arguments->mean_count);
    }
    if (stk_transform_wanted(&arguments->transform))
        append_transform(text, size, &arguments->transform);
    append(text, size, " };");
}

/* What holds the best cell back. What more workers would do the library can only guess: of that
 * nothing is said where they were tried. */
static void append_limit(char *text, size_t size, const struct bench_cell *best,
                         const struct bench_cell *cells, size_t count)
{
    bool tried = false;
    for (size_t index = 0; index < count; index++)
        tried = tried ||
                (isfinite(cells[index].samples_per_s) && cells[index].workers != best->workers);
    const size_t length = tried ? strcspn(best->verdict, ";") : strlen(best->verdict);
    if (length > 0)
        append(text, size, "; %.*s", (int)length, best->verdict);
    if (tried)
        append(text, size, "; no other number of workers was more than 3 %% faster");
}

void bench_advice_write(struct bench_advice *out, const struct bench_cell *cells, size_t count,
                        const struct bench_arguments *arguments)
{
    const struct bench_cell *best = bench_advice_choose(cells, count);
    *out = (struct bench_advice){ .found = best != NULL, .samples_per_s = NAN };
    if (best == NULL) {
        snprintf(out->verdict, sizeof(out->verdict), "no cell could be measured");
        return;
    }
    char rate[16];
    out->samples_per_s = best->samples_per_s;
    snprintf(out->verdict, sizeof(out->verdict),
             "%s samples/s with %s%" PRId32 " worker%s, batch %" PRIu32 ", %s, pin_memory %s",
             bench_short_number(rate, best->samples_per_s), best->automatic ? "auto: " : "",
             best->workers, best->workers == 1 ? "" : "s", best->batch_size, best->dtype,
             best->pin_memory);
    if (isfinite(best->ceiling_share))
        append(out->verdict, sizeof(out->verdict), ": %.1f %% of the ceiling (%s)",
               best->ceiling_share * 100, best->ceiling);
    if (best->non_blocking[0] != '\0')
        append(out->verdict, sizeof(out->verdict), "; on %s, non_blocking %s, converted on the %s",
               best->device, best->non_blocking, best->convert);
    append_limit(out->verdict, sizeof(out->verdict), best, cells, count);
    write_options(out->options, sizeof(out->options), best, arguments);
}
