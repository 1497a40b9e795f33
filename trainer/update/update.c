/* update.c - computes the factors of a step from its rule, and applies it in blocks that stay in
 * the cache for the moving average. */
#include "trainer/update/update.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "trainer/update/loops.h"

enum { BLOCK_FLOATS = 2048 };

static const char *const names[STK_OPTIMIZERS] = { "sgd",     "adam",     "adamw",  "adagrad",
                                                   "rmsprop", "adadelta", "adamax", "asgd" };

const char *stk_optimizer_name(enum stk_optimizer optimizer)
{
    return names[optimizer];
}

uint64_t stk_optimizer_rate_of(enum stk_optimizer optimizer, uint64_t updates)
{
    return optimizer == STK_ASGD && updates > 0 ? updates - 1 : updates;
}

uint32_t stk_optimizer_state_arenas(const struct stk_update_rule *rule)
{
    switch (rule->optimizer) {
    case STK_SGD:
        return rule->momentum != 0 ? 1 : 0;
    case STK_ADAM:
    case STK_ADAMW:
    case STK_ADADELTA:
    case STK_ADAMAX:
        return 2;
    case STK_RMSPROP:
        return 1 + (rule->centered ? 1U : 0U) + (rule->momentum != 0 ? 1U : 0U);
    case STK_ADAGRAD:
    case STK_ASGD:
    default:
        return 1;
    }
}

static stk_update_loop *loop_of(const struct stk_update_rule *rule)
{
    switch (rule->optimizer) {
    case STK_SGD:
        if (rule->momentum == 0)
            return stk_loop_sgd;
        return rule->nesterov ? stk_loop_sgd_nesterov : stk_loop_sgd_momentum;
    case STK_ADAM:
    case STK_ADAMW:
        return stk_loop_adam;
    case STK_ADAGRAD:
        return stk_loop_adagrad;
    case STK_RMSPROP:
        if (rule->centered)
            return rule->momentum != 0 ? stk_loop_rmsprop_centered_momentum
                                       : stk_loop_rmsprop_centered;
        return rule->momentum != 0 ? stk_loop_rmsprop_momentum : stk_loop_rmsprop;
    case STK_ADADELTA:
        return stk_loop_adadelta;
    case STK_ADAMAX:
        return stk_loop_adamax;
    case STK_ASGD:
    default:
        return stk_loop_asgd;
    }
}

/* torch.optim.ASGD: both depend on the number of steps made so far. */
static void asgd_factors(struct stk_factors *f, const struct stk_update *update)
{
    const struct stk_update_rule *rule = update->rule;
    const double before = (double)(update->step - 1);
    const double rate = (double)update->learning_rate;
    const double eta = rate / pow(1 + (double)rule->lambd * rate * before, (double)rule->alpha);
    const double averaged = before - (double)rule->t0;
    f->rate = (float)eta;
    f->shrink = (float)(1 - (double)rule->lambd * eta);
    f->add1 = (float)(averaged > 1 ? 1 / averaged : 1);
}

static void sgd_factors(struct stk_factors *f, const struct stk_update *update)
{
    const bool first = update->step == 1;
    f->keep1 = first ? 0 : update->rule->momentum;
    f->add1 = first ? 1 : 1 - update->rule->dampening;
}

/* Adam, AdamW and Adamax: the averages start at 0, which bias correction divides out. */
static void adam_factors(struct stk_factors *f, const struct stk_update *update)
{
    const struct stk_update_rule *rule = update->rule;
    const double step = (double)update->step;
    f->rate = (float)((double)update->learning_rate / (1 - pow(rule->beta1, step)));
    f->root2 = (float)sqrt(1 - pow(rule->beta2, step));
    if (rule->optimizer == STK_ADAMW) {
        f->decay = 0;
        f->shrink = (float)(1 - (double)update->learning_rate * (double)rule->weight_decay);
    }
}

static struct stk_factors factors_of(const struct stk_update *update)
{
    const struct stk_update_rule *rule = update->rule;
    struct stk_factors f = {
        .gradient = update->gradient_factor,
        .decay = rule->weight_decay,
        .rate = update->learning_rate,
        .keep1 = (float)rule->beta1,
        .add1 = (float)(1 - rule->beta1),
        .keep2 = (float)rule->beta2,
        .add2 = (float)(1 - rule->beta2),
        .root2 = 1,
        .epsilon = rule->epsilon,
        .shrink = 1,
        .momentum = rule->momentum,
    };
    if (rule->optimizer == STK_SGD)
        sgd_factors(&f, update);
    else if (rule->optimizer == STK_ASGD)
        asgd_factors(&f, update);
    else if (rule->optimizer == STK_ADAGRAD)
        f.rate = (float)((double)update->learning_rate /
                         (1 + (double)(update->step - 1) * (double)rule->lr_decay));
    else if (rule->optimizer == STK_ADAM || rule->optimizer == STK_ADAMW ||
             rule->optimizer == STK_ADAMAX)
        adam_factors(&f, update);
    return f;
}

static float *from(float *array, uint64_t at)
{
    return array == NULL ? NULL : array + at;
}

void stk_update_range(const struct stk_update *update, uint64_t begin, uint64_t end)
{
    assert(begin <= end);
    assert(end <= update->floats);
    assert(update->step >= 1);
    const struct stk_factors factors = factors_of(update);
    const struct stk_factors average = { .add1 = (float)(1 - update->ema_decay) };
    stk_update_loop *const loop = loop_of(update->rule);
    for (uint64_t at = begin; at < end; at += BLOCK_FLOATS) {
        const uint64_t count = end - at < BLOCK_FLOATS ? end - at : BLOCK_FLOATS;
        loop(&factors, update->parameters + at, update->gradients + at, from(update->state[0], at),
             from(update->state[1], at), from(update->state[2], at), count);
        if (update->ema != NULL)
            stk_loop_average(&average, update->ema + at, update->parameters + at, NULL, NULL, NULL,
                             count);
    }
}
