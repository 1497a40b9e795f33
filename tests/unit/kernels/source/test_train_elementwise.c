/* test_train_elementwise.c - the source of the kernels that treat elements or channels alike
 * against `ref`, as in test_train.c. Counts are no multiples of the eight elements of a thread. */
#include <assert.h>
#include <math.h>

#include "kernels/train/dropout.h"
#include "support/gpu/train_kernel.h"
#include "support/leaks.h"
#include "trainer/backend/ref/operations.h"

enum { COUNT = 1003, CHANNELS = 17, SAMPLES = 59 };
static_assert(COUNT == CHANNELS * SAMPLES, "each sample has one place");

/* ---- elementwise ----------------------------------------------------------------------------- */

struct elementwise {
    _Alignas(16) float x[COUNT], x2[COUNT], y[COUNT], wanted[COUNT];
    _Alignas(16) uint16_t x16[COUNT], x216[COUNT];
};

static void begin(struct elementwise *e)
{
    fill(e->x, COUNT, 1);
    fill(e->x2, COUNT, 2);
    e->x[3] = 0;
}

CleanTest(train_elementwise, a_cast_rounds_once_and_a_gradient_is_added_in_float32)
{
    static struct elementwise e;
    begin(&e);
    e.x[5] = INFINITY;
    const struct stk_train_cast a = { e.x, e.y, COUNT };
    run("cast", "_f32", &a);
    cr_assert_eq(memcmp(e.x, e.y, sizeof(e.x)), 0);
    for (int half = 0; half < 2; half++) {
        begin(&e);
        const struct stk_train_cast a16 = { e.x, e.x16, COUNT };
        run("cast", narrow[half], &a16);
        check_rounded(e.x16, e.x, COUNT, half, "cast");
        memcpy(e.y, e.x2, sizeof(e.y));
        const struct stk_train_add_gradient add = { e.x16, e.y, COUNT, 0 };
        run("add_gradient", narrow[half], &add);
        for (int i = 0; i < COUNT; i++)
            cr_assert_eq(e.y[i], e.x2[i] + widened(e.x16[i], half), "element %d", i);
    }
    const struct stk_train_add_gradient add = { e.x, e.x2, COUNT, 0 };
    memcpy(e.y, e.x2, sizeof(e.y));
    run("add_gradient", "_f32", &add);
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(e.x2[i], e.y[i] + e.x[i], "element %d", i);
}

/* ---- mean squared error ---------------------------------------------------------------------- */

CleanTest(train_elementwise, mean_squared_error_is_that_of_ref)
{
    static struct elementwise e;
    begin(&e);
    const struct stk_layer layer = { .in = { 1, 1, 1, CHANNELS } };
    const struct stk_pass pass = { .gradient_scale = 256.0F / (float)SAMPLES };
    const struct stk_train_state state = { .loss_scale = 256 };
    double partial_loss[STK_TRAIN_PARTIALS_MAX];
    uint32_t ticket = 0;
    struct stk_train_metrics metrics = { 0 };
    struct stk_loss loss = { 0 };
    const struct stk_operands o = {
        .layer = &layer, .pass = &pass, .count = SAMPLES, .x = e.x, .dx = e.wanted, .labels = e.x2
    };
    struct stk_train_mse a = { .x = e.x,
                               .dx = e.y,
                               .targets = e.x2,
                               .rows = SAMPLES,
                               .outputs = CHANNELS,
                               .gradient_factor = 1.0F / (float)SAMPLES,
                               .state = &state,
                               .metrics = &metrics,
                               .partial_loss = partial_loss,
                               .ticket = &ticket };
    stk_ref_mse(&o, &loss);
    run("mse", "_f32", &a);
    cr_assert_float_eq(metrics.loss_sum, loss.loss_sum, 1e-6 * loss.loss_sum);
    cr_assert_eq(metrics.count, SAMPLES);
    for (int i = 0; i < COUNT; i++)
        cr_assert_float_eq(e.y[i], e.wanted[i], 1e-6F, "element %d", i);
    a.dx = NULL; /* evaluation: the loss alone */
    run("mse", "_f32", &a);
    cr_assert_float_eq(metrics.loss_sum, 2 * loss.loss_sum, 1e-5 * loss.loss_sum);
    for (int half = 0; half < 2; half++) { /* in place */
        begin(&e);
        round_all(e.x16, e.x, COUNT, half);
        a.dx = e.y;
        run("mse", "_f32", &a);
        struct stk_train_mse a16 = a;
        a16.x = a16.dx = e.x16;
        run("mse", narrow[half], &a16);
        check_rounded(e.x16, e.y, COUNT, half, "mse");
    }
}

/* ---- BatchNorm ------------------------------------------------------------------------------- */

/* One layer of BatchNorm over SAMPLES x 1 x 1 pixels. `wanted` is what ref makes of the same. */
struct norm {
    struct elementwise e;
    _Alignas(16) float dy[COUNT], dx[COUNT], wanted_dx[COUNT];
    _Alignas(16) uint16_t dy16[COUNT];
    _Alignas(16) float gamma[CHANNELS], beta[CHANNELS], aux[2 * CHANNELS], wanted_aux[2 * CHANNELS];
    _Alignas(16) float running[4][CHANNELS], grads[4][CHANNELS], sums[2 * CHANNELS];
    _Alignas(16) float partial_sums[STK_TRAIN_PARTIALS_MAX * 2 * CHANNELS];
    uint32_t tickets[1];
};

static void begin_norm(struct norm *n, float offset)
{
    memset(n, 0, sizeof(*n));
    begin(&n->e);
    for (int i = 0; i < COUNT; i++) /* far from zero, and close together */
        n->e.x[i] += offset;
    fill(n->dy, COUNT, 3);
    fill(n->gamma, CHANNELS, 4);
    fill(n->beta, CHANNELS, 5);
    for (int c = 0; c < CHANNELS; c++)
        n->running[1][c] = n->running[3][c] = 1;
}

static const struct stk_layer norm_layer = { .in = { 3, 1, 1, CHANNELS },
                                             .epsilon = 1e-5F,
                                             .momentum = 0.1F };

static const struct stk_pass alone = { .count = SAMPLES };

static struct stk_operands ref_norm(struct norm *n, const struct stk_op *op)
{
    return (struct stk_operands){ .op = op,
                                  .pass = &alone,
                                  .layer = &norm_layer,
                                  .count = SAMPLES,
                                  .x = n->e.x,
                                  .y = n->e.wanted,
                                  .dy = n->dy,
                                  .dx = n->wanted_dx,
                                  .aux = n->wanted_aux,
                                  .weight = n->gamma,
                                  .bias = n->beta,
                                  .weight_grad = n->grads[0],
                                  .bias_grad = n->grads[1],
                                  .running_mean = n->running[0],
                                  .running_var = n->running[1] };
}

CleanTest(train_elementwise, batch_norm_is_that_of_ref)
{
    static struct norm n;
    const struct stk_op op = { .relu = true };
    const struct stk_operands o = ref_norm(&n, &op);
    struct stk_train_batch_norm a = { .x = n.e.x,
                                      .y = n.e.y,
                                      .count = COUNT,
                                      .c = CHANNELS,
                                      .relu = 1,
                                      .mean = n.wanted_aux,
                                      .inverse = n.wanted_aux + CHANNELS,
                                      .gamma = n.gamma,
                                      .beta = n.beta,
                                      .epsilon = 1e-5F };
    begin_norm(&n, 0);
    stk_ref_batch_norm_forward(&o, NULL);
    run("batch_norm", "_f32", &a);
    cr_assert_eq(memcmp(n.e.y, n.e.wanted, sizeof(n.e.y)), 0, "with the statistics of ref");
    stk_ref_batch_norm_infer(&o, NULL);
    a.mean = n.running[0];
    a.inverse = NULL;
    a.variance = n.running[1];
    run("batch_norm", "_f32", &a);
    cr_assert_eq(memcmp(n.e.y, n.e.wanted, sizeof(n.e.y)), 0, "with running statistics");
}

static struct stk_train_batch_norm_moments moments_of(struct norm *n, uint32_t chunks)
{
    return (struct stk_train_batch_norm_moments){ .x = n->e.x,
                                                  .pixels = SAMPLES,
                                                  .c = CHANNELS,
                                                  .chunks = chunks,
                                                  .epsilon = 1e-5F,
                                                  .momentum = 0.1F,
                                                  .mean = n->aux,
                                                  .inverse = n->aux + CHANNELS,
                                                  .running_mean = n->running[2],
                                                  .running_var = n->running[3],
                                                  .partial_sums = n->partial_sums,
                                                  .tickets = n->tickets };
}

CleanTest(train_elementwise, moments_of_images_are_those_of_ref)
{
    static struct norm n;
    const struct stk_op op = { .relu = false };
    const struct {
        float offset;
        uint32_t chunks;
    } cases[] = { { 0, 1 }, { 0, 7 }, { 1000, 4 }, { 3, STK_TRAIN_PARTIALS_MAX } };
    for (int i = 0; i < 4; i++) {
        begin_norm(&n, cases[i].offset);
        const struct stk_operands o = ref_norm(&n, &op);
        const struct stk_train_batch_norm_moments a = moments_of(&n, cases[i].chunks);
        stk_ref_batch_norm_forward(&o, NULL);
        run("batch_norm_moments", "_f32", &a);
        for (int c = 0; c < CHANNELS; c++) {
            cr_assert_float_eq(n.aux[c], n.wanted_aux[c], 1e-6 * (1 + (double)cases[i].offset));
            cr_assert_float_eq(n.aux[CHANNELS + c], n.wanted_aux[CHANNELS + c], 1e-5, "case %d", i);
            cr_assert_float_eq(n.running[2][c], n.running[0][c],
                               1e-6 * (1 + (double)cases[i].offset));
            cr_assert_float_eq(n.running[3][c], n.running[1][c], 1e-5);
        }
    }
    for (int half = 0; half < 2; half++) {
        begin_norm(&n, 0);
        round_all(n.e.x16, n.e.x, COUNT, half);
        struct stk_train_batch_norm_moments a = moments_of(&n, 5);
        a.running_mean = a.running_var = NULL;
        run("batch_norm_moments", "_f32", &a);
        a.x = n.e.x16;
        a.mean = n.wanted_aux;
        a.inverse = n.wanted_aux + CHANNELS;
        run("batch_norm_moments", narrow[half], &a);
        cr_assert_eq(memcmp(n.aux, n.wanted_aux, sizeof(n.aux)), 0);
    }
}

static struct stk_train_batch_norm_backward backward_of(struct norm *n, bool relu, bool keeps_y)
{
    return (struct stk_train_batch_norm_backward){ .x = n->e.x,
                                                   .dy = n->dy,
                                                   .y = keeps_y ? n->e.wanted : NULL,
                                                   .dx = n->dx,
                                                   .pixels = SAMPLES,
                                                   .c = CHANNELS,
                                                   .chunks = 3,
                                                   .relu = relu,
                                                   .mean = n->wanted_aux,
                                                   .inverse = n->wanted_aux + CHANNELS,
                                                   .gamma = n->gamma,
                                                   .beta = n->beta,
                                                   .gamma_grad = n->grads[2],
                                                   .beta_grad = n->grads[3],
                                                   .sums = n->sums,
                                                   .partial_sums = n->partial_sums,
                                                   .tickets = n->tickets };
}

static void check_backward(struct norm *n, bool relu, bool keeps_y)
{
    const struct stk_op op = { .relu = relu };
    begin_norm(n, 0);
    for (int c = 0; c < CHANNELS; c++)
        for (int i = 0; i < 4; i++)
            n->grads[i][c] = 5; /* added to */
    const struct stk_operands o = ref_norm(n, &op);
    stk_ref_batch_norm_forward(&o, NULL);
    stk_ref_batch_norm_backward(&o, NULL);
    const struct stk_train_batch_norm_backward a = backward_of(n, relu, keeps_y);
    run("batch_norm_backward_sums", "_f32", &a);
    run("batch_norm_backward", "_f32", &a);
    for (int c = 0; c < CHANNELS; c++) {
        cr_assert_float_eq(n->grads[2][c], n->grads[0][c], 1e-5);
        cr_assert_float_eq(n->grads[3][c], n->grads[1][c], 1e-5);
    }
    for (int i = 0; i < COUNT; i++)
        cr_assert_float_eq(n->dx[i], n->wanted_dx[i], 1e-5, "relu %d, element %d", relu, i);
}

static void check_backward_rounded(struct norm *n, bool half)
{
    begin_norm(n, 0);
    fill(n->wanted_aux, CHANNELS, 6);
    fill(n->wanted_aux + CHANNELS, CHANNELS, 7);
    round_all(n->e.x16, n->e.x, COUNT, half);
    round_all(n->dy16, n->dy, COUNT, half);
    fill(n->e.wanted, COUNT, 8);
    round_all(n->e.x216, n->e.wanted, COUNT, half);
    const struct stk_train_batch_norm_backward a = backward_of(n, true, true);
    run("batch_norm_backward_sums", "_f32", &a);
    run("batch_norm_backward", "_f32", &a);
    struct stk_train_batch_norm_backward a16 = a; /* in place */
    a16.x = n->e.x16;
    a16.y = n->e.x216;
    a16.dy = a16.dx = n->dy16;
    run("batch_norm_backward_sums", narrow[half], &a16);
    run("batch_norm_backward", narrow[half], &a16);
    check_rounded(n->dy16, n->dx, COUNT, half, "batch_norm_backward");
}

CleanTest(train_elementwise, batch_norm_backward_is_that_of_ref)
{
    static struct norm n;
    check_backward(&n, false, false);
    check_backward(&n, true, true);
    check_backward(&n, true, false);
    check_backward_rounded(&n, false);
    check_backward_rounded(&n, true);
}

/* An output that is too small for its type was stored as 0, so it let no gradient through: made
 * again, it must not either. */
CleanTest(train_elementwise, an_output_made_again_is_rounded_before_its_sign_counts)
{
    static struct norm n;
    struct stk_train_batch_norm_backward a = backward_of(&n, true, false);
    a.x = n.e.x16; /* 0 */
    a.dy = n.dy16;
    a.pixels = a.c = a.chunks = 1;
    n.dy16[0] = float16_of_float(1);
    n.wanted_aux[CHANNELS] = n.gamma[0] = 1;
    n.beta[0] = 0x1p-30F;
    run("batch_norm_backward_sums", "_f16", &a);
    cr_assert_eq(n.grads[3][0], 0.0F);
    run("batch_norm_backward_sums", "_bf16", &a);
    cr_assert_neq(n.grads[3][0], 0.0F, "bfloat16 has it");
}

/* ---- dropout --------------------------------------------------------------------------------- */

/* The mask that dropout.h describes, put together once more. An element whose bits are the limit is
 * kept. */
CleanTest(train_elementwise, dropout_drops_what_its_header_says)
{
    enum { ELEMENTS = 136, FEW = 3, LAYER = 5, SEED = 77, STEP = 4 };
    static _Alignas(16) float x[FEW * ELEMENTS], y[FEW * ELEMENTS];
    uint32_t bits[FEW * ELEMENTS];
    const uint64_t first = (UINT64_C(3) << 40) - 1; /* 40 bits of a sample's number count */
    const uint64_t key = stk_mix64(stk_mix64(SEED) + STEP);
    for (uint64_t i = 0; i < FEW * ELEMENTS; i++) {
        const uint64_t element = i % ELEMENTS,
                       sample = (first + i / ELEMENTS) % (UINT64_C(1) << 40);
        const struct stk_random random =
            stk_philox(key, ((uint64_t)LAYER << 40) + sample, element / 64 * 8 + element % 8);
        bits[i] = random.word[element / 16 % 4] >> 16 * (element / 8 % 2) & 0xFFFF;
        x[i] = (float)i + 1;
    }
    for (size_t limit = 0; limit < FEW * ELEMENTS; limit += 7) {
        struct stk_dropout own = stk_dropout_of(SEED, STEP, LAYER, first, 0.25F);
        cr_assert(own.dropped_below == 1 << 14 && own.scale == (float)(4.0 / 3));
        own.dropped_below = bits[limit];
        const struct stk_train_dropout a = { x,         y,    SEED,  first,
                                             ELEMENTS,  FEW,  LAYER, own.dropped_below,
                                             own.scale, NULL, STEP };
        run("dropout", "_f32", &a);
        for (size_t i = 0; i < FEW * ELEMENTS; i++) {
            const float factor = bits[i] < bits[limit] ? 0 : own.scale;
            cr_assert_eq(y[i], factor * x[i], "element %zu", i);
            cr_assert(i >= ELEMENTS || stk_dropout_factor(&own, i) == factor);
        }
    }
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* Of a window of nothing but -inf that begins in the padding, the first input counts. */
CleanTest(train_elementwise, a_window_without_a_maximum_has_its_place_inside)
{
    enum { SIDE = 4, OUT = 2, WIDE = 8 };
    static _Alignas(16) float x[SIDE * SIDE * WIDE], y[OUT * OUT * WIDE];
    static _Alignas(16) uint8_t places[OUT * OUT * WIDE];
    static const uint8_t wanted[OUT * OUT] = { 4, 3, 1, 0 };
    const struct stk_train_max_pool a = {
        .window = { 1, SIDE, SIDE, WIDE, OUT, OUT, { 3, 3 }, { 2, 2 }, { 1, 1 } },
        .x = x,
        .y = y,
        .places = places
    };
    for (int i = 0; i < SIDE * SIDE * WIDE; i++)
        x[i] = -INFINITY;
    run("max_pool_forward", "_f32", &a);
    for (int i = 0; i < OUT * OUT * WIDE; i++)
        cr_assert_eq(places[i], wanted[i / WIDE], "output %d", i / WIDE);
}
