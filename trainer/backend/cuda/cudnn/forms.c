/* forms.c - see forms.h. */
#include "trainer/backend/cuda/cudnn/forms.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static const char *const names[STK_FORMS] = {
    [STK_FORM_CONV] = "conv",
    [STK_FORM_CONV_BIAS] = "conv_bias",
    [STK_FORM_CONV_BIAS_RELU] = "conv_bias_relu",
    [STK_FORM_BACKWARD_DATA] = "backward_data",
    [STK_FORM_BACKWARD_WEIGHTS] = "backward_weights",
};

const char *stk_form_name(enum stk_form form)
{
    return names[form];
}

int stk_form_text(char *out, size_t bytes, enum stk_form form, const struct stk_form_shape *s,
                  stoker_dtype dtype)
{
    char groups[32] = "";
    if (s->groups > 1)
        (void)snprintf(groups, sizeof(groups), " groups %" PRId64, s->groups);
    return snprintf(out, bytes,
                    "%s %s %" PRId64 "x%" PRId64 "x%" PRId64 "x%" PRId64 " %" PRId64 "x%" PRId64
                    "x%" PRId64 " stride %" PRId64 "x%" PRId64 " padding %" PRId64 "x%" PRId64 "%s",
                    names[form], stoker_dtype_name(dtype), s->n, s->h, s->w, s->c, s->filters,
                    s->kernel[0], s->kernel[1], s->stride[0], s->stride[1], s->padding[0],
                    s->padding[1], groups);
}

/* A graph while it is built. */
struct builder {
    struct stk_cudnn_graph *graph;
    const struct stk_form_shape *shape;
    stoker_dtype dtype;
    struct stk_form_operands *operands;
};

static int64_t extent_out(int64_t in, int64_t kernel, int64_t stride, int64_t padding)
{
    return (in + 2 * padding - kernel) / stride + 1;
}

static stk_cudnn_ref input(const struct builder *b)
{
    const struct stk_form_shape *const s = b->shape;
    return stk_cudnn_graph_tensor(
        b->graph, &(struct stk_cudnn_tensor){ b->dtype, s->n, s->h, s->w, s->c, false });
}

static stk_cudnn_ref output(const struct builder *b, stoker_dtype dtype, bool is_virtual)
{
    const struct stk_form_shape *const s = b->shape;
    return stk_cudnn_graph_tensor(
        b->graph,
        &(struct stk_cudnn_tensor){
            dtype, s->n, extent_out(s->h, s->kernel[0], s->stride[0], s->padding[0]),
            extent_out(s->w, s->kernel[1], s->stride[1], s->padding[1]), s->filters, is_virtual });
}

static stk_cudnn_ref filters(const struct builder *b)
{
    const struct stk_form_shape *const s = b->shape;
    const int64_t channels_read = s->c / (s->groups > 1 ? s->groups : 1);
    return stk_cudnn_graph_tensor(b->graph,
                                  &(struct stk_cudnn_tensor){ b->dtype, s->filters, s->kernel[0],
                                                              s->kernel[1], channels_read, false });
}

static stk_cudnn_ref channels(const struct builder *b, stoker_dtype dtype, int64_t count)
{
    return stk_cudnn_graph_tensor(b->graph,
                                  &(struct stk_cudnn_tensor){ dtype, 1, 1, 1, count, false });
}

static void convolve(const struct builder *b, enum stk_cudnn_direction direction, stk_cudnn_ref x,
                     stk_cudnn_ref w, stk_cudnn_ref y)
{
    const struct stk_form_shape *const s = b->shape;
    const struct stk_cudnn_window window = { { s->stride[0], s->stride[1] },
                                             { s->padding[0], s->padding[1] } };
    stk_cudnn_graph_convolution(b->graph, direction, &window, x, w, y);
}

/* x, y, w of a convolution in any direction. */
static void convolution(const struct builder *b, enum stk_cudnn_direction direction)
{
    struct stk_form_operands *const o = b->operands;
    o->x = input(b);
    o->w = filters(b);
    o->y = output(b, b->dtype, false);
    convolve(b, direction, o->x, o->w, o->y);
}

static void biased(const struct builder *b, bool relu)
{
    struct stk_form_operands *const o = b->operands;
    o->x = input(b);
    o->w = filters(b);
    o->bias = channels(b, b->dtype, b->shape->filters);
    o->y = output(b, b->dtype, false);
    const stk_cudnn_ref product = output(b, STOKER_DTYPE_FLOAT32, true);
    convolve(b, STK_CUDNN_FORWARD, o->x, o->w, product);
    const stk_cudnn_ref sum = relu ? output(b, STOKER_DTYPE_FLOAT32, true) : o->y;
    stk_cudnn_graph_add(b->graph, product, o->bias, sum);
    if (relu)
        stk_cudnn_graph_relu(b->graph, sum, o->y);
}

static void write(const struct builder *b, enum stk_form form)
{
    switch (form) {
    case STK_FORM_CONV:
        convolution(b, STK_CUDNN_FORWARD);
        break;
    case STK_FORM_CONV_BIAS:
    case STK_FORM_CONV_BIAS_RELU:
        biased(b, form == STK_FORM_CONV_BIAS_RELU);
        break;
    case STK_FORM_BACKWARD_DATA:
        convolution(b, STK_CUDNN_BACKWARD_DATA);
        break;
    case STK_FORM_BACKWARD_WEIGHTS:
        convolution(b, STK_CUDNN_BACKWARD_WEIGHTS);
        break;
    case STK_FORMS:
    default:
        assert(form < STK_FORMS);
    }
}

int stk_form_build(struct stk_cudnn_graph **out, struct stk_form_operands *operands,
                   struct stk_cudnn *cudnn, enum stk_form form, const struct stk_form_shape *shape,
                   stoker_dtype dtype, stoker_error *error)
{
    struct stk_cudnn_graph *graph = NULL;
    int rc = stk_cudnn_graph_create(&graph, cudnn, error);
    if (rc != STOKER_OK)
        return rc;
    struct stk_form_operands found = { .x = 0 };
    const struct builder builder = { graph, shape, dtype, &found };
    write(&builder, form);
    rc = stk_cudnn_graph_close(graph, error);
    if (rc != STOKER_OK) {
        stk_cudnn_graph_destroy(&graph);
        return rc;
    }
    *operands = found;
    *out = graph;
    return STOKER_OK;
}
