/* update.h - one optimizer step over the parameter arena, as numbers: no pointers into a model.
 *
 * Formulas and defaults are PyTorch's (torch.optim 1.13 and later), each cited where it is
 * computed. The arena is one flat array, so a step is one pass over it, and any split of it
 * among threads gives the same bits. */
#ifndef STK_TRAINER_UPDATE_H
#define STK_TRAINER_UPDATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/tensor.h>

enum stk_optimizer {
    STK_SGD,
    STK_ADAM,
    STK_ADAMW,
    STK_ADAGRAD,
    STK_RMSPROP,
    STK_ADADELTA,
    STK_ADAMAX,
    STK_ASGD,
    STK_OPTIMIZERS
};

enum { STK_STATE_ARENAS_MAX = 3 };

/* Fixed for a run, with all defaults filled in. Numbers close to 1 are doubles: as a float,
 * 1 - 0.999 would be wrong in its fifth digit. */
struct stk_update_rule {
    enum stk_optimizer optimizer;
    float momentum;      /* SGD, RMSprop */
    float dampening;     /* SGD */
    bool nesterov;       /* SGD */
    bool centered;       /* RMSprop */
    double beta1, beta2; /* Adam, AdamW, Adamax; beta1 is also Adadelta's rho and RMSprop's alpha */
    float epsilon;
    float weight_decay;     /* L2 into the gradient; decoupled for AdamW */
    float lr_decay;         /* Adagrad */
    float lambd, alpha, t0; /* ASGD */
};

/* One step. */
struct stk_update {
    const struct stk_update_rule *rule;
    float *parameters;
    const float *gradients;
    float *state[STK_STATE_ARENAS_MAX]; /* as many as stk_optimizer_state_arenas(rule), 0 before
                                           the first step */
    float *ema;                         /* exponential moving average of the weights; NULL = none */
    double ema_decay;
    void *half_weights; /* parameters in a narrower type, written by back ends that have one; NULL =
                            none. stk_update_range() leaves it alone */
    stoker_dtype storage; /* its type */
    uint64_t floats;      /* length of each of them */
    uint64_t step;        /* 1 for the first */
    float learning_rate;
    float gradient_factor; /* gradients are multiplied by it first: clipping and 1 / loss scale */
};

/* Returns the number of state arenas of a rule, 0..STK_STATE_ARENAS_MAX (SGD without momentum: 0).
 * */
uint32_t stk_optimizer_state_arenas(const struct stk_update_rule *rule);

/* Applies the step to floats [begin, end). Both CPU back ends call it. */
void stk_update_range(const struct stk_update *update, uint64_t begin, uint64_t end);

/* Returns the index of the update whose learning rate the update after `updates` others uses: its
 * own, except for ASGD, which in PyTorch computes its rate at the end of the step before. */
uint64_t stk_optimizer_rate_of(enum stk_optimizer optimizer, uint64_t updates);

/* "sgd", "adam", ... */
const char *stk_optimizer_name(enum stk_optimizer optimizer);

#endif
