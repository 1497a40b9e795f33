/* test_train.c - the source of the training kernels against the trainer's `ref` back end.
 *
 * In float32 a kernel is compared with `ref`; in the 16-bit types with itself: it must write what
 * its float32 form makes of the same inputs, rounded once. What a layer of the `cuda` back end runs
 * is compared there (unit/trainer/cuda/test_layers.c). */
#include "kernels/float16.h"
#include "support/gpu/train_kernel.h"
#include "support/leaks.h"
#include "trainer/backend/ref/operations.h"

#include <math.h>

enum { MANY = 1 << 14 };

/* ---- loss ------------------------------------------------------------------------------------ */

/* What a launch needs beside its operands; the metrics begin as zeros. */
static struct {
    double partial_loss[STK_TRAIN_PARTIALS_MAX];
    uint32_t partial_counts[2 * STK_TRAIN_PARTIALS_MAX], ticket;
    struct stk_train_metrics metrics;
} of_loss;

static struct stk_train_cross_entropy loss_of(const float *x, float *dx, const int64_t *labels,
                                              uint32_t rows, uint32_t classes, float smoothing)
{
    of_loss.metrics = (struct stk_train_metrics){ 0 };
    return (struct stk_train_cross_entropy){ .x = x,
                                             .dx = dx,
                                             .labels = labels,
                                             .rows = rows,
                                             .classes = classes,
                                             .smoothing = smoothing,
                                             .gradient_factor = 1.0F / 64,
                                             .metrics = &of_loss.metrics,
                                             .partial_loss = of_loss.partial_loss,
                                             .partial_counts = of_loss.partial_counts,
                                             .ticket = &of_loss.ticket };
}

/* The same by `ref`. */
static struct stk_loss ref_loss(const struct stk_train_cross_entropy *a, float *dx)
{
    const struct stk_layer layer = { .in = { 1, 1, 1, a->classes }, .rate = a->smoothing };
    const struct stk_pass pass = { .gradient_scale = a->gradient_factor };
    const struct stk_operands o = {
        .layer = &layer, .pass = &pass, .count = a->rows, .x = a->x, .dx = dx, .labels = a->labels
    };
    struct stk_loss loss = { 0 };
    stk_ref_softmax_cross_entropy(&o, &loss);
    return loss;
}

static void check_loss(uint32_t rows, uint32_t classes, float smoothing)
{
    static _Alignas(16) float x[MANY], dx[MANY], wanted[MANY];
    static _Alignas(16) uint16_t x16[MANY];
    int64_t labels[64];
    const size_t count = (size_t)rows * classes;
    fill(x, count, classes);
    for (size_t i = 0; i < count; i++) /* few values in some rows: the first of equal ones counts */
        x[i] = i / classes % 2 == 0 ? x[i] * 20 : rintf(x[i] * 3);
    for (uint32_t i = 0; i < rows; i++) {
        labels[i] = i % 2 == 0 ? i * 7 % classes : 0;
        for (uint32_t k = 0; k < classes && i % 2 == 1; k++)
            if (x[i * classes + k] > x[i * classes + (size_t)labels[i]])
                labels[i] = k;
    }
    struct stk_train_cross_entropy a = loss_of(x, dx, labels, rows, classes, smoothing);
    const struct stk_loss loss = ref_loss(&a, wanted);
    run("softmax_cross_entropy", "_f32", &a);
    cr_assert_float_eq(of_loss.metrics.loss_sum, loss.loss_sum, 2e-6 * loss.loss_sum, "%u classes",
                       classes);
    cr_assert_eq(of_loss.metrics.correct, loss.correct);
    cr_assert_eq(of_loss.metrics.count, rows);
    cr_assert_eq(of_loss.metrics.bad_labels, 0);
    for (size_t i = 0; i < count; i++)
        cr_assert_float_eq(dx[i], wanted[i], 1e-7, "%u classes, %zu", classes, i);

    for (int half = 0; half < 2; half++) { /* in place */
        round_all(x16, x, count, half);
        a.x = x;
        a.dx = dx;
        run("softmax_cross_entropy", "_f32", &a);
        a.x = a.dx = x16;
        run("softmax_cross_entropy", narrow[half], &a);
        check_rounded(x16, dx, count, half, "softmax_cross_entropy");
    }
}

CleanTest(train_kernels, cross_entropy_is_that_of_ref)
{
    check_loss(64, 10, 0);
    check_loss(33, 10, 0.1F);
    check_loss(7, 1000, 0.1F);
    check_loss(3, 1, 0);
    check_loss(5, 33, 0);
}

/* A run that diverged must show it, and a class that is ruled out must not look like that. */
CleanTest(train_kernels, cross_entropy_of_what_is_not_finite)
{
    static const float bad[] = { NAN, -INFINITY, INFINITY };
    enum { CLASSES = 40 };
    const int64_t label = 1;
    float x[CLASSES], dx[CLASSES], wanted[CLASSES];
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
        for (uint32_t at = 0; at < CLASSES; at++) {
            fill(x, CLASSES, 3);
            x[at] = bad[k];
            const struct stk_train_cross_entropy a = loss_of(x, dx, &label, 1, CLASSES, 0);
            const double expected = ref_loss(&a, wanted).loss_sum;
            run("softmax_cross_entropy", "_f32", &a);
            const double found = of_loss.metrics.loss_sum;
            cr_assert_eq(isfinite(found), isfinite(expected), "%g at %u: %g, ref %g",
                         (double)bad[k], at, found, expected);
            cr_assert(!isfinite(expected) || fabs(found - expected) <= 1e-5);
            for (uint32_t i = 0; i < CLASSES; i++)
                cr_assert_eq(isfinite(dx[i]), isfinite(wanted[i]), "%u: %g, ref %g", i,
                             (double)dx[i], (double)wanted[i]);
        }
}

CleanTest(train_kernels, the_loss_scale_multiplies_gradients_and_bad_labels_make_none)
{
    const float x[3 * 4] = { 1, 2, 3, 4, 4, 3, 2, 1, 0, 0, 0, 5 };
    float plain[12], scaled[12];
    const int64_t labels[3] = { -1, 4, 3 };
    const struct stk_train_state state = { .loss_scale = 1024 };
    struct stk_train_cross_entropy a = loss_of(x, plain, labels, 3, 4, 0);
    run("softmax_cross_entropy", "_f32", &a);
    cr_assert_eq(of_loss.metrics.bad_labels, 2);
    cr_assert_eq(of_loss.metrics.correct, 1);
    a.dx = scaled;
    a.state = &state;
    run("softmax_cross_entropy", "_f32", &a);
    for (int i = 0; i < 12; i++) {
        cr_assert_float_eq(scaled[i], plain[i] * 1024, 1e-4);
        cr_assert(i >= 8 || plain[i] == 0);
    }
    const double before = of_loss.metrics.loss_sum;
    a.dx = NULL; /* evaluation: the loss alone */
    run("softmax_cross_entropy", "_f32", &a);
    cr_assert_float_eq(of_loss.metrics.loss_sum, before * 1.5, 1e-6);
}

/* ---- bias ------------------------------------------------------------------------------------ */

enum { CHANNELS = 37, PIXELS = 200, IMAGE = PIXELS * CHANNELS };

CleanTest(train_kernels, a_bias_gets_the_sum_over_all_pixels)
{
    static _Alignas(16) float dy[2 * IMAGE]; /* the second half must not be read */
    static _Alignas(16) uint16_t dy16[2 * IMAGE];
    static _Alignas(16) float partial_sums[STK_TRAIN_PARTIALS_MAX * CHANNELS];
    uint32_t tickets[2] = { 0 };
    fill(dy, 2 * IMAGE, 4);
    const uint32_t chunks[] = { 1, 7, PIXELS, STK_TRAIN_PARTIALS_MAX };
    for (int i = 0; i < 4; i++) {
        float sums[CHANNELS];
        float sums16[CHANNELS];
        for (int c = 0; c < CHANNELS; c++)
            sums[c] = sums16[c] = 100;
        struct stk_train_bias_gradient a = { dy,   PIXELS,       CHANNELS, chunks[i],
                                             sums, partial_sums, tickets,  0 };
        run("bias_gradient", "_f32", &a);
        for (int c = 0; c < CHANNELS; c++) {
            double wanted = 100;
            for (int pixel = 0; pixel < PIXELS; pixel++)
                wanted += (double)dy[pixel * CHANNELS + c];
            cr_assert_float_eq(sums[c], wanted, 2e-5, "channel %d", c);
        }
        for (int half = 0; half < 2; half++) {
            for (int c = 0; c < CHANNELS; c++)
                sums[c] = sums16[c] = 0;
            round_all(dy16, dy, 2 * IMAGE, half);
            run("bias_gradient", "_f32", &a);
            struct stk_train_bias_gradient a16 = a;
            a16.dy = dy16;
            a16.bias_grad = sums16;
            run("bias_gradient", narrow[half], &a16);
            cr_assert_eq(memcmp(sums, sums16, sizeof(sums)), 0);
        }
    }
}

CleanTest(train_kernels, the_table_names_each_kernel_once)
{
    for (const struct stk_kernel *a = stk_train_kernels; a->name != NULL; a++) {
        cr_assert_eq(stk_train_kernel_named(a->name), a, "%s", a->name);
        cr_assert(a->grid != NULL && a->arguments_bytes > 0);
        cr_assert_leq(a->arguments_bytes, 4096, "what a kernel may be given");
    }
    cr_assert_null(stk_train_kernel_named("stk_train_nothing"));
}
