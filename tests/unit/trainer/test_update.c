/* test_update.c - optimizers against PyTorch's numbers, the moving average, any split, and
 * the loss scale.
 */
#include "support/leaks.h"
#include "trainer/update/update.h"

#include <math.h>

#include "support/trainer/optimizer_rows.h"
#include "support/trainer/trainer_golden.h"
#include "trainer/update/loss_scale.h"

/* 32-bit arithmetic in another order; rmsprop centered divides by what almost cancels. */
static const double tolerance = 3e-6;

CleanTest(trainer_update, optimizers_do_what_pytorch_does)
{
    int compared = 0;
    for (int r = 0; r < OPTIMIZER_ROWS; r++) {
        if (optimizer_rows[r].golden == NULL)
            continue;
        compared++;
        float weights[GOLDEN_WEIGHTS];
        float gradients[GOLDEN_WEIGHTS];
        float state[STK_STATE_ARENAS_MAX][GOLDEN_WEIGHTS] = { { 0 } };
        golden_fill(weights, GOLDEN_WEIGHTS, 1, 1.0F);
        for (int step = 0; step < GOLDEN_STEPS; step++) {
            golden_fill(gradients, GOLDEN_WEIGHTS, (uint64_t)(2 + step), 4.0F);
            struct stk_update update = { .rule = &optimizer_rows[r].rule,
                                         .parameters = weights,
                                         .gradients = gradients,
                                         .floats = GOLDEN_WEIGHTS,
                                         .step = (uint64_t)step + 1,
                                         .learning_rate = optimizer_rows[r].learning_rate,
                                         .gradient_factor = 0.25F };
            for (uint32_t i = 0; i < stk_optimizer_state_arenas(&optimizer_rows[r].rule); i++)
                update.state[i] = state[i];
            stk_update_range(&update, 0, GOLDEN_WEIGHTS);
            for (int i = 0; i < GOLDEN_WEIGHTS; i++) {
                const double golden = (double)optimizer_rows[r].golden[step * GOLDEN_WEIGHTS + i];
                cr_assert_lt(fabs((double)weights[i] - golden), tolerance,
                             "%s, step %d, weight %d: %.9g, PyTorch has %.9g",
                             optimizer_rows[r].name, step, i, (double)weights[i], golden);
            }
        }
    }
    cr_assert_eq(compared, 15);
}

enum { LONG = 5000, LONG_STEPS = 3 };
struct run {
    float weights[LONG], state[STK_STATE_ARENAS_MAX][LONG], ema[LONG];
};

/* Cut at `cut` and its multiples; 0 = whole. */
static void run_cut(struct run *run, const struct stk_optimizer_row *row, uint64_t cut)
{
    static float gradients[LONG];
    memset(run, 0, sizeof(*run));
    golden_fill(run->weights, LONG, 1, 1.0F);
    memcpy(run->ema, run->weights, sizeof(run->ema));
    for (int step = 0; step < LONG_STEPS; step++) {
        golden_fill(gradients, LONG, (uint64_t)(2 + step), 1.0F);
        struct stk_update update = { .rule = &row->rule,
                                     .parameters = run->weights,
                                     .gradients = gradients,
                                     .ema = run->ema,
                                     .ema_decay = 0.9,
                                     .floats = LONG,
                                     .step = (uint64_t)step + 1,
                                     .learning_rate = row->learning_rate,
                                     .gradient_factor = 0.3F };
        for (uint32_t i = 0; i < stk_optimizer_state_arenas(&row->rule); i++)
            update.state[i] = run->state[i];
        for (uint64_t at = 0; at < LONG; at += cut == 0 ? LONG : cut)
            stk_update_range(&update, at, cut == 0 || at + cut > LONG ? LONG : at + cut);
    }
}

CleanTest(trainer_update, any_split_gives_the_same_bits)
{
    static struct run whole;
    static struct run parts;
    const uint64_t cuts[] = { 7, 16, 1000, 2049 };
    for (int r = 0; r < OPTIMIZER_ROWS; r++) {
        run_cut(&whole, &optimizer_rows[r], 0);
        for (size_t c = 0; c < sizeof(cuts) / sizeof(cuts[0]); c++) {
            run_cut(&parts, &optimizer_rows[r], cuts[c]);
            cr_assert_eq(memcmp(&whole, &parts, sizeof(whole)), 0, "%s, cut at %u",
                         optimizer_rows[r].name, (unsigned)cuts[c]);
        }
    }
}

CleanTest(trainer_update, the_average_follows_the_weights)
{
    static struct run run;
    const struct stk_optimizer_row *row = &optimizer_rows[SGD_ROW];
    float weights[LONG];
    double ema[LONG];
    run_cut(&run, row, 0);
    golden_fill(weights, LONG, 1, 1.0F);
    for (int i = 0; i < LONG; i++)
        ema[i] = (double)weights[i];
    for (int step = 0; step < LONG_STEPS; step++)
        for (int i = 0; i < LONG; i++) {
            weights[i] -= 0.1F * (golden_value((uint64_t)(2 + step), (uint64_t)i) * 0.3F);
            ema[i] = 0.9 * ema[i] + 0.1 * (double)weights[i];
        }
    for (int i = 0; i < LONG; i++)
        cr_assert_lt(fabs((double)run.ema[i] - ema[i]), 1e-6, "%d", i);
}

/* The largest power of two whose product with the batch is at most PyTorch's 65536. */
CleanTest(trainer_update, loss_scale_starts_at_that_of_the_mean)
{
    for (uint32_t batch = 1; batch <= 65536; batch++) {
        const float scale = stk_loss_scale_start(batch);
        int exponent;
        cr_assert(frexpf(scale, &exponent) == 0.5F, "%u", batch);
        cr_assert_leq(scale * (float)batch, STK_LOSS_SCALE_START, "%u", batch);
        cr_assert_gt(2 * scale * (float)batch, STK_LOSS_SCALE_START, "%u", batch);
        cr_assert_geq(scale, STK_LOSS_SCALE_MIN);
    }
}

/* All states of the machine that matter, and both inputs in each. */
CleanTest(trainer_update, loss_scale_moves_as_drawn)
{
    for (int exponent = -14; exponent <= 24; exponent++)
        for (uint32_t good = 0; good < STK_LOSS_SCALE_GOOD_UPDATES; good++) {
            const float scale = ldexpf(1.0F, exponent);
            struct stk_loss_scale s = { scale, good, true };
            cr_assert(!stk_loss_scale_take(&s, false));
            cr_assert_eq(s.good_updates, 0);
            cr_assert_float_eq(s.scale, exponent == -14 ? scale : scale / 2, 0);

            s = (struct stk_loss_scale){ scale, good, true };
            const bool last = good == STK_LOSS_SCALE_GOOD_UPDATES - 1;
            cr_assert(stk_loss_scale_take(&s, true));
            cr_assert_eq(s.good_updates, last ? 0 : good + 1);
            cr_assert_float_eq(s.scale, last && exponent < 24 ? scale * 2 : scale, 0);

            s = (struct stk_loss_scale){ scale, good, false };
            cr_assert(stk_loss_scale_take(&s, good % 2 == 0));
            cr_assert_eq(s.good_updates, good);
            cr_assert_float_eq(s.scale, scale, 0);
        }
}
