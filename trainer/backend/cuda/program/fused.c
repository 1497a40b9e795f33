/* fused.c - see fused.h. */
#include "trainer/backend/cuda/program/fused.h"

#include <assert.h>

static int launch(struct stk_backend *backend, const char *kernel, const void *arguments,
                  stoker_error *error)
{
    return stk_cuda_launch(backend, stk_train_kernel_in(kernel, backend->math.dtype), arguments,
                           error);
}

/* ---- bias ---------------------------------------------------------------------------------------- */

/* The layer in whose shape dy is summed: that of the bias, or a pool, whose dy has fewer pixels than its dx. Layers between may
 * be flattened. */
static const struct stk_layer *summed(const struct stk_op *op, const struct stk_layer *layer,
                                      const struct stk_layer *biased)
{
    return op->kind == STK_OP_MAX_POOL_BACKWARD ? layer : biased;
}

static uint64_t pixels_of(const struct stk_layer *layer, uint32_t count)
{
    return stk_plane(layer->out) * count;
}

/* Blocks of at least 64 pixels, as many as keep a large GPU busy; a function of the shape alone, so that every device gives the
 * same bits. */
static uint32_t chunks_of(const struct stk_layer *layer, uint32_t count)
{
    enum { PIXELS = 64, BLOCKS = STK_TRAIN_PARTIALS_MAX };
    const uint64_t wanted = (pixels_of(layer, count) + PIXELS - 1) / PIXELS;
    const uint64_t groups = stk_cuda_tickets(layer->out.c);
    const uint64_t most = groups < BLOCKS ? BLOCKS / groups : 1;
    return (uint32_t)(wanted < most ? wanted : most);
}

uint64_t stk_cuda_sums_bias_workspace(const struct stk_plan *plan, uint32_t i, uint32_t count)
{
    const struct stk_op *const ops = &plan->ops[i];
    const struct stk_layer *const layers = plan->model->layers;
    const struct stk_layer *const layer =
        summed(&ops[0], &layers[ops[0].layer], &layers[ops[1].layer]);
    return (uint64_t)chunks_of(layer, count) * layer->out.c * sizeof(float);
}

int stk_cuda_queue_sums_bias(struct stk_backend *backend, const struct stk_operands *operands,
                             const struct stk_operands *weights,
                             const struct stk_cuda_scratch *scratch,
                             const struct stk_cuda_pass *pass, stoker_error *error)
{
    const struct stk_operands *const o = operands;
    const struct stk_layer *const layer = summed(o->op, o->layer, weights->layer);
    const struct stk_train_relu_bias relu = { .y = o->y,
                                              .dy = o->dy,
                                              .dx = o->dx,
                                              .pixels = pixels_of(layer, o->count),
                                              .c = layer->out.c,
                                              .chunks = chunks_of(layer, o->count),
                                              .bias_grad = weights->bias_grad,
                                              .partial_sums = scratch->workspace,
                                              .tickets = scratch->tickets,
                                              .write = pass->write };
    if (o->op->kind == STK_OP_RELU_BACKWARD)
        return launch(backend, "stk_train_relu_bias", &relu, error);
    assert(o->op->kind == STK_OP_MAX_POOL_BACKWARD);
    const struct stk_train_pool_bias pool = { .window = stk_cuda_window_of(o),
                                              .dy = o->dy,
                                              .dx = o->dx,
                                              .places = o->aux,
                                              .y = o->op->relu ? o->y : NULL,
                                              .pixels = relu.pixels,
                                              .c = relu.c,
                                              .chunks = relu.chunks,
                                              .bias_grad = relu.bias_grad,
                                              .partial_sums = relu.partial_sums,
                                              .tickets = relu.tickets,
                                              .write = relu.write };
    return launch(backend, "stk_train_pool_bias", &pool, error);
}

/* ---- head ---------------------------------------------------------------------------------------- */

uint64_t stk_cuda_head_workspace(const struct stk_plan *plan, uint32_t i, uint32_t count)
{
    const struct stk_layer *const layer = &plan->model->layers[plan->ops[i].layer];
    const uint32_t classes = (uint32_t)stk_shape_elements(layer->out);
    const struct stk_train_head a = { .loss = { .rows = count, .classes = classes } };
    const struct stk_kernel *const kernel =
        stk_train_kernel_in("stk_train_head", STOKER_DTYPE_FLOAT32);
    return stk_cuda_loss_workspace() + (uint64_t)kernel->grid(&a).x * classes * sizeof(float);
}

int stk_cuda_queue_head(struct stk_backend *backend, const struct stk_cuda_head *head,
                        const struct stk_cuda_scratch *scratch, const struct stk_cuda_pass *pass,
                        stoker_error *error)
{
    const struct stk_operands *const forward = &head->forward;
    const struct stk_train_head a = { .loss = stk_cuda_cross_entropy_of(&head->loss, scratch, pass),
                                      .logits = forward->y,
                                      .x = forward->x,
                                      .weight = head->weight,
                                      .bias = head->bias,
                                      .dx = head->dx,
                                      .bias_grad = head->bias_grad,
                                      .partial_sums = (void *)((char *)scratch->workspace +
                                                               stk_cuda_loss_workspace()),
                                      .depth = (uint32_t)stk_shape_elements(forward->layer->in),
                                      .write = pass->write };
    return launch(backend, "stk_train_head", &a, error);
}
