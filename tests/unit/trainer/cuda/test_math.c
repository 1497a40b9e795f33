/* test_math.c - convolutions and linear layers of the `cuda` back end against `ref`.
 *
 * cuDNN, cuBLASLt and the runtime are stand-ins: a layer is made, its operands lie in device memory
 * that the host cannot touch, and what comes out of each direction is held against ref's loops on
 * the same numbers. In 16-bit storage ref is given the rounded numbers. */
#include <cuda_runtime_api.h>

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "kernels/float16.h"
#include "loader/base/fault.h"
#include "loader/base/rng.h"
#include "support/cuda_kernels.h"
#include "support/leaks.h"
#include "support/standin_cublaslt/standin_cublaslt.h"
#include "support/standin_cuda/standin_cuda.h"
#include "support/standin_cudnn/standin_cudnn.h"
#include "trainer/backend/cuda/cublaslt/product.h"
#include "trainer/backend/cuda/cudnn/graph.h"
#include "trainer/backend/cuda/program/conv.h"
#include "trainer/backend/cuda/program/linear.h"
#include "trainer/backend/ref/operations.h"

enum { FLOATS = 1 << 14, WORKSPACE = 1 << 20, TICKETS = 64 };

static const stoker_dtype types[] = { STOKER_DTYPE_FLOAT32, STOKER_DTYPE_FLOAT16,
                                      STOKER_DTYPE_BFLOAT16 };
enum { TYPES = sizeof(types) / sizeof(types[0]) };

/* Values in -1..1 that look random and are the same everywhere. */
static void fill(float *values, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(int32_t)(uint32_t)stk_mix64(seed * 1000003 + i) * 0x1p-31F;
}

/* ---- the device ------------------------------------------------------------------------------ */

static cudaStream_t stream;
static uint32_t timed; /* runs that were timed */

static int launch(void *context, const struct stk_kernel *kernel, const void *arguments,
                  void *on_stream, stoker_error *error)
{
    enum { KERNELS_MAX = 128 };
    static struct standin_cuda_kernel kernels[KERNELS_MAX];
    (void)context;
    (void)error;
    const ptrdiff_t index = kernel - stk_train_kernels;
    cr_assert(index >= 0 && index < KERNELS_MAX);
    kernels[index] = (struct standin_cuda_kernel){ kernel->name, kernel->arguments_bytes, NULL };
    const struct stk_launch_grid grid = kernel->grid(arguments);
    const dim3 blocks = { grid.x, grid.y, 1 };
    const dim3 threads = { STK_LAUNCH_THREADS, 1, 1 };
    void *all[] = { (void *)(uintptr_t)arguments };
    return cudaLaunchKernel(&kernels[index], blocks, threads, all, 0, on_stream) == cudaSuccess
               ? STOKER_OK
               : STOKER_EDEVICE;
}

static void *allocate(void *context, uint64_t bytes)
{
    void *memory = NULL;
    (void)context;
    return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : NULL;
}

static void release(void *context, void *memory)
{
    (void)context;
    cudaFree(memory);
}

/* The later a candidate is asked for, the faster it is said to be. */
static int time_run(void *context, stk_cuda_enqueue *enqueue, void *work, double *seconds,
                    stoker_error *error)
{
    (void)context;
    const int rc = enqueue(work, stream, error);
    cr_assert_eq(cudaStreamSynchronize(stream), cudaSuccess);
    *seconds = 1.0 / ++timed;
    return rc;
}

static struct stk_cuda_math math_of(stoker_dtype dtype)
{
    struct stk_cuda_math math = {
        .device = { .launch = launch, .allocate = allocate, .release = release, .time = time_run },
        .dtype = dtype,
        .rules = { .workspace_bytes_max = WORKSPACE }
    };
    cr_assert_eq(stk_cudnn_open(&math.cudnn, &(struct stk_cudnn_options){ 0 }, NULL), STOKER_OK);
    stoker_error error = { 0 };
    cr_assert_eq(stk_cublaslt_open(&math.cublaslt, NULL, &error), STOKER_OK, "%s", error.message);
    return math;
}

static void close_math(struct stk_cuda_math *math)
{
    stk_cudnn_close(&math->cudnn);
    stk_cublaslt_close(&math->cublaslt);
}

static void begin(void)
{
    standin_cuda_reset(1);
    standin_cuda_delay(20);
    standin_cudnn_reset(true);
    standin_cublaslt_reset(true);
    timed = 0;
    cr_assert_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
}

static void end(void)
{
    cr_assert_eq(cudaStreamDestroy(stream), cudaSuccess);
    standin_cuda_reset(1);
    cr_assert_eq(standin_cuda_live(), 0);
    cr_assert_eq(standin_cublaslt_live(), 0);
    stk_test_check_leaks();
}

/* ---- arrays: numbers on the host, and the same in the type of the device's memory ------------ */

struct array {
    float *host;
    uint64_t count;
    stoker_dtype dtype;
    void *device;
};

static void *new_device(uint64_t bytes)
{
    void *memory = NULL;
    cr_assert_eq(cudaMalloc(&memory, bytes), cudaSuccess);
    return memory;
}

/* Round the host's numbers to the type, and copy them. */
static void put(struct array *a)
{
    uint16_t narrow[FLOATS];
    const bool half = a->dtype == STOKER_DTYPE_FLOAT16;
    cr_assert_leq(a->count, FLOATS);
    if (a->dtype != STOKER_DTYPE_FLOAT32)
        for (uint64_t i = 0; i < a->count; i++) {
            narrow[i] = half ? float16_of_float(a->host[i]) : bfloat16_of_float(a->host[i]);
            a->host[i] = half ? float_of_float16(narrow[i]) : float_of_bfloat16(narrow[i]);
        }
    const void *const from = a->dtype == STOKER_DTYPE_FLOAT32 ? (const void *)a->host : narrow;
    cr_assert_eq(cudaMemcpyAsync(a->device, from, a->count * stoker_dtype_bytes(a->dtype),
                                 cudaMemcpyHostToDevice, stream),
                 cudaSuccess);
}

static struct array new_array(stoker_dtype dtype, uint64_t count, uint64_t seed)
{
    struct array a = { calloc(count, sizeof(float)), count, dtype,
                       new_device(count * stoker_dtype_bytes(dtype)) };
    cr_assert_not_null(a.host);
    fill(a.host, count, seed);
    put(&a);
    return a;
}

static void drop_array(struct array *a)
{
    free(a->host);
    cr_assert_eq(cudaFree(a->device), cudaSuccess);
}

/* What the device has is what the host has, within the type's precision times `scale`. */
static void check_array(const struct array *a, double scale, const char *what)
{
    uint32_t bits[FLOATS];
    const uint64_t bytes = a->count * stoker_dtype_bytes(a->dtype);
    const double precision = a->dtype == STOKER_DTYPE_FLOAT32   ? 1e-6
                             : a->dtype == STOKER_DTYPE_FLOAT16 ? 1.0 / 2048
                                                                : 1.0 / 256;
    cr_assert_eq(cudaMemcpyAsync(bits, a->device, bytes, cudaMemcpyDeviceToHost, stream),
                 cudaSuccess);
    cr_assert_eq(cudaStreamSynchronize(stream), cudaSuccess);
    for (uint64_t i = 0; i < a->count; i++) {
        float got;
        const uint16_t *const narrow = (const uint16_t *)bits;
        if (a->dtype == STOKER_DTYPE_FLOAT32)
            memcpy(&got, &bits[i], sizeof(got));
        else
            got = a->dtype == STOKER_DTYPE_FLOAT16 ? float_of_float16(narrow[i])
                                                   : float_of_bfloat16(narrow[i]);
        cr_assert_float_eq(got, a->host[i], precision * (scale + fabs((double)a->host[i])),
                           "%s, element %llu", what, (unsigned long long)i);
    }
}

/* ---- a layer in all directions --------------------------------------------------------------- */

/* Arrays of one layer, and what it runs with. */
struct bench {
    struct stk_layer layer;
    struct stk_op op;
    uint32_t count;
    uint64_t depth; /* products that a sum is made of, at most: what rounding grows with */
    struct array x, weight, bias, y, dy, dx, weight_grad, bias_grad;
    bool write; /* the next run overwrites the gradients of parameters */
    void *workspace, *tickets;
};

static void set_up(struct bench *b, stoker_dtype dtype, uint64_t weights)
{
    const uint64_t in = stk_shape_elements(b->layer.in) * b->count;
    const uint64_t out = stk_shape_elements(b->layer.out) * b->count;
    b->x = new_array(dtype, in, 1);
    b->weight = new_array(dtype, weights, 2);
    b->bias = new_array(dtype, b->layer.out.c, 3);
    b->y = new_array(dtype, out, 4);
    b->dy = new_array(dtype, out, 5);
    b->dx = new_array(dtype, in, 6);
    b->weight_grad = new_array(STOKER_DTYPE_FLOAT32, weights, 7);
    b->bias_grad = new_array(STOKER_DTYPE_FLOAT32, b->layer.out.c, 8);
    b->workspace = new_device(WORKSPACE);
    b->tickets = new_device(TICKETS * sizeof(uint32_t));
}

static void tear_down(struct bench *b)
{
    struct array *const arrays[] = { &b->x,  &b->weight, &b->bias,        &b->y,
                                     &b->dy, &b->dx,     &b->weight_grad, &b->bias_grad };
    cr_assert_eq(cudaStreamSynchronize(stream), cudaSuccess);
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        drop_array(arrays[i]);
    cudaFree(b->workspace);
    cudaFree(b->tickets);
}

static struct stk_operands ref_operands(const struct bench *b)
{
    const bool bias = b->layer.bias >= 0;
    return (struct stk_operands){ .op = &b->op,
                                  .layer = &b->layer,
                                  .count = b->count,
                                  .x = b->x.host,
                                  .y = b->y.host,
                                  .dy = b->dy.host,
                                  .dx = b->dx.host,
                                  .weight = b->weight.host,
                                  .bias = bias ? b->bias.host : NULL,
                                  .weight_grad = b->weight_grad.host,
                                  .bias_grad = bias ? b->bias_grad.host : NULL };
}

/* Only what the direction uses, as its header says. */
static struct stk_cuda_operands cuda_operands(const struct bench *b,
                                              enum stk_cuda_direction direction)
{
    const bool bias = b->layer.bias >= 0;
    struct stk_cuda_operands o = { .workspace = b->workspace };
    switch (direction) {
    case STK_CUDA_FORWARD:
        o.x = b->x.device;
        o.weight = b->weight.device;
        o.bias = bias ? b->bias.device : NULL;
        o.y = b->y.device;
        break;
    case STK_CUDA_BACKWARD_DATA:
        o.weight = b->weight.device;
        o.dy = b->dy.device;
        o.dx = b->dx.device;
        break;
    case STK_CUDA_BACKWARD_WEIGHTS:
    default:
        o.x = b->x.device;
        o.dy = b->dy.device;
        o.weight_grad = b->weight_grad.device;
        o.bias_grad = bias ? b->bias_grad.device : NULL;
        o.tickets = b->tickets;
        o.write = b->write;
        break;
    }
    return o;
}

typedef void ref_fn(const struct stk_operands *operands, struct stk_loss *loss);

/* What differs between the two kinds of layer: their functions, by direction. */
static ref_fn *const ref_functions[2][3] = {
    { stk_ref_conv_forward, stk_ref_conv_backward_data, stk_ref_conv_backward_weights },
    { stk_ref_linear_forward, stk_ref_linear_backward_data, stk_ref_linear_backward_weights }
};

/* Make a layer's object, run it, let it go before the stream has come to it. */
static void run_cuda(const struct stk_cuda_math *math, const struct bench *b,
                     enum stk_cuda_direction direction)
{
    const struct stk_cuda_operands o = cuda_operands(b, direction);
    const bool relu = b->op.relu && direction == STK_CUDA_FORWARD;
    stoker_error error = { 0 };
    if (b->layer.kind == STK_CONV2D) {
        struct stk_cuda_conv *conv = NULL;
        cr_assert_eq(
            stk_cuda_conv_create(&conv, math, &b->layer, direction, relu, b->count, &error),
            STOKER_OK, "%s", error.message);
        cr_assert_leq(stk_cuda_conv_workspace_bytes(conv), WORKSPACE);
        cr_assert_eq(stk_cuda_conv_run(conv, &o, stream, &error), STOKER_OK, "%s", error.message);
        stk_cuda_conv_destroy(&conv);
    } else {
        struct stk_cuda_linear *linear = NULL;
        cr_assert_eq(
            stk_cuda_linear_create(&linear, math, &b->layer, direction, relu, b->count, &error),
            STOKER_OK, "%s", error.message);
        cr_assert_leq(stk_cuda_linear_workspace_bytes(linear), WORKSPACE);
        cr_assert_eq(stk_cuda_linear_run(linear, &o, stream, &error), STOKER_OK, "%s",
                     error.message);
        stk_cuda_linear_destroy(&linear);
    }
}

static void clear_gradients(struct bench *b)
{
    memset(b->weight_grad.host, 0, b->weight_grad.count * sizeof(float));
    if (b->layer.bias >= 0)
        memset(b->bias_grad.host, 0, b->bias_grad.count * sizeof(float));
}

/* Every direction once; gradients of parameters are written, then added to. */
static void check_layer(const struct stk_cuda_math *math, struct bench *b, const char *name)
{
    ref_fn *const *const ref = ref_functions[b->layer.kind == STK_LINEAR];
    const struct stk_operands o = ref_operands(b);
    const double depth = (double)b->depth;
    ref[STK_CUDA_FORWARD](&o, NULL);
    run_cuda(math, b, STK_CUDA_FORWARD);
    check_array(&b->y, sqrt(depth), name);
    ref[STK_CUDA_BACKWARD_DATA](&o, NULL);
    run_cuda(math, b, STK_CUDA_BACKWARD_DATA);
    check_array(&b->dx, sqrt(depth), name);
    clear_gradients(b);
    for (int i = 0; i < 2; i++) {
        b->write = i == 0;
        ref[STK_CUDA_BACKWARD_WEIGHTS](&o, NULL);
        run_cuda(math, b, STK_CUDA_BACKWARD_WEIGHTS);
    }
    /* A 16-bit gradient of a convolution is rounded once before it is added. */
    struct array grad = b->weight_grad;
    const double rounding = math->dtype == STOKER_DTYPE_FLOAT32   ? 1
                            : math->dtype == STOKER_DTYPE_FLOAT16 ? 1e6 / 2048
                                                                  : 1e6 / 256;
    check_array(&grad, rounding * sqrt(depth * b->count * 16), name);
    check_array(&b->bias_grad, sqrt((double)b->dy.count) * 4, name);
}

/* ---- convolutions ---------------------------------------------------------------------------- */

struct conv_case {
    const char *name;
    struct stk_shape in;
    uint32_t filters, kernel[2], stride[2], padding[2], groups, count;
    bool bias, relu;
};

static const struct conv_case convs[] = {
    { "3x3", { 3, 8, 8, 3 }, 8, { 3, 3 }, { 1, 1 }, { 0, 0 }, 1, 4, true, false },
    { "3x3, ReLU", { 3, 8, 8, 3 }, 8, { 3, 3 }, { 1, 1 }, { 1, 1 }, 1, 4, true, true },
    { "no bias", { 3, 8, 8, 4 }, 4, { 3, 3 }, { 1, 1 }, { 1, 1 }, 1, 2, false, false },
    { "no bias, ReLU", { 3, 7, 5, 4 }, 5, { 1, 1 }, { 1, 1 }, { 0, 0 }, 1, 3, false, true },
    { "odd", { 3, 9, 7, 5 }, 7, { 3, 2 }, { 2, 1 }, { 1, 0 }, 1, 3, true, true },
    { "5x5, stride 2", { 3, 11, 11, 1 }, 6, { 5, 5 }, { 2, 2 }, { 2, 2 }, 1, 1, true, true },
    { "one place", { 3, 3, 3, 2 }, 33, { 3, 3 }, { 1, 1 }, { 0, 0 }, 1, 5, true, false },
    { "groups", { 3, 6, 6, 6 }, 9, { 3, 3 }, { 1, 1 }, { 1, 1 }, 3, 2, true, true },
    { "depthwise", { 3, 6, 5, 4 }, 4, { 3, 3 }, { 2, 2 }, { 1, 1 }, 4, 2, true, false },
};
enum { CONVS = sizeof(convs) / sizeof(convs[0]) };

static struct stk_layer conv_layer(const struct conv_case *c)
{
    struct stk_layer layer = { .kind = STK_CONV2D,
                               .in = c->in,
                               .out = c->in,
                               .groups = c->groups,
                               .weight = 0,
                               .bias = c->bias ? 1 : -1 };
    memcpy(layer.kernel, c->kernel, sizeof(layer.kernel));
    memcpy(layer.stride, c->stride, sizeof(layer.stride));
    memcpy(layer.padding, c->padding, sizeof(layer.padding));
    layer.out.h = (c->in.h + 2 * c->padding[0] - c->kernel[0]) / c->stride[0] + 1;
    layer.out.w = (c->in.w + 2 * c->padding[1] - c->kernel[1]) / c->stride[1] + 1;
    layer.out.c = c->filters;
    return layer;
}

static void check_conv(const struct stk_cuda_math *math, const struct conv_case *c)
{
    struct bench b = { .layer = conv_layer(c), .op = { .relu = c->relu }, .count = c->count };
    b.depth = (uint64_t)c->kernel[0] * c->kernel[1] * (c->in.c / c->groups + c->filters);
    set_up(&b, math->dtype,
           (uint64_t)c->filters * c->kernel[0] * c->kernel[1] * c->in.c / c->groups);
    check_layer(math, &b, c->name);
    tear_down(&b);
}

Test(trainer_cuda_math, convolutions_are_those_of_ref)
{
    begin();
    for (int fused = 0; fused < 2; fused++)
        for (int t = 0; t < TYPES; t++) {
            standin_cudnn_reset(fused);
            struct stk_cuda_math math = math_of(types[t]);
            for (int i = 0; i < CONVS; i++)
                check_conv(&math, &convs[i]);
            cr_assert_eq(standin_cudnn_runs(), 4 * CONVS);
            close_math(&math);
        }
    end();
}

/* ---- linear layers --------------------------------------------------------------------------- */

struct linear_case {
    uint32_t in, out, count;
    bool bias, relu;
};

static const struct linear_case linears[] = {
    { 64, 32, 16, true, false }, { 37, 11, 5, true, true },   { 10, 1, 1, true, true },
    { 1, 40, 3, false, false },  { 13, 100, 7, false, true },
};
enum { LINEARS = sizeof(linears) / sizeof(linears[0]) };

static void check_linear(const struct stk_cuda_math *math, const struct linear_case *c)
{
    struct bench b = { .layer = { .kind = STK_LINEAR,
                                  .in = { 1, 1, 1, c->in },
                                  .out = { 1, 1, 1, c->out },
                                  .weight = 0,
                                  .bias = c->bias ? 1 : -1 },
                       .op = { .relu = c->relu },
                       .count = c->count,
                       .depth = (uint64_t)c->in + c->out };
    set_up(&b, math->dtype, (uint64_t)c->in * c->out);
    check_layer(math, &b, "linear");
    tear_down(&b);
}

Test(trainer_cuda_math, linear_layers_are_those_of_ref)
{
    begin();
    for (int epilogues = 0; epilogues < 2; epilogues++)
        for (int t = 0; t < TYPES; t++) {
            standin_cublaslt_reset(epilogues);
            struct stk_cuda_math math = math_of(types[t]);
            for (int i = 0; i < LINEARS; i++)
                check_linear(&math, &linears[i]);
            cr_assert_eq(standin_cublaslt_runs(), 4 * LINEARS);
            close_math(&math);
        }
    end();
}

/* ---- rules ----------------------------------------------------------------------------------- */

static uint64_t workspace_of(const struct stk_cuda_math *math, int kind,
                             enum stk_cuda_direction direction)
{
    struct stk_layer conv = conv_layer(&convs[2]); /* no bias: nothing but the engine's own */
    const struct stk_layer linear = {
        .kind = STK_LINEAR, .in = { 1, 1, 1, 8 }, .out = { 1, 1, 1, 8 }, .bias = -1
    };
    uint64_t bytes;
    if (kind == STK_CONV2D) {
        struct stk_cuda_conv *made = NULL;
        cr_assert_eq(stk_cuda_conv_create(&made, math, &conv, direction, false, 2, NULL),
                     STOKER_OK);
        bytes = stk_cuda_conv_workspace_bytes(made);
        stk_cuda_conv_destroy(&made);
    } else {
        struct stk_cuda_linear *made = NULL;
        cr_assert_eq(stk_cuda_linear_create(&made, math, &linear, direction, false, 2, NULL),
                     STOKER_OK);
        bytes = stk_cuda_linear_workspace_bytes(made);
        stk_cuda_linear_destroy(&made);
    }
    return bytes;
}

Test(trainer_cuda_math, rules_choose_the_engine)
{
    begin();
    struct stk_cuda_math math = math_of(STOKER_DTYPE_FLOAT32);
    cr_assert_eq(workspace_of(&math, STK_CONV2D, STK_CUDA_FORWARD), 5000);
    cr_assert_eq(workspace_of(&math, STK_LINEAR, STK_CUDA_FORWARD), 4096);
    math.rules.deterministic = true;
    cr_assert_eq(workspace_of(&math, STK_CONV2D, STK_CUDA_FORWARD), 3000);
    cr_assert_eq(workspace_of(&math, STK_LINEAR, STK_CUDA_FORWARD), 0);
    cr_assert_eq(workspace_of(&math, STK_CONV2D, STK_CUDA_BACKWARD_WEIGHTS), 768 + 1000,
                 "a gradient to be added, then the engine's own");
    math.rules.full_float32 = true;
    cr_assert_eq(workspace_of(&math, STK_CONV2D, STK_CUDA_BACKWARD_DATA), 1000);
    math.rules = (struct stk_engine_rules){ .workspace_bytes_max = 2000 };
    cr_assert_eq(workspace_of(&math, STK_CONV2D, STK_CUDA_FORWARD), 1000);
    cr_assert_eq(workspace_of(&math, STK_LINEAR, STK_CUDA_FORWARD), 0);
    math.rules.workspace_bytes_max = 10;
    const struct stk_layer conv = conv_layer(&convs[0]);
    struct stk_cuda_conv *none = NULL;
    stoker_error error = { 0 };
    cr_assert_eq(stk_cuda_conv_create(&none, &math, &conv, STK_CUDA_FORWARD, false, 2, &error),
                 STOKER_ENOTSUP);
    cr_assert(error.message[0] != '\0');
    cr_assert_null(none);
    close_math(&math);
    end();
}

Test(trainer_cuda_math, a_benchmark_times_each_once_and_is_remembered)
{
    begin();
    struct stk_cuda_math math = math_of(STOKER_DTYPE_FLOAT32);
    math.rules.benchmark = 8;
    cr_assert_eq(stk_engine_cache_create(&math.cache, NULL), STOKER_OK);
    for (int round = 0; round < 2; round++) {
        cr_assert_eq(workspace_of(&math, STK_CONV2D, STK_CUDA_FORWARD), 1000,
                     "the last is fastest");
        cr_assert_eq(workspace_of(&math, STK_LINEAR, STK_CUDA_FORWARD), 0);
        cr_assert_eq(workspace_of(&math, STK_LINEAR, STK_CUDA_BACKWARD_WEIGHTS), 0);
        cr_assert_eq(timed, 3 + 2 + 2, "round %d", round);
        cr_assert_eq(stk_engine_cache_entries(math.cache), 3);
    }
    for (int i = 0; i < 4; i++)
        check_conv(&math, &convs[i]);
    check_linear(&math, &linears[0]);
    stk_engine_cache_destroy(&math.cache);
    close_math(&math);
    end();
}

/* ---- misuse and failures --------------------------------------------------------------------- */

Test(trainer_cuda_math, operands_that_are_no_device_memory_are_refused)
{
    begin();
    struct stk_cuda_math math = math_of(STOKER_DTYPE_FLOAT32);
    struct bench b = { .layer = conv_layer(&convs[0]), .count = 4, .depth = 1 };
    set_up(&b, STOKER_DTYPE_FLOAT32, 8 * 9 * 3);
    struct stk_cuda_conv *conv = NULL;
    cr_assert_eq(stk_cuda_conv_create(&conv, &math, &b.layer, STK_CUDA_FORWARD, false, 4, NULL),
                 STOKER_OK);
    struct stk_cuda_operands o = cuda_operands(&b, STK_CUDA_FORWARD);
    o.x = b.x.host;
    cr_assert_eq(stk_cuda_conv_run(conv, &o, stream, NULL), STOKER_EDEVICE, "memory of the host");
    o.x = (const char *)b.x.device + 4;
    cr_assert_eq(stk_cuda_conv_run(conv, &o, stream, NULL), STOKER_EDEVICE, "not aligned");
    o = cuda_operands(&b, STK_CUDA_FORWARD);
    o.workspace = (char *)b.workspace + WORKSPACE - 256;
    cr_assert_eq(stk_cuda_conv_run(conv, &o, stream, NULL), STOKER_EDEVICE, "too little workspace");
    stk_cuda_conv_destroy(&conv);
    tear_down(&b);
    close_math(&math);
    end();
}

/* Fail each call of the runtime once: the run says so, and the next one is right again. */
Test(trainer_cuda_math, a_failed_launch_is_reported)
{
    begin();
    struct stk_cuda_math math = math_of(STOKER_DTYPE_FLOAT16);
    struct bench b = { .layer = conv_layer(&convs[0]), .count = 4, .depth = 1 };
    set_up(&b, STOKER_DTYPE_FLOAT16, 8 * 9 * 3);
    struct stk_cuda_conv *conv = NULL;
    cr_assert_eq(
        stk_cuda_conv_create(&conv, &math, &b.layer, STK_CUDA_BACKWARD_WEIGHTS, false, 4, NULL),
        STOKER_OK);
    const struct stk_cuda_operands o = cuda_operands(&b, STK_CUDA_BACKWARD_WEIGHTS);
    for (uint64_t nth = 1; nth <= 3; nth++) { /* the engine, the sum, the bias */
        standin_cuda_fail(nth, cudaErrorLaunchFailure, false);
        cr_assert_eq(stk_cuda_conv_run(conv, &o, stream, NULL), STOKER_EDEVICE, "call %d",
                     (int)nth);
        cr_assert(standin_cuda_failed());
    }
    cr_assert_eq(stk_cuda_conv_run(conv, &o, stream, NULL), STOKER_OK);
    stk_cuda_conv_destroy(&conv);
    tear_down(&b);
    close_math(&math);
    end();
}

/* Make a layer with the nth allocation failing, until none does. */
static void sweep(const struct stk_cuda_math *math, const struct stk_layer *layer)
{
    for (uint64_t nth = 1;; nth++) {
        struct stk_cuda_conv *conv = NULL;
        struct stk_cuda_linear *linear = NULL;
        cr_assert_lt(nth, 50U);
        stk_fault_arm(STK_FAULT_MEMORY, nth);
        const int rc =
            layer->kind == STK_CONV2D
                ? stk_cuda_conv_create(&conv, math, layer, STK_CUDA_FORWARD, false, 2, NULL)
                : stk_cuda_linear_create(&linear, math, layer, STK_CUDA_FORWARD, false, 2, NULL);
        const bool fired = stk_fault_disarm();
        cr_assert_eq(rc, fired ? STOKER_ENOMEM : STOKER_OK, "allocation %d", (int)nth);
        stk_cuda_conv_destroy(&conv);
        stk_cuda_linear_destroy(&linear);
        if (!fired)
            return;
    }
}

Test(trainer_cuda_math, each_failed_allocation_leaves_nothing_behind)
{
    begin();
    struct stk_cuda_math math = math_of(STOKER_DTYPE_FLOAT32);
    const struct stk_layer conv = conv_layer(&convs[0]);
    const struct stk_layer linear = {
        .kind = STK_LINEAR, .in = { 1, 1, 1, 8 }, .out = { 1, 1, 1, 8 }, .bias = 0
    };
    sweep(&math, &conv);
    sweep(&math, &linear);
    close_math(&math);
    end();
}

CleanTest(trainer_cuda_math, a_library_that_is_missing_is_named)
{
    struct stk_cublaslt *none = NULL;
    stoker_error error = { 0 };
    cr_assert_eq(stk_cublaslt_open(&none, "libnothing-of-the-kind.so", &error), STOKER_EDEVICE);
    cr_assert_not_null(strstr(error.message, "libnothing-of-the-kind.so"), "%s", error.message);
    cr_assert_null(none);
    cr_assert_eq(stk_cublaslt_open(&none, "libm.so.6", &error), STOKER_EDEVICE);
    cr_assert_not_null(strstr(error.message, "cublasLt"), "%s", error.message);
    cr_assert_null(none);
}

/* The library of CUDA 13 loads beside a driver for 12, and only its create fails. */
CleanTest(trainer_cuda_math, a_library_that_does_not_start_gives_way_to_the_other_version)
{
    struct stk_cublaslt *opened = NULL;
    stoker_error error = { 0 };
    begin();
    standin_cublaslt_refuse(true);
    /* By its soname the trainer finds it loaded. */
    void *const other = dlopen(STOKER_TEST_OTHER_CUBLASLT, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(other);
    cr_assert_eq(stk_cublaslt_open(&opened, NULL, &error), STOKER_OK, "%s", error.message);
    cr_assert_eq(error.code, 0);
    stk_cublaslt_close(&opened);
    void (*refuse_other)(bool) = NULL;
    void *const address = dlsym(other, "standin_cublaslt_refuse");
    cr_assert_not_null(address);
    memcpy(&refuse_other, &address, sizeof(address));
    refuse_other(true);
    cr_assert_eq(stk_cublaslt_open(&opened, NULL, &error), STOKER_EDEVICE);
    cr_assert_not_null(strstr(error.message, "the current CUDA device"), "%s", error.message);
    (void)dlclose(other);
    end();
}
