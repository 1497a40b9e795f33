/* html.c - one self-contained page, to be sent to a colleague.
 *
 *   verdict and advice | rates by workers, where the time goes | the table, its columns explained | ceilings | machine
 *
 * The verdict comes first, so all of it is written in finish.
 */
#include "bench/machine.h"
#include "bench/output/html_write.h"
#include "bench/output/output.h"
#include "bench/output/short_number.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- cells of tables ------------------------------------------------------------------- */

static void print_cell(FILE *file, const char *text)
{
    fputs("<td class=\"word\">", file);
    bench_html_text(file, text[0] != '\0' ? text : "–");
    fputs("</td>", file);
}

static void print_number(FILE *file, double value, int digits, const char *unit)
{
    if (isfinite(value))
        fprintf(file, "<td>%.*f%s</td>", digits, value, unit);
    else
        fputs("<td>–</td>", file);
}

static void print_short(FILE *file, double value, bool begins)
{
    char text[16];
    fputs(begins ? "<td class=\"begin\">" : "<td>", file);
    fputs(isfinite(value) ? bench_short_number(text, value) : "–", file);
    fputs("</td>", file);
}

static void print_count(FILE *file, uint64_t value)
{
    if (value > 0)
        fprintf(file, "<td>%" PRIu64 "</td>", value);
    else
        fputs("<td>–</td>", file);
}

struct column {
    const char *name;
    const char *unit;    /* "" = none */
    const char *meaning; /* NULL = not explained here */
    bool is_word;
    bool begins; /* starts a group of columns */
};

static void print_columns(FILE *file, const struct column *columns, size_t count)
{
    fputs("<tr>", file);
    for (size_t index = 0; index < count; index++) {
        const struct column *column = &columns[index];
        fprintf(file, "<th scope=\"col\"%s>%s",
                column->is_word  ? " class=\"word\""
                : column->begins ? " class=\"begin\""
                                 : "",
                column->name);
        if (column->unit[0] != '\0')
            fprintf(file, "<small>%s</small>", column->unit);
        fputs("</th>", file);
    }
    fputs("</tr>\n", file);
}

static void begin_table(FILE *file, const char *label, const char *caption)
{
    fprintf(file,
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n"
            "<table>\n<caption>%s</caption>\n<thead>\n",
            label, caption);
}

/* ---- verdict ----------------------------------------------------------------------------- */

static void print_tile(FILE *file, const char *title, double rate, double share,
                       const char *ceiling, const char *limit)
{
    char text[16];
    fprintf(file, "<div class=\"tile\"><span>%s</span><b>%s <small>samples/s</small></b><span>",
            title, bench_short_number(text, rate));
    if (strcmp(limit, "unknown") != 0 && limit[0] != '\0')
        fprintf(file, "%s-bound", limit);
    if (isfinite(share)) {
        fprintf(file, "%s%.0f %% of the ceiling (",
                strcmp(limit, "unknown") != 0 && limit[0] != '\0' ? ", " : "", share * 100);
        bench_html_text(file, ceiling);
        fputs(")", file);
    }
    fputs("</span></div>\n", file);
}

static void print_tiles(FILE *file, const struct bench_cell *best)
{
    const struct bench_first_epoch *first = &best->first;
    char title[64];
    fputs("<div class=\"tiles\">\n", file);
    if (first->separate)
        print_tile(file, "First epoch", first->samples_per_s, first->ceiling_share, first->ceiling,
                   first->limit);
    snprintf(title, sizeof(title), "Later epochs, from the %s cache", best->cache);
    print_tile(file, first->separate ? title : "Each epoch, without a cache", best->samples_per_s,
               best->ceiling_share, best->ceiling, best->limit);
    fprintf(file,
            "<div class=\"tile\"><span>Recommended</span><b>%s%" PRId32
            " <small>worker%s</small></b><span>batch %" PRIu32 ", %s, pin_memory %s</span></div>\n"
            "</div>\n",
            best->automatic ? "auto: " : "", best->workers, best->workers == 1 ? "" : "s",
            best->batch_size, best->dtype, best->pin_memory);
}

static void print_verdict(FILE *file, const struct bench_report *report)
{
    const struct bench_advice *advice = report->advice;
    fputs("<section class=\"card\">\n<h2>Verdict</h2>\n", file);
    if (advice->best != NULL)
        print_tiles(file, advice->best);
    fputs("<p>", file);
    bench_html_text(file, advice->verdict);
    fputs(".</p>\n", file);
    if (advice->found) {
        fputs("<h3>Paste this into your program</h3>\n<pre>", file);
        bench_html_text(file, advice->options);
        fputs("</pre>\n", file);
    }
    fputs("</section>\n", file);
}

/* ---- charts ------------------------------------------------------------------------------ */

static void print_figures(FILE *file, const struct bench_report *report,
                          void (*draw)(FILE *file, const struct bench_chart *chart))
{
    const bool separate = report->advice->best->first.separate;
    struct bench_chart chart;
    fputs("<div class=\"charts\">\n", file);
    for (int kind = separate ? 0 : 1; kind < 2; kind++) {
        bench_chart_choose(&chart, report, kind == 0);
        fprintf(file, "<figure>\n<h3>%s</h3>\n",
                kind == 0  ? "First epoch"
                : separate ? "Later epochs"
                           : "Each epoch");
        draw(file, &chart);
        fputs("</figure>\n", file);
    }
    fputs("</div>\n", file);
}

static void print_charts(FILE *file, const struct bench_report *report)
{
    const struct bench_cell *best = report->advice->best;
    if (best == NULL)
        return;
    fputs("<section class=\"card\">\n<h2>Samples per second by number of workers</h2>\n", file);
    print_figures(file, report, bench_html_rates);
    fprintf(file,
            "<p class=\"about\">Batch %" PRIu32
            ", %s, cache %s. The ceiling is what a bare loop of the "
            "same work reaches on as many threads.</p>\n</section>\n",
            best->batch_size, best->dtype, best->cache);
    fputs("<section class=\"card\">\n<h2>Where the loader's time goes</h2>\n", file);
    print_figures(file, report, bench_html_stages);
    fputs("<p class=\"about\">Time of all the loader's threads per sample, at the right, and each "
          "stage's share of it. Waiting for a free slot means that the loader is ahead of the "
          "program.</p>\n</section>\n",
          file);
}

/* ---- the table of cells ------------------------------------------------------------------ */

static const struct column cell_columns[] = {
    { "workers", "", "threads that ran; <em>auto</em>: the loader chose them", false, false },
    { "pin", "", "pin_memory as asked for: page-locked batches, which a GPU copies faster", true,
      false },
    { "batch", "", NULL, false, false },
    { "type", "", NULL, true, false },
    { "cache", "", "what the loader keeps in memory after the first epoch", true, false },
    { "rate", "samples/s",
      "median of the repeats, of first epochs and of later ones. Without a cache all epochs are of "
      "one "
      "kind, and stand under <em>later</em>",
      false, true },
    { "limit", "", "the stage that holds the loader back", true, false },
    { "ceiling", "% of it", "the rate against that of a bare loop doing the same work", false,
      false },
    { "rate", "samples/s", NULL, false, true },
    { "spread", "%", "largest less smallest repeat, as a share of the median", false, false },
    { "limit", "", NULL, true, false },
    { "ceiling", "% of it", NULL, false, false },
    { "data", "GB/s", "bytes of images delivered", false, false },
    { "first batch", "ms", "from before create to the first batch", false, true },
    { "CPU", "s/M", "processor seconds of the process per million samples", false, false },
    { "stall", "%", "share of the time that the program waited for a batch", false, false },
    { "memory", "MB", "by which the process grew", false, false },
    { "locked", "MB", "page-locked memory", false, false },
};
enum { CELL_COLUMNS = sizeof(cell_columns) / sizeof(cell_columns[0]), OPTION_COLUMNS = 5 };

static void print_measured(FILE *file, const struct bench_cell *row)
{
    const struct bench_first_epoch *first = &row->first;
    const uint64_t grown =
        row->rss_bytes > row->rss_base_bytes ? row->rss_bytes - row->rss_base_bytes : 0;
    const double unknown = first->separate ? 1 : NAN; /* a single figure is shown once */
    print_short(file, first->samples_per_s * unknown, true);
    print_cell(file, first->separate ? first->limit : "");
    print_number(file, first->ceiling_share * 100 * unknown, 0, "");
    print_short(file, row->samples_per_s, true);
    print_number(file, row->spread * 100, 0, "");
    print_cell(file, row->limit);
    print_number(file, row->ceiling_share * 100, 0, "");
    print_number(file, row->bytes_per_s / 1e9, 2, "");
    fputs("<td class=\"begin\">", file);
    if (isfinite(row->first_batch_ms))
        fprintf(file, "%.2f</td>", row->first_batch_ms);
    else
        fputs("–</td>", file);
    print_number(file, row->cpu_s_per_million, 3, "");
    print_number(file, row->stall_share * 100, 0, "");
    print_number(file, (double)grown / 1e6, 1, "");
    print_number(file, (double)row->locked_bytes / 1e6, 1, "");
}

/* How batches get to a GPU, with the type: "float32, copied ahead, converted on device". */
static void print_type(FILE *file, const struct bench_cell *row)
{
    fputs("<td class=\"word\">", file);
    bench_html_text(file, row->dtype);
    if (strcmp(row->layout, "nchw") == 0)
        fputs(" nchw", file);
    if (row->non_blocking[0] != '\0')
        fprintf(file, ", %s, converted on %s",
                strcmp(row->non_blocking, "on") == 0 ? "copied ahead" : "blocking", row->convert);
    fputs("</td>", file);
}

static void print_cell_row(FILE *file, const struct bench_cell *row, bool best)
{
    assert(row != NULL);
    fprintf(file, "<tr%s><th scope=\"row\">", best ? " class=\"best\"" : "");
    if (row->automatic && row->error[0] != '\0')
        fputs("auto", file);
    else
        fprintf(file, "%s%" PRId32, row->automatic ? "auto: " : "", row->workers);
    fputs("</th>", file);
    print_cell(file, row->pin_memory);
    fprintf(file, "<td>%" PRIu32 "</td>", row->batch_size);
    print_type(file, row);
    print_cell(file, row->cache);
    if (row->error[0] == '\0') {
        print_measured(file, row);
    } else {
        fprintf(file,
                "<td class=\"error\" colspan=\"%d\">%s: ", (int)CELL_COLUMNS - (int)OPTION_COLUMNS,
                row->skipped ? "skipped" : "failed");
        bench_html_text(file, row->error);
        fputs("</td>", file);
    }
    fputs("</tr>\n", file);
}

static void print_meanings(FILE *file)
{
    fputs("<h3 style=\"margin-top:1.2em\">What the columns mean</h3>\n<dl>\n", file);
    for (size_t index = 0; index < CELL_COLUMNS; index++)
        if (cell_columns[index].meaning != NULL)
            fprintf(file, "<dt>%s</dt><dd>%s</dd>\n", cell_columns[index].name,
                    cell_columns[index].meaning);
    fputs("</dl>\n", file);
}

static void print_cells(FILE *file, const struct bench_report *report)
{
    fputs("<section class=\"card\">\n<h2>All combinations</h2>\n", file);
    begin_table(file, "All combinations",
                "One row for each combination of options that was measured.");
    fputs("<tr><td colspan=\"5\"></td><th scope=\"colgroup\" colspan=\"3\" class=\"span\">first "
          "epoch</th><th scope=\"colgroup\" colspan=\"5\" class=\"span\">later epochs</th>"
          "<th scope=\"colgroup\" colspan=\"5\" class=\"span\">what it costs</th></tr>\n",
          file);
    print_columns(file, cell_columns, CELL_COLUMNS);
    fputs("</thead>\n<tbody>\n", file);
    for (size_t index = 0; index < report->cell_count; index++)
        print_cell_row(file, &report->cells[index], &report->cells[index] == report->advice->best);
    fputs("</tbody>\n</table>\n</div>\n", file);
    print_meanings(file);
    fputs("</section>\n", file);
}

/* ---- ceilings and the machine -------------------------------------------------------------- */

static void print_ceilings(FILE *file, const struct bench_report *report)
{
    static const struct column columns[] = { { "loop", "", NULL, true, false },
                                             { "threads", "", NULL, false, false },
                                             { "batch", "", NULL, false, false },
                                             { "type", "", NULL, true, false },
                                             { "rate", "samples/s", NULL, false, false },
                                             { "least", "samples/s", NULL, false, false },
                                             { "most", "samples/s", NULL, false, false },
                                             { "data", "GB/s", NULL, false, false },
                                             { "note", "", NULL, true, false } };
    if (report->ceiling_count == 0)
        return;
    fputs("<section class=\"card\">\n<h2>What this machine could do at best</h2>\n", file);
    begin_table(file, "Ceilings",
                "Bare loops over the same data: no slots, no hand-over, no program that takes the "
                "batches.");
    print_columns(file, columns, sizeof(columns) / sizeof(columns[0]));
    fputs("</thead>\n<tbody>\n", file);
    for (size_t index = 0; index < report->ceiling_count; index++) {
        const struct bench_ceiling_row *row = &report->ceilings[index];
        fputs("<tr><th scope=\"row\" class=\"word\">", file);
        bench_html_text(file, row->name);
        fprintf(file, "</th><td>%" PRIu32 "</td>", row->threads);
        print_count(file, row->batch_size);
        print_cell(file, row->dtype);
        print_short(file, row->samples_per_s, false);
        print_short(file, row->samples_per_s_min, false);
        print_short(file, row->samples_per_s_max, false);
        print_number(file, row->bytes_per_s / 1e9, 2, "");
        print_cell(file, row->note);
        fputs("</tr>\n", file);
    }
    fputs("</tbody>\n</table>\n</div>\n</section>\n", file);
}

static void print_fact(FILE *file, const char *name, const char *text)
{
    if (text[0] == '\0')
        return;
    fprintf(file, "<dt>%s</dt><dd>", name);
    bench_html_text(file, text);
    fputs("</dd>\n", file);
}

static void print_machine(FILE *file, const struct bench_machine *machine)
{
    char text[BENCH_MOMENT_BYTES];
    fputs("<section class=\"card\">\n<h2>Where and when</h2>\n<dl>\n", file);
    print_fact(file, "date", machine->date);
    print_fact(file, "host", machine->host);
    snprintf(text, sizeof(text), "%s, %" PRIu32 " CPU%s, %.1f GiB", machine->cpu, machine->cpus,
             machine->cpus == 1 ? "" : "s", (double)machine->memory_bytes / 0x1p30);
    print_fact(file, "machine", text);
    if (machine->ranks > 1) {
        snprintf(text, sizeof(text), "%" PRIu32 " of %s: rates and ceilings are of all together",
                 machine->ranks, machine->launcher);
        print_fact(file, "ranks", text);
    }
    print_fact(file, "GPU", machine->gpu);
    print_fact(file, "system", machine->kernel);
    print_fact(file, "disk", machine->disk);
    if (isfinite(machine->load_1m)) {
        snprintf(text, sizeof(text), "%.2f over a minute before it began", machine->load_1m);
        print_fact(file, "load", text);
    }
    snprintf(text, sizeof(text), "loaderbench %s, libstoker %s, commit %s, %s",
             machine->tool_version, machine->library_version, machine->commit, machine->compiler);
    print_fact(file, "version", text);
    print_fact(file, "command", machine->args);
    fputs("</dl>\n</section>\n", file);
}

/* ---- the page ------------------------------------------------------------------------------ */

static void print_head(FILE *file, const struct bench_machine *machine)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n<title>loaderbench: ",
          file);
    bench_html_text(file, machine->dataset);
    fputs("</title>\n", file);
    bench_html_style(file);
    fputs("</head>\n<body>\n<main>\n<header>\n", file);
    fputs("<p class=\"over\">How fast Stoker loads</p>\n<h1>", file);
    bench_html_text(file, machine->dataset);
    fprintf(file,
            "</h1>\n<p class=\"about\">%" PRIu64 " samples of %" PRIu64 " bytes. Measured <time>",
            machine->samples, machine->row_bytes);
    bench_html_text(file, machine->date);
    fputs("</time> on ", file);
    bench_html_text(file, machine->host);
    fprintf(file, " (%" PRIu32 " CPU%s)", machine->cpus, machine->cpus == 1 ? "" : "s");
    if (machine->ranks > 1)
        fprintf(file, ", %" PRIu32 " ranks together", machine->ranks);
    fputs(".</p>\n</header>\n", file);
}

static void start(struct bench_sheet *sheet, const struct bench_machine *machine)
{
    sheet->machine = machine;
}

static void cell(struct bench_sheet *sheet, const struct bench_cell *row)
{
    (void)sheet;
    (void)row;
}

static void ceiling(struct bench_sheet *sheet, const struct bench_ceiling_row *row)
{
    (void)sheet;
    (void)row;
}

static void advice(struct bench_sheet *sheet, const struct bench_advice *row)
{
    (void)sheet;
    (void)row;
}

static void finish(struct bench_sheet *sheet, const struct bench_report *report)
{
    FILE *file = sheet->file;
    print_head(file, report->machine);
    print_verdict(file, report);
    print_charts(file, report);
    print_cells(file, report);
    print_ceilings(file, report);
    print_machine(file, report->machine);
    fputs("</main>\n</body>\n</html>\n", file);
    fflush(file);
}

const struct bench_form bench_form_html = { "html", start, cell, ceiling, advice, finish };
