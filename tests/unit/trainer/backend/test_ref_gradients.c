/* test_ref_gradients.c - the gradients of `ref`, layer by layer, against central differences.
 *
 * The loss of a layer is sum(y * dy), added in double. Most layers are linear in each of their
 * inputs within the step used, so that the difference is exact but for the rounding of y; for
 * BatchNorm the error of the difference itself is allowed for. */
#include "support/leaks.h"
#include "support/trainer/trainer_case.h"

#include <math.h>

enum { BATCH = 3 };

struct slope {
    const struct stk_bench *forward; /* the first operation alone */
    const struct stk_pass *pass;
    const float *weights_of_y; /* dy */
    uint64_t outputs;
    int y;
    bool is_loss;
    const float *inputs; /* x as it was: a layer in place writes over it */
    uint64_t input_count;
};

static double loss_of(const struct slope *slope)
{
    struct stk_loss loss = { 0 };
    stoker_error error = { 0 };
    const struct stk_bench *bench = slope->forward;
    cr_assert_eq(bench->ops->run(bench->program, &bench->arenas, slope->pass, &loss, &error), 0,
                 "%s", error.message);
    if (slope->is_loss)
        return loss.loss_sum;
    double sum = 0;
    for (uint64_t i = 0; i < slope->outputs; i++)
        sum += (double)stk_bench_buffer(bench, slope->y)[i] * (double)slope->weights_of_y[i];
    return sum;
}

/* The slope of the loss along one number; x is made again before each run. */
static double slope_at(const struct slope *slope, float *number, float step)
{
    float *x = stk_bench_buffer(slope->forward, STK_CASE_X);
    double losses[2];
    float at[2];
    for (int side = 0; side < 2; side++) {
        const float before = *number;
        *number = side == 0 ? before + step : before - step;
        at[side] = *number;
        memcpy(x, slope->inputs, slope->input_count * sizeof(float));
        losses[side] = loss_of(slope);
        *number = before;
    }
    return (losses[0] - losses[1]) / ((double)at[0] - (double)at[1]);
}

static void check_slopes(const struct slope *slope, const char *name, const char *what,
                         float *numbers, const float *gradients, uint64_t count, float step,
                         double tolerance)
{
    for (uint64_t i = 0; i < count; i++) {
        const double expected = slope_at(slope, &numbers[i], step);
        const double found = (double)gradients[i];
        cr_assert(fabs(expected - found) <= tolerance * (1 + fabs(expected)),
                  "%s, %s %d: difference %.9g, gradient %.9g", name, what, (int)i, expected, found);
    }
}

static const int64_t labels[BATCH] = { 2, 0, 4 };
static const float targets[BATCH * 5] = { 0.5F, -1, 0.25F,  2,     1, 0.5F, 0, 0,
                                          1,    -2, 0.125F, 0.75F, 1, 3,    -1 };

static bool is_loss(enum stk_layer_kind kind)
{
    return kind == STK_MSE || kind == STK_SOFTMAX_CROSS_ENTROPY;
}

/* So small that no maximum changes hands and no curvature shows; so large that rounding is
 * small. */
static float step_of(enum stk_layer_kind kind)
{
    if (kind == STK_MAX_POOL)
        return 1.0F / 4096; /* values come through unrounded */
    if (is_loss(kind))
        return 1.0F / 1024; /* the loss is worked out in double */
    return kind == STK_BATCH_NORM ? 1.0F / 128 : 1.0F / 16;
}

static void check_layer(const struct stk_case_layer *asked)
{
    struct stk_case whole, first;
    struct stk_bench all, forward;
    stk_case_make(&whole, asked, BATCH);
    stk_case_make(&first, asked, BATCH);
    first.plan.op_count = 1;
    const struct stk_backend_options options = { .threads = 1 };
    stk_bench_open(&all, &stk_backend_ref, &options, &whole.plan);
    stk_bench_open(&forward, &stk_backend_ref, &options, &first.plan);
    stk_bench_fill(&all, 7);
    stk_bench_fill(&forward, 7);

    const float step = step_of(asked->kind);
    const double tolerance = asked->kind == STK_BATCH_NORM ? 2e-3 : 2e-5;
    const struct stk_layer *layer = &whole.layers[1];
    const struct stk_pass pass = { .labels = asked->kind == STK_MSE ? (const void *)targets
                                                                    : (const void *)labels,
                                   .count = BATCH,
                                   .step = 5,
                                   .seed = 11,
                                   .gradient_scale = 1 };
    float *dy = malloc(whole.buffers[STK_CASE_DY].bytes);
    float *x = malloc(whole.buffers[STK_CASE_X].bytes);
    float *dx_before = malloc(whole.buffers[STK_CASE_DX].bytes);
    cr_assert(dy != NULL && x != NULL && dx_before != NULL);
    memcpy(dy, stk_bench_buffer(&all, STK_CASE_DY), whole.buffers[STK_CASE_DY].bytes);
    memcpy(x, stk_bench_buffer(&all, STK_CASE_X), whole.buffers[STK_CASE_X].bytes);
    memcpy(dx_before, stk_bench_buffer(&all, STK_CASE_DX), whole.buffers[STK_CASE_DX].bytes);

    struct stk_loss loss;
    stoker_error error = { 0 };
    cr_assert_eq(all.ops->run(all.program, &all.arenas, &pass, &loss, &error), 0, "%s",
                 error.message);
    float *dx = stk_bench_buffer(&all, whole.ops[is_loss(asked->kind) ? 0 : 1].dx);
    const uint64_t inputs = stk_shape_elements(layer->in) * BATCH;
    for (uint64_t i = 0; asked->kind == STK_ADD && i < inputs; i++)
        dx[i] -= dx_before[i]; /* ACCUMULATE adds */

    const struct slope slope = { .forward = &forward,
                                 .pass = &pass,
                                 .weights_of_y = dy,
                                 .outputs = stk_shape_elements(layer->out) * BATCH,
                                 .y = whole.ops[0].y,
                                 .is_loss = is_loss(asked->kind),
                                 .inputs = x,
                                 .input_count = inputs };
    /* slope_at() takes x from `inputs`, so what is moved is the copy. */
    check_slopes(&slope, asked->name, "x", x, dx, inputs, step, tolerance);
    for (int i = 0; i < 2; i++)
        check_slopes(&slope, asked->name, i == 0 ? "weight" : "bias",
                     forward.arenas.parameters + whole.parameters[i].offset,
                     all.arenas.gradients + whole.parameters[i].offset,
                     whole.parameters[i].elements, step, tolerance);
    free(dy);
    free(x);
    free(dx_before);
    stk_bench_close(&all);
    stk_bench_close(&forward);
}

#define SHAPE(height, width, channels)                                                             \
    {                                                                                              \
        .rank = 3, .h = (height), .w = (width), .c = (channels)                                    \
    }

static const struct stk_case_layer layers[] = {
    { "conv 1x1", STK_CONV2D, SHAPE(3, 2, 2), .outputs = 3, .biased = true },
    { "conv 3x3", STK_CONV2D, SHAPE(5, 4, 3), .outputs = 2, .kernel = { 3, 3 }, .biased = true },
    { "conv 2x3 strided, padded", STK_CONV2D, SHAPE(5, 6, 2), .outputs = 3, .kernel = { 2, 3 },
      .stride = { 2, 3 }, .padding = { 1, 2 }, .biased = true },
    { "conv in groups, no bias", STK_CONV2D, SHAPE(4, 4, 4), .outputs = 6, .kernel = { 3, 2 },
      .padding = { 1, 0 }, .groups = 2 },
    { "conv depthwise", STK_CONV2D, SHAPE(4, 5, 3), .outputs = 3, .kernel = { 3, 3 },
      .padding = { 1, 1 }, .groups = 3, .biased = true },
    { "conv of the whole sample", STK_CONV2D, SHAPE(3, 4, 2), .outputs = 2, .kernel = { 3, 4 } },
    { "linear", STK_LINEAR, SHAPE(1, 1, 7), .outputs = 5, .biased = true },
    { "linear of an image, no bias", STK_LINEAR, SHAPE(2, 3, 2), .outputs = 1 },
    { "max pool", STK_MAX_POOL, SHAPE(5, 5, 2), .kernel = { 2, 2 }, .stride = { 2, 2 } },
    { "max pool overlapping, padded", STK_MAX_POOL, SHAPE(5, 6, 2), .kernel = { 3, 2 },
      .stride = { 2, 1 }, .padding = { 1, 1 } },
    { "max pool, relu", STK_MAX_POOL, SHAPE(5, 6, 2), .kernel = { 2, 2 }, .stride = { 1, 2 },
      .relu = true },
    { "max pool of all, wide", STK_MAX_POOL, SHAPE(17, 16, 1), .kernel = { 17, 16 } },
    { "average pool", STK_AVG_POOL, SHAPE(5, 4, 2), .kernel = { 2, 2 }, .stride = { 2, 2 } },
    { "average pool overlapping, padded", STK_AVG_POOL, SHAPE(5, 5, 1), .kernel = { 3, 3 },
      .stride = { 2, 1 }, .padding = { 1, 1 } },
    { "relu", STK_RELU, SHAPE(2, 3, 3), .outputs = 0 },
    { "relu in place", STK_RELU, SHAPE(2, 3, 3), .in_place = true },
    { "batch norm", STK_BATCH_NORM, SHAPE(3, 2, 3), .biased = true },
    { "batch norm, relu", STK_BATCH_NORM, SHAPE(3, 2, 3), .relu = true, .biased = true },
    { "batch norm of features", STK_BATCH_NORM, SHAPE(1, 1, 4), .biased = true },
    { "dropout", STK_DROPOUT, SHAPE(3, 5, 5), .rate = 0.25F },
    { "dropout in place", STK_DROPOUT, SHAPE(3, 5, 5), .rate = 0.5F, .in_place = true },
    { "add", STK_ADD, SHAPE(2, 2, 3), .outputs = 0 },
    { "cross-entropy", STK_SOFTMAX_CROSS_ENTROPY, SHAPE(1, 1, 5), .outputs = 0 },
    { "cross-entropy, smoothed", STK_SOFTMAX_CROSS_ENTROPY, SHAPE(1, 1, 5), .rate = 0.1F },
    { "mse", STK_MSE, SHAPE(1, 1, 5), .outputs = 0 },
};

CleanTest(trainer_gradients, are_the_slopes_of_the_loss)
{
    for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++)
        check_layer(&layers[i]);
}
