/* graph.h - a model as the plan sees it: what is computed, and what reads it.
 *
 *   conv1 -> relu1 -> pool -> flatten -> dropout -> fc -> loss          layers
 *   [conv1+relu1]  -> [pool]          -> [dropout] -> [fc] -> [loss]    nodes
 *
 * A node writes one value, which has the node's number. Node 0 is the samples; the last is the
 * loss, or the cut at the end of a stage. Flatten moves no data, nor does dropout in a forward
 * plan: they have no nodes.
 */
#ifndef STK_TRAINER_GRAPH_H
#define STK_TRAINER_GRAPH_H

#include "trainer/model/model.h"
#include <stoker/tensor.h>

struct stk_node {
    enum stk_layer_kind kind;
    uint32_t layer;       /* the layer that computes the value */
    uint32_t out_layer;   /* the layer whose output it is: `layer`, or the ReLU fused with it */
    uint32_t in, other;   /* nodes; other: STK_ADD only, else the same as in */
    uint32_t last_reader; /* the last node that reads it; this node if none does */
    uint64_t bytes;       /* per sample */
    bool relu;            /* a ReLU is fused with it */
    bool wants_gradient;  /* it depends on a parameter, or the stage before needs it */
    bool kept;            /* a backward operation reads it */
};

struct stk_graph {
    const stoker_model *model;
    stoker_dtype storage;
    struct stk_node *nodes;
    uint32_t count;
};

/* storage: the type of values. On success the caller calls stk_graph_free(). STOKER_ENOMEM. */
int stk_graph_make(struct stk_graph *graph, const stoker_model *model, bool train,
                   stoker_dtype storage);
void stk_graph_free(struct stk_graph *graph);

#endif
