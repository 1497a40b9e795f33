/* graph.c - a captured graph, and its launch.
 *
 *   lane 0  a ──▶ b ──────▶ e        A lane has the operations of one stream, in order; an arrow
 *                 └─▶ c ─▶ d ┘       between lanes is an event. A launch gives each lane a thread, so
 *   lane 1                           that a missing arrow is a race, as it is on a GPU.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

struct node {
    struct standin_operation operation;
    uint32_t lane;
    uint32_t *after;
    uint32_t after_count;
};

struct CUgraph_st {
    struct node *nodes; /* in topological order */
    uint32_t count;
    uint32_t lanes;
    _Atomic int holders; /* the program, and each executable one made of it */
};

struct CUgraphExec_st {
    cudaGraph_t graph;
    _Atomic int holders; /* the program, and each launch */
    pthread_mutex_t running;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool *done; /* [node], guarded by lock */
};

static void *grown(void *memory, size_t bytes)
{
    memory = realloc(memory, bytes > 0 ? bytes : 1);
    if (memory == NULL)
        abort();
    return memory;
}

/* ---- graphs ---- */

/* Set once, before any capture. */
static void (*count_call)(cudaHostFn_t function, void *argument, int by);

void standin_cuda_count_captured(void (*count)(cudaHostFn_t function, void *argument, int by))
{
    count_call = count;
}

static void count_captured(const struct standin_operation *operation, int by)
{
    if (operation->kind == STANDIN_CALL && count_call != NULL)
        count_call(operation->call, operation->argument, by);
}

cudaGraph_t standin_graph_create(void)
{
    cudaGraph_t graph = calloc(1, sizeof(*graph));
    if (graph == NULL)
        abort();
    atomic_store(&graph->holders, 1);
    atomic_fetch_add(&standin.live, 1);
    return graph;
}

uint32_t standin_graph_add(cudaGraph_t graph, uint32_t lane,
                           const struct standin_operation *operation, const uint32_t *after,
                           uint32_t after_count)
{
    graph->nodes = grown(graph->nodes, (graph->count + 1) * sizeof(*graph->nodes));
    struct node *node = &graph->nodes[graph->count];
    *node = (struct node){ .operation = *operation, .lane = lane, .after_count = after_count };
    node->after = grown(NULL, after_count * sizeof(*after));
    if (after_count > 0)
        memcpy(node->after, after, after_count * sizeof(*after));
    count_captured(operation, 1);
    if (lane >= graph->lanes)
        graph->lanes = lane + 1;
    return graph->count++;
}

uint32_t standin_graph_nodes(cudaGraph_t graph)
{
    return graph->count;
}

void standin_graph_reach(cudaGraph_t graph, uint32_t node, bool *reached)
{
    reached[node] = true;
    for (uint32_t n = node + 1; n-- > 0;)
        for (uint32_t i = 0; reached[n] && i < graph->nodes[n].after_count; i++)
            reached[graph->nodes[n].after[i]] = true;
}

void standin_graph_drop(cudaGraph_t graph)
{
    if (atomic_fetch_sub(&graph->holders, 1) > 1)
        return;
    for (uint32_t n = 0; n < graph->count; n++) {
        count_captured(&graph->nodes[n].operation, -1);
        standin_operation_end(&graph->nodes[n].operation);
        free(graph->nodes[n].after);
    }
    free(graph->nodes);
    free(graph);
    atomic_fetch_sub(&standin.live, 1);
}

/* ---- a launch ---- */

struct lane_run {
    cudaGraphExec_t exec;
    uint32_t lane;
    uint64_t random;
};

static void wait_for(cudaGraphExec_t exec, const struct node *node)
{
    pthread_mutex_lock(&exec->lock);
    for (uint32_t i = 0; i < node->after_count; i++)
        while (!exec->done[node->after[i]])
            pthread_cond_wait(&exec->moved, &exec->lock);
    pthread_mutex_unlock(&exec->lock);
}

static void tell_done(cudaGraphExec_t exec, uint32_t n)
{
    pthread_mutex_lock(&exec->lock);
    exec->done[n] = true;
    pthread_cond_broadcast(&exec->moved);
    pthread_mutex_unlock(&exec->lock);
}

static void *run_lane(void *argument)
{
    struct lane_run *run = argument;
    const cudaGraph_t graph = run->exec->graph;
    for (uint32_t n = 0; n < graph->count; n++) {
        const struct node *node = &graph->nodes[n];
        if (node->lane != run->lane)
            continue;
        wait_for(run->exec, node);
        standin_dawdle(&run->random);
        standin_operation_run(&node->operation);
        tell_done(run->exec, n);
    }
    return NULL;
}

void standin_graph_run(cudaGraphExec_t exec)
{
    const cudaGraph_t graph = exec->graph;
    struct lane_run *runs = grown(NULL, graph->lanes * sizeof(*runs));
    pthread_t *threads = grown(NULL, graph->lanes * sizeof(*threads));
    pthread_mutex_lock(&exec->running); /* one launch at a time */
    memset(exec->done, 0, graph->count * sizeof(*exec->done));
    for (uint32_t lane = 0; lane < graph->lanes; lane++)
        runs[lane] = (struct lane_run){ exec, lane, (uint64_t)(uintptr_t)&runs[lane] + lane };
    for (uint32_t lane = 1; lane < graph->lanes; lane++)
        if (pthread_create(&threads[lane], NULL, run_lane, &runs[lane]) != 0)
            abort();
    if (graph->lanes > 0)
        (void)run_lane(&runs[0]);
    for (uint32_t lane = 1; lane < graph->lanes; lane++)
        pthread_join(threads[lane], NULL);
    pthread_mutex_unlock(&exec->running);
    free(threads);
    free(runs);
}

void standin_graph_end(cudaGraphExec_t exec)
{
    if (atomic_fetch_sub(&exec->holders, 1) > 1)
        return;
    standin_graph_drop(exec->graph);
    pthread_mutex_destroy(&exec->running);
    pthread_mutex_destroy(&exec->lock);
    pthread_cond_destroy(&exec->moved);
    free(exec->done);
    free(exec);
    atomic_fetch_sub(&standin.live, 1);
}

/* Page-locked memory is in use from the launch on; count the operations. */
static void begin_nodes(cudaGraph_t graph)
{
    for (uint32_t n = 0; n < graph->count; n++) {
        const struct standin_operation *operation = &graph->nodes[n].operation;
        if (operation->kind == STANDIN_LAUNCH)
            atomic_fetch_add(&standin.launches, 1U);
        if (operation->pinned != NULL && !standin_pin_use(operation->pinned, operation->bytes, 1))
            atomic_fetch_add(&standin.violations, 1U); /* no longer page-locked */
    }
}

/* ---- what was launched last ---- */

enum { NAMES_MAX = 32, LAST_BYTES = 2048 };

static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;
static char last_text[LAST_BYTES]; /* guarded by last_lock, like the count */
static uint32_t last_nodes;

static const char *name_of(const struct standin_operation *operation)
{
    switch (operation->kind) {
    case STANDIN_COPY:
        return "copy";
    case STANDIN_FILL:
        return "fill";
    case STANDIN_LAUNCH:
        return operation->kernel->name;
    default:
        return "call";
    }
}

static void describe(cudaGraph_t graph)
{
    const char *names[NAMES_MAX];
    uint32_t counts[NAMES_MAX] = { 0 };
    uint32_t found = 0;
    for (uint32_t n = 0; n < graph->count; n++) {
        const char *const name = name_of(&graph->nodes[n].operation);
        uint32_t i = 0;
        while (i < found && strcmp(names[i], name) != 0)
            i++;
        if (i == NAMES_MAX)
            abort();
        names[i] = name;
        counts[i]++;
        found = i == found ? found + 1 : found;
    }
    pthread_mutex_lock(&last_lock);
    last_nodes = graph->count;
    last_text[0] = 0;
    for (uint32_t i = 0; i < found; i++) {
        const size_t used = strlen(last_text);
        (void)snprintf(last_text + used, sizeof(last_text) - used, "%s%s %u", i == 0 ? "" : ", ",
                       names[i], (unsigned)counts[i]);
    }
    pthread_mutex_unlock(&last_lock);
}

uint32_t standin_cuda_last_graph(char *text, size_t bytes)
{
    pthread_mutex_lock(&last_lock);
    const uint32_t nodes = last_nodes;
    (void)snprintf(text, bytes, "%s", last_text);
    pthread_mutex_unlock(&last_lock);
    return nodes;
}

void standin_graph_forget(void)
{
    pthread_mutex_lock(&last_lock);
    last_nodes = 0;
    last_text[0] = 0;
    pthread_mutex_unlock(&last_lock);
}

/* ---- calls ---- */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    (void)flags;
    STANDIN_BEGIN;
    standin_host()->allocations++;
    STANDIN_TRY(standin_unsafe());
    cudaGraphExec_t exec = calloc(1, sizeof(*exec));
    if (exec == NULL)
        abort();
    exec->graph = graph;
    atomic_fetch_add(&graph->holders, 1);
    atomic_store(&exec->holders, 1);
    pthread_mutex_init(&exec->running, NULL);
    pthread_mutex_init(&exec->lock, NULL);
    pthread_cond_init(&exec->moved, NULL);
    exec->done = grown(NULL, graph->count * sizeof(*exec->done));
    atomic_fetch_add(&standin.live, 1);
    *out = exec;
    return standin_end(cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    STANDIN_BEGIN;
    STANDIN_TRY(standin_unsafe_on(stream));
    const struct standin_operation operation = { .kind = STANDIN_GRAPH, .graph = exec };
    atomic_fetch_add(&exec->holders, 1);
    begin_nodes(exec->graph);
    describe(exec->graph);
    atomic_fetch_add(&standin.graph_launches, 1U);
    standin_stream_put(stream, &operation);
    return standin_end(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    const cudaError_t refused = standin_begin();
    standin_graph_end(exec);
    return standin_end(refused);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    const cudaError_t refused = standin_begin();
    standin_graph_drop(graph);
    return standin_end(refused);
}
