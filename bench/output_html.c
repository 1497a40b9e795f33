/* output_html.c - one page that needs nothing but itself. */
#include "output.h"

#include <inttypes.h>
#include <math.h>

static void print_text(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '&':
            fputs("&amp;", file);
            break;
        case '"':
            fputs("&quot;", file);
            break;
        default:
            fputc(*text, file);
        }
    }
}

static void print_cell(FILE *file, const char *text)
{
    fputs("<td>", file);
    print_text(file, text);
    fputs("</td>", file);
}

static void print_number(FILE *file, double value, double scale, int digits, const char *unit)
{
    if (isfinite(value))
        fprintf(file, "<td>%.*f%s</td>", digits, value * scale, unit);
    else
        fputs("<td>-</td>", file);
}

static void print_short(FILE *file, double value)
{
    char text[16];
    print_cell(file, bench_short_number(text, value));
}

/* A share as a number over a bar, so that a column reads like a chart. */
static void print_share(FILE *file, double share)
{
    if (!isfinite(share)) {
        fputs("<td>-</td>", file);
        return;
    }
    double width = fmin(fmax(share * 100, 0), 100);
    fprintf(file,
            "<td style=\"background:linear-gradient(90deg,#bde %.1f%%,transparent %.1f%%)\">%.1f "
            "%%</td>",
            width, width, share * 100);
}

static void print_header(FILE *file, const char *const *names, size_t count)
{
    fputs("<table>\n<tr>", file);
    for (size_t index = 0; index < count; index++)
        fprintf(file, "<th>%s</th>", names[index]);
    fputs("</tr>\n", file);
}

static void start(struct bench_sheet *sheet, const struct bench_machine *machine)
{
    FILE *file = sheet->file;
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<title>loaderbench</title>\n<style>\n"
          "body{font:14px/1.4 system-ui,sans-serif;margin:2em}\n"
          "table{border-collapse:collapse;margin:1em 0}\n"
          "th,td{padding:.2em .6em;border-bottom:1px solid "
          "#ccc;text-align:right;white-space:nowrap}\n"
          "td.error{color:#a00;text-align:left}\npre{background:#eee;padding:1em}\n"
          "</style>\n</head>\n<body>\n<h1>loaderbench</h1>\n<p>",
          file);
    print_text(file, machine->dataset);
    fprintf(file, ": %" PRIu64 " samples of %" PRIu64 " bytes</p>\n<p>", machine->samples,
            machine->row_bytes);
    print_text(file, machine->cpu);
    fprintf(file, ", %" PRIu32 " CPUs, %.1f GiB, ", machine->cpus,
            (double)machine->memory_bytes / 0x1p30);
    print_text(file, machine->kernel);
    fputs(machine->gpu[0] != '\0' ? ", " : "", file);
    print_text(file, machine->gpu);
    fputs(machine->disk[0] != '\0' ? ", " : "", file);
    print_text(file, machine->disk);
    fprintf(file, "<br>libstoker %s, schema %" PRIu32 "</p>\n<pre>", machine->library_version,
            machine->schema);
    print_text(file, machine->args);
    fputs("</pre>\n", file);
}

static void print_measured(FILE *file, const struct bench_cell *row)
{
    uint64_t grown =
        row->rss_bytes > row->rss_base_bytes ? row->rss_bytes - row->rss_base_bytes : 0;
    print_short(file, row->samples_per_s);
    print_short(file, row->samples_per_s_min);
    print_short(file, row->samples_per_s_max);
    print_number(file, row->bytes_per_s, 1e-9, 2, "");
    print_number(file, row->first_batch_ms, 1, 2, "");
    print_number(file, row->cpu_s_per_million, 1, 3, "");
    print_number(file, row->stall_share, 100, 1, " %");
    print_number(file, (double)grown, 1e-6, 1, "");
    print_number(file, (double)row->locked_bytes, 1e-6, 1, "");
    print_cell(file, row->limit);
    print_share(file, row->ceiling_share);
    print_share(file, row->best_ceiling_share);
    print_number(file, row->headspace_share, 100, 1, " %");
}

static void cell(struct bench_sheet *sheet, const struct bench_cell *row)
{
    static const char *const names[] = {
        "workers", "pin",       "device", "nblk",    "conv",      "batch",    "dtype",   "cache",
        "reader",  "samples/s", "min",    "max",     "GB/s",      "first ms", "CPU s/M", "stall",
        "RSS +MB", "locked MB", "limit",  "ceiling", "best ring", "headspace"
    };
    enum { OPTIONS = 9, COLUMNS = sizeof(names) / sizeof(names[0]) };
    FILE *file = sheet->file;
    if (sheet->cells++ == 0)
        print_header(file, names, COLUMNS);
    fprintf(file, "<tr><td>%s", row->automatic ? "auto" : "");
    if (!row->automatic || row->error[0] == '\0')
        fprintf(file, "%s%" PRId32, row->automatic ? ": " : "", row->workers);
    fputs("</td>", file);
    print_cell(file, row->pin_memory);
    print_cell(file, row->device);
    print_cell(file, row->non_blocking);
    print_cell(file, row->convert);
    fprintf(file, "<td>%" PRIu32 "</td>", row->batch_size);
    print_cell(file, row->dtype);
    print_cell(file, row->cache);
    print_cell(file, row->reader);
    if (row->error[0] == '\0') {
        print_measured(file, row);
    } else {
        fprintf(file, "<td class=\"error\" colspan=\"%d\">%s: ", (int)COLUMNS - OPTIONS,
                row->skipped ? "skipped" : "failed");
        print_text(file, row->error);
        fputs("</td>", file);
    }
    fputs("</tr>\n", file);
}

static void close_table(struct bench_sheet *sheet, uint64_t rows)
{
    if (rows > 0)
        fputs("</table>\n", sheet->file);
}

static void ceiling(struct bench_sheet *sheet, const struct bench_ceiling_row *row)
{
    static const char *const names[] = { "ceiling", "threads",    "batch", "dtype",
                                         "ring kB", "samples/s",  "min",   "max",
                                         "GB/s",    "read depth", "note" };
    FILE *file = sheet->file;
    if (sheet->ceilings++ == 0) {
        close_table(sheet, sheet->cells);
        print_header(file, names, sizeof(names) / sizeof(names[0]));
    }
    fputs("<tr>", file);
    print_cell(file, row->name);
    fprintf(file, "<td>%" PRIu32 "</td><td>%" PRIu32 "</td>", row->threads, row->batch_size);
    print_cell(file, row->dtype);
    print_number(file, (double)row->ring_bytes, 1e-3, 0, "");
    print_short(file, row->samples_per_s);
    print_short(file, row->samples_per_s_min);
    print_short(file, row->samples_per_s_max);
    print_number(file, row->bytes_per_s, 1e-9, 2, "");
    fprintf(file, "<td>%" PRIu32 "</td>", row->read_depth);
    print_cell(file, row->note);
    fputs("</tr>\n", file);
}

static void advice(struct bench_sheet *sheet, const struct bench_advice *row)
{
    close_table(sheet, sheet->ceilings > 0 ? sheet->ceilings : sheet->cells);
    fputs("<p>", sheet->file);
    print_text(sheet->file, row->verdict);
    fputs("</p>\n", sheet->file);
    if (row->found) {
        fputs("<pre>", sheet->file);
        print_text(sheet->file, row->options);
        fputs("</pre>\n", sheet->file);
    }
}

static void finish(struct bench_sheet *sheet, const struct bench_report *report)
{
    (void)report;
    fputs("</body>\n</html>\n", sheet->file);
    fflush(sheet->file);
}

const struct bench_form bench_form_html = { "html", start, cell, ceiling, advice, finish };
