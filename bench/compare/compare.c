/* compare.c - see compare.h.
 *
 *   file ─▶ one line of JSON each ─▶ machine, cells ─▶ cells of equal options ─▶ ratio of medians
 *
 * A cell is faster or slower if the middle four fifths of its repeats do not overlap with the other file's;
 * the rest may be outliers. With fewer than ten repeats the whole range counts, widened by a quarter at both
 * ends: so few lie close together in time and show little of the machine's drift. Everything else is within
 * the spread, whatever the ratio.
 */
#include "bench/compare/compare.h"
#include "bench/compare/json_read.h"
#include "bench/output/output.h"
#include "bench/output/short_number.h"
#include "bench/result.h"
#include "bench/statistics.h"

#include "loader/base/printable.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 160 };

/* One kind of epoch. */
struct rate {
    double median; /* NaN = not measured */
    double low, high;
};

struct row {
    char workers[24], pin[8], dtype[16], layout[8], cache[16], device[16], blocking[8], convert[8];
    double batch_size;
    bool cold, separate;
    struct rate first, later;
};

/* Fields that may explain a difference, and are printed if they differ. */
static const char *const facts[] = { "host",    "cpu",    "cpus",     "memory_bytes",
                                     "gpu",     "kernel", "disk",     "dataset",
                                     "samples", "commit", "compiler", "library_version",
                                     "ranks" };
enum { FACTS = sizeof(facts) / sizeof(facts[0]) };

struct side {
    const char *path;
    char date[TEXT_BYTES];
    char load[TEXT_BYTES];
    char texts[FACTS][TEXT_BYTES];
    struct row *rows;
    size_t count;
};

/* ---- reading -------------------------------------------------------------------------- */

static void read_fact(const char *line, const char *key, char out[TEXT_BYTES])
{
    double number = 0;
    snprintf(out, TEXT_BYTES, "-");
    if (bench_json_read_number(line, key, &number))
        snprintf(out, TEXT_BYTES, "%.10g", number);
    else
        (void)bench_json_read_text(line, key, out, TEXT_BYTES);
    stk_printable(out);
}

static void read_machine(struct side *side, const char *line)
{
    read_fact(line, "date", side->date);
    double load = NAN;
    if (bench_json_read_number(line, "load_1m", &load))
        snprintf(side->load, sizeof(side->load), "%.2f", load);
    else
        snprintf(side->load, sizeof(side->load), "-");
    for (size_t fact = 0; fact < FACTS; fact++)
        read_fact(line, facts[fact], side->texts[fact]);
    double ranks = 1; /* not written by one process */
    (void)bench_json_read_number(line, "ranks", &ranks);
    snprintf(side->texts[FACTS - 1], TEXT_BYTES, "%.10g", ranks);
}

/* Few repeats: their range, widened. */
static void widen(struct rate *rate)
{
    rate->low /= 1.25;
    rate->high *= 1.25;
}

static struct rate read_later(const char *line)
{
    double values[BENCH_REPEATS_MAX];
    struct rate rate = { NAN, NAN, NAN };
    const size_t count = bench_json_read_numbers(line, "rates", values, BENCH_REPEATS_MAX);
    (void)bench_json_read_number(line, "samples_per_s", &rate.median);
    if (count == 0)
        return rate;
    (void)bench_statistics_of(values, count); /* sorts them */
    rate.low = values[count / 10];
    rate.high = values[count - 1 - count / 10];
    if (count < 10)
        widen(&rate);
    return rate;
}

static struct rate read_first(const char *line)
{
    struct rate rate = { NAN, NAN, NAN };
    (void)bench_json_read_number(line, "first_epoch_samples_per_s", &rate.median);
    (void)bench_json_read_number(line, "first_epoch_samples_per_s_min", &rate.low);
    (void)bench_json_read_number(line, "first_epoch_samples_per_s_max", &rate.high);
    widen(&rate);
    return rate;
}

static void read_text(const char *line, const char *key, char *out, size_t size)
{
    (void)bench_json_read_text(line, key, out, size);
    stk_printable(out);
}

static struct row read_row(const char *line)
{
    struct row row = { .layout = "nhwc" };
    double workers = NAN;
    bool automatic = false;
    (void)bench_json_read_number(line, "workers", &workers);
    (void)bench_json_read_bool(line, "auto", &automatic);
    if (automatic) /* whatever number it chose */
        snprintf(row.workers, sizeof(row.workers), "auto");
    else
        snprintf(row.workers, sizeof(row.workers), "%.10g", workers);
    (void)bench_json_read_number(line, "batch_size", &row.batch_size);
    (void)bench_json_read_bool(line, "cold", &row.cold);
    (void)bench_json_read_bool(line, "first_epoch_separate", &row.separate);
    read_text(line, "pin_memory", row.pin, sizeof(row.pin));
    read_text(line, "dtype", row.dtype, sizeof(row.dtype));
    read_text(line, "layout", row.layout, sizeof(row.layout)); /* older files lack it */
    read_text(line, "cache", row.cache, sizeof(row.cache));
    read_text(line, "device", row.device, sizeof(row.device));
    read_text(line, "non_blocking", row.blocking, sizeof(row.blocking));
    read_text(line, "convert", row.convert, sizeof(row.convert));
    row.first = read_first(line);
    row.later = read_later(line);
    return row;
}

static int add_row(struct side *side, const char *line)
{
    struct row *more = realloc(side->rows, (side->count + 1) * sizeof(*more));
    if (more == NULL)
        return ENOMEM;
    side->rows = more;
    more[side->count] = read_row(line);
    if (isfinite(more[side->count].later.median)) /* a cell that failed has no rate */
        side->count++;
    return 0;
}

/* Returns 0 or an errno; *found = there was a line about the machine. */
static int read_lines(struct side *side, FILE *file, bool *found)
{
    char *line = NULL;
    size_t size = 0;
    int failed = 0;
    while (failed == 0 && getline(&line, &size, file) > 0) {
        char kind[16] = "";
        (void)bench_json_read_text(line, "kind", kind, sizeof(kind));
        if (strcmp(kind, "machine") == 0) {
            read_machine(side, line);
            *found = true;
        } else if (strcmp(kind, "cell") == 0) {
            failed = add_row(side, line);
        }
    }
    free(line);
    return failed != 0 ? failed : ferror(file) ? EIO : 0;
}

static bool read_side(struct side *side, const char *path)
{
    bool found = false;
    *side = (struct side){ .path = path };
    FILE *file = fopen(path, "re");
    const int failed = file == NULL ? errno : read_lines(side, file, &found);
    if (file != NULL)
        fclose(file);
    if (failed != 0)
        fprintf(stderr, "loaderbench: %s: %s\n", path, strerror(failed));
    else if (!found)
        fprintf(stderr,
                "loaderbench: %s: no line {\"kind\": \"machine\", ...} in it: --compare takes what "
                "--format json wrote\n",
                path);
    return failed == 0 && found;
}

/* ---- printing ------------------------------------------------------------------------- */

static void print_side(FILE *file, const char *name, const struct side *side)
{
    char path[TEXT_BYTES];
    snprintf(path, sizeof(path), "%s", side->path);
    stk_printable(path);
    fprintf(file, "# %s  %s\n#      %s, load %s\n", name, path, side->date, side->load);
}

static void print_facts(FILE *file, const struct side *before, const struct side *after)
{
    for (size_t fact = 0; fact < FACTS; fact++)
        if (strcmp(before->texts[fact], after->texts[fact]) != 0)
            fprintf(file, "# %s was %s\n# %s is  %s\n", facts[fact], before->texts[fact],
                    facts[fact], after->texts[fact]);
}

static bool same_options(const struct row *a, const struct row *b)
{
    return strcmp(a->workers, b->workers) == 0 && strcmp(a->pin, b->pin) == 0 &&
           strcmp(a->dtype, b->dtype) == 0 && strcmp(a->layout, b->layout) == 0 &&
           strcmp(a->cache, b->cache) == 0 && strcmp(a->device, b->device) == 0 &&
           strcmp(a->blocking, b->blocking) == 0 && strcmp(a->convert, b->convert) == 0 &&
           fabs(a->batch_size - b->batch_size) < 0.5 && a->cold == b->cold;
}

static const struct row *find_row(const struct side *side, const struct row *wanted)
{
    for (size_t index = 0; index < side->count; index++)
        if (same_options(&side->rows[index], wanted))
            return &side->rows[index];
    return NULL;
}

struct tally {
    uint32_t compared, faster, slower;
    char group[TEXT_BYTES]; /* what the rows under the last header share */
};

static void print_group(FILE *file, struct tally *tally, const struct row *row)
{
    char group[TEXT_BYTES];
    int length = snprintf(group, sizeof(group), "%s, %s%s, cache %s%s", row->device, row->dtype,
                          strcmp(row->layout, "nchw") == 0 ? " nchw" : "", row->cache,
                          row->cold ? ", cold" : "");
    if (row->blocking[0] != '\0' && length > 0 && (size_t)length < sizeof(group))
        snprintf(group + length, sizeof(group) - (size_t)length,
                 ", non_blocking %s, converted on %s", row->blocking, row->convert);
    if (strcmp(group, tally->group) == 0)
        return;
    snprintf(tally->group, sizeof(tally->group), "%s", group);
    fprintf(file, "#\n# %s\n# %7s %4s %5s %-6s %9s %9s %6s\n", group, "workers", "pin", "batch",
            "epochs", "old", "new", "ratio");
}

static void print_rates(FILE *file, struct tally *tally, const char *epochs, const struct rate *a,
                        const struct rate *b)
{
    char before[16], after[16];
    const bool faster = b->low > a->high, slower = b->high < a->low;
    tally->compared++;
    tally->faster += faster;
    tally->slower += slower;
    fprintf(file, " %-6s %9s %9s %6.2f%s\n", epochs, bench_short_number(before, a->median),
            bench_short_number(after, b->median), b->median / a->median,
            faster   ? "  faster"
            : slower ? "  SLOWER"
                     : "");
}

static void compare_rows(FILE *file, struct tally *tally, const struct row *a, const struct row *b)
{
    const bool both = a->separate && b->separate;
    print_group(file, tally, a);
    fprintf(file, "  %7s %4s %5.0f", a->workers, a->pin, a->batch_size);
    if (both) {
        print_rates(file, tally, "first", &a->first, &b->first);
        fprintf(file, "  %18s", "");
    }
    print_rates(file, tally, a->separate || b->separate ? "later" : "all", &a->later, &b->later);
}

static int print_all(FILE *file, const struct side *before, const struct side *after)
{
    struct tally tally = { .compared = 0 };
    size_t gone = 0, added = 0;
    print_side(file, "old", before);
    print_side(file, "new", after);
    print_facts(file, before, after);
    for (size_t index = 0; index < before->count; index++) {
        const struct row *other = find_row(after, &before->rows[index]);
        if (other != NULL)
            compare_rows(file, &tally, &before->rows[index], other);
        gone += other == NULL;
    }
    for (size_t index = 0; index < after->count; index++)
        added += find_row(before, &after->rows[index]) == NULL;
    fprintf(file,
            "#\n# %" PRIu32 " rates compared: %" PRIu32 " faster, %" PRIu32
            " slower, the rest within their spread\n",
            tally.compared, tally.faster, tally.slower);
    if (gone > 0 || added > 0)
        fprintf(file, "# cells in the old file alone: %zu, in the new one alone: %zu\n", gone,
                added);
    if (tally.compared == 0)
        fprintf(stderr, "loaderbench: --compare: no cell has the same options in both files\n");
    return tally.compared == 0 ? BENCH_COMPARE_FAILED
           : tally.slower > 0  ? BENCH_COMPARE_SLOWER
                               : BENCH_COMPARE_GOOD;
}

int bench_compare(const char *old_path, const char *new_path, FILE *file)
{
    struct side before = { .rows = NULL }, after = { .rows = NULL };
    const bool readable = read_side(&before, old_path) && read_side(&after, new_path);
    const int status = readable ? print_all(file, &before, &after) : BENCH_COMPARE_FAILED;
    free(before.rows);
    free(after.rows);
    return status;
}
