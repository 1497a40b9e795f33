/* linear.c - see linear.h.
 *
 *   y  [count][out] = x  [count][in]        W'                W is [out][in]
 *   dx [count][in]  = dy [count][out]       W
 *   dW [out][in]   += dy'                   x  [count][in]    dy' is dy transposed: [out][count] */
#include "trainer/backend/cuda/program/linear.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/backend/cuda/cublaslt/product.h"
#include "trainer/backend/cuda/device/device.h"
#include "trainer/backend/cuda/program/bias.h"

struct stk_cuda_linear {
    const struct stk_cuda_math *math;
    enum stk_cuda_direction direction;
    uint64_t count, in, out;
    bool has_bias, relu;
    bool finish; /* FORWARD: a kernel adds the bias and applies ReLU, the product does not */
    struct stk_product *product;
    struct stk_engine_failures *failures; /* while it is made */
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

/* ---- choosing -------------------------------------------------------------------------------- */

/* The operands of one product while its algorithms run or are timed: a, b, bias, d and the
 * workspace. All zeros. */
enum { A, B, BIAS, D, WORKSPACE, PLACES };

struct trial {
    struct stk_cuda_linear *linear;
    const struct stk_product_shape *shape;
    bool taken; /* memory */
    void *memory[PLACES];
};

static int enqueue_product(void *work, stoker_error *error)
{
    const struct trial *const t = work;
    void *const *const m = t->memory;
    return stk_product_run(t->linear->product, m[A], m[B], m[BIAS], m[D], m[WORKSPACE],
                           t->linear->math->backend->stream, error);
}

static void release_operands(struct trial *t)
{
    for (int i = 0; i < PLACES; i++)
        if (t->memory[i] != NULL)
            stk_cuda_release(t->linear->math->backend, t->memory[i]);
    memset(t->memory, 0, sizeof(t->memory));
}

/* The most that any algorithm needs. Leaves the chosen one as it is. */
static uint64_t most_workspace(struct stk_product *product)
{
    const uint32_t chosen = stk_product_chosen(product);
    uint64_t most = 0;
    for (uint32_t i = 0; i < stk_product_algorithms(product); i++) {
        stk_product_choose(product, i);
        const uint64_t bytes = stk_product_workspace_bytes(product);
        most = bytes > most ? bytes : most;
    }
    stk_product_choose(product, chosen);
    return most;
}

/* Allocate the operands, unless an earlier run did. False: no memory. */
static bool take_operands(struct trial *t)
{
    const struct stk_product_shape *const s = t->shape;
    const uint64_t in = stoker_dtype_bytes(s->in);
    const uint64_t out = stoker_dtype_bytes(s->out);
    const bool bias = s->epilogue == STK_PRODUCT_BIAS || s->epilogue == STK_PRODUCT_BIAS_RELU;
    if (t->taken)
        return true;
    const uint64_t bytes[PLACES] = { s->rows * s->depth * in, s->depth * s->columns * in,
                                     bias ? s->columns * out : 0, s->rows * s->columns * out,
                                     most_workspace(t->linear->product) };
    t->taken = true;
    for (int i = 0; i < PLACES && t->taken; i++) {
        if (bytes[i] > 0)
            t->memory[i] = stk_cuda_alloc(t->linear->math->backend, bytes[i], NULL);
        t->taken = bytes[i] == 0 || t->memory[i] != NULL;
    }
    if (!t->taken)
        release_operands(t);
    return t->taken;
}

/* Algorithms as engines to choose from. Their workspace is all that is known of them: those that
 * the rules forbid are not in the list. */
static void tell_notes(void *context, uint32_t index, struct stk_engine_notes *out)
{
    (void)context;
    *out = (struct stk_engine_notes){ .engine = index };
}

static int build(void *context, uint32_t index, uint64_t *workspace_bytes, stoker_error *error)
{
    const struct trial *const t = context;
    (void)error;
    stk_product_choose(t->linear->product, index);
    *workspace_bytes = stk_product_workspace_bytes(t->linear->product);
    return STOKER_OK;
}

/* Without memory the algorithm is taken as it is: a batch of another size may come when all memory
 * is taken. */
static int run_product(void *context, stoker_error *error)
{
    struct trial *const t = context;
    return take_operands(t) ? stk_cuda_run_once(t->linear->math->backend, enqueue_product, t, error)
                            : STOKER_OK;
}

static int time_product(void *context, double *seconds, stoker_error *error)
{
    struct trial *const t = context;
    if (!take_operands(t))
        return stk_refuse_option(error, STOKER_ENOMEM,
                                 "no device memory for timing matrix products");
    return stk_cuda_time_runs(t->linear->math->backend, enqueue_product, t, seconds, error);
}

/* What a choice depends on within one back end. */
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

/* Choose the first algorithm that runs, or the fastest of the first few, and keep what was
 * learned. */
static int choose(struct stk_cuda_linear *l, const struct stk_product_shape *s, const char *key,
                  stoker_error *error)
{
    const struct stk_cuda_math *const math = l->math;
    struct trial trial = { .linear = l, .shape = s };
    struct stk_engine_failures failures = { .engines = 0 };
    struct stk_engine_choice best;
    if (math->cache != NULL)
        failures.engines = stk_engine_cache_failed(math->cache, key);
    const struct stk_engine_source source = { .context = &trial,
                                              .count = stk_product_algorithms(l->product),
                                              .notes = tell_notes,
                                              .build = build,
                                              .run = math->tries ? run_product : NULL,
                                              .time = time_product,
                                              .failures = &failures };
    const int rc = stk_engine_choose(&best, &source, &math->rules, false, error);
    release_operands(&trial);
    if (rc == STOKER_OK)
        stk_product_choose(l->product, best.index);
    const bool learned = math->tries || math->rules.benchmark > 0;
    if (learned && math->cache != NULL && (rc == STOKER_OK || rc == STOKER_ENOTSUP))
        stk_engine_cache_add(math->cache, key, rc == STOKER_OK ? &best : NULL, &failures);
    if (l->failures->first.code == STOKER_OK)
        l->failures->first = failures.first;
    return rc;
}

static int make_product(struct stk_cuda_linear *l, enum stk_product_epilogue epilogue,
                        stoker_error *error)
{
    const struct stk_product_shape shape = shape_of(l, epilogue);
    struct stk_engine_choice known;
    char key[STK_ENGINE_KEY_BYTES];
    stk_product_destroy(&l->product); /* the one with an epilogue, if no algorithm runs it */
    int rc = stk_product_create(&l->product, l->math->cublaslt, &shape, &l->math->rules, error);
    if (rc != STOKER_OK)
        return rc;
    name_key(key, l, &shape);
    if (l->math->cache == NULL || !stk_engine_cache_find(l->math->cache, key, &known))
        return choose(l, &shape, key, error);
    stk_product_choose(l->product, known.index);
    return STOKER_OK;
}

/* ---- making ---------------------------------------------------------------------------------- */

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
        return stk_refuse_option(error, STOKER_ENOMEM, "a linear layer");
    linear->math = math;
    linear->direction = direction;
    linear->count = count;
    linear->in = stk_shape_elements(layer->in);
    linear->out = stk_shape_elements(layer->out);
    linear->has_bias = layer->bias >= 0;
    linear->relu = relu;
    linear->bias_gradient = stk_cuda_bias_plan(math->dtype, count, (uint32_t)linear->out);
    struct stk_engine_failures failures = { .engines = 0 };
    linear->failures = &failures;
    const int rc = stk_engine_result(make(linear, error), &failures, error);
    linear->failures = NULL;
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

/* ---- running --------------------------------------------------------------------------------- */

static int run_forward(struct stk_cuda_linear *l, const struct stk_cuda_operands *o,
                       stoker_error *error)
{
    const void *const bias = l->has_bias ? o->bias : NULL;
    const int rc = stk_product_run(l->product, o->x, o->weight, l->finish ? NULL : bias, o->y,
                                   o->workspace, l->math->backend->stream, error);
    if (rc != STOKER_OK || !l->finish)
        return rc;
    const struct stk_train_bias_relu arguments = {
        .y = o->y, .bias = bias, .count = l->count * l->out, .c = (uint32_t)l->out, .relu = l->relu
    };
    return stk_cuda_launch(l->math->backend,
                           stk_train_kernel_in("stk_train_bias_relu", l->math->dtype), &arguments,
                           error);
}

static int run_backward_weights(struct stk_cuda_linear *l, const struct stk_cuda_operands *o,
                                stoker_error *error)
{
    stk_product_add(l->product, !o->write);
    const int rc = stk_product_run(l->product, o->dy, o->x, NULL, o->weight_grad, o->workspace,
                                   l->math->backend->stream, error);
    if (rc != STOKER_OK || o->bias_grad == NULL)
        return rc;
    return stk_cuda_bias_run(&l->bias_gradient, l->math->backend, o, error);
}

int stk_cuda_linear_run(struct stk_cuda_linear *linear, const struct stk_cuda_operands *operands,
                        stoker_error *error)
{
    assert(operands->workspace != NULL || linear->workspace_bytes == 0);
    switch (linear->direction) {
    case STK_CUDA_FORWARD:
        return run_forward(linear, operands, error);
    case STK_CUDA_BACKWARD_DATA:
        return stk_product_run(linear->product, operands->dy, operands->weight, NULL, operands->dx,
                               operands->workspace, linear->math->backend->stream, error);
    case STK_CUDA_BACKWARD_WEIGHTS:
    default:
        return run_backward_weights(linear, operands, error);
    }
}
