/* forms.h - the graphs that a convolutional network's step is made of.
 *
 * All that BatchNorm and ReLU do between two convolutions is folded into the convolutions around
 * them, so that only what a convolution wrote is ever stored:
 *
 *   x ─▶ CONV_STATISTICS ─▶ y, sums ─▶ (own kernel: scale, shift) ─▶ APPLY_CONV_STATISTICS ─▶ ...
 *   dw ◀─ APPLY_BACKWARD_WEIGHTS ◀─ y, scale, shift, dy2
 *   dy ◀─ NORM_RELU_BACKWARD ◀─ y, statistics, dy1 ◀─ BACKWARD_DATA ◀─ dy2
 *
 * scale = gamma x inverse, shift = beta - mean x scale. Operands, in storage type T unless said
 * otherwise; [C] are float32, one a channel:
 *
 *   CONV                    x, w -> y
 *   CONV_BIAS               x, w, bias -> y                       bias T, one a filter
 *   CONV_BIAS_RELU          x, w, bias -> y
 *   CONV_STATISTICS         x, w -> y, sum [C], square_sum [C]    of y
 *   APPLY_CONV_STATISTICS   x, scale, shift, w -> y, sum, square_sum
 *                                                                 the convolution of
 *                                                                 max(scale x + shift, 0); scale, shift
 *                                                                 T, one a channel of x
 *   BACKWARD_DATA           y, w -> x                             gradients
 *   BACKWARD_WEIGHTS        x, y -> w                             y, w: gradients
 *   ADD_BACKWARD_WEIGHTS    the same, added to what is in w
 *   APPLY_BACKWARD_WEIGHTS  x, scale, shift, y -> w               the same, of max(scale x + shift, 0)
 *   NORM                    x, gamma, beta [C], epsilon, momentum, running_mean, running_var [C]
 *                           -> y, mean [C], inverse [C], updated_running_mean, updated_running_var
 *   NORM_RELU               the same; y = max(., 0)
 *   NORM_ADD_RELU           the same, x2; y = max(. + x2, 0)      the end of a residual block
 *   NORM_BACKWARD           x, dy, mean, inverse, gamma -> dx, gamma_grad, beta_grad
 *   NORM_RELU_BACKWARD      the same, beta                        dy counts where the output, made again
 *                                                                 from x, is above 0 */
#ifndef STK_TRAINER_BACKEND_CUDA_CUDNN_FORMS_H
#define STK_TRAINER_BACKEND_CUDA_CUDNN_FORMS_H

#include "trainer/backend/cuda/cudnn/graph.h"

enum stk_form {
    STK_FORM_CONV,
    STK_FORM_CONV_BIAS,
    STK_FORM_CONV_BIAS_RELU,
    STK_FORM_CONV_STATISTICS,
    STK_FORM_APPLY_CONV_STATISTICS,
    STK_FORM_BACKWARD_DATA,
    STK_FORM_BACKWARD_WEIGHTS,
    STK_FORM_ADD_BACKWARD_WEIGHTS,
    STK_FORM_APPLY_BACKWARD_WEIGHTS,
    STK_FORM_NORM,
    STK_FORM_NORM_RELU,
    STK_FORM_NORM_ADD_RELU,
    STK_FORM_NORM_BACKWARD,
    STK_FORM_NORM_RELU_BACKWARD,
    STK_FORMS
};

/* The input, and the convolution that reads it; norms have no filters. */
struct stk_form_shape {
    int64_t n, h, w, c;
    int64_t filters, kernel[2], stride[2], padding[2];
    int64_t groups; /* of channels; 0 = 1 */
};

/* The numbers by which a plan's operands are bound; 0 = the form has none of that name. */
struct stk_form_operands {
    stk_cudnn_ref x, x2, w, y, bias, scale, shift, sum, square_sum;
    stk_cudnn_ref dy, dx, mean, inverse, gamma, beta, gamma_grad, beta_grad;
    stk_cudnn_ref epsilon, momentum; /* floats in host memory */
    stk_cudnn_ref running_mean, running_var, updated_running_mean, updated_running_var;
};

/* Build and close the graph of a form. On success *out is the caller's and its candidates are
 * known. STOKER_ENOTSUP: no engine does this form in this type. */
int stk_form_build(struct stk_cudnn_graph **out, struct stk_form_operands *operands,
                   struct stk_cudnn *cudnn, enum stk_form form, const struct stk_form_shape *shape,
                   stoker_dtype dtype, stoker_error *error);

/* "conv", "conv_bias", ... */
const char *stk_form_name(enum stk_form form);

/* "conv_bias float16 128x28x28x1 16x5x5 stride 1x1 padding 0x0": names a graph in one line.
 * Returns the length of all of it, as snprintf does. */
int stk_form_text(char *out, size_t bytes, enum stk_form form, const struct stk_form_shape *shape,
                  stoker_dtype dtype);

#endif
