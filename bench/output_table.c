/* output_table.c - rows for a person at a terminal, 120 columns at most.
 *
 *   # cpu, float32, cache decoded, reader none            what the cells below have in common
 *   # workers  pin batch samples/s ...                    one header for each such group
 *           0  off    64    8.30 M ...
 *
 * How batches get to a GPU takes two columns, which a host's cells have none of; the share of the best ring is a
 * host's. What is left out here, such as the least and the most of the repeats, CSV and JSON have.
 */
#include "output.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *percent(char out[16], double share)
{
    if (isfinite(share))
        snprintf(out, 16, "%.1f%%", share * 100);
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

/* What a row has none of is 0 there. */
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

static void start(struct bench_sheet *sheet, const struct bench_machine *machine)
{
    FILE *file = sheet->file;
    fprintf(file, "# loaderbench %s, libstoker %s, schema %" PRIu32 "\n", machine->tool_version,
            machine->library_version, machine->schema);
    fprintf(file, "# args     %s\n", machine->args);
    fprintf(file, "# machine  %s, %" PRIu32 " CPU%s, %.1f GiB, %s\n", machine->cpu, machine->cpus,
            machine->cpus == 1 ? "" : "s", (double)machine->memory_bytes / 0x1p30, machine->kernel);
    if (machine->gpu[0] != '\0')
        fprintf(file, "# gpu      %s\n", machine->gpu);
    if (machine->disk[0] != '\0')
        fprintf(file, "# disk     %s\n", machine->disk);
    fprintf(file, "# data     %s: %" PRIu64 " samples of %" PRIu64 " bytes\n", machine->dataset,
            machine->samples, machine->row_bytes);
}

/* ---- groups of cells -------------------------------------------------------------- */

static bool is_host(const struct bench_cell *row)
{
    return strcmp(row->device, "cpu") == 0;
}

static void print_cell_header(FILE *file, const struct bench_cell *row)
{
    fprintf(file, "# %7s %4s", "workers", "pin");
    if (!is_host(row))
        fprintf(file, " %4s %-6s", "nblk", "conv");
    fprintf(file, " %5s %9s %6s %6s %8s %7s %6s %8s %8s %-8s %7s", "batch", "samples/s", "spread",
            "GB/s", "first ms", "CPU s/M", "stall", "RSS +MB", "lock MB", "limit", "ceiling");
    fprintf(file, "%s\n", is_host(row) ? " best ring" : "");
}

/* A cell that was not measured does not know its cache and reader: it may stand in any group of its device and
 * type. */
static void begin_group(struct bench_sheet *sheet, const struct bench_cell *row)
{
    char group[sizeof(sheet->group)];
    const int common = snprintf(group, sizeof(group), "%s, %s, ", row->device, row->dtype);
    const bool failed = row->error[0] != '\0';
    snprintf(group + common, sizeof(group) - (size_t)common, "cache %s, reader %s", row->cache,
             row->reader);
    if (failed ? strncmp(group, sheet->group, (size_t)common) == 0
               : strcmp(group, sheet->group) == 0)
        return;
    snprintf(sheet->group, sizeof(sheet->group), "%s", group);
    fprintf(sheet->file, "#\n# %s\n", group);
    print_cell_header(sheet->file, row);
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

static double grown_mb(const struct bench_cell *row)
{
    uint64_t grown =
        row->rss_bytes > row->rss_base_bytes ? row->rss_bytes - row->rss_base_bytes : 0;
    return (double)grown / 1e6;
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
    char workers[16], text[10][16];
    snprintf(workers, sizeof(workers), row->automatic ? "auto:%" PRId32 : "%" PRId32, row->workers);
    print_place(file, row, workers);
    fprintf(file, " %9s %6s %6s %8s %7s %6s %8s %8s %-8s %7s",
            bench_short_number(text[0], row->samples_per_s), percent(text[1], row->spread),
            fixed(text[2], row->bytes_per_s / 1e9, 2), fixed(text[3], row->first_batch_ms, 2),
            fixed(text[4], row->cpu_s_per_million, 3), percent(text[5], row->stall_share),
            fixed(text[6], grown_mb(row), 1), fixed(text[7], (double)row->locked_bytes / 1e6, 1),
            row->limit, percent(text[8], row->ceiling_share));
    if (is_host(row))
        fprintf(file, " %9s", percent(text[9], row->best_ceiling_share));
    fprintf(file, "\n");
    if (isfinite(row->headspace_share))
        fprintf(file, "  %7s headspace %s samples/s: the loader gives %s of it\n", "",
                bench_short_number(text[0], row->headspace_samples_per_s),
                percent(text[1], row->headspace_share));
    fflush(file);
}

/* ---- ceilings and the end ---------------------------------------------------------- */

static void ceiling(struct bench_sheet *sheet, const struct bench_ceiling_row *row)
{
    FILE *file = sheet->file;
    if (sheet->ceilings++ == 0)
        fprintf(file, "#\n# %-17s %7s %5s %-8s %7s %9s %6s %6s %10s %s\n", "ceiling", "threads",
                "batch", "dtype", "ring kB", "samples/s", "spread", "GB/s", "read depth", "note");
    const double spread = (row->samples_per_s_max - row->samples_per_s_min) / row->samples_per_s;
    char text[6][24];
    fprintf(file, "  %-17s %7" PRIu32 " %5s %-8s %7s %9s %6s %6s %10s%s%s\n", row->name,
            row->threads, count(text[0], row->batch_size), row->dtype,
            count(text[1], (row->ring_bytes + 500) / 1000),
            bench_short_number(text[2], row->samples_per_s), percent(text[3], spread),
            fixed(text[4], row->bytes_per_s / 1e9, 2), count(text[5], row->read_depth),
            row->note[0] != '\0' ? " " : "", row->note);
}

static void advice(struct bench_sheet *sheet, const struct bench_advice *row)
{
    fprintf(sheet->file, "#\n# verdict  %s\n", row->verdict);
    if (row->found)
        fprintf(sheet->file, "# paste this:\n%s\n", row->options);
}

static void finish(struct bench_sheet *sheet)
{
    fflush(sheet->file);
}

const struct bench_form bench_form_table = { "table", start, cell, ceiling, advice, finish };
