/* html_stages.c - the chart of where the time goes: a bar of 100 % per number of workers.
 *
 *     1  ▐ read ▌▐     decode     ▌▐ convert ▌   1.4 ms     thread time per sample
 */
#include "bench/output/html_write.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 400,
    LEFT = 46,
    RIGHT = 330,
    BAR = 22,
    ROW = 31,
    TOP = 22,
    ROWS_MAX = 12,
    STAGES = 4
};

static const char *const names[STAGES] = { "read", "decode", "convert", "wait" };
static const char *const meanings[STAGES] = { "reading", "decoding", "gathering and converting",
                                              "waiting for a free slot" };

static void shares_of(const struct bench_chart *chart, const struct bench_cell *cell,
                      double out[STAGES])
{
    const struct bench_stages *stages = chart->first ? &cell->first.stages : &cell->stages;
    out[0] = stages->read_us;
    out[1] = stages->decode_us;
    out[2] = stages->convert_us;
    out[3] = stages->slot_wait_us;
}

static double sum_of(const double times[STAGES])
{
    return times[0] + times[1] + times[2] + times[3];
}

/* "37 ns", "1.4 ms": two or three digits. */
static void print_time(FILE *file, double us)
{
    const char *unit = us < 1 ? "ns" : us < 1000 ? "µs" : us < 1e6 ? "ms" : "s";
    const double value = us < 1 ? us * 1e3 : us < 1000 ? us : us < 1e6 ? us / 1e3 : us / 1e6;
    fprintf(file, "%.*f %s", value < 9.95 ? 1 : 0, value, unit);
}

/* Only cells with the recommended pin_memory, which does not affect the stages. */
static bool is_shown(const struct bench_chart *chart, const struct bench_cell *cell)
{
    double times[STAGES];
    shares_of(chart, cell, times);
    return strcmp(cell->pin_memory, chart->report->advice->best->pin_memory) == 0 &&
           sum_of(times) > 0;
}

static void draw_bar(FILE *file, const struct bench_chart *chart, const struct bench_cell *cell,
                     int y)
{
    double times[STAGES], x = LEFT;
    char workers[16];
    shares_of(chart, cell, times);
    const double whole = sum_of(times);
    fprintf(file, "<text class=\"end\" x=\"%d\" y=\"%d\">%s</text>", LEFT - 8, y + BAR / 2 + 4,
            bench_chart_workers(cell, workers));
    for (int stage = 0; stage < STAGES; stage++) {
        const double width = (RIGHT - LEFT) * times[stage] / whole;
        const double share = 100 * times[stage] / whole;
        if (width < 0.05)
            continue;
        fprintf(
            file,
            "<rect class=\"stage-%s\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"><title>%s: "
            "%.1f %%</title></rect>",
            names[stage], x, y, width, BAR, meanings[stage], share);
        if (width > 34)
            fprintf(file, "<text class=\"on-%s middle\" x=\"%.1f\" y=\"%d\">%.0f %%</text>",
                    names[stage], x + width / 2, y + BAR / 2 + 4, share);
        x += width;
    }
    fprintf(file, "<text x=\"%d\" y=\"%d\">", RIGHT + 8, y + BAR / 2 + 4);
    print_time(file, whole);
    fputs("</text>\n", file);
}

static void draw_axis(FILE *file, int bottom)
{
    for (int percent = 0; percent <= 100; percent += 25) {
        const double x = LEFT + (RIGHT - LEFT) * percent / 100.0;
        fprintf(file,
                "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/><text "
                "class=\"middle\" x=\"%.1f\" y=\"%d\">%d %%</text>",
                x, x, TOP - 4, bottom, x, bottom + 16, percent);
    }
    fprintf(file,
            "<text class=\"title\" x=\"2\" y=\"12\">workers</text>"
            "<text class=\"title\" x=\"%d\" y=\"12\">per sample</text>\n",
            RIGHT - 4);
}

static void print_legend(FILE *file, const bool used[STAGES])
{
    fputs("<ul class=\"legend\">", file);
    for (int stage = 0; stage < STAGES; stage++)
        if (used[stage])
            fprintf(file,
                    "<li><svg class=\"key\" viewBox=\"0 0 26 14\" aria-hidden=\"true\"><rect "
                    "class=\"stage-%s\" x=\"5\" width=\"16\" height=\"14\"/></svg>%s</li>",
                    names[stage], meanings[stage]);
    fputs("</ul>\n", file);
}

void bench_html_stages(FILE *file, const struct bench_chart *chart)
{
    const struct bench_cell *shown[ROWS_MAX];
    bool used[STAGES] = { false };
    int rows = 0;
    for (size_t index = 0; index < chart->count && rows < ROWS_MAX; index++) {
        double times[STAGES];
        if (!is_shown(chart, chart->cells[index]))
            continue;
        shown[rows++] = chart->cells[index];
        shares_of(chart, chart->cells[index], times);
        for (int stage = 0; stage < STAGES; stage++)
            used[stage] = used[stage] || times[stage] > 0;
    }
    const int bottom = TOP + rows * ROW;
    print_legend(file, used);
    fprintf(file,
            "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Shares of the "
            "threads' time by stage, for each number of workers\">\n",
            WIDTH, bottom + 22);
    draw_axis(file, bottom);
    for (int row = 0; row < rows; row++)
        draw_bar(file, chart, shown[row], TOP + row * ROW + 4);
    fputs("</svg>\n", file);
}
