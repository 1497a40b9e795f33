/* optimizer_rows.h - every optimizer, with the options that change what it does: the rule, the loop
 * that a GPU runs for it, and what PyTorch's gives after each of ten steps.
 */
#ifndef STK_TEST_OPTIMIZER_ROWS_H
#define STK_TEST_OPTIMIZER_ROWS_H

#include "golden/trainer/optimizers.h"
#include "kernels/train/arguments.h"
#include "trainer/update/update.h"

struct stk_optimizer_row {
    const char *name;
    struct stk_update_rule rule;
    enum stk_train_loop loop;
    float learning_rate;
    const float *golden; /* [GOLDEN_STEPS][GOLDEN_WEIGHTS]; NULL = not among PyTorch's */
};

#define ADAM_BETAS .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8F
static const struct stk_optimizer_row optimizer_rows[] = {
    { "sgd", { .optimizer = STK_SGD }, STK_TRAIN_SGD, 0.1F, golden_sgd },
    { "sgd momentum",
      { .optimizer = STK_SGD, .momentum = 0.9F, .weight_decay = 0.01F },
      STK_TRAIN_SGD_MOMENTUM,
      0.1F,
      golden_sgd_momentum },
    { "sgd dampening",
      { .optimizer = STK_SGD, .momentum = 0.9F, .dampening = 0.5F },
      STK_TRAIN_SGD_MOMENTUM,
      0.1F,
      golden_sgd_dampening },
    { "sgd nesterov",
      { .optimizer = STK_SGD, .momentum = 0.9F, .nesterov = true, .weight_decay = 0.01F },
      STK_TRAIN_SGD_NESTEROV,
      0.1F,
      golden_sgd_nesterov },
    { "adam",
      { .optimizer = STK_ADAM, ADAM_BETAS, .weight_decay = 0.01F },
      STK_TRAIN_ADAM,
      0.01F,
      golden_adam },
    { "adam betas",
      { .optimizer = STK_ADAM, .beta1 = 0.7, .beta2 = 0.9, .epsilon = 1e-8F },
      STK_TRAIN_ADAM,
      0.01F,
      golden_adam_betas },
    { "adamw",
      { .optimizer = STK_ADAMW, ADAM_BETAS, .weight_decay = 0.1F },
      STK_TRAIN_ADAM,
      0.01F,
      golden_adamw },
    { "adagrad",
      { .optimizer = STK_ADAGRAD, .epsilon = 1e-10F, .lr_decay = 0.1F, .weight_decay = 0.01F },
      STK_TRAIN_ADAGRAD,
      0.1F,
      golden_adagrad },
    { "rmsprop",
      { .optimizer = STK_RMSPROP, .beta1 = 0.99, .epsilon = 1e-8F, .weight_decay = 0.01F },
      STK_TRAIN_RMSPROP,
      0.01F,
      golden_rmsprop },
    { "rmsprop momentum",
      { .optimizer = STK_RMSPROP, .beta1 = 0.99, .epsilon = 1e-8F, .momentum = 0.9F },
      STK_TRAIN_RMSPROP_MOMENTUM,
      0.01F,
      golden_rmsprop_momentum },
    { "rmsprop centered",
      { .optimizer = STK_RMSPROP, .beta1 = 0.99, .epsilon = 1e-8F, .centered = true },
      STK_TRAIN_RMSPROP_CENTERED,
      0.01F,
      golden_rmsprop_centered },
    { "rmsprop both",
      { .optimizer = STK_RMSPROP,
        .beta1 = 0.99,
        .epsilon = 1e-8F,
        .centered = true,
        .momentum = 0.5F },
      STK_TRAIN_RMSPROP_CENTERED_MOMENTUM,
      0.01F,
      golden_rmsprop_both },
    { "adadelta",
      { .optimizer = STK_ADADELTA, .beta1 = 0.9, .epsilon = 1e-6F, .weight_decay = 0.01F },
      STK_TRAIN_ADADELTA,
      1.0F,
      golden_adadelta },
    { "adamax",
      { .optimizer = STK_ADAMAX, ADAM_BETAS, .weight_decay = 0.01F },
      STK_TRAIN_ADAMAX,
      0.01F,
      golden_adamax },
    { "asgd",
      { .optimizer = STK_ASGD, .lambd = 0.01F, .alpha = 0.75F, .t0 = 4.0F, .weight_decay = 0.01F },
      STK_TRAIN_ASGD,
      0.1F,
      golden_asgd },
    /* What is left of the ways that rules go together. */
    { "sgd decay", { .optimizer = STK_SGD, .weight_decay = 0.01F }, STK_TRAIN_SGD, 0.1F, NULL },
    { "sgd all but nesterov",
      { .optimizer = STK_SGD, .momentum = 0.9F, .dampening = 0.5F, .weight_decay = 0.01F },
      STK_TRAIN_SGD_MOMENTUM,
      0.1F,
      NULL },
    { "nesterov alone",
      { .optimizer = STK_SGD, .momentum = 0.9F, .nesterov = true },
      STK_TRAIN_SGD_NESTEROV,
      0.1F,
      NULL },
    { "rmsprop alone",
      { .optimizer = STK_RMSPROP, .beta1 = 0.99, .epsilon = 1e-8F },
      STK_TRAIN_RMSPROP,
      0.01F,
      NULL },
    { "asgd soon",
      { .optimizer = STK_ASGD, .lambd = 0.01F, .alpha = 0.75F, .t0 = 2.0F, .weight_decay = 0.01F },
      STK_TRAIN_ASGD,
      0.1F,
      NULL },
};
#undef ADAM_BETAS
enum {
    OPTIMIZER_ROWS = sizeof(optimizer_rows) / sizeof(optimizer_rows[0]),
    SGD_ROW = 0,
    ADAM_ROW = 4
};

#endif
