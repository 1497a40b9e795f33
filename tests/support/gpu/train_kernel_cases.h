/* train_kernel_cases.h - launches of every kernel of a training step: sizes around each limit of
 * its loops, and options.
 *
 * Losses and the norm of gradients are added in another order by other grids, and a GPU has its own
 * exp and log: nearly equal. All else has the same bits.
 */
#ifndef STK_TEST_TRAIN_KERNEL_CASES_H
#define STK_TEST_TRAIN_KERNEL_CASES_H

#include "kernels/train/dropout.h"
#include "kernels/train/elements.h"
#include "support/gpu/kernel_case.h"

/* Takes over the case. */
typedef void kernel_case_fn(struct kernel_case *c);

static const char *const kernel_suffixes[] = { "_f32", "_f16", "_bf16" };
enum { KERNEL_TYPES = 3 };

#define HOLE(type, field) offsetof(struct type, field)
#define COUNT_OF(array)   (sizeof(array) / sizeof((array)[0]))

static const unsigned char kernel_zeros[512];

static inline struct stk_train_state kernel_state(bool use)
{
    return (struct stk_train_state){
        .step = 7, .tried = 9, .loss_scale = 1024, .use = use, .finite = 1, .norm_squared = 33
    };
}

static inline void kernel_case_state(struct kernel_case *c, size_t hole)
{
    const struct stk_train_state state = kernel_state(true);
    (void)kernel_case_bytes(c, hole, "state", ROLE_IN, &state, sizeof(state));
}

static inline void kernel_case_metrics(struct kernel_case *c, size_t hole)
{
    const struct stk_train_metrics before = { 1.5, 2, 3, 4 };
    struct kernel_buffer *b =
        kernel_case_bytes(c, hole, "metrics", ROLE_IN_OUT, &before, sizeof(before));
    b->loose_at = offsetof(struct stk_train_metrics, loss_sum);
    b->loose = 3e-7; /* a lane's share of a row is float32 */
}

/* Makes every number positive. */
static inline void kernel_buffer_positive(struct kernel_buffer *b)
{
    for (size_t i = 0; i < b->made; i++)
        kernel_put(b, i, fabs(kernel_get(b, b->begin, i)) + 0.1);
}

/* Multiplies every number. */
static inline void kernel_buffer_scale(struct kernel_buffer *b, double factor)
{
    for (size_t i = 0; i < b->made; i++)
        kernel_put(b, i, kernel_get(b, b->begin, i) * factor);
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* mode: 0 with a gradient, 1 the loss alone, with smoothing, 2 the gradient in place of x, with bad
 * labels, 3 as 0 with equal and infinite logits, 4 with some that make no number of a row. */
static inline struct kernel_case *cross_entropy_case(int type, uint32_t rows, uint32_t classes,
                                                     int mode)
{
    static const double gradients_differ[] = { 2e-6, 2e-3, 1e-2 };
    const struct stk_train_cross_entropy a = { .rows = rows,
                                               .classes = classes,
                                               .smoothing = mode == 1 ? 0.1F : 0,
                                               .gradient_factor = 1.0F / 64 };
    struct kernel_case *c =
        kernel_case_begin("stk_train_softmax_cross_entropy", kernel_suffixes[type], &a, sizeof(a));
    const size_t count = (size_t)rows * classes;
    const size_t threads = (size_t)rows * stk_train_row_lanes(classes);
    const size_t blocks = (threads + 255) / 256 < 1024 ? (threads + 255) / 256 : 1024;
    kernel_case_label(c, "%u x %u, mode %d", rows, classes, mode);
    struct kernel_buffer *x =
        kernel_case_add(c, HOLE(stk_train_cross_entropy, x), "x", (enum kernel_number)type,
                        mode == 2 ? ROLE_IN_OUT : ROLE_IN, count);
    kernel_buffer_scale(x, 8);
    for (size_t i = 0; i < x->count && mode > 2; i++)
        kernel_put(x, i,
                   mode == 4 && i % 97 == 5    ? (double)NAN
                   : mode == 4 && i % 89 == 60 ? (double)INFINITY
                   : i % 5 == 2                ? -(double)INFINITY
                                               : (double)(stk_mix64(i) % 3));
    x->loose = gradients_differ[type];
    if (mode == 2)
        kernel_case_alias(c, HOLE(stk_train_cross_entropy, dx), x);
    else if (mode != 1)
        kernel_case_add(c, HOLE(stk_train_cross_entropy, dx), "dx", (enum kernel_number)type,
                        ROLE_OUT, count)
            ->loose = gradients_differ[type];
    int64_t *labels = calloc(rows, sizeof(*labels));
    cr_assert_not_null(labels);
    for (uint32_t i = 0; i < rows; i++)
        labels[i] = mode == 2 && i % 7 == 3   ? -1
                    : mode == 2 && i % 7 == 5 ? (int64_t)classes
                                              : (int64_t)(stk_mix64(i) % classes);
    kernel_case_bytes(c, HOLE(stk_train_cross_entropy, labels), "labels", ROLE_IN, labels,
                      rows * sizeof(*labels));
    free(labels);
    if (mode == 1 || mode == 2)
        kernel_case_state(c, HOLE(stk_train_cross_entropy, state));
    kernel_case_metrics(c, HOLE(stk_train_cross_entropy, metrics));
    kernel_case_add(c, HOLE(stk_train_cross_entropy, partial_loss), "partial_loss", NUMBER_F64,
                    ROLE_SCRATCH, blocks);
    kernel_case_add(c, HOLE(stk_train_cross_entropy, partial_counts), "partial_counts", NUMBER_BYTE,
                    ROLE_SCRATCH, blocks * 8);
    kernel_case_bytes(c, HOLE(stk_train_cross_entropy, ticket), "ticket", ROLE_IN_OUT, kernel_zeros,
                      4);
    return c;
}

static inline struct kernel_case *mse_case(int type, uint32_t rows, uint32_t outputs, int mode)
{
    const struct stk_train_mse a = { .rows = rows,
                                     .outputs = outputs,
                                     .gradient_factor = 1.0F / 64 };
    struct kernel_case *c =
        kernel_case_begin("stk_train_mse", kernel_suffixes[type], &a, sizeof(a));
    const size_t count = (size_t)rows * outputs;
    const size_t blocks = (count + 255) / 256 < 1024 ? (count + 255) / 256 : 1024;
    kernel_case_label(c, "%u x %u, mode %d", rows, outputs, mode);
    struct kernel_buffer *x =
        kernel_case_add(c, HOLE(stk_train_mse, x), "x", (enum kernel_number)type,
                        mode == 2 ? ROLE_IN_OUT : ROLE_IN, count);
    kernel_case_add(c, HOLE(stk_train_mse, targets), "targets", NUMBER_F32, ROLE_IN, count);
    if (mode == 2)
        kernel_case_alias(c, HOLE(stk_train_mse, dx), x);
    else if (mode == 0)
        kernel_case_add(c, HOLE(stk_train_mse, dx), "dx", (enum kernel_number)type, ROLE_OUT,
                        count);
    if (mode > 0)
        kernel_case_state(c, HOLE(stk_train_mse, state));
    kernel_case_metrics(c, HOLE(stk_train_mse, metrics));
    kernel_case_add(c, HOLE(stk_train_mse, partial_loss), "partial_loss", NUMBER_F64, ROLE_SCRATCH,
                    blocks);
    kernel_case_bytes(c, HOLE(stk_train_mse, ticket), "ticket", ROLE_IN_OUT, kernel_zeros, 4);
    return c;
}

static inline void each_loss_case(kernel_case_fn *visit)
{
    static const uint32_t rows[][2] = {
        { 1, 1 },   { 1, 2 },   { 7, 10 },  { 8, 10 },  { 9, 10 },
        { 33, 31 }, { 33, 33 }, { 3, 300 }, { 64, 10 }, { 17, 65 }
    };
    static const uint32_t outputs[][2] = {
        { 1, 1 }, { 255, 1 }, { 256, 1 }, { 257, 1 }, { 100, 33 }
    };
    for (int type = 0; type < KERNEL_TYPES; type++) {
        for (int mode = 3; mode < 5; mode++) {
            visit(cross_entropy_case(type, 9, 10, mode));
            visit(cross_entropy_case(type, 33, 65, mode));
        }
        for (int mode = 0; mode < 3; mode++) {
            for (size_t i = 0; i < COUNT_OF(rows); i++)
                visit(cross_entropy_case(type, rows[i][0], rows[i][1], mode));
            for (size_t i = 0; i < COUNT_OF(outputs); i++)
                visit(mse_case(type, outputs[i][0], outputs[i][1], mode));
        }
    }
    visit(cross_entropy_case(0, 8200, 10, 2)); /* more rows than 1024 blocks take at once */
}

/* ---- updates --------------------------------------------------------------------------------- */

/* scale: of the gradients; bad: the one at `bad_at`, if not 0. */
static inline struct kernel_case *norm_case(int type, uint64_t count, double scale, double bad,
                                            uint64_t bad_at)
{
    const struct stk_train_norm a = { .count = count };
    struct kernel_case *c =
        kernel_case_begin("stk_train_gradient_norm", kernel_suffixes[type], &a, sizeof(a));
    const size_t blocks = (size_t)(count + 2047) / 2048;
    kernel_case_label(c, "%d, of %g, %g", (int)count, scale, bad);
    struct kernel_buffer *gradients = kernel_case_add(
        c, HOLE(stk_train_norm, gradients), "gradients", (enum kernel_number)type, ROLE_IN, count);
    kernel_buffer_scale(gradients, scale);
    if (bad != 0)
        kernel_put(gradients, bad_at, bad);
    const struct stk_train_state state = kernel_state(true);
    struct kernel_buffer *b = kernel_case_bytes(c, HOLE(stk_train_norm, state), "state",
                                                ROLE_IN_OUT, &state, sizeof(state));
    b->loose_at = offsetof(struct stk_train_state, norm_squared);
    b->loose = 1e-12;
    kernel_case_add(c, HOLE(stk_train_norm, partial_sums), "partial_sums", NUMBER_F64, ROLE_SCRATCH,
                    blocks);
    kernel_case_add(c, HOLE(stk_train_norm, partial_finite), "partial_finite", NUMBER_BYTE,
                    ROLE_SCRATCH, blocks * 4);
    kernel_case_bytes(c, HOLE(stk_train_norm, ticket), "ticket", ROLE_IN_OUT, kernel_zeros, 4);
    return c;
}

/* mode: 0 the first step, 1 clipping and the other half's norm, 2 a loss scale that grows, 3
 * gradients that are not finite. */
enum { KERNEL_RATES = 5 };

static inline struct stk_train_prepare kernel_prepare(uint32_t loop, int mode)
{
    return (struct stk_train_prepare){ .rule = { .loop = loop,
                                                 .momentum = 0.9F,
                                                 .dampening = 0.1F,
                                                 .epsilon = 1e-8F,
                                                 .weight_decay = 0.01F,
                                                 .lr_decay = 0.001F,
                                                 .decoupled = mode & 1,
                                                 .lambd = 1e-4F,
                                                 .alpha = 0.75F,
                                                 .t0 = 3,
                                                 .beta1 = 0.9,
                                                 .beta2 = 0.999,
                                                 .clip_norm = (mode & 1) != 0 ? 0.5F : 0,
                                                 .dynamic = mode > 1,
                                                 .ema_decay = 0.99 },
                                       .rate_count = KERNEL_RATES,
                                       .samples = 64 };
}

static inline struct stk_train_state kernel_state_before(int mode)
{
    struct stk_train_state state = kernel_state(true);
    state.finite = mode != 3;
    state.good_updates = STK_TRAIN_SCALE_GOOD - 1;
    state.step = mode == 0 ? 0 : state.step;
    return state;
}

static inline struct kernel_case *prepare_case(uint32_t loop, int mode)
{
    const struct stk_train_prepare a = kernel_prepare(loop, mode);
    struct kernel_case *c = kernel_case_begin("stk_train_prepare", "", &a, sizeof(a));
    const struct stk_train_state state = kernel_state_before(mode);
    const struct stk_train_other other = { 5, 1 };
    kernel_case_label(c, "loop %u, mode %d", loop, mode);
    kernel_case_bytes(c, HOLE(stk_train_prepare, state), "state", ROLE_IN_OUT, &state,
                      sizeof(state));
    kernel_buffer_positive(kernel_case_add(c, HOLE(stk_train_prepare, learning_rates), "rates",
                                           NUMBER_F32, ROLE_IN, KERNEL_RATES));
    if ((mode & 1) != 0)
        kernel_case_bytes(c, HOLE(stk_train_prepare, other), "other", ROLE_IN, &other,
                          sizeof(other));
    return c;
}

/* mode: bit 0 a rounded copy, bit 1 a moving average, 3 an update that is left out. */
static inline struct kernel_case *update_case(int type, uint32_t loop, uint64_t count, int mode)
{
    const struct stk_train_update a = { .loop = loop, .count = count };
    struct kernel_case *c =
        kernel_case_begin("stk_train_update", kernel_suffixes[type], &a, sizeof(a));
    struct stk_train_state state = kernel_state(mode != 3);
    state.factors = (struct stk_train_factors){ 0.5F,  0.01F, 0.1F,  0.9F, 0.1F, 0.99F,
                                                0.01F, 0.5F,  1e-3F, 0.9F, 0.8F, 0.1F };
    kernel_case_label(c, "loop %u, %d, mode %d", loop, (int)count, mode);
    kernel_case_bytes(c, HOLE(stk_train_update, state), "state", ROLE_IN, &state, sizeof(state));
    kernel_case_add(c, HOLE(stk_train_update, parameters), "parameters", NUMBER_F32, ROLE_IN_OUT,
                    count);
    kernel_case_add(c, HOLE(stk_train_update, gradients), "gradients", NUMBER_F32, ROLE_IN, count);
    if ((mode & 1) != 0)
        kernel_case_add(c, HOLE(stk_train_update, half_weights), "half_weights",
                        (enum kernel_number)type, ROLE_OUT, count);
    if ((mode & 2) != 0)
        kernel_case_add(c, HOLE(stk_train_update, ema), "ema", NUMBER_F32, ROLE_IN_OUT, count);
    for (uint32_t m = 0; m < stk_train_moments(loop); m++)
        kernel_buffer_positive(
            kernel_case_add(c, HOLE(stk_train_update, moments) + m * sizeof(float *), "moment",
                            NUMBER_F32, ROLE_IN_OUT, count));
    return c;
}

static inline void each_update_case(kernel_case_fn *visit)
{
    static const uint64_t counts[] = { 1, 31, 255, 256, 257, 5000 };
    /* Squares that underflow in a pair of floats, in part or all, or overflow, too. */
    static const double scales[] = { 0, 1e-30, 1e-19, 1e-16, 1e-13, 1e-9, 65504, 1e30 };
    for (int type = 0; type < KERNEL_TYPES; type++) {
        for (size_t i = 0; i < COUNT_OF(counts); i++) {
            visit(norm_case(type, counts[i], 1, 0, 0));
            visit(norm_case(type, counts[i], 1, i % 2 == 0 ? (double)NAN : (double)INFINITY,
                            counts[i] - 1));
        }
        for (size_t i = 0; i < COUNT_OF(scales); i++)
            if (type != 1 || scales[i] < 1e30) /* an infinity in float16 */
                visit(norm_case(type, 99, scales[i], i == 1 || i == 6 ? 1e-3 : 0, 98));
    }
    /* More blocks than the last one has threads: each looks at several others' findings. */
    visit(norm_case(1, 270 * 2048, 1, (double)INFINITY, 3));
    for (uint32_t loop = 0; loop < STK_TRAIN_LOOPS; loop++)
        for (int mode = 0; mode < 4; mode++) {
            visit(prepare_case(loop, mode));
            for (int type = 0; type < KERNEL_TYPES; type++)
                visit(update_case(type, loop, mode == 0 ? 1 : 255 + (uint64_t)mode * 2, mode));
        }
}

/* ---- elementwise ----------------------------------------------------------------------------- */

/* A kernel with up to two inputs and an output; `place` = the number of the input whose memory the
 * output has, 0 = none. */
static inline struct kernel_case *elementwise_case(const char *name, int type,
                                                   const void *arguments, size_t bytes,
                                                   const size_t holes[3], int place, uint64_t count)
{
    struct kernel_case *c = kernel_case_begin(name, kernel_suffixes[type], arguments, bytes);
    const bool casts = strcmp(name, "stk_train_cast") == 0;
    struct kernel_buffer *shared = NULL;
    kernel_case_label(c, "%d, in place of %d", (int)count, place);
    for (int i = 0; i < 2; i++) {
        if (holes[i] == SIZE_MAX)
            continue;
        struct kernel_buffer *b = kernel_case_add(c, holes[i], i == 0 ? "x" : "second",
                                                  casts ? NUMBER_F32 : (enum kernel_number)type,
                                                  place == i + 1 ? ROLE_IN_OUT : ROLE_IN, count);
        shared = place == i + 1 ? b : shared;
    }
    if (shared != NULL)
        kernel_case_alias(c, holes[2], shared);
    else
        kernel_case_add(c, holes[2], "out", (enum kernel_number)type, ROLE_OUT, count);
    return c;
}

static inline struct kernel_case *bias_relu_case(int type, uint64_t count, uint32_t channels,
                                                 int mode)
{
    const struct stk_train_bias_relu a = { .count = (count + channels - 1) / channels * channels,
                                           .c = channels,
                                           .relu = mode & 1 };
    struct kernel_case *c =
        kernel_case_begin("stk_train_bias_relu", kernel_suffixes[type], &a, sizeof(a));
    kernel_case_label(c, "%d of %u channels, mode %d", (int)a.count, channels, mode);
    kernel_case_add(c, HOLE(stk_train_bias_relu, y), "y", (enum kernel_number)type, ROLE_IN_OUT,
                    a.count);
    if ((mode & 2) != 0)
        kernel_case_add(c, HOLE(stk_train_bias_relu, bias), "bias", (enum kernel_number)type,
                        ROLE_IN, channels);
    return c;
}

static inline struct kernel_case *add_gradient_case(int type, uint64_t count)
{
    const struct stk_train_add_gradient a = { .count = count, .write = count % 2 };
    struct kernel_case *c =
        kernel_case_begin("stk_train_add_gradient", kernel_suffixes[type], &a, sizeof(a));
    kernel_case_label(c, "%d", (int)count);
    kernel_case_add(c, HOLE(stk_train_add_gradient, gradient), "gradient", (enum kernel_number)type,
                    ROLE_IN, count);
    kernel_case_add(c, HOLE(stk_train_add_gradient, sum), "sum", NUMBER_F32, ROLE_IN_OUT, count);
    return c;
}

static inline void elementwise_cases(kernel_case_fn *visit, int type, uint64_t count)
{
    static const size_t cast[] = { HOLE(stk_train_cast, x), SIZE_MAX, HOLE(stk_train_cast, y) };
    static const size_t relu[] = { HOLE(stk_train_relu, x), SIZE_MAX, HOLE(stk_train_relu, y) };
    static const size_t back[] = { HOLE(stk_train_relu_backward, y),
                                   HOLE(stk_train_relu_backward, dy),
                                   HOLE(stk_train_relu_backward, dx) };
    static const size_t add[] = { HOLE(stk_train_add, x), HOLE(stk_train_add, x2),
                                  HOLE(stk_train_add, y) };
    const struct stk_train_cast casts = { .count = count };
    const struct stk_train_relu relus = { .count = count };
    const struct stk_train_relu_backward backs = { .count = count };
    const struct stk_train_add adds = { .count = count };
    visit(elementwise_case("stk_train_cast", type, &casts, sizeof(casts), cast, 0, count));
    visit(add_gradient_case(type, count));
    for (int place = 0; place < 3; place++) {
        if (place < 2)
            visit(elementwise_case("stk_train_relu", type, &relus, sizeof(relus), relu, place,
                                   count));
        visit(elementwise_case("stk_train_relu_backward", type, &backs, sizeof(backs), back, place,
                               count));
        visit(elementwise_case("stk_train_add", type, &adds, sizeof(adds), add, place, count));
    }
}

static inline void each_elementwise_case(kernel_case_fn *visit)
{
    static const uint64_t counts[] = { 1, 7, 8, 9, 64, 2047, 2049, 5000 };
    for (int type = 0; type < KERNEL_TYPES; type++)
        for (size_t i = 0; i < COUNT_OF(counts); i++) {
            elementwise_cases(visit, type, counts[i]);
            visit(bias_relu_case(type, counts[i], 1 + (uint32_t)(i * 5), (int)i % 4));
            if (i % 4 == 3) /* packs of bias, and several turns of two blocks */
                visit(bias_relu_case(type, 4500 + counts[i], 24, (int)i % 8 / 2));
        }
}

/* ---- pools ----------------------------------------------------------------------------------- */

static inline size_t window_inputs(const struct stk_train_window *w)
{
    return (size_t)w->n * w->in_h * w->in_w * w->c;
}

static inline size_t window_outputs(const struct stk_train_window *w)
{
    return (size_t)w->n * w->out_h * w->out_w * w->c;
}

static inline struct stk_train_window drawn_window(uint32_t i)
{
    static const uint32_t large = 17;
    struct stk_train_window w = { .n = 1 + i % 3,
                                  .c = i % 4 == 0   ? 1
                                       : i % 4 == 1 ? 3
                                       : i % 4 == 2 ? 8U << i / 8
                                                    : 4 * (1 + i % 5) };
    uint32_t *in[] = { &w.in_h, &w.in_w }, *out[] = { &w.out_h, &w.out_w };
    for (uint32_t d = 0; d < 2; d++) {
        const uint64_t draw = stk_mix64(i * 2 + d);
        w.kernel[d] = i == 5 ? large : 1 + (uint32_t)(draw % 5);
        w.stride[d] = 1 + (uint32_t)(draw / 5 % 4);
        w.padding[d] = (uint32_t)(draw / 20 % (w.kernel[d] / 2 + 1));
        *in[d] = w.kernel[d] + (uint32_t)(draw / 400 % 9);
        *out[d] = (*in[d] + 2 * w.padding[d] - w.kernel[d]) / w.stride[d] + 1;
    }
    /* Windows with gaps between them, and the last line and column of inputs in no window. */
    if (i == 0)
        return (struct stk_train_window){ 2, 10, 10, 8, 3, 3, { 2, 2 }, { 3, 3 }, { 0, 0 } };
    return w;
}

static inline struct kernel_case *max_pool_case(int type, const struct stk_train_window *w,
                                                int mode)
{
    const struct stk_train_max_pool a = { .window = *w, .relu = mode & 1 };
    struct kernel_case *c =
        kernel_case_begin("stk_train_max_pool_forward", kernel_suffixes[type], &a, sizeof(a));
    const size_t place_bytes = stk_train_is_wide(w) ? 2 : 1;
    kernel_case_label(c, "%ux%ux%u, window %ux%u, mode %d", w->in_h, w->in_w, w->c, w->kernel[0],
                      w->kernel[1], mode);
    struct kernel_buffer *x = kernel_case_add(c, HOLE(stk_train_max_pool, x), "x",
                                              (enum kernel_number)type, ROLE_IN, window_inputs(w));
    for (size_t i = 0; i < x->count; i++) /* few values: the first of equal ones counts */
        kernel_put(x, i,
                   mode == 3 && i % 19 == 5 ? (double)NAN
                   : mode == 4              ? -(double)INFINITY
                                            : (double)(stk_mix64(i) % 9) - 4);
    kernel_case_add(c, HOLE(stk_train_max_pool, y), "y", (enum kernel_number)type, ROLE_OUT,
                    window_outputs(w));
    if (mode != 2)
        kernel_case_add(c, HOLE(stk_train_max_pool, places), "places", NUMBER_BYTE, ROLE_OUT,
                        window_outputs(w) * place_bytes);
    return c;
}

static inline struct kernel_case *max_pool_backward_case(int type, const struct stk_train_window *w,
                                                         int mode)
{
    const struct stk_train_max_pool_backward a = { .window = *w };
    struct kernel_case *c =
        kernel_case_begin("stk_train_max_pool_backward", kernel_suffixes[type], &a, sizeof(a));
    const bool wide = stk_train_is_wide(w);
    kernel_case_label(c, "%ux%ux%u, window %ux%u, mode %d", w->in_h, w->in_w, w->c, w->kernel[0],
                      w->kernel[1], mode);
    struct kernel_buffer *places =
        kernel_case_add(c, HOLE(stk_train_max_pool_backward, places), "places", NUMBER_BYTE,
                        ROLE_IN, window_outputs(w) * (wide ? 2 : 1));
    for (size_t i = 0; i < window_outputs(w); i++) {
        const uint16_t place = (uint16_t)(stk_mix64(i) % (w->kernel[0] * w->kernel[1]));
        if (wide)
            memcpy(places->begin + 2 * i, &place, 2);
        else
            places->begin[i] = (unsigned char)place;
    }
    kernel_case_add(c, HOLE(stk_train_max_pool_backward, dy), "dy", (enum kernel_number)type,
                    ROLE_IN, window_outputs(w));
    if ((mode & 1) != 0)
        kernel_case_add(c, HOLE(stk_train_max_pool_backward, y), "y", (enum kernel_number)type,
                        ROLE_IN, window_outputs(w));
    kernel_case_add(c, HOLE(stk_train_max_pool_backward, dx), "dx", (enum kernel_number)type,
                    ROLE_OUT, window_inputs(w));
    return c;
}

static inline struct kernel_case *avg_pool_case(int type, const struct stk_train_window *w,
                                                bool back)
{
    const struct stk_train_avg_pool a = { .window = *w };
    struct kernel_case *c =
        kernel_case_begin(back ? "stk_train_avg_pool_backward" : "stk_train_avg_pool_forward",
                          kernel_suffixes[type], &a, sizeof(a));
    kernel_case_label(c, "%ux%ux%u, window %ux%u", w->in_h, w->in_w, w->c, w->kernel[0],
                      w->kernel[1]);
    kernel_case_add(c, HOLE(stk_train_avg_pool, x), "x", (enum kernel_number)type, ROLE_IN,
                    back ? window_outputs(w) : window_inputs(w));
    kernel_case_add(c, HOLE(stk_train_avg_pool, y), "y", (enum kernel_number)type, ROLE_OUT,
                    back ? window_inputs(w) : window_outputs(w));
    return c;
}

/* Windows that have code of their own, at each kind of border: with padding and without, and with
 * inputs in no window. */
static const struct stk_train_window known_windows[] = {
    { 2, 7, 6, 8, 3, 3, { 2, 2 }, { 2, 2 }, { 0, 0 } },
    { 1, 5, 4, 16, 3, 3, { 2, 2 }, { 2, 2 }, { 1, 1 } },
    { 2, 8, 7, 8, 4, 4, { 3, 3 }, { 2, 2 }, { 1, 1 } },
    { 1, 6, 5, 16, 2, 2, { 3, 3 }, { 2, 2 }, { 0, 0 } },
    { 1, 5, 6, 8, 5, 6, { 3, 3 }, { 1, 1 }, { 1, 1 } },
    { 2, 6, 3, 8, 4, 3, { 3, 3 }, { 1, 1 }, { 0, 1 } },
};

/* Each type begins with other ones: the tests of mutants take the first cases. */
static inline void known_pool_case(kernel_case_fn *visit, int type, int i)
{
    const size_t at = (size_t)(i + 2 * type) % COUNT_OF(known_windows);
    visit(max_pool_case(type, &known_windows[at], 4)); /* all of a window may be -inf */
    visit(max_pool_backward_case(type, &known_windows[at], i));
    if (known_windows[at].kernel[0] == 2)
        visit(avg_pool_case(type, &known_windows[at], true));
}

static inline void each_pool_case(kernel_case_fn *visit)
{
    enum { WINDOWS = 12 };
    for (int type = 0; type < KERNEL_TYPES; type++)
        for (int i = 0; i < WINDOWS; i++) {
            const struct stk_train_window w = drawn_window((uint32_t)i);
            visit(max_pool_case(type, &w, i % 4));
            visit(max_pool_backward_case(type, &w, i % 4));
            visit(avg_pool_case(type, &w, false));
            visit(avg_pool_case(type, &w, true));
            if (i < (int)COUNT_OF(known_windows))
                known_pool_case(visit, type, i);
        }
}

/* ---- dropout --------------------------------------------------------------------------------- */

static inline struct kernel_case *dropout_case(int type, uint64_t elements, uint32_t samples,
                                               int mode)
{
    const float rate = mode == 0 ? 0.25F : 0.7F;
    const struct stk_train_dropout a = { .seed = 77,
                                         .first_sample = (UINT64_C(1) << 32) - samples,
                                         .elements = elements,
                                         .samples = samples,
                                         .layer = 5,
                                         .dropped_below = stk_dropout_dropped_below(rate),
                                         .scale = stk_dropout_scale(rate),
                                         .step = 4 };
    struct kernel_case *c =
        kernel_case_begin("stk_train_dropout", kernel_suffixes[type], &a, sizeof(a));
    kernel_case_label(c, "%d x %u, mode %d", (int)elements, samples, mode);
    struct kernel_buffer *x =
        kernel_case_add(c, HOLE(stk_train_dropout, x), "x", (enum kernel_number)type,
                        mode == 0 ? ROLE_IN : ROLE_IN_OUT, elements * samples);
    if (mode == 0)
        kernel_case_add(c, HOLE(stk_train_dropout, y), "y", (enum kernel_number)type, ROLE_OUT,
                        elements * samples);
    else
        kernel_case_alias(c, HOLE(stk_train_dropout, y), x);
    if (mode != 0)
        kernel_case_state(c, HOLE(stk_train_dropout, state));
    return c;
}

static inline void each_dropout_case(kernel_case_fn *visit)
{
    static const uint64_t elements[] = { 1, 7, 8, 9, 63, 64, 65, 333, 1000 };
    for (int type = 0; type < KERNEL_TYPES; type++)
        for (size_t i = 0; i < COUNT_OF(elements); i++)
            for (int mode = 0; mode < 2; mode++)
                visit(dropout_case(type, elements[i], mode == 0 ? 1 : 20, mode));
}

#endif
