/* arguments.h - the arguments of the kernels of a training step: one struct per kernel, by value.
 *
 * Compiled by nvcc and as C. A kernel's name ends in _f32, _f16 or _bf16, the type T in which its
 * images and gradients are stored; sums are float32 or wider. Pointers are device memory. Images
 * are NHWC.
 *
 * Sums that several blocks share are added in a fixed order: each block writes its partial sum, and
 * the last block to increment `ticket` adds them all up and resets the ticket to 0. So two runs
 * give the same bits without a second launch. */
#ifndef STK_KERNELS_TRAIN_ARGUMENTS_H
#define STK_KERNELS_TRAIN_ARGUMENTS_H

#include "kernels/kernel.h"
#include <stdint.h>

enum {
    STK_TRAIN_PARTIALS_MAX = 1024, /* most blocks that share a sum */
    STK_TRAIN_STATE_MAX = 3
};

/* ---- numbers of the step that live on the device --------------------------------------------- */

/* Added up by the losses since the host last cleared it. */
struct stk_train_metrics {
    double loss_sum;
    uint64_t correct, count;
    uint64_t bad_labels; /* labels outside 0..classes - 1; they add no loss and no gradient */
};

enum stk_train_loop {
    STK_TRAIN_SGD,
    STK_TRAIN_SGD_MOMENTUM,
    STK_TRAIN_SGD_NESTEROV,
    STK_TRAIN_ADAM, /* and AdamW */
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

/* The optimizer's settings, fixed for a run. A loop ignores the fields that it does not use. */
struct stk_train_rule {
    uint32_t loop; /* enum stk_train_loop */
    float momentum, dampening, epsilon, weight_decay, lr_decay;
    uint32_t decoupled;     /* AdamW: decay shrinks weights, not gradients */
    float lambd, alpha, t0; /* ASGD */
    double beta1, beta2;
    float clip_norm;  /* largest norm of the gradients; 0 = no limit */
    uint32_t dynamic; /* true if the loss scale is dynamic; else no update is skipped */
    double ema_decay;
};

/* Factors of one update, the same for all weights. */
struct stk_train_factors {
    float gradient; /* factor on the gradients: clipping and 1 / loss scale */
    float decay, rate, keep1, add1, keep2, add2, root2, epsilon, shrink, momentum;
    float average; /* share of the new weights in the moving average */
};

/* Lives as long as the training run; a captured step reads and updates it. */
struct stk_train_state {
    uint64_t step;  /* updates made */
    uint64_t tried; /* updates made or skipped */
    float loss_scale;
    uint32_t good_updates; /* consecutive ones since the scale last changed */
    double norm_squared;   /* from the gradients as stored: times loss scale squared */
    uint32_t finite;       /* true if all gradients were */
    uint32_t use;          /* true if this update is made */
    float gradient_norm;   /* norm of the mean over the samples, before clipping */
    struct stk_train_factors factors;
};

/* ---- loss ------------------------------------------------------------------------------------ */

/* softmax_cross_entropy: up to 32 lanes of a warp share a row. x and dx are T [rows][classes]. */
struct stk_train_cross_entropy {
    const void *x;
    void *dx; /* may be x; NULL = loss only */
    const int64_t *labels;
    uint32_t rows, classes;
    float smoothing;                     /* label smoothing, as in PyTorch */
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

/* ---- update ---------------------------------------------------------------------------------- */

/* gradient_norm: writes the sum of squares and the finiteness of T gradients to state. The sum is
 * exact but for a rounding error of 1e-12 of it at most. The gradients are aligned to 16 bytes. */
struct stk_train_norm {
    const void *gradients;
    uint64_t count;
    struct stk_train_state *state;
    double *partial_sums; /* [blocks] */
    uint32_t *partial_finite;
    uint32_t *ticket;
};

/* The norm of the gradients on the other device of a split network. */
struct stk_train_other {
    double norm_squared;
    uint32_t finite;
};

/* prepare: one thread, no storage types. Computes the factors from norm, rule and step; updates the
 * loss scale and the step. */
struct stk_train_prepare {
    struct stk_train_rule rule;
    struct stk_train_state *state;
    const float *learning_rates; /* [rate_count] of update 0, 1, ...; the last one stays */
    uint64_t rate_count;
    uint64_t samples; /* samples in the sums of gradients; 0 = gradients are means */
    const struct stk_train_other *other; /* NULL = none */
};

/* update: one pass over the arena. Changes nothing if state->use is 0. */
struct stk_train_update {
    uint32_t loop; /* enum stk_train_loop */
    const struct stk_train_state *state;
    float *parameters;
    void *half_weights;     /* T [count]: rounded weights for the convolutions; NULL = none */
    const float *gradients; /* [count] */
    float *moments[STK_TRAIN_STATE_MAX];
    float *ema; /* NULL = none */
    uint64_t count;
};

/* cast: rounds weights or images to T. */
struct stk_train_cast {
    const float *x;
    void *y; /* T */
    uint64_t count;
};

/* add_gradient: sum += gradient of a layer, in T. */
struct stk_train_add_gradient {
    const void *gradient; /* T */
    float *sum;
    uint64_t count;
    uint32_t write; /* sum = gradient */
};

/* ---- layers ---------------------------------------------------------------------------------- */

/* Inputs and outputs have fewer than 2^31 elements each, and are aligned to 16 bytes. */
struct stk_train_window {
    uint32_t n, in_h, in_w, c, out_h, out_w;
    uint32_t kernel[2], stride[2], padding[2];
};

/* Elementwise kernels: a thread takes eight adjacent elements; arrays are aligned to 16 bytes.
 * relu: y = max(x, 0), NaN stays; y may be x. */
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

/* add: y = x + x2; y may be either. Also adds gradients. */
struct stk_train_add {
    const void *x, *x2;
    void *y;
    uint64_t count;
};

/* bias_relu: y = max(y + bias, 0), if no library does it in an epilogue. Both are aligned to 16
 * bytes. */
struct stk_train_bias_relu {
    void *y;          /* T [count / c][c] */
    const void *bias; /* T [c]; NULL = none */
    uint64_t count;
    uint32_t c, relu;
};

/* max_pool_forward: one thread per 16 bytes of outputs. The position of the maximum in its window,
 * in row order, takes one byte, or two if a window has more than 256. */
struct stk_train_max_pool {
    struct stk_train_window window;
    const void *x;
    void *y;
    void *places;  /* NULL = not kept */
    uint32_t relu; /* then y = max(y, 0) */
};

/* max_pool_backward: a thread takes stk_train_tile_side()^2 inputs, and reads the windows that
 * cover them. */
struct stk_train_max_pool_backward {
    struct stk_train_window window;
    const void *dy;
    void *dx;
    const void *places;
    const void *y; /* dy counts where y > 0; NULL = everywhere */
};

/* avg_pool_forward (x -> y) and avg_pool_backward (x is dy, y is dx). Padding counts as zeros. */
struct stk_train_avg_pool {
    struct stk_train_window window;
    const void *x;
    void *y;
};

/* dropout: forward and backward; y may be x. A thread takes eight elements, at once if `elements`
 * is a multiple of eight. */
struct stk_train_dropout {
    const void *x;
    void *y;
    uint64_t seed, first_sample, elements; /* elements of one sample */
    uint32_t samples, layer;
    uint32_t dropped_below;              /* stk_dropout_dropped_below() */
    float scale;                         /* stk_dropout_scale() */
    const struct stk_train_state *state; /* its `tried` + step keys the mask */
    uint64_t step;
};

/* batch_norm: y = (x - mean) inverse gamma + beta, then max(y, 0). y may be x. A thread keeps to 16
 * bytes of adjacent channels; images and [c] are aligned to 16 bytes. If inverse is NULL, the
 * running variance is given instead. */
struct stk_train_batch_norm {
    const void *x;
    void *y;
    uint32_t count; /* elements, below 2^31 */
    uint32_t c, relu;
    const float *mean, *inverse, *variance, *gamma, *beta; /* [c] */
    float epsilon;                                         /* with variance */
};

/* batch_norm_moments: mean and 1 / sqrt(variance + epsilon) of each channel of the images. Blocks
 * of 32 channels x `chunks`. x, as all images of the kernels that sum by channel, is aligned to 16
 * bytes. */
struct stk_train_batch_norm_moments {
    const void *x; /* T [pixels][c] */
    uint64_t pixels;
    uint32_t c, chunks; /* chunks 1..STK_TRAIN_PARTIALS_MAX */
    float epsilon, momentum;
    float *mean, *inverse;             /* [c] */
    float *running_mean, *running_var; /* updated, with the unbiased variance; NULL = not updated */
    float *partial_sums;               /* [chunks][2][c] */
    uint32_t *tickets;                 /* [(c + 31) / 32] */
};

/* Of several GPUs together, instead of batch_norm_moments: batch_norm_sums on each, the sum over
 * all of `sums`, then batch_norm_finish. Blocks of batch_norm_sums as of batch_norm_moments. */
struct stk_train_batch_norm_sums {
    const void *x;      /* T [pixels][c] */
    const float *shift; /* [c]; the same on all GPUs, close to the mean */
    uint64_t pixels;    /* here */
    uint32_t c, chunks;
    double *sums;        /* [2][c]: of x - shift, and of its square */
    float *partial_sums; /* [chunks][2][c] */
    uint32_t *tickets;   /* [(c + 31) / 32] */
};

/* batch_norm_finish: one thread per channel, no storage types. */
struct stk_train_batch_norm_finish {
    const double *sums; /* [2][c] of all GPUs */
    const float *shift;
    uint64_t pixels; /* on all GPUs */
    uint32_t c;
    float epsilon, momentum;
    float *mean, *inverse;             /* [c] */
    float *running_mean, *running_var; /* updated, with the unbiased variance; NULL = not updated */
};

/* move_statistics: running statistics by those of each GPU's batch, in the order of ranks. No
 * storage types. */
struct stk_train_move_statistics {
    float *running;
    const float *found;   /* [ranks][count]; NaN = that GPU had no batch */
    const float *momenta; /* [count] */
    uint64_t count;
    uint32_t ranks;
};

/* batch_norm_backward_sums, then batch_norm_backward: gradients of gamma and beta, then of x. Of
 * several GPUs together, `sums_of_all` is added up over them between the two. */
struct stk_train_batch_norm_backward {
    const void *x, *dy; /* T [pixels][c] */
    const void *y;      /* relu: dy counts where y > 0; NULL = y is recomputed from x */
    void *dx;           /* may be dy; ignored by backward_sums */
    uint64_t pixels;
    uint32_t c, chunks, relu;
    const float *mean, *inverse, *gamma, *beta; /* [c] */
    float *gamma_grad, *beta_grad;              /* [c], added to by backward_sums */
    float *sums;                                /* [2][c]: of this call only, for backward */
    double *sums_of_all;                        /* [2][c]; NULL = this GPU alone: `sums` are used */
    uint64_t pixels_of_all;
    float *partial_sums; /* [chunks][2][c] */
    uint32_t *tickets;   /* [(c + 31) / 32] */
    uint32_t write;      /* gamma_grad and beta_grad are overwritten */
};

/* bias_gradient: bias_grad[c] += sum of dy over all pixels. Blocks of 32 channels x `chunks`. */
struct stk_train_bias_gradient {
    const void *dy; /* T [pixels][c] */
    uint64_t pixels;
    uint32_t c, chunks;  /* chunks 1..STK_TRAIN_PARTIALS_MAX */
    float *bias_grad;    /* float32 [c] */
    float *partial_sums; /* [chunks][c] */
    uint32_t *tickets;   /* [(c + 31) / 32] */
    uint32_t write;      /* bias_grad is overwritten */
};

#endif
