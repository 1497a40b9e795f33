/* plot.h - curves over training steps as an SVG picture.
 *
 *   title                                              shortened to the width
 *   ── a  ── b                                         legend, in as many lines as it takes
 *   loss ┌──────────────────────────┐ accuracy
 *        │ ╲                     ___│                    the right axis is there only if a
 *        │  ╲__            ___---   │                    curve asks for it
 *        └──────────────────────────┘
 *          0      1000      2000   step
 */
#ifndef STK_TRAINER_PLOT_H
#define STK_TRAINER_PLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/error.h>

enum { STK_PLOT_CURVES_MAX = 32 };

struct stk_curve {
    const char *name; /* in the legend */
    const double *x, *y;
    uint32_t count;
    bool right; /* measured on the right axis */
};

struct stk_plot {
    const char *title;                 /* NULL = none */
    const char *x_label;               /* "step" */
    const char *y_label, *right_label; /* "loss", "accuracy" */
    const char *mark;                  /* a word on what happened at mark_x; NULL = nothing did */
    double mark_x;
    const struct stk_curve *curves;
    uint32_t curve_count; /* 0..STK_PLOT_CURVES_MAX */
};

/* Draw; path is replaced at once when the picture is whole. Points that are not finite are left
 * out, and the line has a gap there; a point between two gaps is a diamond. */
int stk_plot_write(const struct stk_plot *plot, const char *path, stoker_error *error);

#endif
