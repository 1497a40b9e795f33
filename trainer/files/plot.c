/* plot.c - see plot.h. */
#include "trainer/files/plot.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "loader/base/output_file.h"
#include "loader/base/write_all.h"
#include "trainer/files/decimal.h"
#include "trainer/files/json.h"
#include "trainer/files/plot_words.h"

enum {
    WIDTH = 860,
    HEIGHT = 480,
    LEFT = 70,
    RIGHT = WIDTH - 70,
    TOP = 64,
    BOTTOM = HEIGHT - 52,
    TICKS = 6,        /* about so many on an axis */
    POINT_BYTES = 32, /* of a lone point; others are "L123.4 567.8" */
    CURVE_BYTES = 2048,
    FRAME_BYTES = 32768,
    TEXT_MAX = 200, /* characters of a title or a name that are shown */
    TITLE_Y = 20,
    LEGEND_Y = 38, /* of its first line */
    LEGEND_LINE = 18,
    LEGEND_KEY = 24, /* the piece of line ahead of a name, */
    LEGEND_GAP = 18, /* and what is left free behind it */
    LABEL_MAX = (RIGHT - LEFT) / 2 - 20
};

static const struct stk_plot_font title_font = { .pixels = 15, .bold = true };
static const struct stk_plot_font plain_font = { .pixels = 12 };

/* ---- text ----------------------------------------------------------------------- */

struct text {
    char *at;
    size_t used, capacity;
};

__attribute__((format(printf, 2, 3))) static void print(struct text *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(to->at + to->used, to->capacity - to->used, format, arguments);
    va_end(arguments);
    assert(length >= 0);
    assert((size_t)length < to->capacity - to->used); /* see room_for() */
    to->used += (size_t)length;
}

/* Words of the user: markup escaped, what is no text replaced. */
static void print_words(struct text *to, const char *words)
{
    size_t left = strlen(words);
    for (int shown = 0; left > 0 && shown < TEXT_MAX; shown++) {
        const size_t length = stk_utf8_length(words, left);
        if (length == 0 || (unsigned char)*words < 0x20)
            print(to, "?");
        else if (*words == '<' || *words == '>' || *words == '&' || *words == '"')
            print(to, "&#%d;", *words);
        else
            print(to, "%.*s", (int)length, words);
        words += length > 0 ? length : 1;
        left -= length > 0 ? length : 1;
    }
}

/* The same, shortened to a width. */
static void print_fitting(struct text *to, const char *words, double pixels,
                          const struct stk_plot_font *font)
{
    char fitting[STK_PLOT_WORDS_BYTES];
    stk_plot_fit(fitting, words, pixels, font);
    print_words(to, fitting);
}

/* A coordinate in tenths, without the locale's comma. */
static void print_place(struct text *to, const char *before, double pixels)
{
    const long tenths = lround(pixels * 10);
    print(to, "%s%ld.%ld", before, tenths / 10, labs(tenths % 10));
}

/* ---- axes ----------------------------------------------------------------------- */

struct axis {
    double low, high;  /* values at the two ends */
    double begin, end; /* pixels there */
    double step;       /* between ticks */
};

static double place_on(const struct axis *axis, double value)
{
    return axis->begin + (value - axis->low) / (axis->high - axis->low) * (axis->end - axis->begin);
}

/* 1, 2 or 5 times a power of ten. */
static double nice_step(double range)
{
    const double rough = range / (double)TICKS;
    const double power = pow(10, floor(log10(rough)));
    const double times = rough / power;
    return (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10) * power;
}

static void widen(struct axis *axis, double value)
{
    axis->low = value < axis->low ? value : axis->low;
    axis->high = value > axis->high ? value : axis->high;
}

static bool drawable(const struct stk_curve *curve, uint32_t i)
{
    /* Not beyond 1e100: differences of what is drawn must be finite. */
    return fabs(curve->x[i]) < 1e100 && fabs(curve->y[i]) < 1e100;
}

/* Ends on ticks; a range of nothing becomes one around its value. */
static void round_ends(struct axis *axis, bool to_ticks)
{
    if (axis->low > axis->high) { /* no point at all */
        axis->low = 0;
        axis->high = 1;
    }
    if (axis->high - axis->low < 1e-9 * fabs(axis->high) || axis->high <= axis->low) {
        const double around = axis->high == 0 ? 1 : fabs(axis->high) / 2;
        axis->low -= around;
        axis->high += around;
    }
    axis->step = nice_step(axis->high - axis->low);
    if (to_ticks) {
        axis->low = floor(axis->low / axis->step) * axis->step;
        axis->high = ceil(axis->high / axis->step) * axis->step;
    }
}

struct frame {
    struct axis x, y[2]; /* y[1]: the right one */
    bool has_right;
};

static struct frame measure(const struct stk_plot *plot)
{
    struct frame frame = { .x = {
                               .low = INFINITY, .high = -INFINITY, .begin = LEFT, .end = RIGHT } };
    for (int side = 0; side < 2; side++)
        frame.y[side] =
            (struct axis){ .low = INFINITY, .high = -INFINITY, .begin = BOTTOM, .end = TOP };
    for (uint32_t c = 0; c < plot->curve_count; c++) {
        const struct stk_curve *curve = &plot->curves[c];
        frame.has_right |= curve->right;
        for (uint32_t i = 0; i < curve->count; i++) {
            if (!drawable(curve, i))
                continue;
            widen(&frame.x, curve->x[i]);
            widen(&frame.y[curve->right], curve->y[i]);
        }
    }
    if (plot->mark != NULL)
        widen(&frame.x, plot->mark_x);
    round_ends(&frame.x, false);
    round_ends(&frame.y[0], true);
    round_ends(&frame.y[1], true);
    return frame;
}

/* The first tick at or after low; ticks are counted, so that no error adds up. */
static double tick_value(const struct axis *axis, int n)
{
    const double first = ceil(axis->low / axis->step - 1e-6);
    const double value = (first + n) * axis->step;
    return fabs(value) < axis->step * 1e-6 ? 0 : value;
}

static bool tick_fits(const struct axis *axis, int n)
{
    return n <= 2 * TICKS && tick_value(axis, n) <= axis->high + axis->step * 1e-6;
}

static void draw_y_axis(struct text *to, const struct axis *axis, bool right, const char *label)
{
    char number[STK_DECIMAL_BYTES];
    for (int n = 0; tick_fits(axis, n); n++) {
        const double value = tick_value(axis, n);
        const double y = place_on(axis, value);
        if (!right) {
            print(to, "<path class=\"grid\" d=\"M%d ", LEFT);
            print_place(to, "", y);
            print(to, "H%d\"/>\n", RIGHT);
        }
        print(to, "<text x=\"%d\" ", right ? RIGHT + 8 : LEFT - 8);
        print_place(to, "y=\"", y + 4);
        print(to, "\" text-anchor=\"%s\">%s</text>\n", right ? "start" : "end",
              stk_decimal(number, value, 6));
    }
    print(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">", right ? RIGHT : LEFT, TOP - 8,
          right ? "end" : "start");
    print_fitting(to, label, LABEL_MAX, &plain_font);
    print(to, "</text>\n");
}

static void draw_x_axis(struct text *to, const struct axis *axis, const char *label)
{
    char number[STK_DECIMAL_BYTES];
    print(to, "<path class=\"axis\" d=\"M%d %dH%d\"/>\n", LEFT, BOTTOM, RIGHT);
    for (int n = 0; tick_fits(axis, n); n++) {
        const double value = tick_value(axis, n);
        print_place(to, "<path class=\"axis\" d=\"M", place_on(axis, value));
        print(to, " %dv5\"/>", BOTTOM);
        print_place(to, "<text x=\"", place_on(axis, value));
        print(to, "\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", BOTTOM + 20,
              stk_decimal(number, value, 9));
    }
    print(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + RIGHT) / 2, BOTTOM + 42);
    print_words(to, label);
    print(to, "</text>\n");
}

/* ---- curves --------------------------------------------------------------------- */

/* Okabe and Ito's colours, without their yellow: told apart by colour-blind readers, too. */
static const char *colour(uint32_t curve)
{
    static const char *const colours[] = { "#0072B2", "#D55E00", "#009E73",
                                           "#CC79A7", "#E69F00", "#56B4E9" };
    return colours[curve % (sizeof(colours) / sizeof(colours[0]))];
}

static void draw_curve(struct text *to, const struct frame *frame, const struct stk_curve *curve,
                       uint32_t number)
{
    print(to, "<path class=\"curve\" stroke=\"%s\"%s d=\"", colour(number),
          curve->right ? " stroke-dasharray=\"6 3\"" : "");
    bool pen_down = false;
    for (uint32_t i = 0; i < curve->count; i++) {
        const bool before = pen_down;
        pen_down = drawable(curve, i);
        if (!pen_down)
            continue;
        print_place(to, before ? "L" : "M", place_on(&frame->x, curve->x[i]));
        print_place(to, " ", place_on(&frame->y[curve->right], curve->y[i]));
        const bool alone = !before && (i + 1 == curve->count || !drawable(curve, i + 1));
        if (alone)
            print(to, "m-3 0l3-3 3 3-3 3z"); /* a point has no length: a diamond around it */
    }
    print(to, "\"/>\n");
}

/* A line from top to bottom, with its words on the side that has more room. */
static void draw_mark(struct text *to, const struct frame *frame, const struct stk_plot *plot)
{
    const double x = place_on(&frame->x, plot->mark_x);
    const bool left = x > (double)(LEFT + RIGHT) / 2;
    print_place(to, "<path class=\"mark\" stroke-dasharray=\"2 2\" d=\"M", x);
    print(to, " %dV%d\"/>", TOP, BOTTOM);
    print_place(to, "<text class=\"mark\" x=\"", x + (left ? -6 : 6));
    print(to, "\" y=\"%d\" text-anchor=\"%s\">", TOP + 14, left ? "end" : "start");
    print_words(to, plot->mark);
    print(to, "</text>\n");
}

/* The names of the curves under the title, from left to right, in as many lines as they take; to == NULL only
 * counts. Returns the lines. */
static int draw_legend(struct text *to, const struct stk_plot *plot)
{
    char name[STK_PLOT_WORDS_BYTES];
    double x = LEFT;
    int lines = plot->curve_count > 0 ? 1 : 0;
    for (uint32_t c = 0; c < plot->curve_count; c++) {
        stk_plot_fit(name, plot->curves[c].name, RIGHT - LEFT - LEGEND_KEY, &plain_font);
        const double width = LEGEND_KEY + stk_plot_width(name, &plain_font);
        if (x + width > RIGHT && x > LEFT) {
            x = LEFT;
            lines++;
        }
        if (to != NULL) {
            const int y = LEGEND_Y + (lines - 1) * LEGEND_LINE;
            print(to, "<path class=\"curve\" stroke=\"%s\"%s d=\"M", colour(c),
                  plot->curves[c].right ? " stroke-dasharray=\"6 3\"" : "");
            print_place(to, "", x);
            print(to, " %dh18\"/>", y - 4);
            print_place(to, "<text x=\"", x + LEGEND_KEY);
            print(to, "\" y=\"%d\">", y);
            print_words(to, name);
            print(to, "</text>\n");
        }
        x += width + LEGEND_GAP;
    }
    return lines;
}

static void draw_title(struct text *to, const char *title)
{
    print(to, "<title>");
    print_words(to, title); /* all of it, for who points at the picture */
    print(to, "</title>\n<text class=\"title\" x=\"%d\" y=\"%d\">", LEFT, TITLE_Y);
    print_fitting(to, title, RIGHT - LEFT, &title_font);
    print(to, "</text>\n");
}

static void draw(struct text *to, const struct stk_plot *plot)
{
    const struct frame frame = measure(plot);
    const int legend_lines = draw_legend(NULL, plot);
    const int down = legend_lines > 1 ? (legend_lines - 1) * LEGEND_LINE : 0;
    print(to,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
          "height=\"%d\">\n<style>text{font:12px sans-serif;fill:#333}"
          ".title{font-size:15px;font-weight:bold}path.mark{stroke:#C00}"
          "text.mark{fill:#C00}.grid{stroke:#ddd}.axis{stroke:#333}"
          ".curve{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}</style>\n"
          "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
          WIDTH, HEIGHT + down, WIDTH, HEIGHT + down);
    if (plot->title != NULL)
        draw_title(to, plot->title);
    (void)draw_legend(to, plot);
    print(to, "<g transform=\"translate(0 %d)\">\n", down);
    draw_y_axis(to, &frame.y[0], false, plot->y_label);
    if (frame.has_right)
        draw_y_axis(to, &frame.y[1], true, plot->right_label);
    draw_x_axis(to, &frame.x, plot->x_label);
    for (uint32_t c = 0; c < plot->curve_count; c++)
        draw_curve(to, &frame, &plot->curves[c], c);
    if (plot->mark != NULL)
        draw_mark(to, &frame, plot);
    print(to, "</g>\n</svg>\n");
}

/* ---- the file ------------------------------------------------------------------- */

static size_t room_for(const struct stk_plot *plot)
{
    size_t bytes = FRAME_BYTES;
    for (uint32_t c = 0; c < plot->curve_count; c++)
        bytes += CURVE_BYTES + (size_t)plot->curves[c].count * POINT_BYTES;
    return bytes;
}

static int failure(const char *path, int code, int os_errno, const char *what, stoker_error *error)
{
    struct stk_place place = STK_NOWHERE;
    place.path = path;
    place.os_errno = os_errno;
    return stk_error_set(error, code, STOKER_STAGE_TRANSFER, &place, "%s", what);
}

static int place_file(const struct text *text, const char *path, stoker_error *error)
{
    struct stk_output output;
    int os_errno = stk_output_open(&output, path);
    if (os_errno == 0 && !stk_write_all(output.fd, text->at, text->used)) {
        os_errno = errno;
        stk_output_drop(&output);
    } else if (os_errno == 0) {
        os_errno = stk_output_commit(&output);
    }
    if (os_errno == 0)
        return STOKER_OK;
    return failure(path, stk_error_from_errno(os_errno), os_errno,
                   os_errno == ENXIO ? stk_output_reason(os_errno) : "write the plot", error);
}

int stk_plot_write(const struct stk_plot *plot, const char *path, stoker_error *error)
{
    assert(plot->curve_count <= STK_PLOT_CURVES_MAX);
    struct text text = { .capacity = room_for(plot) };
    text.at = stk_calloc(1, text.capacity);
    if (text.at == NULL)
        return failure(path, STOKER_ENOMEM, 0, "the picture", error);
    draw(&text, plot);
    const int rc = place_file(&text, path, error);
    stk_free(text.at);
    return rc;
}
