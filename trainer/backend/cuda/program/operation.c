/* operation.c - see operation.h.
 *
 *   kind ──▶ function ──▶ struct of the kernel ──▶ one or two launches */
#include <assert.h>

#include "kernels/train/dropout.h"
#include "trainer/backend/cuda/program/operation.h"
#include "trainer/backend/cuda/ranks/ranks.h"

/* Arguments of each function. */
struct queueing {
    struct stk_backend *backend;
    const struct stk_operands *o;
    const struct stk_cuda_scratch *scratch;
    const struct stk_cuda_pass *pass;
    stoker_error *error;
};

static int launch(const struct queueing *q, const char *kernel, const void *arguments)
{
    return stk_cuda_launch(q->backend, stk_train_kernel_in(kernel, q->backend->math.dtype),
                           arguments, q->error);
}

static uint64_t elements_of(const struct stk_operands *o)
{
    return o->elements * o->count;
}

/* ---- elementwise ----------------------------------------------------------------------------- */

static int relu_forward(const struct queueing *q)
{
    const struct stk_train_relu a = { q->o->x, q->o->y, elements_of(q->o) };
    return launch(q, "stk_train_relu", &a);
}

static int relu_backward(const struct queueing *q)
{
    const struct stk_train_relu_backward a = { q->o->y, q->o->dy, q->o->dx, elements_of(q->o) };
    return launch(q, "stk_train_relu_backward", &a);
}

static int add_forward(const struct queueing *q)
{
    const struct stk_train_add a = { q->o->x, q->o->x2, q->o->y, elements_of(q->o) };
    return launch(q, "stk_train_add", &a);
}

static int accumulate(const struct queueing *q)
{
    const struct stk_train_add a = { q->o->dx, q->o->dy, q->o->dx, elements_of(q->o) };
    return launch(q, "stk_train_add", &a);
}

/* Samples are float32. */
static int cast(const struct queueing *q)
{
    const struct stk_train_cast a = { q->o->x, q->o->y, elements_of(q->o) };
    return launch(q, "stk_train_cast", &a);
}

static int copy(const struct queueing *q)
{
    return stk_cuda_copy(q->backend, q->o->dx, q->o->dy,
                         elements_of(q->o) * stoker_dtype_bytes(q->backend->math.dtype),
                         cudaMemcpyDeviceToDevice, q->error);
}

static int drop(const struct queueing *q, const void *from, void *to)
{
    const struct stk_operands *const o = q->o;
    const struct stk_train_dropout a = {
        .x = from,
        .y = to,
        .seed = o->pass->seed,
        .first_sample = o->pass->first_sample,
        .elements = o->elements,
        .samples = o->count,
        .layer = o->number,
        .dropped_below = stk_dropout_dropped_below(o->layer->rate),
        .scale = stk_dropout_scale(o->layer->rate),
        .state = q->pass->state,
        .step = q->pass->step,
    };
    return launch(q, "stk_train_dropout", &a);
}

static int dropout_forward(const struct queueing *q)
{
    return drop(q, q->o->x, q->o->y);
}

static int dropout_backward(const struct queueing *q)
{
    return drop(q, q->o->dy, q->o->dx);
}

/* ---- pooling --------------------------------------------------------------------------------- */

static struct stk_train_window window_of(const struct stk_operands *o)
{
    const struct stk_layer *const layer = o->layer;
    return (struct stk_train_window){ .n = o->count,
                                      .in_h = layer->in.h,
                                      .in_w = layer->in.w,
                                      .c = layer->in.c,
                                      .out_h = layer->out.h,
                                      .out_w = layer->out.w,
                                      .kernel = { layer->kernel[0], layer->kernel[1] },
                                      .stride = { layer->stride[0], layer->stride[1] },
                                      .padding = { layer->padding[0], layer->padding[1] } };
}

static int max_pool_forward(const struct queueing *q)
{
    const struct stk_train_max_pool a = { window_of(q->o), q->o->x, q->o->y, q->o->aux,
                                          q->o->op->relu };
    return launch(q, "stk_train_max_pool_forward", &a);
}

static int max_pool_backward(const struct queueing *q)
{
    const struct stk_train_max_pool_backward a = { window_of(q->o), q->o->dy, q->o->dx, q->o->aux,
                                                   q->o->op->relu ? q->o->y : NULL };
    return launch(q, "stk_train_max_pool_backward", &a);
}

static int avg_pool_forward(const struct queueing *q)
{
    const struct stk_train_avg_pool a = { window_of(q->o), q->o->x, q->o->y };
    return launch(q, "stk_train_avg_pool_forward", &a);
}

static int avg_pool_backward(const struct queueing *q)
{
    const struct stk_train_avg_pool a = { window_of(q->o), q->o->dy, q->o->dx };
    return launch(q, "stk_train_avg_pool_backward", &a);
}

/* ---- BatchNorm ------------------------------------------------------------------------------- */

static uint64_t pixels_of(const struct stk_layer *layer, uint32_t count)
{
    return stk_plane(layer->in) * count;
}

/* Blocks per channel sum: a few hundred pixels each, which keeps a GPU of any size busy. */
static uint32_t chunks_of(uint64_t pixels)
{
    enum { PIXELS = 256, CHUNKS_MAX = 256 };
    const uint64_t chunks = (pixels + PIXELS - 1) / PIXELS;
    return chunks < CHUNKS_MAX ? (uint32_t)chunks : CHUNKS_MAX;
}

static int normalize(const struct queueing *q)
{
    const struct stk_operands *const o = q->o;
    const float *const mean = o->aux;
    const struct stk_train_batch_norm a = { .x = o->x,
                                            .y = o->y,
                                            .count = (uint32_t)elements_of(o),
                                            .c = o->layer->in.c,
                                            .relu = o->op->relu,
                                            .mean = mean,
                                            .inverse = mean + o->layer->in.c,
                                            .gamma = o->weight,
                                            .beta = o->bias };
    return launch(q, "stk_train_batch_norm", &a);
}

/* ---- BatchNorm of several ranks -------------------------------------------------------------- */

static bool is_synchronized(const struct queueing *q)
{
    return q->pass->together && q->backend->ranks->sync_batch_norm;
}

static uint64_t pixels_of_all(const struct stk_operands *o)
{
    return stk_plane(o->layer->in) * o->pass->samples_of_all;
}

/* The sums of a layer over all ranks. */
static int sum_layer(struct stk_backend *backend, const struct stk_layer *layer,
                     stoker_error *error)
{
    const int rc = stk_cuda_ranks_sum(backend, backend->ranks->sums_of_layer,
                                      (uint64_t)2 * layer->in.c, STOKER_DTYPE_FLOAT64, error);
    return rc == STOKER_OK ? stk_cuda_ranks_wait(backend, error) : rc;
}

/* What the running mean of this layer was when the pass began. */
static const float *shift_of(const struct stk_backend *backend, const struct stk_operands *o)
{
    return backend->ranks->found + (o->running_mean - backend->ranks->statistics);
}

static int finish_moments(struct stk_backend *backend, const struct stk_operands *o,
                          stoker_error *error)
{
    float *const mean = o->aux;
    const struct stk_train_batch_norm_finish a = {
        .sums = backend->ranks->sums_of_layer,
        .shift = shift_of(backend, o),
        .pixels = pixels_of_all(o),
        .c = o->layer->in.c,
        .epsilon = o->layer->epsilon,
        .momentum = o->layer->momentum,
        .mean = mean,
        .inverse = mean + o->layer->in.c,
        .running_mean = o->op->again ? NULL : o->running_mean,
        .running_var = o->op->again ? NULL : o->running_var,
    };
    const int rc = sum_layer(backend, o->layer, error);
    return rc == STOKER_OK
               ? stk_cuda_launch(backend, stk_train_kernel_named("stk_train_batch_norm_finish"), &a,
                                 error)
               : rc;
}

static int find_shared_moments(const struct queueing *q)
{
    const struct stk_operands *const o = q->o;
    const uint64_t pixels = pixels_of(o->layer, o->count);
    const struct stk_train_batch_norm_sums a = { .x = o->x,
                                                 .shift = shift_of(q->backend, o),
                                                 .pixels = pixels,
                                                 .c = o->layer->in.c,
                                                 .chunks = chunks_of(pixels),
                                                 .sums = q->backend->ranks->sums_of_layer,
                                                 .partial_sums = q->scratch->workspace,
                                                 .tickets = q->scratch->tickets };
    const int rc = launch(q, "stk_train_batch_norm_sums", &a);
    return rc == STOKER_OK ? finish_moments(q->backend, o, q->error) : rc;
}

int stk_cuda_operation_without_samples(struct stk_backend *backend,
                                       const struct stk_operands *operands, stoker_error *error)
{
    const enum stk_op_kind kind = operands->op->kind;
    const bool forward = kind == STK_OP_BATCH_NORM_FORWARD;
    if (!backend->ranks->sync_batch_norm || (!forward && kind != STK_OP_BATCH_NORM_BACKWARD))
        return STOKER_OK;
    const int rc = stk_cuda_clear(backend, backend->ranks->sums_of_layer,
                                  (uint64_t)2 * operands->layer->in.c * sizeof(double), error);
    if (rc != STOKER_OK)
        return rc;
    return forward ? finish_moments(backend, operands, error)
                   : sum_layer(backend, operands->layer, error);
}

/* ---- BatchNorm of this rank ------------------------------------------------------------------ */

static int find_moments(const struct queueing *q)
{
    const struct stk_operands *const o = q->o;
    float *const mean = o->aux;
    const uint64_t pixels = pixels_of(o->layer, o->count);
    if (is_synchronized(q))
        return find_shared_moments(q);
    const struct stk_train_batch_norm_moments a = {
        .x = o->x,
        .pixels = pixels,
        .c = o->layer->in.c,
        .chunks = chunks_of(pixels),
        .epsilon = o->layer->epsilon,
        .momentum = q->pass->together ? 1 : o->layer->momentum, /* what it finds itself, of zeros */
        .mean = mean,
        .inverse = mean + o->layer->in.c,
        .running_mean = o->op->again ? NULL : o->running_mean,
        .running_var = o->op->again ? NULL : o->running_var,
        .partial_sums = q->scratch->workspace,
        .tickets = q->scratch->tickets,
    };
    return launch(q, "stk_train_batch_norm_moments", &a);
}

static int batch_norm_forward(const struct queueing *q)
{
    const int rc = find_moments(q);
    return rc == STOKER_OK ? normalize(q) : rc;
}

static int batch_norm_infer(const struct queueing *q)
{
    const struct stk_operands *const o = q->o;
    const struct stk_train_batch_norm a = { .x = o->x,
                                            .y = o->y,
                                            .count = (uint32_t)elements_of(o),
                                            .c = o->layer->in.c,
                                            .relu = o->op->relu,
                                            .mean = o->running_mean,
                                            .variance = o->running_var,
                                            .gamma = o->weight,
                                            .beta = o->bias,
                                            .epsilon = o->layer->epsilon };
    return launch(q, "stk_train_batch_norm", &a);
}

static int batch_norm_backward(const struct queueing *q)
{
    const struct stk_operands *const o = q->o;
    const uint32_t c = o->layer->in.c;
    const float *const mean = o->aux;
    float *const sums = q->scratch->workspace;
    const uint64_t pixels = pixels_of(o->layer, o->count);
    const struct stk_train_batch_norm_backward a = {
        .x = o->x,
        .dy = o->dy,
        .y = o->y,
        .dx = o->dx,
        .pixels = pixels,
        .c = c,
        .chunks = chunks_of(pixels),
        .relu = o->op->relu,
        .mean = mean,
        .inverse = mean + c,
        .gamma = o->weight,
        .beta = o->bias,
        .gamma_grad = o->weight_grad,
        .beta_grad = o->bias_grad,
        .sums = sums,
        .sums_of_all = is_synchronized(q) ? q->backend->ranks->sums_of_layer : NULL,
        .pixels_of_all = pixels_of_all(o),
        .partial_sums = sums + (size_t)2 * c,
        .tickets = q->scratch->tickets,
        .write = q->pass->write,
    };
    int rc = launch(q, "stk_train_batch_norm_backward_sums", &a);
    if (rc == STOKER_OK && is_synchronized(q))
        rc = sum_layer(q->backend, o->layer, q->error);
    if (rc != STOKER_OK || o->dx == NULL)
        return rc;
    return launch(q, "stk_train_batch_norm_backward", &a);
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* The workspace of a loss, one entry per block. The mean squared error uses no counts. */
struct partial_losses {
    double loss[STK_TRAIN_PARTIALS_MAX];
    uint32_t counts[STK_TRAIN_PARTIALS_MAX][2]; /* correct, bad labels */
};

static int cross_entropy(const struct queueing *q)
{
    const struct stk_operands *const o = q->o;
    struct partial_losses *const partials = q->scratch->workspace; /* in device memory */
    const struct stk_train_cross_entropy a = {
        .x = o->x,
        .dx = o->dx,
        .labels = o->labels,
        .rows = o->count,
        .classes = (uint32_t)stk_shape_elements(o->layer->in),
        .smoothing = o->layer->rate,
        .gradient_factor = q->pass->gradient_factor,
        .state = q->pass->state,
        .metrics = q->pass->metrics,
        .partial_loss = partials->loss,
        .partial_counts = partials->counts[0],
        .ticket = q->scratch->tickets,
    };
    return o->labels == NULL ? STOKER_OK : launch(q, "stk_train_softmax_cross_entropy", &a);
}

static int mean_squared_error(const struct queueing *q)
{
    const struct stk_operands *const o = q->o;
    const struct stk_train_mse a = {
        .x = o->x,
        .dx = o->dx,
        .targets = o->labels,
        .rows = o->count,
        .outputs = (uint32_t)stk_shape_elements(o->layer->in),
        .gradient_factor = q->pass->gradient_factor,
        .state = q->pass->state,
        .metrics = q->pass->metrics,
        .partial_loss = q->scratch->workspace,
        .ticket = q->scratch->tickets,
    };
    return o->labels == NULL ? STOKER_OK : launch(q, "stk_train_mse", &a);
}

/* ---- the table ------------------------------------------------------------------------------- */

static int (*const functions[STK_OP_KINDS])(const struct queueing *) = {
    [STK_OP_MAX_POOL_FORWARD] = max_pool_forward,
    [STK_OP_MAX_POOL_BACKWARD] = max_pool_backward,
    [STK_OP_AVG_POOL_FORWARD] = avg_pool_forward,
    [STK_OP_AVG_POOL_BACKWARD] = avg_pool_backward,
    [STK_OP_RELU_FORWARD] = relu_forward,
    [STK_OP_RELU_BACKWARD] = relu_backward,
    [STK_OP_BATCH_NORM_FORWARD] = batch_norm_forward,
    [STK_OP_BATCH_NORM_APPLY] = normalize,
    [STK_OP_BATCH_NORM_INFER] = batch_norm_infer,
    [STK_OP_BATCH_NORM_BACKWARD] = batch_norm_backward,
    [STK_OP_DROPOUT_FORWARD] = dropout_forward,
    [STK_OP_DROPOUT_BACKWARD] = dropout_backward,
    [STK_OP_ADD_FORWARD] = add_forward,
    [STK_OP_ACCUMULATE] = accumulate,
    [STK_OP_COPY] = copy,
    [STK_OP_CAST] = cast,
    [STK_OP_SOFTMAX_CROSS_ENTROPY] = cross_entropy,
    [STK_OP_MSE] = mean_squared_error,
};

int stk_cuda_operation(struct stk_backend *backend, const struct stk_operands *operands,
                       const struct stk_cuda_scratch *scratch, const struct stk_cuda_pass *pass,
                       stoker_error *error)
{
    const struct queueing q = { backend, operands, scratch, pass, error };
    assert(functions[operands->op->kind] != NULL);
    return functions[operands->op->kind](&q);
}

uint64_t stk_cuda_operation_workspace(const struct stk_plan *plan, const struct stk_op *op,
                                      uint32_t count)
{
    const struct stk_layer *const layer = &plan->model->layers[op->layer];
    const uint64_t chunks = chunks_of(pixels_of(layer, count));
    switch (op->kind) {
    case STK_OP_BATCH_NORM_FORWARD:
        return chunks * 2 * layer->in.c * sizeof(float);
    case STK_OP_BATCH_NORM_BACKWARD:
        return (chunks + 1) * 2 * layer->in.c * sizeof(float);
    case STK_OP_SOFTMAX_CROSS_ENTROPY:
    case STK_OP_MSE:
        return sizeof(struct partial_losses);
    default:
        return 0;
    }
}

uint32_t stk_cuda_operation_tickets(const struct stk_plan *plan, const struct stk_op *op)
{
    switch (op->kind) {
    case STK_OP_BATCH_NORM_FORWARD:
    case STK_OP_BATCH_NORM_BACKWARD:
        return (uint32_t)stk_cuda_tickets(plan->model->layers[op->layer].in.c);
    case STK_OP_SOFTMAX_CROSS_ENTROPY:
    case STK_OP_MSE:
        return 1;
    default:
        return 0;
    }
}
