/* cuda_conv.c - see cuda_conv.h.
 *
 *   workspace   ┌───────────────┬────────────────────────┐
 *               │ cuDNN's plan  │ T: weight gradient     │ 16-bit storage only
 *               ├───────────────┴───┬────────────────────┘
 *               │ the bias's sums   │ which come last
 *               └───────────────────┘
 *
 * In float32 cuDNN has the same engines for "add to the gradient" as for "write it". With 16-bit images
 * no engine writes a float32 gradient, so it is written in T and our kernel adds it. */
#include "trainer/backend/cuda_conv.h"

#include <assert.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/backend/cuda_bias.h"
#include "trainer/backend/cudnn_choice.h"
#include "trainer/backend/cudnn_forms.h"

enum { GRAPH_TEXT_BYTES = 160, BINDINGS = 4, PART_BYTES = 256 };

struct stk_cuda_conv {
    const struct stk_cuda_math *math;
    enum stk_cuda_direction direction;
    struct stk_form_shape shape;
    bool has_bias, relu;
    bool finish; /* FORWARD: a kernel adds the bias and applies ReLU, the graph does not */
    bool add;    /* BACKWARD_WEIGHTS: a kernel adds the gradient, the graph does not */
    struct stk_cudnn_plan *plan;
    struct stk_form_operands operands;
    struct stk_cuda_bias bias_gradient;
    uint64_t weights, outputs; /* elements */
    uint64_t gradient_offset, workspace_bytes;
};

/* ---- choosing ----------------------------------------------------------------------------------- */

/* Where a graph's tensors lie. Those that a form does not have are left out. */
struct bound {
    struct stk_cudnn_binding binding[BINDINGS];
    uint32_t count;
};

static void bind(struct bound *bound, stk_cudnn_ref tensor, const void *data)
{
    if (tensor != 0)
        bound->binding[bound->count++] = (struct stk_cudnn_binding){ tensor, (void *)data };
}

/* A plan on a stream, for the device's clock. */
struct timed {
    struct stk_cuda_conv *conv;
    struct stk_cudnn_plan *plan;
    struct bound bound;
    void *workspace;
};

static int enqueue_plan(void *work, void *stream, stoker_error *error)
{
    const struct timed *const t = work;
    return stk_cudnn_plan_run(t->plan, t->bound.binding, t->bound.count, t->workspace, stream,
                              error);
}

static int no_memory(stoker_error *error)
{
    return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS, &(struct stk_place)STK_NOWHERE,
                         "no device memory to time engines in");
}

/* Time one candidate on zeros: what it takes does not depend on the numbers. */
static int time_plan(void *context, struct stk_cudnn_plan *plan, double *seconds,
                     stoker_error *error)
{
    struct timed *const t = context;
    const struct stk_cuda_device *const device = &t->conv->math->device;
    const uint64_t bytes = stk_cudnn_plan_workspace_bytes(plan);
    t->plan = plan;
    t->workspace = bytes == 0 ? NULL : device->allocate(device->context, bytes);
    if (bytes > 0 && t->workspace == NULL)
        return no_memory(error);
    const int rc = device->time(device->context, enqueue_plan, t, seconds, error);
    if (t->workspace != NULL)
        device->release(device->context, t->workspace);
    return rc;
}

static uint64_t elements_in(const struct stk_form_shape *s)
{
    return (uint64_t)(s->n * s->h * s->w * s->c);
}

/* Memory for each tensor of the graph while its engines are timed. */
static int allocate_operands(struct timed *t, const struct stk_form_operands *o, void *memory[],
                             stoker_error *error)
{
    const struct stk_cuda_conv *const conv = t->conv;
    const struct stk_cuda_device *const device = &conv->math->device;
    const struct {
        stk_cudnn_ref tensor;
        uint64_t elements;
    } tensors[BINDINGS] = { { o->x, elements_in(&conv->shape) },
                            { o->w, conv->weights },
                            { o->bias, (uint64_t)conv->shape.filters },
                            { o->y, conv->outputs } };
    for (int i = 0; i < BINDINGS; i++) {
        if (tensors[i].tensor == 0)
            continue;
        memory[i] = device->allocate(device->context,
                                     tensors[i].elements * stoker_dtype_bytes(conv->math->dtype));
        if (memory[i] == NULL)
            return no_memory(error);
        bind(&t->bound, tensors[i].tensor, memory[i]);
    }
    return STOKER_OK;
}

static int choose(struct stk_cuda_conv *conv, enum stk_form form, struct stk_cudnn_graph *graph,
                  stoker_error *error)
{
    const struct stk_cuda_math *const math = conv->math;
    struct timed timed = { .conv = conv };
    void *memory[BINDINGS] = { NULL };
    char text[GRAPH_TEXT_BYTES];
    (void)stk_form_text(text, sizeof(text), form, &conv->shape, math->dtype);
    const struct stk_cudnn_choosing how = { .rules = math->rules,
                                            .float32 = math->dtype == STOKER_FLOAT32,
                                            .cache = math->cache,
                                            .graph = text,
                                            .device = math->device_name,
                                            .time = time_plan,
                                            .context = &timed };
    int rc = STOKER_OK;
    if (math->rules.benchmark > 0)
        rc = allocate_operands(&timed, &conv->operands, memory, error);
    struct stk_engine_choice choice;
    if (rc == STOKER_OK)
        rc = stk_cudnn_choose(&conv->plan, &choice, graph, &how, error);
    for (int i = 0; i < BINDINGS; i++)
        if (memory[i] != NULL)
            math->device.release(math->device.context, memory[i]);
    return rc;
}

static int make_plan(struct stk_cuda_conv *conv, enum stk_form form, stoker_error *error)
{
    struct stk_cudnn_graph *graph = NULL;
    int rc = stk_form_build(&graph, &conv->operands, conv->math->cudnn, form, &conv->shape,
                            conv->math->dtype, error);
    if (rc == STOKER_OK)
        rc = choose(conv, form, graph, error);
    stk_cudnn_graph_destroy(&graph);
    return rc;
}

/* ---- making ------------------------------------------------------------------------------------- */

/* Bias and ReLU inside the graph if an engine does that, else behind it. */
static int make_forward(struct stk_cuda_conv *conv, stoker_error *error)
{
    if (conv->has_bias) {
        const int rc =
            make_plan(conv, conv->relu ? STK_FORM_CONV_BIAS_RELU : STK_FORM_CONV_BIAS, error);
        if (rc != STOKER_ENOTSUP)
            return rc;
    }
    conv->finish = conv->has_bias || conv->relu;
    return make_plan(conv, STK_FORM_CONV, error);
}

static int make_backward_weights(struct stk_cuda_conv *conv, stoker_error *error)
{
    if (conv->math->dtype == STOKER_FLOAT32) {
        const int rc = make_plan(conv, STK_FORM_ADD_BACKWARD_WEIGHTS, error);
        if (rc != STOKER_ENOTSUP)
            return rc;
    }
    conv->add = true;
    return make_plan(conv, STK_FORM_BACKWARD_WEIGHTS, error);
}

static int make(struct stk_cuda_conv *conv, stoker_error *error)
{
    switch (conv->direction) {
    case STK_CUDA_FORWARD:
        return make_forward(conv, error);
    case STK_CUDA_BACKWARD_DATA:
        return make_plan(conv, STK_FORM_BACKWARD_DATA, error);
    case STK_CUDA_BACKWARD_WEIGHTS:
    default:
        return make_backward_weights(conv, error);
    }
}

static void lay_out_workspace(struct stk_cuda_conv *conv)
{
    uint64_t bytes = stk_cudnn_plan_workspace_bytes(conv->plan);
    if (conv->add) {
        conv->gradient_offset = (bytes + PART_BYTES - 1) / PART_BYTES * PART_BYTES;
        bytes = conv->gradient_offset + conv->weights * stoker_dtype_bytes(conv->math->dtype);
    }
    const bool sums = conv->direction == STK_CUDA_BACKWARD_WEIGHTS && conv->has_bias;
    const uint64_t sum_bytes = sums ? stk_cuda_bias_workspace_bytes(&conv->bias_gradient) : 0;
    conv->workspace_bytes = bytes > sum_bytes ? bytes : sum_bytes;
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
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS,
                             &(struct stk_place)STK_NOWHERE, "a convolution");
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
    const int rc = make(conv, error);
    if (rc != STOKER_OK) {
        stk_cuda_conv_destroy(&conv);
        return rc;
    }
    lay_out_workspace(conv);
    *out = conv;
    return STOKER_OK;
}

void stk_cuda_conv_destroy(struct stk_cuda_conv **conv)
{
    if (*conv == NULL)
        return;
    stk_cudnn_plan_destroy(&(*conv)->plan);
    stk_free(*conv);
    *conv = NULL;
}

uint64_t stk_cuda_conv_workspace_bytes(const struct stk_cuda_conv *conv)
{
    return conv->workspace_bytes;
}

/* ---- running ------------------------------------------------------------------------------------ */

static int finish_forward(const struct stk_cuda_conv *conv, const struct stk_cuda_operands *o,
                          void *stream, stoker_error *error)
{
    const struct stk_cuda_device *const device = &conv->math->device;
    const struct stk_train_bias_relu arguments = { .y = o->y,
                                                   .bias = conv->has_bias ? o->bias : NULL,
                                                   .count = conv->outputs,
                                                   .c = (uint32_t)conv->shape.filters,
                                                   .relu = conv->relu };
    return device->launch(device->context,
                          stk_train_kernel_in("stk_train_bias_relu", conv->math->dtype), &arguments,
                          stream, error);
}

/* Where the graph writes a gradient that is added afterwards. */
static void *written_gradient(const struct stk_cuda_conv *conv, const struct stk_cuda_operands *o)
{
    return (char *)o->workspace + conv->gradient_offset;
}

static int finish_backward_weights(const struct stk_cuda_conv *conv,
                                   const struct stk_cuda_operands *o, void *stream,
                                   stoker_error *error)
{
    const struct stk_cuda_device *const device = &conv->math->device;
    int rc = STOKER_OK;
    if (conv->add) {
        const struct stk_train_add_gradient arguments = { .gradient = written_gradient(conv, o),
                                                          .sum = o->weight_grad,
                                                          .count = conv->weights };
        rc = device->launch(device->context,
                            stk_train_kernel_in("stk_train_add_gradient", conv->math->dtype),
                            &arguments, stream, error);
    }
    if (rc == STOKER_OK && conv->has_bias)
        rc = stk_cuda_bias_run(&conv->bias_gradient, device, o, stream, error);
    return rc;
}

/* What each tensor of the graph is in this direction. */
static struct bound operands_of(const struct stk_cuda_conv *conv, const struct stk_cuda_operands *o)
{
    const struct stk_form_operands *const f = &conv->operands;
    struct bound bound = { .count = 0 };
    switch (conv->direction) {
    case STK_CUDA_FORWARD:
        bind(&bound, f->x, o->x);
        bind(&bound, f->w, o->weight);
        bind(&bound, f->bias, o->bias);
        bind(&bound, f->y, o->y);
        break;
    case STK_CUDA_BACKWARD_DATA:
        bind(&bound, f->x, o->dx);
        bind(&bound, f->w, o->weight);
        bind(&bound, f->y, o->dy);
        break;
    case STK_CUDA_BACKWARD_WEIGHTS:
    default:
        bind(&bound, f->x, o->x);
        bind(&bound, f->w, conv->add ? written_gradient(conv, o) : o->weight_grad);
        bind(&bound, f->y, o->dy);
        break;
    }
    return bound;
}

int stk_cuda_conv_run(struct stk_cuda_conv *conv, const struct stk_cuda_operands *operands,
                      void *stream, stoker_error *error)
{
    assert(operands->workspace != NULL || conv->workspace_bytes == 0);
    const struct bound bound = operands_of(conv, operands);
    int rc = stk_cudnn_plan_run(conv->plan, bound.binding, bound.count, operands->workspace, stream,
                                error);
    if (rc == STOKER_OK && conv->finish)
        rc = finish_forward(conv, operands, stream, error);
    if (rc == STOKER_OK && conv->direction == STK_CUDA_BACKWARD_WEIGHTS)
        rc = finish_backward_weights(conv, operands, stream, error);
    return rc;
}
