/* test_graphs.c - the layer over cuDNN's graph API, on a device that is only described. Nothing
 * runs; where the library is missing, all but its absence is skipped, aloud. */
#include "checks/cudnn/devices.h"
#include "loader/base/fault.h"
#include "support/leaks.h"
#include "trainer/backend/cuda/cudnn/choice.h"
#include "trainer/backend/cuda/cudnn/forms.h"

#include <dlfcn.h>

/* What cuDNN itself loses; descriptors that we forget are still seen. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:cublasLtCreate\n";
}

/* LeakSanitizer would list what it suppressed, and a report is a failure. */
const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}

static const struct stk_form_shape digits = { 64, 28, 28, 1, 32, { 3, 3 }, { 1, 1 }, { 0, 0 }, 1 };

/* cuDNN unloads the run-time compiler, which then has lost what its constructors took. */
static void keep_compiler_loaded(void)
{
    static const char *const names[] = { "libnvrtc.so.12", "libnvrtc.so.13" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)dlopen(names[i], RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
}

/* NULL: the library is not there. */
static struct stk_cudnn *opened(void)
{
    keep_compiler_loaded();
    char device[4096];
    stoker_error error = { 0 };
    struct stk_cudnn *cudnn = NULL;
    cr_assert(describe_device(device, sizeof(device), "sm_90"));
    if (stk_cudnn_open(&cudnn, &(struct stk_cudnn_options){ .device = device }, &error) !=
        STOKER_OK)
        cr_skip_test("SKIPPED, no cuDNN: %s", error.message);
    return cudnn;
}

CleanTest(cudnn, a_missing_library_is_reported)
{
    struct stk_cudnn *cudnn = NULL;
    stoker_error error = { 0 };
    const struct stk_cudnn_options options = { .library = "libno_such_library.so" };
    cr_assert_eq(stk_cudnn_open(&cudnn, &options, &error), STOKER_EDEVICE);
    cr_assert_null(cudnn);
    cr_assert_not_null(strstr(error.message, "libno_such_library.so"), "%s", error.message);
    const struct stk_cudnn_options other = { .library = "libm.so.6" };
    cr_assert_eq(stk_cudnn_open(&cudnn, &other, &error), STOKER_EDEVICE);
    cr_assert_not_null(strstr(error.message, "cudnnGetVersion"), "%s", error.message);
    cr_assert_not_null(strstr(error.message, "libm.so.6"), "%s", error.message);
    const struct stk_cudnn_options by_variable = { 0 };
    cr_assert_eq(setenv("STOKER_CUDNN", "/nowhere/libcudnn_graph.so.9", 1), 0);
    cr_assert_eq(stk_cudnn_open(&cudnn, &by_variable, &error), STOKER_EDEVICE);
    cr_assert_not_null(strstr(error.message, "/nowhere/libcudnn_graph.so.9"), "%s", error.message);
    cr_assert_eq(unsetenv("STOKER_CUDNN"), 0);
    stk_cudnn_close(&cudnn);
}

CleanTest(cudnn, a_description_that_is_none_is_refused_in_cudnns_words)
{
    struct stk_cudnn *cudnn = opened();
    stk_cudnn_close(&cudnn);
    stoker_error error = { 0 };
    const struct stk_cudnn_options options = { .device = "{ this is no device }" };
    cr_assert_lt(stk_cudnn_open(&cudnn, &options, &error), 0);
    cr_assert_null(cudnn);
    cr_assert_not_null(strstr(error.message, "device description: CUDNN_STATUS_"), "%s",
                       error.message);
}

/* Among the engines of a depthwise convolution are some that cuDNN compiles when they are built,
 * and that may not compile everywhere: another is taken. */
CleanTest(cudnn, groups_have_engines_in_every_direction)
{
    static const struct stk_form_shape depthwise = { 64,       14,       14,       64, 64,
                                                     { 3, 3 }, { 1, 1 }, { 1, 1 }, 64 };
    static const enum stk_form forms[] = { STK_FORM_CONV, STK_FORM_BACKWARD_DATA,
                                           STK_FORM_BACKWARD_WEIGHTS };
    struct stk_cudnn *cudnn = opened();
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        const struct stk_cudnn_choosing how = {
            .rules = { .workspace_bytes_max = STK_ENGINE_WORKSPACE_BYTES,
                       .deterministic = true,
                       .full_float32 = true },
            .float32 = true,
        };
        struct stk_cudnn_graph *graph = NULL;
        struct stk_cudnn_plan *plan = NULL;
        struct stk_form_operands operands;
        struct stk_engine_choice choice;
        stoker_error error = { 0 };
        cr_assert_eq(stk_form_build(&graph, &operands, cudnn, forms[i], &depthwise,
                                    STOKER_DTYPE_FLOAT32, &error),
                     STOKER_OK, "%s: %s", stk_form_name(forms[i]), error.message);
        cr_assert_eq(stk_cudnn_choose(&plan, &choice, graph, &how, &error), STOKER_OK, "%s: %s",
                     stk_form_name(forms[i]), error.message);
        stk_cudnn_plan_destroy(&plan);
        stk_cudnn_graph_destroy(&graph);
    }
    stk_cudnn_close(&cudnn);
}

CleanTest(cudnn, a_form_has_candidates_a_plan_and_nothing_that_runs)
{
    struct stk_cudnn *cudnn = opened();
    cr_assert_geq(stk_cudnn_version(cudnn), 90800);
    struct stk_cudnn_graph *graph = NULL;
    struct stk_form_operands operands;
    stoker_error error = { 0 };
    cr_assert_eq(stk_form_build(&graph, &operands, cudnn, STK_FORM_CONV_BIAS_RELU, &digits,
                                STOKER_DTYPE_FLOAT32, &error),
                 STOKER_OK, "%s", error.message);
    cr_assert_gt(stk_cudnn_graph_candidates(graph), 0);
    cr_assert(operands.x != 0 && operands.w != 0 && operands.bias != 0 && operands.y != 0);
    struct stk_cudnn_plan *plan = NULL;
    cr_assert_eq(stk_cudnn_plan_create(&plan, graph, 0, &error), STOKER_OK, "%s", error.message);
    stk_cudnn_graph_destroy(&graph); /* the plan outlives it */
    cr_assert_eq(stk_cudnn_plan_run(plan, NULL, 0, NULL, NULL, &error), STOKER_EDEVICE);
    stk_cudnn_plan_destroy(&plan);
    stk_cudnn_close(&cudnn);
}

CleanTest(cudnn, the_first_error_of_a_graph_is_kept)
{
    struct stk_cudnn *cudnn = opened();
    struct stk_cudnn_graph *graph = NULL;
    stoker_error error = { 0 };
    cr_assert_eq(stk_cudnn_graph_create(&graph, cudnn, NULL), STOKER_OK);
    const stk_cudnn_ref x = stk_cudnn_graph_tensor(
        graph, &(struct stk_cudnn_tensor){ STOKER_DTYPE_FLOAT32, 1, 8, 8, 4, false });
    const stk_cudnn_ref none = stk_cudnn_graph_tensor(
        graph, &(struct stk_cudnn_tensor){ STOKER_DTYPE_FLOAT32, 1, -1, 8, 4, false });
    cr_assert_neq(x, 0);
    cr_assert_eq(none, 0, "an extent of -1");
    const struct stk_cudnn_window window = { { 1, 1 }, { 0, 0 } };
    stk_cudnn_graph_convolution(graph, STK_CUDNN_FORWARD, &window, x, none, none);
    stk_cudnn_graph_relu(graph, x, none);
    cr_assert_lt(stk_cudnn_graph_close(graph, &error), 0);
    cr_assert_not_null(strstr(error.message, "tensor: CUDNN_STATUS_BAD_PARAM"), "%s",
                       error.message);
    stk_cudnn_graph_destroy(&graph);
    stk_cudnn_close(&cudnn);
}

/* A pretended clock: the second plan that it is asked about is the fastest. */
static int pretend(void *context, struct stk_cudnn_plan *plan, double *seconds, stoker_error *error)
{
    (void)error;
    cr_assert_not_null(plan);
    const uint32_t call = (*(uint32_t *)context)++;
    *seconds = call == 1 ? 0.5 : 1.0 + call;
    return STOKER_OK;
}

CleanTest(cudnn, a_benchmark_is_run_once_and_then_remembered)
{
    struct stk_cudnn *cudnn = opened();
    struct stk_cudnn_graph *graph = NULL;
    struct stk_form_operands operands;
    struct stk_engine_cache *cache = NULL;
    char text[STK_ENGINE_KEY_BYTES];
    uint32_t calls = 0;
    cr_assert_eq(stk_form_build(&graph, &operands, cudnn, STK_FORM_BACKWARD_WEIGHTS, &digits,
                                STOKER_DTYPE_FLOAT16, NULL),
                 STOKER_OK);
    cr_assert_eq(stk_engine_cache_create(&cache, NULL), STOKER_OK);
    (void)stk_form_text(text, sizeof(text), STK_FORM_BACKWARD_WEIGHTS, &digits,
                        STOKER_DTYPE_FLOAT16);
    cr_assert_str_eq(text, "backward_weights float16 64x28x28x1 32x3x3 stride 1x1 padding 0x0");
    struct stk_cudnn_choosing how = { .rules = { .workspace_bytes_max = STK_ENGINE_WORKSPACE_BYTES,
                                                 .benchmark = 4 },
                                      .cache = cache,
                                      .graph = text,
                                      .time = pretend,
                                      .context = &calls };
    struct stk_engine_choice first;
    struct stk_engine_choice second;
    struct stk_cudnn_plan *plan = NULL;
    cr_assert_eq(stk_cudnn_choose(&plan, &first, graph, &how, NULL), STOKER_OK);
    stk_cudnn_plan_destroy(&plan);
    cr_assert_eq(calls, 4);
    cr_assert_float_eq(first.seconds, 0.5, 1e-9);
    cr_assert_eq(stk_cudnn_choose(&plan, &second, graph, &how, NULL), STOKER_OK);
    stk_cudnn_plan_destroy(&plan);
    cr_assert_eq(calls, 4, "not timed again");
    cr_assert_eq(second.index, first.index);
    how.rules.workspace_bytes_max -= 1; /* another limit has winners of its own */
    cr_assert_eq(stk_cudnn_choose(&plan, &second, graph, &how, NULL), STOKER_OK);
    stk_cudnn_plan_destroy(&plan);
    cr_assert_eq(calls, 8);
    cr_assert_eq(stk_engine_cache_entries(cache), 2);
    stk_engine_cache_destroy(&cache);
    stk_cudnn_graph_destroy(&graph);
    stk_cudnn_close(&cudnn);
}

CleanTest(cudnn, opening_building_and_planning_survive_each_allocation_failure)
{
    struct stk_cudnn *cudnn = opened();
    stk_cudnn_close(&cudnn);
    char device[4096];
    cr_assert(describe_device(device, sizeof(device), "sm_90"));
    int rc = STOKER_ENOMEM;
    uint64_t nth = 1;
    for (; rc != STOKER_OK; nth++) {
        struct stk_cudnn_graph *graph = NULL;
        struct stk_cudnn_plan *plan = NULL;
        struct stk_form_operands operands;
        cr_assert_lt(nth, 10);
        stk_fault_arm(STK_FAULT_MEMORY, nth);
        rc = stk_cudnn_open(&cudnn, &(struct stk_cudnn_options){ .device = device }, NULL);
        if (rc == STOKER_OK)
            rc = stk_form_build(&graph, &operands, cudnn, STK_FORM_CONV, &digits,
                                STOKER_DTYPE_FLOAT16, NULL);
        if (rc == STOKER_OK)
            rc = stk_cudnn_plan_create(&plan, graph, 0, NULL);
        stk_fault_disarm();
        cr_assert(rc == STOKER_OK || rc == STOKER_ENOMEM);
        stk_cudnn_plan_destroy(&plan);
        stk_cudnn_graph_destroy(&graph);
        stk_cudnn_close(&cudnn);
        cr_assert_eq(stk_fault_live_bytes(), 0);
    }
    cr_assert_eq(nth - 1, 4, "three allocations");
}
