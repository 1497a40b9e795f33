/* table.c - rows for the terminal: 80 columns that answer the question, or with --wide all of them.
 *
 *   # cpu, float32, cache decoded, read by uring          what the cells below share
 *   # workers  pin batch epoch  samples/s    +- ...       one header for each such group
 *           0  off    64 first     6.53 k   4 % ...       the epoch that reads and decodes
 *                        later      487 k   7 % ...       those that the cache serves
 *
 * A cell without a cache has one line, for all its epochs. A GPU adds two columns, in place of the
 * bar. CSV and JSON have the values that do not fit.
 */
#include "bench/loaderbench/machine.h"
#include "bench/loaderbench/output/output.h"

#include "loader/base/text/printable.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BAR_CELLS = 10 };

static const char *percent(char out[16], double share)
{
    if (isfinite(share))
        snprintf(out, 16, "%s%.1f%%", share > 1 ? "~" : "", fmin(share, 1) * 100);
    else
        snprintf(out, 16, "-");
    return out;
}

/* A spread, which may exceed 100 %. */
static const char *whole_percent(char out[16], double share)
{
    if (isfinite(share))
        snprintf(out, 16, "%.0f %%", share * 100);
    else
        snprintf(out, 16, "-");
    return out;
}

static const char *fixed(char out[16], double value, int digits)
{
    if (isfinite(value))
        snprintf(out, 16, "%.*f", digits, value);
    else
        snprintf(out, 16, "-");
    return out;
}

/* Millions of bytes; large numbers without a decimal. */
static const char *megabytes(char out[16], uint64_t bytes)
{
    const double value = (double)bytes / 1e6;
    return fixed(out, value, value < 9999 ? 1 : 0);
}

/* 0 if the row has no such value. */
static const char *count(char out[24], uint64_t value)
{
    if (value > 0)
        snprintf(out, 24, "%" PRIu64, value);
    else
        snprintf(out, 24, "-");
    return out;
}

static const char *or_dash(const char *text)
{
    return text[0] != '\0' ? text : "-";
}

static bool is_wide(const struct bench_sheet *sheet)
{
    return sheet->columns != BENCH_COLUMNS_NARROW;
}

/* Prints a comment of any length, broken at spaces and indented. */
static void print_wrapped(const struct bench_sheet *sheet, const char *name, const char *whole)
{
    enum {
        INDENT = 11, /* "# machine  " */
        PRINTABLE_BYTES = 2048
    };
    const size_t width = (is_wide(sheet) ? BENCH_COLUMNS_WIDE : BENCH_COLUMNS_NARROW) - INDENT;
    char printable[PRINTABLE_BYTES];
    const char *text = printable;
    snprintf(printable, sizeof(printable), "%s", whole);
    stk_printable(printable);
    for (const char *label = name; *text != '\0'; label = "") {
        size_t length = strlen(text);
        if (length > width) {
            length = width;
            while (length > 0 && text[length] != ' ')
                length--;
            if (length == 0) /* a word longer than the line */
                length = strcspn(text, " ");
        }
        fprintf(sheet->file, "# %-8s %.*s\n", label, (int)length, text);
        text += length;
        text += strspn(text, " ");
    }
}

static void start(struct bench_sheet *sheet, const struct bench_machine *machine)
{
    char line[BENCH_MOMENT_BYTES];
    snprintf(line, sizeof(line), "loaderbench %s, libstoker %s, schema %" PRIu32,
             machine->tool_version, machine->library_version, machine->schema);
    fprintf(sheet->file, "# %s\n", line);
    bench_machine_moment(machine, line);
    print_wrapped(sheet, "when", line);
    print_wrapped(sheet, "args", machine->args);
    snprintf(line, sizeof(line), "%s, %" PRIu32 " CPU%s, %.1f GiB, %s", machine->cpu, machine->cpus,
             machine->cpus == 1 ? "" : "s", (double)machine->memory_bytes / 0x1p30,
             machine->kernel);
    print_wrapped(sheet, "machine", line);
    if (machine->ranks > 1) {
        snprintf(line, sizeof(line),
                 "%" PRIu32 " of %s: samples/s, GB/s, CPU s/M and ceilings are of all together, "
                 "workers and memory of one",
                 machine->ranks, machine->launcher);
        print_wrapped(sheet, "ranks", line);
    }
    print_wrapped(sheet, "gpu", machine->gpu);
    print_wrapped(sheet, "disk", machine->disk);
    snprintf(line, sizeof(line), ": %" PRIu64 " samples of %" PRIu64 " bytes", machine->samples,
             machine->row_bytes);
    char data[sizeof(machine->dataset) + sizeof(line)];
    snprintf(data, sizeof(data), "%s%s", machine->dataset, line);
    print_wrapped(sheet, "data", data);
    print_wrapped(sheet, "found", machine->found);
}

/* ---- groups of cells -------------------------------------------------------------- */

static bool is_host(const struct bench_cell *row)
{
    return strcmp(row->device, "cpu") == 0;
}

static void print_cell_header(const struct bench_sheet *sheet, const struct bench_cell *row)
{
    FILE *file = sheet->file;
    fprintf(file, "# %7s %4s", "workers", "pin");
    if (!is_host(row))
        fprintf(file, " %4s %-6s", "nblk", "conv");
    fprintf(file, " %5s %-5s %9s %5s", "batch", "epoch", "samples/s", "+-");
    if (is_wide(sheet))
        fprintf(file, " %6s %8s %7s %6s %7s %7s %-8s %7s\n", "GB/s", "first ms", "CPU s/M", "stall",
                "RSS +MB", "lock MB", "limit", "ceiling");
    else
        fprintf(file,
                is_host(row) ? " s/epoch%*s of best limited by\n" : " s/epoch%*s  best limit\n",
                is_host(row) ? 1 + BAR_CELLS : 0, "");
}

/* A cell that was not measured has no cache and reader: it fits any group of its device and
 * type. */
static void begin_group(struct bench_sheet *sheet, const struct bench_cell *row)
{
    char group[sizeof(sheet->group)];
    const bool planes = strcmp(row->layout, "nchw") == 0;
    const int common = snprintf(group, sizeof(group), "%s, %s%s, ", row->device, row->dtype,
                                planes ? " nchw" : "");
    const bool failed = row->error[0] != '\0';
    if (strcmp(row->cache, "none") == 0 && strcmp(row->reader, "none") == 0)
        snprintf(group + common, sizeof(group) - (size_t)common, "in memory");
    else if (strcmp(row->reader, "none") == 0)
        snprintf(group + common, sizeof(group) - (size_t)common, "cache %s", row->cache);
    else
        snprintf(group + common, sizeof(group) - (size_t)common, "cache %s, read by %s", row->cache,
                 row->reader);
    if (failed ? strncmp(group, sheet->group, (size_t)common) == 0
               : strcmp(group, sheet->group) == 0)
        return;
    snprintf(sheet->group, sizeof(sheet->group), "%s", group);
    fprintf(sheet->file, "#\n# %s\n", group);
    print_cell_header(sheet, row);
}

/* ---- cells ------------------------------------------------------------------------ */

static void print_place(FILE *file, const struct bench_cell *row, const char *workers)
{
    fprintf(file, "  %7s %4s", workers, row->pin_memory);
    if (!is_host(row))
        fprintf(file, " %4s %-6s", or_dash(row->non_blocking), or_dash(row->convert));
    fprintf(file, " %5" PRIu32, row->batch_size);
}

static void print_failed(FILE *file, const struct bench_cell *row)
{
    char workers[16];
    if (row->automatic)
        snprintf(workers, sizeof(workers), "auto");
    else
        snprintf(workers, sizeof(workers), "%" PRId32, row->workers);
    print_place(file, row, workers);
    fprintf(file, " %s: %s\n", row->skipped ? "skipped" : "FAILED", row->error);
}

static uint64_t grown_bytes(const struct bench_cell *row)
{
    return row->rss_bytes > row->rss_base_bytes ? row->rss_bytes - row->rss_base_bytes : 0;
}

/* One kind of epoch. Values of the whole cell are in its last line, the time to the first batch in
 * its first. */
struct line {
    const char *epochs;
    double samples_per_s, low, high, bytes_per_s, ceiling_share;
    const char *limit;
    bool is_first, is_last;
};

/* "████▌   " in eighths of a character. */
static void print_bar(const struct bench_sheet *sheet, double share)
{
    static const char *const parts[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    const int eighths = (int)(fmin(fmax(share, 0), 1) * 8 * BAR_CELLS + 0.5);
    const int empty = BAR_CELLS - eighths / 8 - (eighths % 8 > 0 ? 1 : 0);
    fputs(sheet->colors ? " \033[32m" : " ", sheet->file);
    for (int cell = 0; cell < eighths / 8; cell++)
        fputs("█", sheet->file);
    fprintf(sheet->file, "%s%*s%s", parts[eighths % 8], empty, "", sheet->colors ? "\033[0m" : "");
}

static void print_line(const struct bench_sheet *sheet, const struct bench_cell *row,
                       const struct line *line)
{
    FILE *file = sheet->file;
    char text[8][16];
    fprintf(file, " %-5s %9s %5s", line->epochs, bench_short_number(text[0], line->samples_per_s),
            whole_percent(text[1], (line->high - line->low) / 2 / line->samples_per_s));
    if (is_wide(sheet)) {
        fprintf(file, " %6s %8s %7s %6s %7s %7s %-8s %7s\n",
                fixed(text[3], line->bytes_per_s / 1e9, 2),
                line->is_first ? fixed(text[4], row->first_batch_ms, 2) : "",
                line->is_last ? fixed(text[2], row->cpu_s_per_million, 3) : "",
                line->is_last ? percent(text[5], row->stall_share) : "",
                line->is_last ? megabytes(text[6], grown_bytes(row)) : "",
                line->is_last ? megabytes(text[7], row->locked_bytes) : "", line->limit,
                percent(text[0], line->ceiling_share));
        return;
    }
    const double share = line->samples_per_s / sheet->best_samples_per_s;
    const double seconds = (double)sheet->samples / line->samples_per_s;
    fprintf(file, " %7s", fixed(text[2], seconds, seconds < 10 ? 3 : 1));
    if (is_host(row))
        print_bar(sheet, share);
    fprintf(file, " %*s %s\n", is_host(row) ? 7 : 5, whole_percent(text[3], fmin(share, 1)),
            line->limit);
}

static void print_first_epoch(const struct bench_sheet *sheet, const struct bench_cell *row)
{
    const struct bench_first_epoch *first = &row->first;
    const struct line line = { .epochs = "first",
                               .samples_per_s = first->samples_per_s,
                               .low = first->samples_per_s_low,
                               .high = first->samples_per_s_high,
                               .bytes_per_s = first->bytes_per_s,
                               .limit = first->limit,
                               .ceiling_share = first->ceiling_share,
                               .is_first = true };
    print_line(sheet, row, &line);
    fprintf(sheet->file, "  %*s", is_host(row) ? 18 : 30, "");
}

static void cell(struct bench_sheet *sheet, const struct bench_cell *row)
{
    FILE *file = sheet->file;
    begin_group(sheet, row);
    if (row->error[0] != '\0') {
        print_failed(file, row);
        fflush(file);
        return;
    }
    char workers[16], text[2][16];
    const struct line line = { .epochs = row->first.separate ? "later" : "all",
                               .samples_per_s = row->samples_per_s,
                               .low = row->samples_per_s_low,
                               .high = row->samples_per_s_high,
                               .bytes_per_s = row->bytes_per_s,
                               .limit = row->limit,
                               .ceiling_share = row->ceiling_share,
                               .is_first = !row->first.separate,
                               .is_last = true };
    snprintf(workers, sizeof(workers), row->automatic ? "auto:%" PRId32 : "%" PRId32, row->workers);
    print_place(file, row, workers);
    if (row->first.separate)
        print_first_epoch(sheet, row);
    print_line(sheet, row, &line);
    if (row->first.separate && row->cached_share < 0.995)
        fprintf(file, "  %7s of the later epochs' samples %s came from the cache\n", "",
                percent(text[0], row->cached_share));
    if (row->ranks > 1)
        fprintf(file, "  %7s slowest: rank %" PRIu32 ", %s samples/s of its own\n", "",
                row->slowest_rank, bench_short_number(text[0], row->slowest_rank_samples_per_s));
    if (isfinite(row->headspace_share))
        fprintf(file, "  %7s headspace %s samples/s: the loader gives %s of it\n", "",
                bench_short_number(text[0], row->headspace_samples_per_s),
                percent(text[1], row->headspace_share));
    fflush(file);
}

/* ---- ceilings and the end ---------------------------------------------------------- */

static void print_ceiling_header(const struct bench_sheet *sheet)
{
    fprintf(sheet->file, "#\n# %-18s %7s %5s %-8s %7s %9s %6s %6s %10s note\n", "ceiling",
            "threads", "batch", "dtype", "ring kB", "samples/s", "spread", "GB/s", "read depth");
}

static void ceiling(struct bench_sheet *sheet, const struct bench_ceiling_row *row)
{
    FILE *file = sheet->file;
    if (!is_wide(sheet))
        return;
    if (sheet->ceilings++ == 0)
        print_ceiling_header(sheet);
    const double spread = (row->samples_per_s_max - row->samples_per_s_min) / row->samples_per_s;
    char text[6][24];
    fprintf(file, "  %-18s %7" PRIu32 " %5s %-8s %7s %9s %6s %6s %10s%s%s\n", row->name,
            row->threads, count(text[0], row->batch_size), row->dtype,
            count(text[1], (row->ring_bytes + 500) / 1000),
            bench_short_number(text[2], row->samples_per_s), whole_percent(text[3], spread),
            fixed(text[4], row->bytes_per_s / 1e9, 2), count(text[5], row->read_depth),
            row->note[0] != '\0' ? " " : "", row->note);
}

static void advice(struct bench_sheet *sheet, const struct bench_advice *row, uint64_t best)
{
    (void)best;
    fputs(sheet->colors ? row->busy ? "#\n\033[1;31m" : "#\n\033[1m" : "#\n", sheet->file);
    print_wrapped(sheet, "verdict", row->verdict);
    fputs(sheet->colors ? "\033[0m" : "", sheet->file);
    if (row->best != NULL)
        fprintf(sheet->file, "# paste this:\n%s\n# or, in Python:\n%s\n", row->options,
                row->python);
}

static void finish(struct bench_sheet *sheet)
{
    fflush(sheet->file);
}

const struct bench_form bench_form_table = { "table", start, cell, ceiling, advice, finish };
