/* html_rates.c - the chart of samples/s against workers.
 *
 *    samples/s
 *    500 k ┤- - - - - - -  ceiling
 *          │    ●────●
 *          │  ■────■             ● auto has its own place
 *        0 ┼──┬────┬─────┬
 *             1    2    auto     workers
 */
#include "bench/output/html_write.h"
#include "bench/output/output.h"
#include "bench/output/short_number.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    WIDTH = 400,
    HEIGHT = 262,
    LEFT = 50,
    RIGHT = 390,
    TOP = 26,
    BOTTOM = 216,
    PLACES_MAX = BENCH_CHART_CELLS,
    LABELS_MAX = 10
};

struct places {
    const struct bench_cell *at[PLACES_MAX]; /* one cell per number of workers */
    size_t count;
    double top; /* end of the axis */
    double step;
};

static double rate_of(const struct bench_chart *chart, const struct bench_cell *cell)
{
    return chart->first ? cell->first.samples_per_s : cell->samples_per_s;
}

static double ceiling_of(const struct bench_chart *chart, const struct bench_cell *cell)
{
    return chart->first ? cell->first.ceiling_samples_per_s : cell->ceiling_samples_per_s;
}

static bool same_place(const struct bench_cell *a, const struct bench_cell *b)
{
    return a->automatic == b->automatic && (a->automatic || a->workers == b->workers);
}

/* 1, 2, 2.5 or 5 times a power of ten, so that about four steps reach the top. */
static double round_step(double top)
{
    const double power = pow(10, floor(log10(top / 4)));
    const double digits = top / 4 / power;
    return power * (digits <= 1 ? 1 : digits <= 2 ? 2 : digits <= 2.5 ? 2.5 : digits <= 5 ? 5 : 10);
}

static void find_places(struct places *out, const struct bench_chart *chart)
{
    double most = 0;
    out->count = 0;
    for (size_t index = 0; index < chart->count; index++) {
        const struct bench_cell *cell = chart->cells[index];
        if (out->count == 0 || !same_place(out->at[out->count - 1], cell))
            out->at[out->count++] = cell;
        most = fmax(most, rate_of(chart, cell));
        most = fmax(most, ceiling_of(chart, cell)); /* if one is NaN, the other */
    }
    out->step = most > 0 ? round_step(most) : 1;
    out->top = ceil(most * 1.02 / out->step) * out->step;
}

static double x_of(const struct places *places, size_t place)
{
    return LEFT + (RIGHT - LEFT) * ((double)place + 0.5) / (double)places->count;
}

static double y_of(const struct places *places, double value)
{
    return BOTTOM - (BOTTOM - TOP) * value / places->top;
}

/* "1.5 M": as many digits as needed. */
static void print_tick(FILE *file, double value)
{
    static const char *const units[] = { "", " k", " M", " G", " T" };
    size_t unit = 0;
    for (; value >= 999.5 && unit < 4; unit++)
        value /= 1000;
    fprintf(file, "%.3g%s", value, units[unit]);
}

static void draw_axes(FILE *file, const struct places *places)
{
    for (int tick = 0; tick * places->step <= places->top * 1.001; tick++) {
        const double value = tick * places->step;
        const double y = y_of(places, value);
        fprintf(file,
                "<line class=\"%s\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text class=\"end\" x=\"%d\" y=\"%.1f\">",
                value > 0 ? "grid" : "axis", LEFT, RIGHT, y, y, LEFT - 7, y + 4);
        print_tick(file, value);
        fputs("</text>\n", file);
    }
    const size_t every = (places->count + LABELS_MAX - 1) / LABELS_MAX;
    for (size_t place = 0; place < places->count; place++) {
        char text[16];
        if (place % (every < 1 ? 1 : every) == 0 || places->at[place]->automatic)
            fprintf(file, "<text class=\"middle\" x=\"%.1f\" y=\"%d\">%s</text>\n",
                    x_of(places, place), BOTTOM + 19, bench_chart_workers(places->at[place], text));
    }
    fprintf(file,
            "<text class=\"title\" x=\"2\" y=\"12\">samples/s</text>"
            "<text class=\"title middle\" x=\"%d\" y=\"%d\">workers</text>\n",
            (LEFT + RIGHT) / 2, HEIGHT - 6);
}

/* The cell with that number of workers and that pin_memory, or NULL. */
static const struct bench_cell *find_cell(const struct bench_chart *chart,
                                          const struct bench_cell *place, const char *pin)
{
    for (size_t index = 0; index < chart->count; index++)
        if (same_place(chart->cells[index], place) &&
            strcmp(chart->cells[index]->pin_memory, pin) == 0)
            return chart->cells[index];
    return NULL;
}

/* The ceiling for a number of workers: that of its first cell. A median over its cells would be one more
 * number to explain. */
static double ceiling_at(const struct bench_chart *chart, const struct bench_cell *place)
{
    for (size_t index = 0; index < chart->count; index++)
        if (same_place(chart->cells[index], place) &&
            isfinite(ceiling_of(chart, chart->cells[index])))
            return ceiling_of(chart, chart->cells[index]);
    return NAN;
}

/* Draws the ceiling as a step over each number of workers. */
static void draw_ceiling(FILE *file, const struct bench_chart *chart, const struct places *places)
{
    const double half = (double)(RIGHT - LEFT) / (double)places->count / 2;
    fputs("<path class=\"ceiling\" d=\"", file);
    bool drawing = false;
    for (size_t place = 0; place < places->count; place++) {
        const double value = ceiling_at(chart, places->at[place]);
        const bool apart = places->at[place]->automatic;
        if (!isfinite(value)) {
            drawing = false;
            continue;
        }
        const double x = x_of(places, place), y = y_of(places, value);
        fprintf(file, "%s%.1f %.1f L%.1f %.1f ", drawing && !apart ? "L" : "M",
                x - half + (apart ? 6 : 0), y, x + half, y);
        drawing = true;
    }
    fputs("\"/>\n", file);
}

static void draw_mark(FILE *file, const char *pin, double x, double y)
{
    if (strcmp(pin, "on") == 0)
        fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>", x, y);
    else if (strcmp(pin, "off") == 0)
        fprintf(file, "<rect x=\"%.1f\" y=\"%.1f\" width=\"8\" height=\"8\"/>", x - 4, y - 4);
    else
        fprintf(file, "<path d=\"M%.1f %.1f l5 9 h-10 z\"/>", x, y - 5);
}

static void draw_line(FILE *file, const struct bench_chart *chart, const struct places *places,
                      const char *pin)
{
    bool drawing = false;
    fprintf(file, "<g class=\"pin-%s\"><path class=\"line\" d=\"", pin);
    for (size_t place = 0; place < places->count; place++) {
        const struct bench_cell *cell = find_cell(chart, places->at[place], pin);
        if (cell == NULL || cell->automatic || !isfinite(rate_of(chart, cell))) {
            drawing = false;
            continue;
        }
        fprintf(file, "%s%.1f %.1f ", drawing ? "L" : "M", x_of(places, place),
                y_of(places, rate_of(chart, cell)));
        drawing = true;
    }
    fputs("\"/>", file);
    for (size_t place = 0; place < places->count; place++) {
        const struct bench_cell *cell = find_cell(chart, places->at[place], pin);
        if (cell != NULL && isfinite(rate_of(chart, cell)))
            draw_mark(file, pin, x_of(places, place), y_of(places, rate_of(chart, cell)));
    }
    fputs("</g>\n", file);
}

/* Prints the recommended cell's rate at its mark. */
static void label_best(FILE *file, const struct bench_chart *chart, const struct places *places)
{
    const struct bench_cell *best = chart->report->advice->best;
    char text[16];
    for (size_t place = 0; place < places->count; place++) {
        if (!same_place(places->at[place], best) || !isfinite(rate_of(chart, best)))
            continue;
        fprintf(file, "<text class=\"value middle\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                x_of(places, place), y_of(places, rate_of(chart, best)) - 11,
                bench_short_number(text, rate_of(chart, best)));
    }
}

static void print_legend(FILE *file, const struct bench_chart *chart, const char *const pins[3],
                         const bool used[3])
{
    static const char *const names[3] = { "pinned", "not pinned", "pinned if possible" };
    const struct bench_cell *best = chart->report->advice->best;
    const char *ceiling = chart->first ? best->first.ceiling : best->ceiling;
    fputs("<ul class=\"legend\">", file);
    for (size_t pin = 0; pin < 3; pin++) {
        if (!used[pin])
            continue;
        fprintf(file,
                "<li><svg class=\"key\" viewBox=\"0 0 26 14\" aria-hidden=\"true\"><g "
                "class=\"pin-%s\"><path class=\"line\" d=\"M1 7 H25\"/>",
                pins[pin]);
        draw_mark(file, pins[pin], 13, 7);
        fprintf(file, "</g></svg>%s</li>", names[pin]);
    }
    if (ceiling[0] != '\0') {
        fputs("<li><svg class=\"key\" viewBox=\"0 0 26 14\" aria-hidden=\"true\"><path "
              "class=\"ceiling\" d=\"M1 7 H25\"/></svg>ceiling: ",
              file);
        bench_html_text(file, ceiling);
        fputs("</li>", file);
    }
    fputs("</ul>\n", file);
}

void bench_html_rates(FILE *file, const struct bench_chart *chart)
{
    static const char *const pins[3] = { "on", "off", "auto" };
    struct places places;
    bool used[3] = { false };
    find_places(&places, chart);
    for (size_t index = 0; index < chart->count; index++)
        for (size_t pin = 0; pin < 3; pin++)
            used[pin] = used[pin] || strcmp(chart->cells[index]->pin_memory, pins[pin]) == 0;
    print_legend(file, chart, pins, used);
    fprintf(
        file,
        "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Samples per second "
        "against workers, pinned and not, with the ceiling; the table below has the numbers\">\n",
        WIDTH, HEIGHT);
    draw_axes(file, &places);
    draw_ceiling(file, chart, &places);
    for (size_t pin = 3; pin-- > 0;)
        if (used[pin])
            draw_line(file, chart, &places, pins[pin]);
    label_best(file, chart, &places);
    fputs("</svg>\n", file);
}
