/* linear.c - see linear.h.
 *
 *   y  [count][out] = x  [count][in]        W'                W is [out][in]
 *   dx [count][in]  = dy [count][out]       W
 *   dW [out][in]   += dy'                   x  [count][in]    dy' is dy transposed: [out][count] */
#include "trainer/backend/cuda/program/linear.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/backend/cuda/cublaslt/product.h"
#include "trainer/backend/cuda/program/bias.h"

struct stk_cuda_linear {
    const struct stk_cuda_math *math;
    enum stk_cuda_direction direction;
    uint64_t count, in, out;
    bool has_bias, relu;
    bool finish; /* FORWARD: a kernel adds the bias and applies ReLU, the product does not */
    struct stk_product *product;
    struct stk_cuda_bias bias_gradient;
    uint64_t workspace_bytes;
};

static struct stk_product_shape shape_of(const struct stk_cuda_linear *l,
                                         enum stk_product_epilogue epilogue)
{
    const stoker_dtype dtype = l->math->dtype;
    switch (l->direction) {
    case STK_CUDA_FORWARD:
        return (struct stk_product_shape){ l->count, l->out, l->in, false,
                                           true,     dtype,  dtype, epilogue };
    case STK_CUDA_BACKWARD_DATA:
        return (struct stk_product_shape){ l->count, l->in, l->out, false,
                                           false,    dtype, dtype,  epilogue };
    case STK_CUDA_BACKWARD_WEIGHTS:
    default:
        return (struct stk_product_shape){
            l->out, l->in, l->count, true, false, dtype, STOKER_DTYPE_FLOAT32, epilogue
        };
    }
}

/* ---- choosing ----------------------------------------------------------------------------------- */

/* The operands of one product while its algorithms are timed: a, b, bias, d and the workspace. */
enum { A, B, BIAS, D, WORKSPACE, PLACES };

struct timed {
    struct stk_cuda_linear *linear;
    void *memory[PLACES];
};

static int enqueue_product(void *work, void *stream, stoker_error *error)
{
    const struct timed *const t = work;
    void *const *const m = t->memory;
    return stk_product_run(t->linear->product, m[A], m[B], m[BIAS], m[D], m[WORKSPACE], stream,
                           error);
}

static int allocate_operands(struct timed *t, const struct stk_product_shape *s,
                             stoker_error *error)
{
    const struct stk_cuda_device *const device = &t->linear->math->device;
    const uint64_t in = stoker_dtype_bytes(s->in);
    const uint64_t out = stoker_dtype_bytes(s->out);
    const bool bias = s->epilogue == STK_PRODUCT_BIAS || s->epilogue == STK_PRODUCT_BIAS_RELU;
    uint64_t workspace = 0;
    for (uint32_t i = 0; i < stk_product_algorithms(t->linear->product); i++) {
        stk_product_choose(t->linear->product, i);
        const uint64_t bytes = stk_product_workspace_bytes(t->linear->product);
        workspace = bytes > workspace ? bytes : workspace;
    }
    const uint64_t bytes[PLACES] = { s->rows * s->depth * in, s->depth * s->columns * in,
                                     bias ? s->columns * out : 0, s->rows * s->columns * out,
                                     workspace };
    for (int i = 0; i < PLACES; i++) {
        if (bytes[i] == 0)
            continue;
        t->memory[i] = device->allocate(device->context, bytes[i]);
        if (t->memory[i] == NULL)
            return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS,
                                 &(struct stk_place)STK_NOWHERE,
                                 "no device memory for timing matrix products");
    }
    return STOKER_OK;
}

static int time_algorithms(struct timed *t, uint32_t count, struct stk_engine_choice *best,
                           stoker_error *error)
{
    const struct stk_cuda_device *const device = &t->linear->math->device;
    struct stk_product *const product = t->linear->product;
    *best = (struct stk_engine_choice){ .index = 0 };
    for (uint32_t i = 0; i < count; i++) {
        double seconds = 0;
        stk_product_choose(product, i);
        const int rc = device->time(device->context, enqueue_product, t, &seconds, error);
        if (rc != STOKER_OK)
            return rc;
        best->timed++;
        if (i > 0 && seconds >= best->seconds)
            continue;
        best->index = i;
        best->engine = i; /* the library does not number them */
        best->seconds = seconds;
        best->workspace_bytes = stk_product_workspace_bytes(product);
    }
    return STOKER_OK;
}

/* What a winner depends on within one back end. */
static void name_key(char key[STK_ENGINE_KEY_BYTES], const struct stk_cuda_linear *l,
                     const struct stk_product_shape *s)
{
    (void)snprintf(key, STK_ENGINE_KEY_BYTES,
                   "product %s %s %" PRIu64 "x%" PRIu64 "x%" PRIu64
                   " transposed %d %d epilogue %d within %" PRIu64,
                   stoker_dtype_name(s->in), stoker_dtype_name(s->out), s->rows, s->columns,
                   s->depth, s->a_transposed, s->b_transposed, (int)s->epilogue,
                   l->math->rules.workspace_bytes_max);
}

/* Choose the fastest of the first few, or the earlier winner. */
static int benchmark(struct stk_cuda_linear *l, const struct stk_product_shape *s,
                     stoker_error *error)
{
    struct stk_engine_cache *const cache = l->math->cache;
    const uint32_t there = stk_product_algorithms(l->product);
    const uint32_t count = there < l->math->rules.benchmark ? there : l->math->rules.benchmark;
    char key[STK_ENGINE_KEY_BYTES];
    struct stk_engine_choice best;
    name_key(key, l, s);
    if (cache != NULL && stk_engine_cache_find(cache, key, &best)) {
        stk_product_choose(l->product, best.index);
        return STOKER_OK;
    }
    struct timed timed = { .linear = l };
    int rc = allocate_operands(&timed, s, error);
    if (rc == STOKER_OK)
        rc = time_algorithms(&timed, count, &best, error);
    for (int i = 0; i < PLACES; i++)
        if (timed.memory[i] != NULL)
            l->math->device.release(l->math->device.context, timed.memory[i]);
    if (rc != STOKER_OK)
        return rc;
    stk_product_choose(l->product, best.index);
    if (cache != NULL)
        stk_engine_cache_add(cache, key, &best);
    return STOKER_OK;
}

static int make_product(struct stk_cuda_linear *l, enum stk_product_epilogue epilogue,
                        stoker_error *error)
{
    const struct stk_product_shape shape = shape_of(l, epilogue);
    const int rc =
        stk_product_create(&l->product, l->math->cublaslt, &shape, &l->math->rules, error);
    if (rc != STOKER_OK || l->math->rules.benchmark == 0)
        return rc;
    return benchmark(l, &shape, error);
}

/* ---- making ------------------------------------------------------------------------------------- */

static enum stk_product_epilogue forward_epilogue(const struct stk_cuda_linear *l)
{
    if (l->has_bias)
        return l->relu ? STK_PRODUCT_BIAS_RELU : STK_PRODUCT_BIAS;
    return l->relu ? STK_PRODUCT_RELU : STK_PRODUCT_WRITE;
}

static int make(struct stk_cuda_linear *l, stoker_error *error)
{
    if (l->direction == STK_CUDA_BACKWARD_WEIGHTS)
        return make_product(l, STK_PRODUCT_ADD, error);
    if (l->direction == STK_CUDA_BACKWARD_DATA)
        return make_product(l, STK_PRODUCT_WRITE, error);
    const enum stk_product_epilogue epilogue = forward_epilogue(l);
    const int rc = make_product(l, epilogue, error);
    if (rc != STOKER_ENOTSUP || epilogue == STK_PRODUCT_WRITE)
        return rc;
    l->finish = true; /* no algorithm has this epilogue for this shape */
    return make_product(l, STK_PRODUCT_WRITE, error);
}

/* The sums of the bias reuse the product's workspace, after it. */
static uint64_t workspace_bytes_of(const struct stk_cuda_linear *l)
{
    const uint64_t product = stk_product_workspace_bytes(l->product);
    if (l->direction != STK_CUDA_BACKWARD_WEIGHTS || !l->has_bias)
        return product;
    const uint64_t sums = stk_cuda_bias_workspace_bytes(&l->bias_gradient);
    return product > sums ? product : sums;
}

int stk_cuda_linear_create(struct stk_cuda_linear **out, const struct stk_cuda_math *math,
                           const struct stk_layer *layer, enum stk_cuda_direction direction,
                           bool relu, uint32_t count, stoker_error *error)
{
    assert(layer->kind == STK_LINEAR);
    assert(count >= 1);
    assert(math->cublaslt != NULL);
    struct stk_cuda_linear *linear = stk_calloc(1, sizeof(*linear));
    if (linear == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS,
                             &(struct stk_place)STK_NOWHERE, "a linear layer");
    linear->math = math;
    linear->direction = direction;
    linear->count = count;
    linear->in = stk_shape_elements(layer->in);
    linear->out = stk_shape_elements(layer->out);
    linear->has_bias = layer->bias >= 0;
    linear->relu = relu;
    linear->bias_gradient = stk_cuda_bias_plan(math->dtype, count, (uint32_t)linear->out);
    const int rc = make(linear, error);
    if (rc != STOKER_OK) {
        stk_cuda_linear_destroy(&linear);
        return rc;
    }
    linear->workspace_bytes = workspace_bytes_of(linear);
    *out = linear;
    return STOKER_OK;
}

void stk_cuda_linear_destroy(struct stk_cuda_linear **linear)
{
    if (*linear == NULL)
        return;
    stk_product_destroy(&(*linear)->product);
    stk_free(*linear);
    *linear = NULL;
}

uint64_t stk_cuda_linear_workspace_bytes(const struct stk_cuda_linear *linear)
{
    return linear->workspace_bytes;
}

/* ---- running ------------------------------------------------------------------------------------ */

static int run_forward(struct stk_cuda_linear *l, const struct stk_cuda_operands *o, void *stream,
                       stoker_error *error)
{
    const struct stk_cuda_device *const device = &l->math->device;
    const void *const bias = l->has_bias ? o->bias : NULL;
    const int rc = stk_product_run(l->product, o->x, o->weight, l->finish ? NULL : bias, o->y,
                                   o->workspace, stream, error);
    if (rc != STOKER_OK || !l->finish)
        return rc;
    const struct stk_train_bias_relu arguments = {
        .y = o->y, .bias = bias, .count = l->count * l->out, .c = (uint32_t)l->out, .relu = l->relu
    };
    return device->launch(device->context,
                          stk_train_kernel_in("stk_train_bias_relu", l->math->dtype), &arguments,
                          stream, error);
}

static int run_backward_weights(struct stk_cuda_linear *l, const struct stk_cuda_operands *o,
                                void *stream, stoker_error *error)
{
    const int rc =
        stk_product_run(l->product, o->dy, o->x, NULL, o->weight_grad, o->workspace, stream, error);
    if (rc != STOKER_OK || !l->has_bias)
        return rc;
    return stk_cuda_bias_run(&l->bias_gradient, &l->math->device, o, stream, error);
}

int stk_cuda_linear_run(struct stk_cuda_linear *linear, const struct stk_cuda_operands *operands,
                        void *stream, stoker_error *error)
{
    assert(operands->workspace != NULL || linear->workspace_bytes == 0);
    switch (linear->direction) {
    case STK_CUDA_FORWARD:
        return run_forward(linear, operands, stream, error);
    case STK_CUDA_BACKWARD_DATA:
        return stk_product_run(linear->product, operands->dy, operands->weight, NULL, operands->dx,
                               operands->workspace, stream, error);
    case STK_CUDA_BACKWARD_WEIGHTS:
    default:
        return run_backward_weights(linear, operands, stream, error);
    }
}
