/* capture.c - see capture.h.
 *
 *   first time    queued operation by operation: kernels are looked up, libraries warm up
 *   second time   captured as a graph, which is then launched
 *   from then on  launched
 *
 * The key of a graph is what it contains by value (sizes, addresses, counts); what changes from
 * step to step is in device memory. A step that reads the batch in a loader's buffer has a graph
 * for each buffer; once one of them has run, the others are captured at once. A step that cannot be
 * captured is always queued; the first reason is kept. The least recently used graph makes room, so
 * a group with more passes than STK_CUDA_GRAPHS is never captured.
 *
 * What several ranks sum must be captured by all or by none. Their keys are equal for the same
 * passes, so they reach the second time together; then they agree, and if one cannot capture the
 * step all queue it. */
#include <string.h>

#include "trainer/backend/cuda/graph/capture.h"
#include "trainer/backend/cuda/ranks/ranks.h"

static bool same_key(const struct stk_cuda_graph_key *a, const struct stk_cuda_graph_key *b)
{
    return a->activations == b->activations && a->count == b->count && a->first == b->first &&
           a->last == b->last && a->samples == b->samples && a->first_sample == b->first_sample &&
           a->seed == b->seed && a->shares == b->shares && a->read == b->read &&
           a->labeled == b->labeled;
}

/* True if such a step has run, perhaps on a batch elsewhere: kernels have been looked up, libraries
 * are warm. */
static bool has_run(const struct stk_cuda_graphs *graphs, const struct stk_cuda_graph_key *key)
{
    bool found = false;
    for (uint32_t i = 0; i < STK_CUDA_GRAPHS && !found; i++) {
        struct stk_cuda_graph_key other = graphs->graph[i].key;
        other.read = key->read;
        other.labeled = key->labeled;
        found = graphs->graph[i].used > 0 && same_key(&other, key);
    }
    return found;
}

static void drop(struct stk_backend *backend, struct stk_cuda_graph *graph)
{
    if (graph->exec != NULL)
        (void)stk_cuda_check(backend, backend->runtime.cudaGraphExecDestroy(graph->exec),
                             "cudaGraphExecDestroy", NULL);
    *graph = (struct stk_cuda_graph){ 0 };
}

/* The key's graph, or the least recently used one, emptied. */
static struct stk_cuda_graph *find(struct stk_backend *backend, struct stk_cuda_graphs *graphs,
                                   const struct stk_cuda_graph_key *key)
{
    struct stk_cuda_graph *oldest = &graphs->graph[0];
    for (uint32_t i = 0; i < STK_CUDA_GRAPHS; i++) {
        struct stk_cuda_graph *const graph = &graphs->graph[i];
        if (graph->used > 0 && same_key(&graph->key, key))
            return graph;
        if (graph->used < oldest->used)
            oldest = graph;
    }
    drop(backend, oldest);
    oldest->key = *key;
    return oldest;
}

static int end_capture(struct stk_backend *backend, struct stk_cuda_graph *graph,
                       stoker_error *error)
{
    const struct stk_cuda_runtime *const cuda = &backend->runtime;
    cudaGraph_t captured = NULL;
    int rc = stk_cuda_check(backend, cuda->cudaStreamEndCapture(backend->stream, &captured),
                            "cudaStreamEndCapture", error);
    if (rc == STOKER_OK)
        rc = stk_cuda_check(backend, cuda->cudaGraphInstantiate(&graph->exec, captured, 0),
                            "cudaGraphInstantiate", error);
    if (rc != STOKER_OK)
        graph->exec = NULL;
    if (captured != NULL)
        (void)stk_cuda_check(backend, cuda->cudaGraphDestroy(captured), "cudaGraphDestroy", NULL);
    return rc;
}

/* Only this thread's calls: a loader's threads continue meanwhile. */
static int capture(struct stk_backend *backend, struct stk_cuda_graph *graph, stk_cuda_queue *queue,
                   void *context, stoker_error *why)
{
    int rc = stk_cuda_check(
        backend,
        backend->runtime.cudaStreamBeginCapture(backend->stream, cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture", why);
    if (rc != STOKER_OK)
        return rc;
    if (backend->sums != NULL)
        backend->sums->capturing = true;
    const int queued = queue(context, why);
    if (backend->sums != NULL)
        backend->sums->capturing = false;
    rc = end_capture(backend, graph, queued == STOKER_OK ? why : NULL);
    if (queued != STOKER_OK)
        drop(backend, graph);
    return queued != STOKER_OK ? queued : rc;
}

/* *all: every rank has captured it. */
static int agree(const struct stk_backend *backend, bool own, bool *all, stoker_error *why,
                 stoker_error *error)
{
    *all = own;
    return backend->sums == NULL
               ? STOKER_OK
               : backend->sums->ops->agree_capture(backend->sums, own, all, why, error);
}

/* Capture it, or never try again. */
static int try_capture(struct stk_backend *backend, struct stk_cuda_graph *graph,
                       stk_cuda_queue *queue, void *context, stoker_error *error)
{
    struct stk_capture *const captured = &backend->captured;
    const struct stk_cuda_graph uncaptured = *graph;
    stoker_error why = { .message = "" };
    bool all = false;
    const bool own = capture(backend, graph, queue, context, &why) == STOKER_OK;
    const int rc = agree(backend, own, &all, &why, error);
    if (all && rc == STOKER_OK)
        return STOKER_OK;
    drop(backend, graph);
    *graph = uncaptured;
    graph->refused = true;
    if (captured->refused++ == 0)
        captured->reason = why;
    return rc;
}

int stk_cuda_graphs_run(struct stk_backend *backend, struct stk_cuda_graphs *graphs,
                        const struct stk_cuda_graph_key *key, stk_cuda_queue *queue, void *context,
                        stoker_error *error)
{
    if (!graphs->listed) {
        graphs->next = backend->graphs;
        backend->graphs = graphs;
        graphs->listed = true;
    }
    const bool seen = has_run(graphs, key);
    struct stk_cuda_graph *const graph = find(backend, graphs, key);
    graph->used = ++graphs->tick;
    if (seen && graph->exec == NULL && !graph->refused) {
        const int rc = try_capture(backend, graph, queue, context, error);
        if (rc != STOKER_OK)
            return rc;
    }
    if (graph->exec == NULL) {
        backend->captured.queued++;
        return queue(context, error);
    }
    backend->captured.launched++;
    return stk_cuda_check(backend, backend->runtime.cudaGraphLaunch(graph->exec, backend->stream),
                          "cudaGraphLaunch", error);
}

void stk_cuda_graphs_drop(struct stk_backend *backend, struct stk_cuda_graphs *graphs,
                          uint32_t count)
{
    if (backend->ranks != NULL)
        backend->ranks->dropped = true;
    for (uint32_t i = 0; i < STK_CUDA_GRAPHS; i++)
        if (count == 0 || graphs->graph[i].key.count == count)
            drop(backend, &graphs->graph[i]);
    struct stk_cuda_graphs **at = &backend->graphs;
    while (count == 0 && *at != NULL && *at != graphs)
        at = &(*at)->next;
    if (count == 0 && graphs->listed)
        *at = graphs->next;
    graphs->listed = graphs->listed && count > 0;
}

void stk_cuda_graphs_drop_all(struct stk_backend *backend)
{
    while (backend->graphs != NULL)
        stk_cuda_graphs_drop(backend, backend->graphs, 0);
}
