/* forms.h - the graphs of convolutions in a training step.
 *
 * Operands, in storage type T:
 *
 *   CONV                    x, w -> y
 *   CONV_BIAS               x, w, bias -> y                       bias T, one a filter
 *   CONV_BIAS_RELU          x, w, bias -> y
 *   BACKWARD_DATA           y, w -> x                             gradients
 *   BACKWARD_WEIGHTS        x, y -> w                             y, w: gradients */
#ifndef STK_TRAINER_BACKEND_CUDA_CUDNN_FORMS_H
#define STK_TRAINER_BACKEND_CUDA_CUDNN_FORMS_H

#include "trainer/backend/cuda/cudnn/graph.h"

enum stk_form {
    STK_FORM_CONV,
    STK_FORM_CONV_BIAS,
    STK_FORM_CONV_BIAS_RELU,
    STK_FORM_BACKWARD_DATA,
    STK_FORM_BACKWARD_WEIGHTS,
    STK_FORMS
};

/* The input, and the convolution that reads it. */
struct stk_form_shape {
    int64_t n, h, w, c;
    int64_t filters, kernel[2], stride[2], padding[2];
    int64_t groups; /* groups of channels; 0 = 1 */
};

/* Tensor numbers of the operands, for stk_cudnn_binding; 0 = the form has no such operand. */
struct stk_form_operands {
    stk_cudnn_ref x, w, y, bias;
};

/* Build and close the graph of a form. On success the caller owns *out and can ask for its
 * candidates. STOKER_ENOTSUP: no engine supports this form in this type. */
int stk_form_build(struct stk_cudnn_graph **out, struct stk_form_operands *operands,
                   struct stk_cudnn *cudnn, enum stk_form form, const struct stk_form_shape *shape,
                   stoker_dtype dtype, stoker_error *error);

/* "conv", "conv_bias", ... */
const char *stk_form_name(enum stk_form form);

/* "conv_bias float16 128x28x28x1 16x5x5 stride 1x1 padding 0x0": describes a graph in one
 * line. Returns what snprintf does. */
int stk_form_text(char *out, size_t bytes, enum stk_form form, const struct stk_form_shape *shape,
                  stoker_dtype dtype);

#endif
