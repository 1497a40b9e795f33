/* conv.c - see conv.h.
 *
 *   workspace   ┌────────────────────────┬───────────────┐
 *               │ T: weight gradient     │ cuDNN's plan  │ the gradient only if `add`
 *               ├───────────────────┬────┴───────────────┘
 *               │ sums of the bias  │ after the plan has run
 *               └───────────────────┘
 *
 * In float32 cuDNN has the same engines for "add to the gradient" as for "write it". With 16-bit
 * images no engine writes a float32 gradient, so it is written in T and a kernel adds it. */
#include "trainer/backend/cuda/program/conv.h"

#include <assert.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/backend/cuda/device/device.h"
#include "trainer/backend/cuda/program/bias.h"
#include "trainer/backend/cuda/program/form.h"

enum { PART_BYTES = 256 };

struct stk_cuda_conv {
    const struct stk_cuda_math *math;
    enum stk_cuda_direction direction;
    struct stk_form_shape shape;
    bool relu, has_bias;
    bool finish; /* FORWARD: a kernel adds the bias and applies ReLU, the graph does not */
    struct stk_cuda_form form;
    struct stk_engine_failures *failures; /* while it is made */
    struct stk_cuda_bias bias_gradient;
    uint64_t weights, outputs; /* elements */
    uint64_t plan_at, end;     /* bytes from the start of the workspace */
};

/* ---- making ---------------------------------------------------------------------------------- */

/* Bytes before the plan's workspace: the gradient that the graph writes and a kernel adds. */
static uint64_t gradient_bytes(const struct stk_cuda_conv *conv)
{
    const uint64_t bytes = conv->direction == STK_CUDA_BACKWARD_WEIGHTS
                               ? conv->weights * stoker_dtype_bytes(conv->math->dtype)
                               : 0;
    return (bytes + PART_BYTES - 1) / PART_BYTES * PART_BYTES;
}

static void lay_out_end(struct stk_cuda_conv *conv)
{
    const bool sums = conv->direction == STK_CUDA_BACKWARD_WEIGHTS && conv->has_bias;
    const uint64_t sum_bytes = sums ? stk_cuda_bias_workspace_bytes(&conv->bias_gradient) : 0;
    const uint64_t end = conv->plan_at + stk_cudnn_plan_workspace_bytes(conv->form.plan);
    conv->end = end > sum_bytes ? end : sum_bytes;
}

/* The limit applies to the plan and the gradient together. */
static int make_form(struct stk_cuda_conv *conv, enum stk_form kind, stoker_error *error)
{
    struct stk_engine_rules rules = conv->math->rules;
    conv->plan_at = gradient_bytes(conv);
    rules.workspace_bytes_max -=
        rules.workspace_bytes_max < conv->plan_at ? rules.workspace_bytes_max : conv->plan_at;
    return stk_cuda_form_make(&conv->form, conv->math, &rules, kind, &conv->shape, conv->failures,
                              error);
}

/* Bias and ReLU inside the graph if an engine supports that, else after it. */
static int make_forward(struct stk_cuda_conv *conv, stoker_error *error)
{
    if (conv->has_bias) {
        const int rc =
            make_form(conv, conv->relu ? STK_FORM_CONV_BIAS_RELU : STK_FORM_CONV_BIAS, error);
        if (rc != STOKER_ENOTSUP)
            return rc;
    }
    conv->finish = conv->has_bias || conv->relu;
    return make_form(conv, STK_FORM_CONV, error);
}

static int make(struct stk_cuda_conv *conv, stoker_error *error)
{
    switch (conv->direction) {
    case STK_CUDA_FORWARD:
        return make_forward(conv, error);
    case STK_CUDA_BACKWARD_DATA:
        return make_form(conv, STK_FORM_BACKWARD_DATA, error);
    case STK_CUDA_BACKWARD_WEIGHTS:
    default:
        return make_form(conv, STK_FORM_BACKWARD_WEIGHTS, error);
    }
}

static struct stk_form_shape shape_of(const struct stk_layer *l, uint32_t count)
{
    return (struct stk_form_shape){ .n = count,
                                    .h = l->in.h,
                                    .w = l->in.w,
                                    .c = l->in.c,
                                    .filters = l->out.c,
                                    .kernel = { l->kernel[0], l->kernel[1] },
                                    .stride = { l->stride[0], l->stride[1] },
                                    .padding = { l->padding[0], l->padding[1] },
                                    .groups = l->groups };
}

int stk_cuda_conv_create(struct stk_cuda_conv **out, const struct stk_cuda_math *math,
                         const struct stk_layer *layer, enum stk_cuda_direction direction,
                         bool relu, uint32_t count, stoker_error *error)
{
    assert(layer->kind == STK_CONV2D);
    assert(count >= 1);
    assert(math->cudnn != NULL);
    struct stk_cuda_conv *conv = stk_calloc(1, sizeof(*conv));
    if (conv == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "a convolution");
    const uint64_t pixels = (uint64_t)count * layer->out.h * layer->out.w;
    conv->math = math;
    conv->direction = direction;
    conv->shape = shape_of(layer, count);
    conv->has_bias = layer->bias >= 0;
    conv->relu = relu;
    conv->bias_gradient = stk_cuda_bias_plan(math->dtype, pixels, layer->out.c);
    conv->weights = (uint64_t)layer->out.c * layer->kernel[0] * layer->kernel[1] *
                    (layer->in.c / layer->groups);
    conv->outputs = pixels * layer->out.c;
    struct stk_engine_failures failures = { .engines = 0 };
    conv->failures = &failures;
    const int rc = stk_engine_result(make(conv, error), &failures, error);
    conv->failures = NULL;
    if (rc != STOKER_OK) {
        stk_cuda_conv_destroy(&conv);
        return rc;
    }
    lay_out_end(conv);
    *out = conv;
    return STOKER_OK;
}

void stk_cuda_conv_destroy(struct stk_cuda_conv **conv)
{
    if (*conv == NULL)
        return;
    stk_cuda_form_drop(&(*conv)->form);
    stk_free(*conv);
    *conv = NULL;
}

uint64_t stk_cuda_conv_workspace_bytes(const struct stk_cuda_conv *conv)
{
    return conv->end;
}

/* ---- running --------------------------------------------------------------------------------- */

static int finish_forward(const struct stk_cuda_conv *conv, const struct stk_cuda_operands *o,
                          stoker_error *error)
{
    const struct stk_train_bias_relu arguments = { .y = o->y,
                                                   .bias = conv->has_bias ? o->bias : NULL,
                                                   .count = conv->outputs,
                                                   .c = (uint32_t)conv->shape.filters,
                                                   .relu = conv->relu };
    return stk_cuda_launch(conv->math->backend,
                           stk_train_kernel_in("stk_train_bias_relu", conv->math->dtype),
                           &arguments, error);
}

/* True if the graph writes the gradient of the weights to the workspace: it is in T, or must be
 * added. */
static bool writes_apart(const struct stk_cuda_conv *conv, const struct stk_cuda_operands *o)
{
    return conv->math->dtype != STOKER_DTYPE_FLOAT32 || !o->write;
}

static int finish_backward_weights(const struct stk_cuda_conv *conv,
                                   const struct stk_cuda_operands *o, stoker_error *error)
{
    int rc = STOKER_OK;
    if (writes_apart(conv, o)) {
        const struct stk_train_add_gradient arguments = { .gradient = o->workspace,
                                                          .sum = o->weight_grad,
                                                          .count = conv->weights,
                                                          .write = o->write };
        rc = stk_cuda_launch(conv->math->backend,
                             stk_train_kernel_in("stk_train_add_gradient", conv->math->dtype),
                             &arguments, error);
    }
    if (rc == STOKER_OK && o->bias_grad != NULL)
        rc = stk_cuda_bias_run(&conv->bias_gradient, conv->math->backend, o, error);
    return rc;
}

/* Bind the operands of this direction to the tensors of the graph. */
static struct stk_cuda_bound operands_of(const struct stk_cuda_conv *conv,
                                         const struct stk_cuda_operands *o)
{
    const struct stk_form_operands *const f = &conv->form.operands;
    struct stk_cuda_bound bound = { .count = 0 };
    switch (conv->direction) {
    case STK_CUDA_FORWARD:
        stk_cuda_bind(&bound, f->x, o->x);
        stk_cuda_bind(&bound, f->w, o->weight);
        stk_cuda_bind(&bound, f->bias, o->bias);
        stk_cuda_bind(&bound, f->y, o->y);
        break;
    case STK_CUDA_BACKWARD_DATA:
        stk_cuda_bind(&bound, f->x, o->dx);
        stk_cuda_bind(&bound, f->w, o->weight);
        stk_cuda_bind(&bound, f->y, o->dy);
        break;
    case STK_CUDA_BACKWARD_WEIGHTS:
    default:
        stk_cuda_bind(&bound, f->x, o->x);
        stk_cuda_bind(&bound, f->w, writes_apart(conv, o) ? o->workspace : o->weight_grad);
        stk_cuda_bind(&bound, f->y, o->dy);
        break;
    }
    return bound;
}

int stk_cuda_conv_run(struct stk_cuda_conv *conv, const struct stk_cuda_operands *operands,
                      stoker_error *error)
{
    assert(operands->workspace != NULL || conv->end == 0);
    const struct stk_cuda_bound bound = operands_of(conv, operands);
    int rc = stk_cuda_form_run(&conv->form, &bound, (char *)operands->workspace + conv->plan_at,
                               conv->math->backend->stream, error);
    if (rc == STOKER_OK && conv->finish)
        rc = finish_forward(conv, operands, error);
    if (rc == STOKER_OK && conv->direction == STK_CUDA_BACKWARD_WEIGHTS)
        rc = finish_backward_weights(conv, operands, error);
    return rc;
}
