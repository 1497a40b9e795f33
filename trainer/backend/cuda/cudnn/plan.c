/* plan.c - the engines that support a graph; one of them built and run. */
#include "trainer/backend/cuda/cudnn/operations.h"

#include <assert.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

struct stk_cudnn_plan {
    struct stk_cudnn *cudnn;
    cudnnBackendDescriptor_t plan;
    uint64_t workspace_bytes;
};

static cudnnStatus_t close_graph(struct stk_cudnn_graph *graph)
{
    struct stk_cudnn_writer w =
        stk_cudnn_begin(graph->cudnn, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    const void *const operations = graph->operation;
    stk_cudnn_set(&w, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  graph->operations, operations);
    const cudnnHandle_t *const handle = &graph->cudnn->handle;
    if (*handle != NULL)
        stk_cudnn_set(&w, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, handle);
    return stk_cudnn_end(&w, &graph->operation_graph);
}

static cudnnStatus_t ask(struct stk_cudnn_graph *graph, cudnnBackendHeurMode_t mode)
{
    stk_cudnn_drop(graph->cudnn, &graph->heuristics);
    struct stk_cudnn_writer w = stk_cudnn_begin(graph->cudnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    stk_cudnn_set_descriptor(&w, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph->operation_graph);
    stk_cudnn_set(&w, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (graph->cudnn->device != NULL)
        stk_cudnn_set_descriptor(&w, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, graph->cudnn->device);
    return stk_cudnn_end(&w, &graph->heuristics);
}

/* cuDNN fills descriptors that are created in advance; destroy those it does not use. */
static cudnnStatus_t list(struct stk_cudnn_graph *graph)
{
    const struct stk_cudnn *const cudnn = graph->cudnn;
    cudnnBackendDescriptor_t *const free_slots = graph->candidate + graph->candidates;
    const uint32_t room = STK_CUDNN_CANDIDATES_MAX - graph->candidates;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    uint32_t made = 0;
    for (; made < room && status == CUDNN_STATUS_SUCCESS; made++)
        status = cudnn->call.cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                                          &free_slots[made]);
    int64_t found = 0;
    void *const results = free_slots;
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn->call.cudnnBackendGetAttribute(
            graph->heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, room,
            &found, results);
    const uint32_t kept =
        status != CUDNN_STATUS_SUCCESS ? 0 : (found > room ? room : (uint32_t)found);
    for (uint32_t i = kept; i < made; i++)
        stk_cudnn_drop(cudnn, &free_slots[i]);
    graph->candidates += kept;
    return status;
}

/* Mode A has the best guesses. After its engines come those of the fallback list, which support
 * more graphs: for a few, only that list has a deterministic engine in full float32. */
static cudnnStatus_t find_candidates(struct stk_cudnn_graph *graph)
{
    static const cudnnBackendHeurMode_t modes[] = { CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK };
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        status = ask(graph, modes[i]);
        if (status == CUDNN_STATUS_SUCCESS)
            status = list(graph);
    }
    return graph->candidates > 0 ? CUDNN_STATUS_SUCCESS : status;
}

int stk_cudnn_graph_close(struct stk_cudnn_graph *graph, stoker_error *error)
{
    assert(graph->operation_graph == NULL);
    if (graph->rc != STOKER_OK) {
        if (error != NULL)
            *error = graph->error;
        return graph->rc;
    }
    cudnnStatus_t status = close_graph(graph);
    if (status != CUDNN_STATUS_SUCCESS)
        return stk_cudnn_failed(graph->cudnn, status, "graph", error);
    status = find_candidates(graph);
    if (status != CUDNN_STATUS_SUCCESS)
        return stk_cudnn_failed(graph->cudnn, status, "engines for a graph", error);
    if (graph->candidates == 0)
        return stk_refuse_option(error, STOKER_ENOTSUP, "cuDNN: no engine for a graph");
    return STOKER_OK;
}

uint32_t stk_cudnn_graph_candidates(const struct stk_cudnn_graph *graph)
{
    return graph->candidates;
}

static void read_notes(const struct stk_cudnn *cudnn, cudnnBackendDescriptor_t engine,
                       struct stk_engine_notes *out)
{
    cudnnBackendNumericalNote_t numerical[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    cudnnBackendBehaviorNote_t behavior[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
    int64_t count = 0;
    (void)cudnn->call.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                               CUDNN_TYPE_NUMERICAL_NOTE,
                                               CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, numerical);
    for (int64_t i = 0; i < count; i++) {
        const cudnnBackendNumericalNote_t note = numerical[i];
        out->nondeterministic |= note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
        out->tensor_cores |= note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        out->reduced |= note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
                        note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
        out->transformed |=
            note == CUDNN_NUMERICAL_NOTE_WINOGRAD || note == CUDNN_NUMERICAL_NOTE_FFT;
    }
    count = 0;
    (void)cudnn->call.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                               CUDNN_TYPE_BEHAVIOR_NOTE,
                                               CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &count, behavior);
    for (int64_t i = 0; i < count; i++)
        out->compiled_when_built |= behavior[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
}

void stk_cudnn_graph_candidate(const struct stk_cudnn_graph *graph, uint32_t index,
                               struct stk_engine_notes *out)
{
    assert(index < graph->candidates);
    const struct stk_cudnn *const cudnn = graph->cudnn;
    cudnnBackendDescriptor_t engine = NULL;
    *out = (struct stk_engine_notes){ .engine = -1, .nondeterministic = false };
    if (cudnn->call.cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) !=
        CUDNN_STATUS_SUCCESS)
        return;
    int64_t count = 0;
    void *const result = &engine;
    if (cudnn->call.cudnnBackendGetAttribute(graph->candidate[index], CUDNN_ATTR_ENGINECFG_ENGINE,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                             result) == CUDNN_STATUS_SUCCESS) {
        (void)cudnn->call.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                                                   CUDNN_TYPE_INT64, 1, &count, &out->engine);
        read_notes(cudnn, engine, out);
    }
    stk_cudnn_drop(cudnn, &engine);
}

static cudnnStatus_t build(struct stk_cudnn_plan *plan, const struct stk_cudnn_graph *graph,
                           uint32_t candidate)
{
    struct stk_cudnn_writer w =
        stk_cudnn_begin(plan->cudnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    const cudnnHandle_t *const handle = &plan->cudnn->handle;
    if (*handle != NULL)
        stk_cudnn_set(&w, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, handle);
    stk_cudnn_set_descriptor(&w, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                             graph->candidate[candidate]);
    cudnnStatus_t status = stk_cudnn_end(&w, &plan->plan);
    int64_t bytes = 0;
    int64_t count = 0;
    if (status == CUDNN_STATUS_SUCCESS)
        status = plan->cudnn->call.cudnnBackendGetAttribute(
            plan->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
            &bytes);
    plan->workspace_bytes = bytes < 0 ? 0 : (uint64_t)bytes;
    return status;
}

int stk_cudnn_plan_create(struct stk_cudnn_plan **out, struct stk_cudnn_graph *graph,
                          uint32_t candidate, stoker_error *error)
{
    assert(candidate < graph->candidates);
    struct stk_cudnn_plan *plan = stk_calloc(1, sizeof(*plan));
    if (plan == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "cuDNN: a plan");
    plan->cudnn = graph->cudnn;
    const cudnnStatus_t status = build(plan, graph, candidate);
    if (status != CUDNN_STATUS_SUCCESS) {
        const int rc = stk_cudnn_failed(plan->cudnn, status, "plan", error);
        stk_cudnn_plan_destroy(&plan);
        return rc;
    }
    *out = plan;
    return STOKER_OK;
}

void stk_cudnn_plan_destroy(struct stk_cudnn_plan **plan)
{
    if (*plan == NULL)
        return;
    stk_cudnn_drop((*plan)->cudnn, &(*plan)->plan);
    stk_free(*plan);
    *plan = NULL;
}

uint64_t stk_cudnn_plan_workspace_bytes(const struct stk_cudnn_plan *plan)
{
    return plan->workspace_bytes;
}

int stk_cudnn_plan_run(struct stk_cudnn_plan *plan, const struct stk_cudnn_binding *bindings,
                       uint32_t count, void *workspace, void *stream, stoker_error *error)
{
    assert(count <= STK_CUDNN_TENSORS_MAX);
    const struct stk_cudnn *const cudnn = plan->cudnn;
    if (cudnn->handle == NULL)
        return stk_refuse_option(error, STOKER_EDEVICE,
                                 "cuDNN: a plan for a device description cannot run");
    int64_t numbers[STK_CUDNN_TENSORS_MAX];
    void *places[STK_CUDNN_TENSORS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = bindings[i].tensor;
        places[i] = bindings[i].data;
    }
    cudnnBackendDescriptor_t pack = NULL;
    struct stk_cudnn_writer w = stk_cudnn_begin(cudnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    stk_cudnn_set(&w, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, numbers);
    const void *const pointers = places;
    stk_cudnn_set(&w, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers);
    const void *const scratch = &workspace;
    stk_cudnn_set(&w, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, scratch);
    cudnnStatus_t status = stk_cudnn_end(&w, &pack);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn->call.cudnnSetStream(cudnn->handle, (cudaStream_t)stream);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnn->call.cudnnBackendExecute(cudnn->handle, plan->plan, pack);
    stk_cudnn_drop(cudnn, &pack);
    return status == CUDNN_STATUS_SUCCESS ? STOKER_OK
                                          : stk_cudnn_failed(cudnn, status, "run", error);
}
