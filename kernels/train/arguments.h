/* arguments.h - what each kernel of a training step is given: one struct, by value.
 *
 * The same lines are compiled by nvcc for the kernel and by the C compiler for its host version. A kernel is
 * found by its name, NAME_f32, NAME_f16 or NAME_bf16 by the type T that its images and gradients are
 * stored in (train.h lists them); sums are float32 or wider. Pointers are device memory. Images are NHWC.
 *
 * Sums that many blocks share are made in a fixed order: each block writes its partial sum, and the
 * block that is last to raise `ticket` adds them all up and sets the ticket back to 0. So two runs
 * give the same bits, and no second launch is needed. */
#ifndef STK_KERNELS_TRAIN_ARGUMENTS_H
#define STK_KERNELS_TRAIN_ARGUMENTS_H

#include "kernels/kernel.h"
#include <stdint.h>

enum {
    STK_TRAIN_PARTIALS_MAX = 1024, /* blocks that share a sum */
    STK_TRAIN_STATE_MAX = 3
};

/* ---- numbers of the step that live on the device ----------------------------------------------- */

/* Found by the losses since the host cleared it. */
struct stk_train_metrics {
    double loss_sum;
    uint64_t correct, count;
    uint64_t bad_labels; /* outside 0..classes - 1: they add no loss and no gradient */
};

enum stk_train_loop {
    STK_TRAIN_SGD,
    STK_TRAIN_SGD_MOMENTUM,
    STK_TRAIN_SGD_NESTEROV,
    STK_TRAIN_ADAM, /* AdamW as well */
    STK_TRAIN_ADAMAX,
    STK_TRAIN_ADAGRAD,
    STK_TRAIN_ADADELTA,
    STK_TRAIN_RMSPROP,
    STK_TRAIN_RMSPROP_MOMENTUM,
    STK_TRAIN_RMSPROP_CENTERED,
    STK_TRAIN_RMSPROP_CENTERED_MOMENTUM,
    STK_TRAIN_ASGD,
    STK_TRAIN_LOOPS
};

/* What the optimiser is; fixed for a run. Fields that a loop does not use are ignored. */
struct stk_train_rule {
    uint32_t loop; /* enum stk_train_loop */
    float momentum, dampening, epsilon, weight_decay, lr_decay;
    uint32_t decoupled;     /* AdamW: decay shrinks weights, not gradients */
    float lambd, alpha, t0; /* ASGD */
    double beta1, beta2;
    float clip_norm;  /* gradients are scaled down to it; 0 = never */
    uint32_t dynamic; /* the loss scale follows overflows; else no update is left out */
    double ema_decay;
};

/* What is the same for all weights of one update. */
struct stk_train_factors {
    float gradient; /* gradients are multiplied by it: clipping and 1 / loss scale */
    float decay, rate, keep1, add1, keep2, add2, root2, epsilon, shrink, momentum;
    float average; /* share of the weights in their moving average */
};

/* Lives as long as the training run; a captured step reads and moves it. */
struct stk_train_state {
    uint64_t step;  /* updates made: 0 before the first */
    uint64_t tried; /* steps, those left out counted */
    float loss_scale;
    uint32_t good_updates; /* in a row, since the scale last changed */
    double norm_squared;   /* of the gradients, as they are: times loss scale squared */
    uint32_t finite;       /* whether all were */
    uint32_t use;          /* whether this update is made */
    float gradient_norm;   /* of the mean over the samples, before clipping */
    struct stk_train_factors factors;
};

/* ---- loss -------------------------------------------------------------------------------------- */

/* softmax_cross_entropy: one warp a row. x and dx are T [rows][classes]. */
struct stk_train_cross_entropy {
    const void *x;
    void *dx; /* may be x; NULL = loss only */
    const int64_t *labels;
    uint32_t rows, classes;
    float smoothing;                     /* label smoothing, as PyTorch has it */
    float gradient_factor;               /* 1 / samples of the whole step */
    const struct stk_train_state *state; /* loss_scale; NULL = 1 */
    struct stk_train_metrics *metrics;   /* added to */
    double *partial_loss;                /* [blocks] */
    uint32_t *partial_counts;            /* [blocks][2]: correct, bad labels */
    uint32_t *ticket;                    /* 0 before the first launch */
};

/* mse: one block several rows of T [rows][outputs]. */
struct stk_train_mse {
    const void *x;
    void *dx;             /* may be x; NULL = loss only */
    const float *targets; /* [rows][outputs] */
    uint32_t rows, outputs;
    float gradient_factor;               /* 1 / samples of the whole step */
    const struct stk_train_state *state; /* loss_scale; NULL = 1 */
    struct stk_train_metrics *metrics;   /* added to */
    double *partial_loss;                /* [blocks] */
    uint32_t *ticket;                    /* 0 before the first launch */
};

/* ---- update ------------------------------------------------------------------------------------ */

/* gradient_norm: sum of squares and finiteness of T gradients, into state. */
struct stk_train_norm {
    const void *gradients;
    uint64_t count;
    struct stk_train_state *state;
    double *partial_sums; /* [blocks] */
    uint32_t *partial_finite;
    uint32_t *ticket;
};

/* The norm of the gradients that another device has, where a network lies on two. */
struct stk_train_other {
    double norm_squared;
    uint32_t finite;
};

/* prepare: one kernel, not three, and one thread of it. From norm, rule and step to factors; moves the loss scale and the step. */
struct stk_train_prepare {
    struct stk_train_rule rule;
    struct stk_train_state *state;
    const float *learning_rates; /* [rate_count], of update 0, 1, ...; the last holds on */
    uint64_t rate_count;
    uint64_t samples; /* whose gradients were summed, to be divided by; 0 = they are means */
    const struct stk_train_other *other; /* NULL = all gradients are here */
};

/* update: one pass over the arena. If state->use is 0 nothing changes. */
struct stk_train_update {
    uint32_t loop; /* enum stk_train_loop */
    const struct stk_train_state *state;
    float *parameters;
    void *half_weights;    /* T [count]: the weights rounded, for the convolutions; NULL = none */
    const void *gradients; /* T [count] */
    float *moments[STK_TRAIN_STATE_MAX];
    float *ema; /* NULL = none */
    uint64_t count;
};

/* cast: weights or images rounded to T. */
struct stk_train_cast {
    const float *x;
    void *y; /* T */
    uint64_t count;
};

/* add_gradient: sum += gradient, a layer's in T. */
struct stk_train_add_gradient {
    const void *gradient; /* T */
    float *sum;
    uint64_t count;
};

/* ---- layers ------------------------------------------------------------------------------------ */

/* Inputs and outputs are fewer than 2^31 elements each. */
struct stk_train_window {
    uint32_t n, in_h, in_w, c, out_h, out_w;
    uint32_t kernel[2], stride[2], padding[2];
};

/* Elementwise kernels: one thread eight elements that lie side by side; arrays begin at multiples of 16
 * bytes. relu: y = max(x, 0), NaN stays; y may be x. */
struct stk_train_relu {
    const void *x;
    void *y;
    uint64_t count;
};

/* relu_backward: dx = dy where y > 0, else 0; dx may be dy or y. */
struct stk_train_relu_backward {
    const void *y, *dy;
    void *dx;
    uint64_t count;
};

/* add: y = x + x2; y may be either. Adds up gradients, too. */
struct stk_train_add {
    const void *x, *x2;
    void *y;
    uint64_t count;
};

/* bias_relu: y = y + bias, then max(., 0); for what no library does in its own epilogue. */
struct stk_train_bias_relu {
    void *y;          /* T [count / c][c] */
    const void *bias; /* T [c]; NULL = none */
    uint64_t count;
    uint32_t c, relu;
};

/* max_pool_forward: one thread an output. The place of the maximum in its window, in row order, takes
 * a byte, or two where a window has more than 256 places. */
struct stk_train_max_pool {
    struct stk_train_window window;
    const void *x;
    void *y;
    void *places;  /* NULL = not kept */
    uint32_t relu; /* then max(., 0) */
};

/* max_pool_backward: one thread an input; it looks into each window that covers it. */
struct stk_train_max_pool_backward {
    struct stk_train_window window;
    const void *dy;
    void *dx;
    const void *places;
    const void *y; /* only where y > 0 does dy count; NULL = everywhere */
};

/* avg_pool_forward (x -> y) and avg_pool_backward (x is dy, y is dx): padding counts as zeros. */
struct stk_train_avg_pool {
    struct stk_train_window window;
    const void *x;
    void *y;
};

/* dropout: forward and backward; y may be x. One thread eight elements. */
struct stk_train_dropout {
    const void *x;
    void *y;
    uint64_t seed, first_sample, elements; /* elements of one sample */
    uint32_t samples, layer;
    uint32_t dropped_below;              /* stk_dropout_dropped_below() */
    float scale;                         /* stk_dropout_scale() */
    const struct stk_train_state *state; /* tried: keys the mask, with `step` added */
    uint64_t step;
};

/* batch_norm: y = (x - mean) inverse gamma + beta, then max(., 0). y may be x. One thread an element.
 * inverse NULL: variance is given instead, of the running statistics. */
struct stk_train_batch_norm {
    const void *x;
    void *y;
    uint32_t count; /* elements, below 2^31 */
    uint32_t c, relu;
    const float *mean, *inverse, *variance, *gamma, *beta; /* [c] */
    float epsilon;                                         /* with variance */
};

/* batch_norm_moments: mean and 1 / sqrt(variance + epsilon) of each channel, from the images themselves.
 * Blocks of 32 channels x `chunks`. */
struct stk_train_batch_norm_moments {
    const void *x; /* T [pixels][c] */
    uint64_t pixels;
    uint32_t c, chunks; /* chunks 1..STK_TRAIN_PARTIALS_MAX */
    float epsilon, momentum;
    float *mean, *inverse;             /* [c] */
    float *running_mean, *running_var; /* moved, the variance unbiased; NULL = left */
    float *partial_sums;               /* [chunks][2][c] */
    uint32_t *tickets;                 /* [(c + 31) / 32] */
};

/* batch_norm_backward_sums, then batch_norm_backward: gradients of gamma and beta, then of x. */
struct stk_train_batch_norm_backward {
    const void *x, *dy; /* T [pixels][c] */
    const void *y;      /* relu: dy counts where y > 0; NULL = y is made again from x */
    void *dx;           /* may be dy; backward_sums does not touch it */
    uint64_t pixels;
    uint32_t c, chunks, relu;
    const float *mean, *inverse, *gamma, *beta; /* [c] */
    float *gamma_grad, *beta_grad;              /* [c], added to by backward_sums */
    float *sums;                                /* [2][c]: of this call alone, for backward */
    float *partial_sums;                        /* [chunks][2][c] */
    uint32_t *tickets;                          /* [(c + 31) / 32] */
};

/* bias_gradient: bias_grad[c] += sum of dy over all pixels. Blocks of 32 channels x `chunks`. */
struct stk_train_bias_gradient {
    const void *dy; /* T [pixels][c] */
    uint64_t pixels;
    uint32_t c, chunks;  /* chunks 1..STK_TRAIN_PARTIALS_MAX */
    float *bias_grad;    /* float32 [c] */
    float *partial_sums; /* [chunks][c] */
    uint32_t *tickets;   /* [(c + 31) / 32] */
};

#endif
