/* curve_points.h - the points of one curve, in a fixed room whatever their number.
 *
 * When the room is full, neighbours are averaged and each later point stands for twice as many
 * numbers: a run of any length keeps its shape, evenly, in half the room or more. */
#ifndef STK_TRAINER_CURVE_POINTS_H
#define STK_TRAINER_CURVE_POINTS_H

#include <stdint.h>

enum { STK_CURVE_POINTS = 2048 }; /* even */

struct stk_curve_points {
    double x[STK_CURVE_POINTS], y[STK_CURVE_POINTS];
    uint32_t count;  /* whole points */
    uint32_t in_sum; /* numbers of the next one so far */
    uint64_t width;  /* numbers that make a point; 0 = 1 */
    double x_sum, y_sum;
};

static inline void stk_curve_halve(struct stk_curve_points *points)
{
    for (uint32_t i = 0; i < STK_CURVE_POINTS / 2; i++) {
        points->x[i] = (points->x[2 * i] + points->x[2 * i + 1]) / 2;
        points->y[i] = (points->y[2 * i] + points->y[2 * i + 1]) / 2;
    }
    points->count = STK_CURVE_POINTS / 2;
    points->width *= 2;
}

static inline void stk_curve_add(struct stk_curve_points *points, double x, double y)
{
    if (points->width == 0)
        points->width = 1;
    points->x_sum += x;
    points->y_sum += y;
    points->in_sum++;
    if (points->in_sum < points->width)
        return;
    points->x[points->count] = points->x_sum / points->in_sum;
    points->y[points->count] = points->y_sum / points->in_sum;
    points->count++;
    points->in_sum = 0;
    points->x_sum = points->y_sum = 0;
    if (points->count == STK_CURVE_POINTS)
        stk_curve_halve(points);
}

#endif
