/* graph.c - see graph.h. */
#include "trainer/plan/graph.h"

#include <assert.h>
#include <string.h>

#include "loader/base/memory/memory.h"

/* Returns true for layers whose output is their input, byte for byte. */
static bool moves_nothing(const struct stk_layer *layer, bool train)
{
    return layer->kind == STK_FLATTEN ||
           (layer->kind == STK_DROPOUT && (!train || layer->rate == 0.0F));
}

/* Its gradients are computed from its input. */
static bool needs_input(enum stk_layer_kind kind)
{
    return kind == STK_CONV2D || kind == STK_LINEAR || kind == STK_BATCH_NORM;
}

static bool takes_relu(enum stk_layer_kind kind)
{
    return needs_input(kind) || kind == STK_MAX_POOL;
}

/* source[i]: the layer that computes the output of layer i. readers[i]: readers of what layer i
 * computes. */
static void find_sources(const stoker_model *model, bool train, uint32_t *source, uint32_t *readers)
{
    for (uint32_t i = 1; i < model->layer_count; i++) {
        const struct stk_layer *layer = &model->layers[i];
        source[i] = moves_nothing(layer, train) ? source[layer->input] : i;
        if (source[i] != i)
            continue;
        readers[source[layer->input]]++;
        if (layer->kind == STK_ADD)
            readers[source[layer->other]]++;
    }
}

/* A ReLU that is the only reader of a convolution, linear layer, BatchNorm or maximum is fused with
 * it. */
static bool fuse(struct stk_graph *graph, const struct stk_layer *layer, uint32_t index,
                 uint32_t in, const uint32_t *readers)
{
    struct stk_node *node = &graph->nodes[in];
    if (layer->kind != STK_RELU || !takes_relu(node->kind) || node->relu ||
        readers[node->layer] != 1)
        return false;
    node->relu = true;
    node->out_layer = index;
    return true;
}

static void add_node(struct stk_graph *graph, const struct stk_layer *layer, uint32_t index,
                     uint32_t in, uint32_t other)
{
    graph->nodes[graph->count++] = (struct stk_node){ .kind = layer->kind,
                                                      .layer = index,
                                                      .out_layer = index,
                                                      .in = in,
                                                      .other = other,
                                                      .bytes = stoker_dtype_bytes(graph->storage) *
                                                               stk_shape_elements(layer->out) };
}

static void add_nodes(struct stk_graph *graph, const uint32_t *source, const uint32_t *readers,
                      uint32_t *node_of)
{
    const stoker_model *model = graph->model;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct stk_layer *layer = &model->layers[i];
        if (source[i] != i) {
            node_of[i] = node_of[layer->input];
            continue;
        }
        const uint32_t in = node_of[layer->input];
        const uint32_t other = layer->kind == STK_ADD ? node_of[layer->other] : in;
        if (!fuse(graph, layer, i, in, readers)) {
            node_of[i] = graph->count;
            add_node(graph, layer, i, in, other);
        } else {
            node_of[i] = in;
        }
    }
}

static void find_readers(struct stk_graph *graph, bool train)
{
    struct stk_node *nodes = graph->nodes;
    nodes[0].wants_gradient = train && nodes[0].kind == STK_CUT; /* needed by the stage before */
    for (uint32_t n = 1; n < graph->count; n++) {
        struct stk_node *node = &nodes[n];
        nodes[node->in].last_reader = n;
        nodes[node->other].last_reader = n;
        node->last_reader = n;
        const struct stk_layer *layer = &graph->model->layers[node->layer];
        node->wants_gradient = train && (layer->weight >= 0 || nodes[node->in].wants_gradient ||
                                         nodes[node->other].wants_gradient);
        if (!node->wants_gradient)
            continue;
        if (needs_input(node->kind))
            nodes[node->in].kept = true;
        if (node->kind == STK_RELU || (node->relu && node->kind != STK_BATCH_NORM))
            node->kept = true; /* its sign is the mask of the ReLU */
    }
}

int stk_graph_make(struct stk_graph *graph, const stoker_model *model, bool train,
                   stoker_dtype storage)
{
    assert(model->closed);
    memset(graph, 0, sizeof(*graph));
    graph->model = model;
    graph->storage = storage;
    uint32_t *scratch = stk_calloc(model->layer_count, 3 * sizeof(*scratch));
    graph->nodes = stk_calloc(model->layer_count, sizeof(*graph->nodes));
    if (scratch == NULL || graph->nodes == NULL) {
        stk_free(scratch);
        stk_graph_free(graph);
        return STOKER_ENOMEM;
    }
    uint32_t *source = scratch;
    uint32_t *readers = scratch + model->layer_count;
    find_sources(model, train, source, readers);
    add_nodes(graph, source, readers, readers + model->layer_count);
    find_readers(graph, train);
    stk_free(scratch);
    assert(graph->count >= 2);
    return STOKER_OK;
}

void stk_graph_free(struct stk_graph *graph)
{
    stk_free(graph->nodes);
    memset(graph, 0, sizeof(*graph));
}
