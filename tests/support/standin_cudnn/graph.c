/* graph.c - cuDNN's graphs: tensors and operations in lists, and three engines that are the
 * same. */
#include <cuda_runtime_api.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "support/standin_cuda/standin_cuda.h"
#include "support/standin_cudnn/operations.h"
#include "support/standin_cudnn/standin_cudnn.h"

struct stk_cudnn {
    int nothing;
};

struct stk_cudnn_graph {
    struct standin_cudnn_work work;
    int rc; /* the first failure */
    const char *why;
};

struct stk_cudnn_plan {
    struct standin_cudnn_work work;
    uint32_t candidate;
};

static struct {
    bool fuses;
    struct standin_cudnn_failing failing;
    _Atomic uint64_t plans, rounded, runs; /* trainers may be in several threads */
} standin = { .fuses = true };

void standin_cudnn_reset(bool fuses)
{
    standin.fuses = fuses;
    standin.failing = (struct standin_cudnn_failing){ 0 };
    standin.plans = 0;
    standin.rounded = 0;
    standin.runs = 0;
}

void standin_cudnn_fail(struct standin_cudnn_failing failing)
{
    standin.failing = failing;
}

uint64_t standin_cudnn_plans(void)
{
    return standin.plans;
}

uint64_t standin_cudnn_rounded(void)
{
    return standin.rounded;
}

uint64_t standin_cudnn_runs(void)
{
    return standin.runs;
}

static int refuse(stoker_error *error, int code, const char *why)
{
    return stk_refuse_option(error, code, "cuDNN's stand-in: %s", why);
}

int stk_cudnn_open(struct stk_cudnn **out, const struct stk_cudnn_options *options,
                   stoker_error *error)
{
    (void)options;
    struct stk_cudnn *const cudnn = stk_calloc(1, sizeof(*cudnn));
    if (cudnn == NULL)
        return refuse(error, STOKER_ENOMEM, "no memory");
    *out = cudnn;
    return STOKER_OK;
}

void stk_cudnn_close(struct stk_cudnn **cudnn)
{
    stk_free(*cudnn);
    *cudnn = NULL;
}

uint64_t stk_cudnn_version(const struct stk_cudnn *cudnn)
{
    (void)cudnn;
    return 91900;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

int stk_cudnn_graph_create(struct stk_cudnn_graph **out, struct stk_cudnn *cudnn,
                           stoker_error *error)
{
    (void)cudnn;
    struct stk_cudnn_graph *const graph = stk_calloc(1, sizeof(*graph));
    if (graph == NULL)
        return refuse(error, STOKER_ENOMEM, "no memory");
    *out = graph;
    return STOKER_OK;
}

void stk_cudnn_graph_destroy(struct stk_cudnn_graph **graph)
{
    stk_free(*graph);
    *graph = NULL;
}

static void fail(struct stk_cudnn_graph *graph, int rc, const char *why)
{
    if (graph->rc != STOKER_OK)
        return;
    graph->rc = rc;
    graph->why = why;
}

stk_cudnn_ref stk_cudnn_graph_tensor(struct stk_cudnn_graph *graph,
                                     const struct stk_cudnn_tensor *t)
{
    struct standin_cudnn_work *const work = &graph->work;
    if (work->tensors == STK_CUDNN_TENSORS_MAX) {
        fail(graph, STOKER_EDEVICE, "too many tensors");
        return 0;
    }
    if (t->n < 1 || t->h < 1 || t->w < 1 || t->c < 1)
        fail(graph, STOKER_EDEVICE, "an extent below 1");
    work->tensor[work->tensors] = *t;
    return ++work->tensors;
}

uint32_t stk_cudnn_graph_tensors(const struct stk_cudnn_graph *graph)
{
    return graph->work.tensors;
}

const struct stk_cudnn_tensor *stk_cudnn_graph_described(const struct stk_cudnn_graph *graph,
                                                         stk_cudnn_ref ref)
{
    return &graph->work.tensor[ref - 1];
}

static const struct stk_cudnn_tensor *tensor(const struct stk_cudnn_graph *graph, stk_cudnn_ref ref)
{
    static const struct stk_cudnn_tensor none;
    return ref >= 1 && ref <= graph->work.tensors ? &graph->work.tensor[ref - 1] : &none;
}

static void append(struct stk_cudnn_graph *graph, const struct standin_cudnn_operation *operation)
{
    struct standin_cudnn_work *const work = &graph->work;
    if (work->operations == STK_CUDNN_OPERATIONS_MAX)
        fail(graph, STOKER_EDEVICE, "too many operations");
    else
        work->operation[work->operations++] = *operation;
}

static bool fits(int64_t out, int64_t in, int64_t kernel, int64_t stride, int64_t padding)
{
    return stride >= 1 && padding >= 0 && in + 2 * padding >= kernel &&
           out == (in + 2 * padding - kernel) / stride + 1;
}

void stk_cudnn_graph_convolution(struct stk_cudnn_graph *graph, enum stk_cudnn_direction direction,
                                 const struct stk_cudnn_window *window, stk_cudnn_ref x_ref,
                                 stk_cudnn_ref w_ref, stk_cudnn_ref y_ref)
{
    const struct stk_cudnn_tensor *const x = tensor(graph, x_ref);
    const struct stk_cudnn_tensor *const w = tensor(graph, w_ref);
    const struct stk_cudnn_tensor *const y = tensor(graph, y_ref);
    if (w->c < 1 || x->n != y->n || y->c != w->n || x->c % w->c != 0 || y->c % (x->c / w->c) != 0 ||
        !fits(y->h, x->h, w->h, window->stride[0], window->padding[0]) ||
        !fits(y->w, x->w, w->w, window->stride[1], window->padding[1]))
        fail(graph, STOKER_EDEVICE, "extents that do not fit together");
    if (x->dtype != w->dtype || (x->dtype != y->dtype && !y->is_virtual))
        fail(graph, STOKER_ENOTSUP, "types that no engine takes together");
    append(graph, &(struct standin_cudnn_operation){ .kind = STANDIN_CONVOLUTION,
                                                     .a = x_ref,
                                                     .b = w_ref,
                                                     .out = y_ref,
                                                     .direction = direction,
                                                     .window = *window });
}

static bool spreads(const struct stk_cudnn_tensor *b, const struct stk_cudnn_tensor *whole)
{
    return (b->n == 1 || b->n == whole->n) && (b->h == 1 || b->h == whole->h) &&
           (b->w == 1 || b->w == whole->w) && (b->c == 1 || b->c == whole->c);
}

static void pointwise(struct stk_cudnn_graph *graph, enum standin_cudnn_kind kind, stk_cudnn_ref a,
                      stk_cudnn_ref b, stk_cudnn_ref out)
{
    if (standin_cudnn_elements(tensor(graph, a)) != standin_cudnn_elements(tensor(graph, out)) ||
        (b != 0 && !spreads(tensor(graph, b), tensor(graph, out))))
        fail(graph, STOKER_EDEVICE, "extents that do not fit together");
    append(graph, &(struct standin_cudnn_operation){ .kind = kind, .a = a, .b = b, .out = out });
}

void stk_cudnn_graph_add(struct stk_cudnn_graph *graph, stk_cudnn_ref a, stk_cudnn_ref b,
                         stk_cudnn_ref sum)
{
    pointwise(graph, STANDIN_ADD, a, b, sum);
}

void stk_cudnn_graph_relu(struct stk_cudnn_graph *graph, stk_cudnn_ref x, stk_cudnn_ref y)
{
    pointwise(graph, STANDIN_RELU, x, 0, y);
}

int stk_cudnn_graph_close(struct stk_cudnn_graph *graph, stoker_error *error)
{
    if (graph->rc == STOKER_OK && graph->work.operations > 1 && !standin.fuses)
        fail(graph, STOKER_ENOTSUP, "no engine for a graph");
    return graph->rc == STOKER_OK ? STOKER_OK : refuse(error, graph->rc, graph->why);
}

/* ---- candidates and plans -------------------------------------------------------------------- */

uint32_t stk_cudnn_graph_candidates(const struct stk_cudnn_graph *graph)
{
    (void)graph;
    return STANDIN_CUDNN_CANDIDATES;
}

void stk_cudnn_graph_candidate(const struct stk_cudnn_graph *graph, uint32_t index,
                               struct stk_engine_notes *out)
{
    (void)graph;
    *out = (struct stk_engine_notes){ .engine = 10 + (int64_t)index,
                                      .nondeterministic = index == 0,
                                      .tensor_cores = index == 1 };
}

int stk_cudnn_plan_create(struct stk_cudnn_plan **out, struct stk_cudnn_graph *graph,
                          uint32_t candidate, stoker_error *error)
{
    static const uint64_t workspace_bytes[STANDIN_CUDNN_CANDIDATES] = { 5000, 3000, 1000 };
    if (candidate == 1 && graph->work.operation[0].direction == STK_CUDNN_BACKWARD_WEIGHTS)
        return refuse(error, STOKER_ENOTSUP, "this engine has no gradients of weights");
    struct stk_cudnn_plan *const plan = stk_calloc(1, sizeof(*plan));
    if (plan == NULL)
        return refuse(error, STOKER_ENOMEM, "no memory");
    plan->work = graph->work;
    plan->candidate = candidate;
    plan->work.workspace_bytes = workspace_bytes[candidate];
    if ((standin.failing.candidates >> candidate & 1) == 0)
        plan->work.workspace_bytes += standin.failing.more_bytes;
    standin.plans++;
    standin.rounded += candidate == 1;
    *out = plan;
    return STOKER_OK;
}

void stk_cudnn_plan_destroy(struct stk_cudnn_plan **plan)
{
    stk_free(*plan);
    *plan = NULL;
}

uint64_t stk_cudnn_plan_workspace_bytes(const struct stk_cudnn_plan *plan)
{
    return plan->work.workspace_bytes;
}

static uint64_t bytes_of(const struct stk_cudnn_tensor *t)
{
    return standin_cudnn_elements(t) * stoker_dtype_bytes(t->dtype);
}

/* Bind the operands. Returns the reason why they do not fit; NULL = they do. */
static const char *bind(struct standin_cudnn_work *work, const struct stk_cudnn_binding *bindings,
                        uint32_t count, const void *workspace)
{
    for (uint32_t i = 0; i < count; i++) {
        const stk_cudnn_ref ref = bindings[i].tensor;
        if (ref < 1 || ref > work->tensors || work->tensor[ref - 1].is_virtual ||
            work->data[ref - 1] != NULL)
            return "bound to nothing, or twice";
        if ((uintptr_t)bindings[i].data % 16 != 0)
            return "an operand that is not aligned to 16 bytes";
        work->data[ref - 1] =
            standin_cuda_view_range(bindings[i].data, bytes_of(&work->tensor[ref - 1]));
        if (work->data[ref - 1] == NULL)
            return "an operand that is not in device memory, or too short";
    }
    for (uint32_t i = 0; i < work->tensors; i++)
        if (!work->tensor[i].is_virtual && work->data[i] == NULL)
            return "an operand is not bound";
    work->workspace = standin_cuda_view_range(workspace, work->workspace_bytes);
    return work->workspace == NULL ? "too little workspace" : NULL;
}

static void run(const struct standin_cuda_kernel *kernel, void *argument)
{
    (void)kernel;
    standin_cudnn_work_run(argument);
}

static bool fails(const struct stk_cudnn_plan *plan)
{
    return (standin.failing.candidates >> plan->candidate & 1) != 0 &&
           (!standin.failing.fused_only || plan->work.operations > 1);
}

int stk_cudnn_plan_run(struct stk_cudnn_plan *plan, const struct stk_cudnn_binding *bindings,
                       uint32_t count, void *workspace, void *stream, stoker_error *error)
{
    static const struct standin_cuda_kernel kernel = { "cudnn", sizeof(struct standin_cudnn_work),
                                                       run };
    struct standin_cudnn_work work = plan->work;
    const char *const why = bind(&work, bindings, count, workspace);
    if (why != NULL)
        return refuse(error, STOKER_EDEVICE, why);
    standin.runs++;
    if (fails(plan) && !standin.failing.loses_device)
        return refuse(error, STOKER_EDEVICE, "CUDNN_STATUS_EXECUTION_FAILED");
    if (fails(plan)) /* noticed at the call after the launch */
        standin_cuda_fail(2, cudaErrorIllegalAddress, true);
    if (!standin_cuda_queue(&kernel, &work, stream))
        return refuse(error, STOKER_EDEVICE, "CUDNN_STATUS_EXECUTION_FAILED");
    return STOKER_OK;
}
