/* output_table.c - rows for a person at a terminal. */
#include "output.h"

#include <inttypes.h>
#include <math.h>

static const char *percent(char out[16], double share)
{
    if (isfinite(share))
        snprintf(out, 16, "%.1f %%", share * 100);
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

static void print_cell_header(FILE *file)
{
    fprintf(file,
            "#\n# %7s %4s %-11s %4s %-6s %6s %-8s %-8s %-6s %9s %9s %9s %6s %7s %8s %8s %7s %8s "
            "%8s %-9s %9s %9s\n",
            "workers", "pin", "device", "nblk", "conv", "batch", "dtype", "cache", "reader",
            "samples/s", "min", "max", "spread", "GB/s", "first ms", "CPU s/M", "stall", "RSS +MB",
            "lock MB", "limit", "ceiling", "best ring");
}

static void print_failed(FILE *file, const struct bench_cell *row)
{
    char workers[16];
    if (row->automatic)
        snprintf(workers, sizeof(workers), "auto");
    else
        snprintf(workers, sizeof(workers), "%" PRId32, row->workers);
    fprintf(file, "  %7s %4s %-11s %4s %-6s %6" PRIu32 " %-8s %-8s %-6s %s: %s\n", workers,
            row->pin_memory, row->device, or_dash(row->non_blocking), or_dash(row->convert),
            row->batch_size, row->dtype, row->cache, row->reader,
            row->skipped ? "skipped" : "FAILED", row->error);
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
    if (sheet->cells++ == 0)
        print_cell_header(file);
    if (row->error[0] != '\0') {
        print_failed(file, row);
        fflush(file);
        return;
    }
    char workers[16], text[13][16];
    snprintf(workers, sizeof(workers), row->automatic ? "auto:%" PRId32 : "%" PRId32, row->workers);
    fprintf(file,
            "  %7s %4s %-11s %4s %-6s %6" PRIu32
            " %-8s %-8s %-6s %9s %9s %9s %6s %7s %8s %8s %7s %8s %8s %-9s %9s %9s\n",
            workers, row->pin_memory, row->device, or_dash(row->non_blocking),
            or_dash(row->convert), row->batch_size, row->dtype, row->cache, row->reader,
            bench_short_number(text[0], row->samples_per_s),
            bench_short_number(text[1], row->samples_per_s_min),
            bench_short_number(text[2], row->samples_per_s_max), percent(text[3], row->spread),
            fixed(text[4], row->bytes_per_s / 1e9, 2), fixed(text[5], row->first_batch_ms, 2),
            fixed(text[6], row->cpu_s_per_million, 3), percent(text[7], row->stall_share),
            fixed(text[8], grown_mb(row), 1), fixed(text[9], (double)row->locked_bytes / 1e6, 1),
            row->limit, percent(text[10], row->ceiling_share),
            percent(text[11], row->best_ceiling_share));
    if (isfinite(row->headspace_share))
        fprintf(file, "  %7s headspace %s samples/s: the loader gives %s of it\n", "",
                bench_short_number(text[0], row->headspace_samples_per_s),
                percent(text[1], row->headspace_share));
    fflush(file);
}

static void ceiling(struct bench_sheet *sheet, const struct bench_ceiling_row *row)
{
    FILE *file = sheet->file;
    if (sheet->ceilings++ == 0)
        fprintf(file, "#\n# %-17s %7s %6s %-8s %9s %9s %9s %9s %7s %9s %s\n", "ceiling", "threads",
                "batch", "dtype", "ring kB", "samples/s", "min", "max", "GB/s", "read depth",
                "note");
    char text[7][24];
    fprintf(file, "  %-17s %7" PRIu32 " %6s %-8s %9s %9s %9s %9s %7s %9s%s%s\n", row->name,
            row->threads, count(text[0], row->batch_size), row->dtype,
            count(text[1], (row->ring_bytes + 500) / 1000),
            bench_short_number(text[2], row->samples_per_s),
            bench_short_number(text[3], row->samples_per_s_min),
            bench_short_number(text[4], row->samples_per_s_max),
            fixed(text[5], row->bytes_per_s / 1e9, 2), count(text[6], row->read_depth),
            row->note[0] != '\0' ? "  " : "", row->note);
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
