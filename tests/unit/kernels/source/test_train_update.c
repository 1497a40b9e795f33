/* test_train_update.c - the source of the update's kernels steps as the trainer's optimizers do, to
 * the bit; and what they do if a gradient is narrow, too long or not finite. */
#include "support/gpu/train_kernel.h"
#include "support/leaks.h"
#include "support/trainer/optimizer_rows.h"
#include "trainer/update/loss_scale.h"
#include "trainer/update/update.h"

#include <math.h>

enum { WEIGHTS = 1001, STEPS = 6 };

static struct stk_train_rule rule_of(const struct stk_optimizer_row *c)
{
    const struct stk_update_rule *const r = &c->rule;
    return (struct stk_train_rule){ .loop = c->loop,
                                    .momentum = r->momentum,
                                    .dampening = r->dampening,
                                    .epsilon = r->epsilon,
                                    .weight_decay = r->weight_decay,
                                    .lr_decay = r->lr_decay,
                                    .decoupled = r->optimizer == STK_ADAMW,
                                    .lambd = r->lambd,
                                    .alpha = r->alpha,
                                    .t0 = r->t0,
                                    .beta1 = r->beta1,
                                    .beta2 = r->beta2,
                                    .ema_decay = 0.99 };
}

/* Weights, their moments and their moving average. */
struct weights {
    _Alignas(16) float weight[WEIGHTS], moment[STK_TRAIN_STATE_MAX][WEIGHTS], ema[WEIGHTS];
};

static const float rates[] = { 0.1F, 0.05F, 0.025F };
enum { RATES = sizeof(rates) / sizeof(rates[0]) };

static void step_trainer(struct weights *w, const struct stk_update_rule *rule, const float *g,
                         int step, float factor)
{
    struct stk_update update = { .rule = rule,
                                 .parameters = w->weight,
                                 .gradients = g,
                                 .ema = w->ema,
                                 .ema_decay = 0.99,
                                 .floats = WEIGHTS,
                                 .step = (uint64_t)step + 1,
                                 .learning_rate = rates[step < RATES ? step : RATES - 1],
                                 .gradient_factor = factor };
    for (uint32_t i = 0; i < stk_optimizer_state_arenas(rule); i++)
        update.state[i] = w->moment[i];
    stk_update_range(&update, 0, WEIGHTS);
}

static void step_kernels(struct weights *w, const struct stk_train_rule *rule,
                         struct stk_train_state *state, const char *type, const float *g,
                         void *half_weights)
{
    const struct stk_train_prepare prepare = {
        .rule = *rule, .state = state, .learning_rates = rates, .rate_count = RATES
    };
    const struct stk_train_update update = {
        .loop = rule->loop,
        .state = state,
        .parameters = w->weight,
        .half_weights = half_weights,
        .gradients = g,
        .moments = { w->moment[0], w->moment[1], w->moment[2] },
        .ema = w->ema,
        .count = WEIGHTS,
    };
    run("prepare", "", &prepare);
    run("update", type, &update);
}

/* In 16 bits the weights leave a rounded copy. */
CleanTest(train_kernels_update, every_optimizer_steps_to_the_bit_as_the_trainers)
{
    static const char *const types[] = { "_bf16", "_f16", "_f32" };
    static struct weights ours, theirs;
    for (int o = 0; o < OPTIMIZER_ROWS; o++) {
        const struct stk_train_rule rule = rule_of(&optimizer_rows[o]);
        struct stk_train_state state = { .loss_scale = 256, .finite = 1 };
        uint16_t half_weights[WEIGHTS];
        memset(&ours, 0, sizeof(ours));
        fill(ours.weight, WEIGHTS, 1);
        memcpy(ours.ema, ours.weight, sizeof(ours.ema));
        theirs = ours;
        for (int step = 0; step < STEPS; step++) {
            float g[WEIGHTS];
            fill(g, WEIGHTS, (uint64_t)step + 2);
            step_kernels(&ours, &rule, &state, types[step % 3], g,
                         step % 3 < 2 ? half_weights : NULL);
            step_trainer(&theirs, &optimizer_rows[o].rule, g, step, 1.0F / 256);
            cr_assert_eq(memcmp(&ours, &theirs, sizeof(ours)), 0, "%s, step %d",
                         optimizer_rows[o].name, step);
            if (step % 3 < 2)
                check_rounded(half_weights, ours.weight, WEIGHTS, step % 3 == 1,
                              optimizer_rows[o].name);
        }
        cr_assert_eq(state.step, STEPS);
    }
}

static struct stk_train_norm norm_of(const float *gradients, struct stk_train_state *state)
{
    static double sums[STK_TRAIN_PARTIALS_MAX];
    static uint32_t finite[STK_TRAIN_PARTIALS_MAX], ticket;
    return (struct stk_train_norm){ gradients, WEIGHTS, state, sums, finite, &ticket };
}

CleanTest(train_kernels_update, an_overflow_leaves_the_update_out_and_halves_the_scale)
{
    static struct weights w, before;
    struct stk_train_rule rule = rule_of(&optimizer_rows[ADAM_ROW]);
    rule.dynamic = 1;
    struct stk_train_state state = { .loss_scale = STK_LOSS_SCALE_START };
    struct stk_loss_scale scale = { .scale = STK_LOSS_SCALE_START, .dynamic = true };
    _Alignas(16) float g[WEIGHTS];
    const struct stk_train_norm norm = norm_of(g, &state);
    fill(w.weight, WEIGHTS, 1);
    uint64_t used = 0;
    for (int step = 0; step < 2 * STK_LOSS_SCALE_GOOD_UPDATES + 40; step++) {
        fill(g, WEIGHTS, 7);
        const bool good = step % 100 != 50 || step > 60;
        if (!good)
            g[WEIGHTS - 1] = step % 200 == 50 ? INFINITY : NAN;
        run("gradient_norm", "_f32", &norm);
        cr_assert_eq(state.finite != 0, good);
        before = w;
        step_kernels(&w, &rule, &state, "_f32", g, NULL);
        const bool take = stk_loss_scale_take(&scale, good);
        used += take;
        cr_assert_eq(state.use != 0, take);
        cr_assert_eq(memcmp(&w, &before, sizeof(w)) == 0, !take);
        cr_assert_float_eq(state.loss_scale, scale.scale, 0, "step %d", step);
        cr_assert_eq(state.good_updates, scale.good_updates);
    }
    cr_assert_eq(state.step, used);
    cr_assert_eq(state.tried, used + 1);
}

/* Squares are added in pairs of floats, but for those that leave their range or lose digits. */
CleanTest(train_kernels_update, the_norm_is_that_of_doubles_at_any_scale)
{
    _Alignas(16) float g[WEIGHTS];
    for (int power = -36; power <= 36; power++) {
        double squares = 0;
        struct stk_train_state state = { .loss_scale = 1 };
        const struct stk_train_norm norm = norm_of(g, &state);
        fill(g, WEIGHTS, 3);
        for (int i = 0; i < WEIGHTS; i++) {
            g[i] *= powf(10, (float)power);
            squares += (double)g[i] * (double)g[i];
        }
        run("gradient_norm", "_f32", &norm);
        cr_assert_float_eq(state.norm_squared, squares, 1e-12 * squares, "1e%d", power);
    }
}

CleanTest(train_kernels_update, a_long_gradient_is_cut_to_the_limit)
{
    _Alignas(16) float g[WEIGHTS];
    struct stk_train_state state = { .loss_scale = 8 };
    fill(g, WEIGHTS, 3);
    double squares = 0;
    for (int i = 0; i < WEIGHTS; i++)
        squares += (double)g[i] * (double)g[i];
    const struct stk_train_norm norm = norm_of(g, &state);
    run("gradient_norm", "_f32", &norm);
    struct stk_train_rule rule = rule_of(&optimizer_rows[SGD_ROW]);
    const double length = sqrt(squares) / 8;
    const struct {
        float limit;
        uint64_t samples;
        double factor, norm;
    } cases[] = { { 0, 0, 1.0 / 8, length },
                  { (float)(2 * length), 0, 1.0 / 8, length },
                  { (float)(length / 2), 0, 1.0 / 16, length },
                  { 0, 4, 1.0 / 32, length / 4 },
                  { (float)(length / 8), 4, 1.0 / 64, length / 4 } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        rule.clip_norm = cases[i].limit;
        const struct stk_train_prepare prepare = { rule,  &state,           rates,
                                                   RATES, cases[i].samples, NULL };
        run("prepare", "", &prepare);
        cr_assert_float_eq(state.factors.gradient, cases[i].factor, 1e-6, "case %zu", i);
        cr_assert_float_eq(state.gradient_norm, cases[i].norm, 1e-5 * length, "case %zu", i);
    }
}

/* What lies on another device counts: squares are added, and what is not finite there is left out
 * here. */
CleanTest(train_kernels_update, the_other_devices_norm_counts)
{
    struct stk_train_state state = { .loss_scale = 4, .norm_squared = 9, .finite = 1 };
    struct stk_train_other other = { .norm_squared = 16, .finite = 1 };
    struct stk_train_rule rule = rule_of(&optimizer_rows[SGD_ROW]);
    rule.clip_norm = 0.5F;
    rule.dynamic = 1;
    const struct stk_train_prepare prepare = { rule, &state, rates, RATES, 1, &other };
    run("prepare", "", &prepare);
    cr_assert_float_eq(state.gradient_norm, 1.25, 1e-6);
    cr_assert_float_eq(state.factors.gradient, 0.1, 1e-6);
    cr_assert_eq(state.use, 1);
    other.finite = 0;
    run("prepare", "", &prepare);
    cr_assert_eq(state.use, 0);
    cr_assert_eq(state.step, 1);
    cr_assert_eq(state.tried, 2);
    cr_assert_float_eq(state.loss_scale, 2, 0);
}
