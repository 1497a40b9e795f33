/* test_math.c - which engines convolutions and linear layers of the `cuda` back end take, and what
 * they refuse. cuDNN, cuBLASLt and the runtime are stand-ins. test_layers.c has their numbers. */
#include <dlfcn.h>

#include "loader/base/fault.h"
#include "support/gpu/cuda_kernels.h"
#include "support/leaks.h"
#include "support/standin_cublaslt/standin_cublaslt.h"
#include "support/standin_cudnn/standin_cudnn.h"
#include "trainer/backend/cuda/cublaslt/product.h"
#include "trainer/backend/cuda/device/device.h"
#include "trainer/backend/cuda/program/conv.h"
#include "trainer/backend/cuda/program/linear.h"

enum { WORKSPACE = 1 << 20 };

static struct stk_backend *backend;

/* A back end, whose rules a test may change: no engine is tried and none is remembered. */
static struct stk_cuda_math *begin(stoker_dtype storage)
{
    stoker_error error = { 0 };
    const struct stk_backend_options options = { .storage = storage,
                                                 .needs_convolutions = true,
                                                 .needs_linear = true };
    standin_cuda_reset(1);
    standin_cuda_delay(20);
    standin_cuda_use_kernels();
    standin_cudnn_reset(true);
    standin_cublaslt_reset(true);
    cr_assert_eq(stk_backend_cuda.create(&backend, &options, &error), STOKER_OK, "%s",
                 error.message);
    stk_engine_cache_destroy(&backend->math.cache);
    backend->math.tries = false;
    backend->math.rules = (struct stk_engine_rules){ .workspace_bytes_max = WORKSPACE };
    return &backend->math;
}

static void end(void)
{
    stk_backend_cuda.destroy(backend);
    cr_assert_eq(standin_cuda_live(), 0);
    cr_assert_eq(standin_cublaslt_live(), 0);
    stk_test_check_leaks();
}

/* ---- a convolution and a linear layer ------------------------------------------------------- */

/* 3 x 3, from 8 x 8 x 3 to 6 x 6 x 8. */
static struct stk_layer conv_layer(bool biased)
{
    return (struct stk_layer){ .kind = STK_CONV2D,
                               .in = { 3, 8, 8, 3 },
                               .out = { 3, 6, 6, 8 },
                               .kernel = { 3, 3 },
                               .stride = { 1, 1 },
                               .groups = 1,
                               .bias = biased ? 1 : -1 };
}

static struct stk_layer linear_layer(bool biased)
{
    return (struct stk_layer){
        .kind = STK_LINEAR, .in = { 1, 1, 1, 8 }, .out = { 1, 1, 1, 8 }, .bias = biased ? 1 : -1
    };
}

/* Each operand has a part of the memory. */
static struct stk_cuda_operands operands_in(char *memory)
{
    enum { PART = 16384 };
    return (struct stk_cuda_operands){ .x = memory,
                                       .weight = memory + PART,
                                       .bias = memory + 2 * PART,
                                       .y = memory + 3 * PART,
                                       .dy = memory + 4 * PART,
                                       .dx = memory + 5 * PART,
                                       .weight_grad = (void *)(memory + 6 * PART),
                                       .bias_grad = (void *)(memory + 7 * PART),
                                       .tickets = (void *)(memory + 8 * PART),
                                       .workspace = memory + 9 * PART };
}

/* ---- rules ----------------------------------------------------------------------------------- */

static uint64_t workspace_of(const struct stk_cuda_math *math, int kind,
                             enum stk_cuda_direction direction)
{
    const struct stk_layer conv = conv_layer(false); /* nothing but the engine's own */
    const struct stk_layer linear = linear_layer(false);
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
    struct stk_cuda_math *const math = begin(STOKER_DTYPE_FLOAT32);
    cr_assert_eq(workspace_of(math, STK_CONV2D, STK_CUDA_FORWARD), 5000);
    cr_assert_eq(workspace_of(math, STK_LINEAR, STK_CUDA_FORWARD), 4096);
    math->rules.deterministic = true;
    cr_assert_eq(workspace_of(math, STK_CONV2D, STK_CUDA_FORWARD), 3000);
    cr_assert_eq(workspace_of(math, STK_LINEAR, STK_CUDA_FORWARD), 0);
    cr_assert_eq(workspace_of(math, STK_CONV2D, STK_CUDA_BACKWARD_WEIGHTS), 1024 + 1000,
                 "a gradient to be added, then the engine's own");
    math->rules.full_float32 = true;
    cr_assert_eq(workspace_of(math, STK_CONV2D, STK_CUDA_BACKWARD_DATA), 1000);
    math->rules = (struct stk_engine_rules){ .workspace_bytes_max = 2000 };
    cr_assert_eq(workspace_of(math, STK_CONV2D, STK_CUDA_FORWARD), 1000);
    cr_assert_eq(workspace_of(math, STK_LINEAR, STK_CUDA_FORWARD), 0);
    math->rules.workspace_bytes_max = 10;
    const struct stk_layer conv = conv_layer(true);
    struct stk_cuda_conv *none = NULL;
    stoker_error error = { 0 };
    cr_assert_eq(stk_cuda_conv_create(&none, math, &conv, STK_CUDA_FORWARD, false, 2, &error),
                 STOKER_ENOTSUP);
    cr_assert(error.message[0] != '\0');
    cr_assert_null(none);
    end();
}

/* Each of the layer's candidates is timed once: a warm-up and five runs. */
Test(trainer_cuda_math, a_benchmark_times_each_once_and_is_remembered)
{
    enum { RUNS = 6 };
    struct stk_cuda_math *const math = begin(STOKER_DTYPE_FLOAT32);
    math->rules.benchmark = 8;
    cr_assert_eq(stk_engine_cache_create(&math->cache, NULL), STOKER_OK);
    backend->warm = true;
    for (int round = 0; round < 2; round++) {
        (void)workspace_of(math, STK_CONV2D, STK_CUDA_FORWARD);
        (void)workspace_of(math, STK_LINEAR, STK_CUDA_FORWARD);
        (void)workspace_of(math, STK_LINEAR, STK_CUDA_BACKWARD_WEIGHTS);
        cr_assert_eq(standin_cudnn_runs(), 3 * RUNS, "round %d", round);
        cr_assert_eq(standin_cublaslt_runs(), (2 + 2) * RUNS, "round %d", round);
        cr_assert_eq(stk_engine_cache_entries(math->cache), 3);
    }
    const uint64_t runs = standin_cudnn_runs();
    backend->warm = false;
    (void)workspace_of(math, STK_CONV2D, STK_CUDA_BACKWARD_DATA);
    cr_assert_gt(standin_cudnn_runs() - runs, 4 * RUNS, "the first warms up");
    end();
}

/* ---- misuse and failures --------------------------------------------------------------------- */

Test(trainer_cuda_math, operands_that_are_no_device_memory_are_refused)
{
    const struct stk_cuda_math *const math = begin(STOKER_DTYPE_FLOAT32);
    const struct stk_layer layer = conv_layer(true);
    char *const memory = stk_cuda_alloc(backend, WORKSPACE, NULL);
    struct stk_cuda_conv *conv = NULL;
    cr_assert_eq(stk_cuda_conv_create(&conv, math, &layer, STK_CUDA_FORWARD, false, 4, NULL),
                 STOKER_OK);
    struct stk_cuda_operands o = operands_in(memory);
    o.x = (const char *)&layer;
    cr_assert_eq(stk_cuda_conv_run(conv, &o, NULL), STOKER_EDEVICE, "memory of the host");
    o.x = memory + 4;
    cr_assert_eq(stk_cuda_conv_run(conv, &o, NULL), STOKER_EDEVICE, "not aligned");
    o = operands_in(memory);
    o.workspace = memory + WORKSPACE - 256;
    cr_assert_eq(stk_cuda_conv_run(conv, &o, NULL), STOKER_EDEVICE, "too little workspace");
    stk_cuda_conv_destroy(&conv);
    stk_cuda_release(backend, memory);
    end();
}

/* Fail each call of the runtime once: the run says so, and the next one is right again. */
Test(trainer_cuda_math, a_failed_launch_is_reported)
{
    const struct stk_cuda_math *const math = begin(STOKER_DTYPE_FLOAT16);
    const struct stk_layer layer = conv_layer(true);
    char *const memory = stk_cuda_alloc(backend, WORKSPACE, NULL);
    struct stk_cuda_conv *conv = NULL;
    cr_assert_eq(
        stk_cuda_conv_create(&conv, math, &layer, STK_CUDA_BACKWARD_WEIGHTS, false, 4, NULL),
        STOKER_OK);
    const struct stk_cuda_operands o = operands_in(memory);
    cr_assert_eq(stk_cuda_conv_run(conv, &o, NULL), STOKER_OK); /* finds its kernels */
    for (uint64_t nth = 1; nth <= 3; nth++) {                   /* the engine, the sum, the bias */
        standin_cuda_fail(nth, cudaErrorLaunchFailure, false);
        cr_assert_eq(stk_cuda_conv_run(conv, &o, NULL), STOKER_EDEVICE, "call %d", (int)nth);
        cr_assert(standin_cuda_failed());
    }
    cr_assert_eq(stk_cuda_conv_run(conv, &o, NULL), STOKER_OK);
    stk_cuda_conv_destroy(&conv);
    stk_cuda_release(backend, memory);
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
    const struct stk_cuda_math *const math = begin(STOKER_DTYPE_FLOAT32);
    const struct stk_layer conv = conv_layer(true);
    const struct stk_layer linear = linear_layer(true);
    sweep(math, &conv);
    sweep(math, &linear);
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
    standin_cuda_reset(1);
    standin_cublaslt_reset(true);
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
}
