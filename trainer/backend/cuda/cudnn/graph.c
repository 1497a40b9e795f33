/* graph.c - tensors and operations as cuDNN's descriptors. */
#include "trainer/backend/cuda/cudnn/operations.h"

#include <assert.h>
#include <stdio.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

int stk_cudnn_graph_create(struct stk_cudnn_graph **out, struct stk_cudnn *cudnn,
                           stoker_error *error)
{
    struct stk_cudnn_graph *graph = stk_calloc(1, sizeof(*graph));
    if (graph == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "cuDNN: a graph");
    graph->cudnn = cudnn;
    *out = graph;
    return STOKER_OK;
}

void stk_cudnn_graph_destroy(struct stk_cudnn_graph **graph)
{
    struct stk_cudnn_graph *const g = *graph;
    if (g == NULL)
        return;
    for (uint32_t i = 0; i < g->candidates; i++)
        stk_cudnn_drop(g->cudnn, &g->candidate[i]);
    stk_cudnn_drop(g->cudnn, &g->heuristics);
    stk_cudnn_drop(g->cudnn, &g->operation_graph);
    for (uint32_t i = 0; i < g->operations; i++)
        stk_cudnn_drop(g->cudnn, &g->operation[i]);
    for (uint32_t i = 0; i < g->tensors; i++)
        stk_cudnn_drop(g->cudnn, &g->tensor[i]);
    stk_free(g);
    *graph = NULL;
}

/* Keep the first failure. */
static void keep_failure(struct stk_cudnn_graph *graph, cudnnStatus_t status, const char *what)
{
    if (status != CUDNN_STATUS_SUCCESS && graph->rc == STOKER_OK)
        graph->rc = stk_cudnn_failed(graph->cudnn, status, what, &graph->error);
}

static cudnnDataType_t data_type(stoker_dtype dtype)
{
    switch (dtype) {
    case STOKER_DTYPE_FLOAT16:
        return CUDNN_DATA_HALF;
    case STOKER_DTYPE_BFLOAT16:
        return CUDNN_DATA_BFLOAT16;
    default:
        assert(dtype == STOKER_DTYPE_FLOAT32);
        return CUDNN_DATA_FLOAT;
    }
}

stk_cudnn_ref stk_cudnn_graph_tensor(struct stk_cudnn_graph *graph,
                                     const struct stk_cudnn_tensor *t)
{
    assert(graph->tensors < STK_CUDNN_TENSORS_MAX);
    if (graph->rc != STOKER_OK)
        return 0;
    const int64_t number = graph->tensors + 1;
    const cudnnDataType_t type = data_type(t->dtype);
    const int64_t extents[4] = { t->n, t->c, t->h, t->w }; /* cuDNN's order, whatever the layout */
    const int64_t strides[4] = { t->h * t->w * t->c, 1, t->w * t->c, t->c };
    const int64_t alignment_bytes = 16;
    struct stk_cudnn_writer w = stk_cudnn_begin(graph->cudnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    stk_cudnn_set(&w, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number);
    stk_cudnn_set(&w, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    stk_cudnn_set(&w, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, extents);
    stk_cudnn_set(&w, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    stk_cudnn_set(&w, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment_bytes);
    stk_cudnn_set(&w, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &t->is_virtual);
    const cudnnStatus_t status = stk_cudnn_end(&w, &graph->tensor[graph->tensors]);
    keep_failure(graph, status, "tensor");
    if (status != CUDNN_STATUS_SUCCESS)
        return 0;
    graph->described[graph->tensors++] = *t;
    return (stk_cudnn_ref)number;
}

uint32_t stk_cudnn_graph_tensors(const struct stk_cudnn_graph *graph)
{
    return graph->tensors;
}

const struct stk_cudnn_tensor *stk_cudnn_graph_described(const struct stk_cudnn_graph *graph,
                                                         stk_cudnn_ref tensor)
{
    assert(tensor >= 1);
    assert(tensor <= graph->tensors);
    return &graph->described[tensor - 1];
}

static cudnnBackendDescriptor_t at(const struct stk_cudnn_graph *graph, stk_cudnn_ref ref)
{
    assert(ref >= 1);
    assert(ref <= graph->tensors);
    return graph->tensor[ref - 1];
}

/* Set one operand; 0 = the operation does not have it. */
static void operand(struct stk_cudnn_writer *writer, const struct stk_cudnn_graph *graph,
                    cudnnBackendAttributeName_t name, stk_cudnn_ref ref)
{
    if (ref != 0)
        stk_cudnn_set_descriptor(writer, name, at(graph, ref));
}

static void append(struct stk_cudnn_graph *graph, struct stk_cudnn_writer *writer, const char *what)
{
    assert(graph->operations < STK_CUDNN_OPERATIONS_MAX);
    const cudnnStatus_t status = stk_cudnn_end(writer, &graph->operation[graph->operations]);
    keep_failure(graph, status, what);
    if (status == CUDNN_STATUS_SUCCESS)
        graph->operations++;
}

static void compute_in_float32(struct stk_cudnn_writer *writer, cudnnBackendAttributeName_t name)
{
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    stk_cudnn_set(writer, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

/* Attribute names of the three directions. */
struct direction {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, window, alpha, beta;
    const char *name;
};

static const struct direction directions[] = {
    [STK_CUDNN_FORWARD] = { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, "convolution" },
    [STK_CUDNN_BACKWARD_DATA] = { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                  "convolution backward, data" },
    [STK_CUDNN_BACKWARD_WEIGHTS] = { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                                     "convolution backward, weights" },
};

static cudnnStatus_t window_descriptor(const struct stk_cudnn_graph *graph,
                                       const struct stk_cudnn_window *window,
                                       cudnnBackendDescriptor_t *out)
{
    const int64_t axes = 2;
    const int64_t dilations[2] = { 1, 1 };
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    struct stk_cudnn_writer w = stk_cudnn_begin(graph->cudnn, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    stk_cudnn_set(&w, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes);
    compute_in_float32(&w, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
    stk_cudnn_set(&w, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    stk_cudnn_set(&w, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, window->padding);
    stk_cudnn_set(&w, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, window->padding);
    stk_cudnn_set(&w, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations);
    stk_cudnn_set(&w, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, window->stride);
    return stk_cudnn_end(&w, out);
}

void stk_cudnn_graph_convolution(struct stk_cudnn_graph *graph, enum stk_cudnn_direction direction,
                                 const struct stk_cudnn_window *window, stk_cudnn_ref x,
                                 stk_cudnn_ref w, stk_cudnn_ref y)
{
    if (graph->rc != STOKER_OK)
        return;
    const struct direction *const d = &directions[direction];
    cudnnBackendDescriptor_t shape = NULL;
    keep_failure(graph, window_descriptor(graph, window, &shape), d->name);
    if (shape == NULL)
        return;
    const float one = 1;
    const float none = 0; /* old values do not count */
    struct stk_cudnn_writer writer = stk_cudnn_begin(graph->cudnn, d->type);
    operand(&writer, graph, d->x, x);
    operand(&writer, graph, d->w, w);
    operand(&writer, graph, d->y, y);
    stk_cudnn_set_descriptor(&writer, d->window, shape);
    stk_cudnn_set(&writer, d->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    stk_cudnn_set(&writer, d->beta, CUDNN_TYPE_FLOAT, 1, &none);
    append(graph, &writer, d->name);
    stk_cudnn_drop(graph->cudnn, &shape);
}

/* Operands of one elementwise operation; 0 = none. */
struct pointwise {
    stk_cudnn_ref x, b, y;
};

static void pointwise(struct stk_cudnn_graph *graph, cudnnPointwiseMode_t mode,
                      const struct pointwise *p, const char *what)
{
    if (graph->rc != STOKER_OK)
        return;
    cudnnBackendDescriptor_t kind = NULL;
    struct stk_cudnn_writer w = stk_cudnn_begin(graph->cudnn, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    stk_cudnn_set(&w, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    compute_in_float32(&w, CUDNN_ATTR_POINTWISE_MATH_PREC);
    keep_failure(graph, stk_cudnn_end(&w, &kind), what);
    if (kind == NULL)
        return;
    w = stk_cudnn_begin(graph->cudnn, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    stk_cudnn_set_descriptor(&w, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
    operand(&w, graph, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, p->x);
    operand(&w, graph, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, p->b);
    operand(&w, graph, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, p->y);
    append(graph, &w, what);
    stk_cudnn_drop(graph->cudnn, &kind);
}

void stk_cudnn_graph_add(struct stk_cudnn_graph *graph, stk_cudnn_ref a, stk_cudnn_ref b,
                         stk_cudnn_ref sum)
{
    pointwise(graph, CUDNN_POINTWISE_ADD, &(struct pointwise){ .x = a, .b = b, .y = sum }, "add");
}

void stk_cudnn_graph_relu(struct stk_cudnn_graph *graph, stk_cudnn_ref x, stk_cudnn_ref y)
{
    pointwise(graph, CUDNN_POINTWISE_RELU_FWD, &(struct pointwise){ .x = x, .y = y }, "ReLU");
}
