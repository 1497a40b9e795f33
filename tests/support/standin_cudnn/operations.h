/* operations.h - the inside of a graph, filled by graph.c and run by run.c. */
#ifndef STK_TESTS_STANDIN_CUDNN_OPERATIONS_H
#define STK_TESTS_STANDIN_CUDNN_OPERATIONS_H

#include "trainer/backend/cuda/cudnn/graph.h"

enum standin_cudnn_kind { STANDIN_CONVOLUTION, STANDIN_ADD, STANDIN_RELU };

struct standin_cudnn_operation {
    enum standin_cudnn_kind kind;
    stk_cudnn_ref a, b, out; /* convolution: x, w, y */
    enum stk_cudnn_direction direction;
    struct stk_cudnn_window window;
};

/* One tensor while a graph runs. */
struct standin_cudnn_array {
    const struct stk_cudnn_tensor *t;
    void *data;
};

/* Read an element, and write one rounded to the tensor's type. */
float standin_cudnn_load(const struct standin_cudnn_array *a, int64_t i);
void standin_cudnn_store(const struct standin_cudnn_array *a, int64_t i, double value);

/* A whole graph; each launch gets a copy. */
struct standin_cudnn_work {
    struct stk_cudnn_tensor tensor[STK_CUDNN_TENSORS_MAX];
    struct standin_cudnn_operation operation[STK_CUDNN_OPERATIONS_MAX];
    uint32_t tensors, operations;
    void *data[STK_CUDNN_TENSORS_MAX]; /* host addresses; NULL = virtual */
    void *workspace;
    uint64_t workspace_bytes;
};

static inline uint64_t standin_cudnn_elements(const struct stk_cudnn_tensor *t)
{
    return (uint64_t)(t->n * t->h * t->w * t->c);
}

struct standin_cudnn_array standin_cudnn_array_of(const struct standin_cudnn_work *work,
                                                  stk_cudnn_ref ref);

/* Run the graph. */
void standin_cudnn_work_run(struct standin_cudnn_work *work);

#endif
