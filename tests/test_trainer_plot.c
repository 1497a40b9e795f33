/* test_trainer_plot.c - the picture of the curves: where points and ticks land, what is escaped. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>

#include "dataset_files.h"
#include "leaks.h"
#include "loader/base/fault.h"
#include "trainer/files/curve_points.h"
#include "trainer/files/plot.h"
#include "trainer/files/plot_words.h"

enum { SVG_BYTES = 1 << 20 };
static char svg[SVG_BYTES];

/* Draw into a directory of its own; afterwards svg holds the picture. */
static void drawn(const struct stk_plot *plot)
{
    struct stk_directory directory = stk_directory_make();
    char path[512];
    stoker_error error = { 0 };
    stk_path_in(path, &directory, "loss.svg");
    cr_assert_eq(stk_plot_write(plot, path, &error), STOKER_OK, "%s", error.message);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t size = read(fd, svg, SVG_BYTES - 1);
    cr_assert_gt(size, 0);
    svg[size] = '\0';
    close(fd);
    stk_directory_remove(&directory);
    cr_assert_eq(strncmp(svg, "<svg ", 5), 0);
    cr_assert_str_eq(svg + size - 7, "</svg>\n");
    cr_assert_null(strstr(svg, "nan"));
    cr_assert_null(strstr(svg, "inf"));
    cr_assert_eq(stk_fault_live_bytes(), 0);
}

static struct stk_plot plot_of(const struct stk_curve *curves, uint32_t count)
{
    return (struct stk_plot){ .title = "mnist",
                              .x_label = "step",
                              .y_label = "loss",
                              .right_label = "accuracy",
                              .curves = curves,
                              .curve_count = count };
}

static bool shows(const char *text)
{
    return strstr(svg, text) != NULL;
}

Test(plot, points_land_where_the_axes_say)
{
    static const double x[] = { 0, 50, 100 };
    static const double loss[] = { 3, 1.5, 0 };
    static const double accuracy[] = { 0, 0.5, 1 };
    const struct stk_curve curves[] = {
        { .name = "train/loss", .x = x, .y = loss, .count = 3 },
        { .name = "test/accuracy", .x = x, .y = accuracy, .count = 3, .right = true },
    };
    const struct stk_plot plot = plot_of(curves, 2);
    drawn(&plot);
    /* The frame is 70..790 by 428..64. */
    cr_assert(shows("d=\"M70.0 64.0L430.0 246.0L790.0 428.0\""));
    cr_assert(shows("d=\"M70.0 428.0L430.0 246.0L790.0 64.0\""));
    cr_assert(shows("text-anchor=\"end\">1.5</text>"));
    cr_assert(shows("text-anchor=\"start\">0.8</text>"));
    cr_assert(shows("text-anchor=\"middle\">60</text>"));
    cr_assert(shows(">loss</text>"));
    cr_assert(shows(">accuracy</text>"));
    cr_assert(shows(">step</text>"));
    cr_assert(shows(">mnist</text>"));
    cr_assert(shows(">train/loss</text>"));
    cr_assert(shows("stroke-dasharray"));
    stk_test_check_leaks();
}

Test(plot, without_points_or_with_odd_ones_it_is_still_a_picture)
{
    static const double x[] = { 1, 2, 3, 4, 5 };
    static const double gaps[] = { 1, NAN, 2, INFINITY, 3 };
    static const double flat[] = { 7, 7, 7, 7, 7 };
    static const double huge[] = { -1e300, 1e300, 1e99, -1e99, 0 };
    static const double tiny[] = { 1, 1 + 1e-16, 1, 1, 1 };
    static const double *const ys[] = { gaps, flat, huge, tiny };
    struct stk_plot plot = plot_of(NULL, 0);
    drawn(&plot);
    cr_assert_not(shows("stroke-dasharray"));
    for (size_t i = 0; i < sizeof(ys) / sizeof(ys[0]); i++) {
        for (uint32_t count = 0; count <= 5; count++) {
            const struct stk_curve curve = { .name = "c", .x = x, .y = ys[i], .count = count };
            plot = plot_of(&curve, 1);
            plot.title = NULL;
            drawn(&plot);
        }
    }
    const struct stk_curve curve = { .name = "c", .x = x, .y = gaps, .count = 5 };
    plot = plot_of(&curve, 1);
    drawn(&plot);
    cr_assert(
        shows("d=\"M70.0 428.0m-3 0l3-3 3 3-3 3zM430.0 246.0m-3 0l3-3 3 3-3 3zM790.0 64.0m-3 0"
              "l3-3 3 3-3 3z\"")); /* three lone points */
    stk_test_check_leaks();
}

/* Where a run diverged: after its last point. */
Test(plot, a_mark_stands_where_something_happened)
{
    static const double x[] = { 0, 5 };
    static const double y[] = { 0, 1 };
    const struct stk_curve curve = { .name = "c", .x = x, .y = y, .count = 2 };
    struct stk_plot plot = plot_of(&curve, 1);
    plot.mark = "c & d";
    plot.mark_x = 10;
    drawn(&plot);
    cr_assert(shows("d=\"M790.0 64V428\""), "%s", svg);
    cr_assert(shows("text-anchor=\"end\">c &#38; d</text>"));
    cr_assert(shows("L430.0 64.0\"")); /* the axis reaches to the mark */
    plot.curve_count = 0;
    drawn(&plot);
    stk_test_check_leaks();
}

Test(plot, words_of_the_user_are_words)
{
    const struct stk_curve curve = { .name = "<b>&\"\xFF\n\xC3\xA9" };
    struct stk_plot plot = plot_of(&curve, 1);
    char title[3000];
    memset(title, '"', sizeof(title) - 1);
    title[sizeof(title) - 1] = '\0';
    plot.title = title; /* cut, not overflowing */
    drawn(&plot);
    cr_assert(shows(">&#60;b&#62;&#38;&#34;??\xC3\xA9</text>"));
    cr_assert_not(shows("<b>"));
    stk_test_check_leaks();
}

Test(plot, as_many_curves_and_points_as_may_be)
{
    enum { POINTS = STK_CURVE_POINTS };
    static double x[POINTS], y[POINTS];
    struct stk_curve curves[STK_PLOT_CURVES_MAX];
    for (uint32_t i = 0; i < POINTS; i++) {
        x[i] = i;
        y[i] = i % 2 == 0 ? NAN : sin(i); /* lone points are the longest to write */
    }
    for (uint32_t c = 0; c < STK_PLOT_CURVES_MAX; c++)
        curves[c] = (struct stk_curve){ .name = "a curve", .x = x, .y = y, .count = POINTS };
    struct stk_plot plot = plot_of(curves, STK_PLOT_CURVES_MAX);
    drawn(&plot);
    cr_assert_gt(strlen(svg), STK_PLOT_CURVES_MAX * (POINTS / 2) * 12);
    stk_test_check_leaks();
}

Test(plot, the_old_picture_stays_until_the_new_one_is_whole)
{
    struct stk_directory directory = stk_directory_make();
    char path[512];
    stoker_error error = { 0 };
    const struct stk_plot plot = plot_of(NULL, 0);
    stk_path_in(path, &directory, "loss.svg");
    cr_assert_eq(stk_plot_write(&plot, path, &error), STOKER_OK);
    cr_assert_eq(stk_plot_write(&plot, path, &error), STOKER_OK);
    DIR *names = opendir(directory.path);
    int count = 0;
    while (readdir(names) != NULL)
        count++;
    closedir(names);
    cr_assert_eq(count, 3); /* ., .. and the picture */
    cr_assert_eq(stk_plot_write(&plot, stk_path_in(path, &directory, "none/loss.svg"), &error),
                 STOKER_ENOENT);
    stk_fault_arm(STK_FAULT_MEMORY, 1);
    cr_assert_eq(stk_plot_write(&plot, path, &error), STOKER_ENOMEM);
    cr_assert(stk_fault_disarm());
    stk_directory_remove(&directory);
    stk_test_check_leaks();
}

/* However many numbers: the room suffices, and the means are those of equal shares. */
Test(plot, a_long_run_keeps_its_shape)
{
    enum { NUMBERS = 100000 };
    static struct stk_curve_points points;
    for (int i = 0; i < NUMBERS; i++) {
        stk_curve_add(&points, i, 2.0 * i);
        cr_assert_lt(points.count, STK_CURVE_POINTS);
    }
    cr_assert_geq(points.count, STK_CURVE_POINTS / 2);
    const double width = (double)points.width;
    for (uint32_t i = 0; i < points.count; i++) {
        cr_assert_eq(points.x[i], i * width + (width - 1) / 2);
        cr_assert_eq(points.y[i], 2 * points.x[i]);
    }
    stk_test_check_leaks();
}

/* ---- where words are -------------------------------------------------------------- */

struct box {
    double left, right, top, bottom;
    bool is_line;
    char words[64];
};

enum { BOXES_MAX = 128 };

static double number_of(const char *element, const char *name)
{
    const char *at = strstr(element, name);
    return at == NULL ? 0 : strtod(at + strlen(name), NULL);
}

/* The boxes of all words and of the legend's pieces of line. */
static size_t find_boxes(struct box boxes[BOXES_MAX])
{
    size_t count = 0;
    double down = 0;
    char *rest = svg;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && count + 2 < BOXES_MAX;) {
        down += number_of(line, "<g transform=\"translate(0 ");
        const char *key = strstr(line, "h18\"/>");
        if (key != NULL) {
            const char *at = strstr(line, " d=\"M");
            const double x = strtod(at + 5, NULL);
            const double y = strtod(strchr(at + 5, ' '), NULL);
            boxes[count++] = (struct box){ x, x + 18, y - 1, y + 1, true, "key" };
        }
        const char *text = strstr(line, "<text ");
        if (text == NULL)
            continue;
        const struct stk_plot_font font = strstr(text, "class=\"title\"") != NULL
                                              ? (struct stk_plot_font){ 15, true }
                                              : (struct stk_plot_font){ 12, false };
        char words[2048];
        const char *begin = strchr(text, '>') + 1;
        const size_t length = (size_t)(strstr(begin, "</text>") - begin);
        (void)snprintf(words, sizeof(words), "%.*s", (int)length, begin);
        const double x = number_of(text, " x=\"");
        const double y = number_of(text, " y=\"") + down;
        const double width = stk_plot_width(words, &font);
        const double left = strstr(text, "\"end\"") != NULL      ? x - width
                            : strstr(text, "\"middle\"") != NULL ? x - width / 2
                                                                 : x;
        boxes[count] =
            (struct box){ left, left + width, y - font.pixels * 0.76, y + font.pixels * 0.24, false,
                          "" };
        (void)snprintf(boxes[count++].words, sizeof(boxes[0].words), "%.60s", words);
    }
    return count;
}

static bool overlap(const struct box *a, const struct box *b)
{
    return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

static void expect_nothing_overlaps(double height)
{
    static struct box boxes[BOXES_MAX];
    const size_t count = find_boxes(boxes);
    cr_assert_geq(count, 10);
    for (size_t i = 0; i < count; i++) {
        cr_assert(boxes[i].left >= 0 && boxes[i].right <= 860 && boxes[i].top >= 0 &&
                      boxes[i].bottom <= height,
                  "%s is cut off", boxes[i].words);
        for (size_t j = 0; j < i; j++)
            cr_assert_not(overlap(&boxes[i], &boxes[j]), "\"%s\" and \"%s\"", boxes[i].words,
                          boxes[j].words);
    }
}

/* Titles of any length, and as many names as may be: nothing lies over anything else. */
Test(plot, words_and_lines_never_overlap)
{
    static const double x[] = { 0, 100000 };
    static const double y[] = { 0.0001, 0.0009 };
    static const char *const names[] = { "train/loss", "test/loss", "train/accuracy",
                                         "test/accuracy" };
    struct stk_curve curves[12];
    char title[300];
    for (uint32_t c = 0; c < 12; c++)
        curves[c] = (struct stk_curve){
            .name = names[c % 4], .x = x, .y = y, .count = c % 2 + 1, .right = c % 4 > 1
        };
    for (uint32_t length = 0; length < sizeof(title); length += 23) {
        memset(title, length % 2 == 0 ? 'W' : 'm', sizeof(title));
        title[length] = '\0';
        for (uint32_t count = 1; count <= 12; count += 3) {
            struct stk_plot plot = plot_of(curves, count);
            plot.title = title;
            drawn(&plot);
            expect_nothing_overlaps(number_of(svg, " height=\""));
        }
    }
    curves[0].name = title; /* a legend longer than the picture is wide */
    struct stk_plot plot = plot_of(curves, 3);
    drawn(&plot);
    expect_nothing_overlaps(number_of(svg, " height=\""));
    stk_test_check_leaks();
}

Test(plot, a_path_that_is_too_long_keeps_its_end)
{
    char path[240];
    memset(path, 'a', sizeof(path));
    memcpy(path, "mnist fast, folder:/", 20);
    memcpy(path + sizeof(path) - 12, "/pets/train", 12);
    struct stk_plot plot = plot_of(NULL, 0);
    plot.title = path;
    drawn(&plot);
    const char *shown = strstr(svg, "class=\"title\"");
    cr_assert_not_null(shown);
    cr_assert_not_null(strstr(shown, "/pets/train</text>"));
    cr_assert_not_null(strstr(shown, ">mnist fast, folder:/a"));
    cr_assert_not_null(strstr(shown, "\xE2\x80\xA6"));
    stk_test_check_leaks();
}
