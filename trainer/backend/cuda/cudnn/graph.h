/* graph.h - cuDNN's graph API, as far as training convolutional networks needs it.
 *
 *   open ──▶ graph: tensors, operations ──▶ close ──▶ candidates (engine configurations, best
 *   a device                                          first, each with its notes)
 *                                                          │ plan
 *                                                          ▼
 *                                              workspace bytes, run on a stream
 *
 * The library is loaded at run time, so a program also runs without cuDNN. The device is the
 * current CUDA device, or a description of one: then plans can be built and examined on a machine
 * without a GPU; only run fails.
 *
 * Tensors are NHWC (filters: n = filters, h and w of the kernel, c = channels a group), aligned to
 * 16 bytes. Convolutions and everything after them are computed in float32. A tensor that only
 * passes between operations of its graph is virtual: it is never stored.
 *
 * Errors   STOKER_EDEVICE with cuDNN's message; STOKER_ENOTSUP if no engine supports a graph.
 *          While a graph is built its first error is kept, and close() returns it.
 * Threads  One thread at a time for one device. */
#ifndef STK_TRAINER_BACKEND_CUDA_CUDNN_GRAPH_H
#define STK_TRAINER_BACKEND_CUDA_CUDNN_GRAPH_H

#include "trainer/backend/cuda/engine/choice.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>
#include <stoker/tensor.h>

struct stk_cudnn;
struct stk_cudnn_graph;
struct stk_cudnn_plan;

struct stk_cudnn_options {
    const char *library; /* file or path to load; default NULL = $STOKER_CUDNN, else
                          * libcudnn_graph.so.9 (of CUDA 12 and of 13) */
    const char *device;  /* JSON text of a device description; default NULL = current CUDA device */
};

/* Load the library for one device. On success the caller owns *out. */
int stk_cudnn_open(struct stk_cudnn **out, const struct stk_cudnn_options *options,
                   stoker_error *error);
void stk_cudnn_close(struct stk_cudnn **cudnn); /* NULL-safe; destroy graphs and plans first */

/* 91900 = 9.19.0 */
uint64_t stk_cudnn_version(const struct stk_cudnn *cudnn);

/* ---- graphs ---------------------------------------------------------------------------------- */

enum { STK_CUDNN_TENSORS_MAX = 8, STK_CUDNN_OPERATIONS_MAX = 4 };

struct stk_cudnn_tensor {
    stoker_dtype dtype; /* FLOAT32, FLOAT16 or BFLOAT16 */
    int64_t n, h, w, c; /* >= 1 */
    bool is_virtual;    /* only passes between operations of the graph */
};

/* A tensor's number within its graph; 0 = none. */
typedef uint32_t stk_cudnn_ref;

int stk_cudnn_graph_create(struct stk_cudnn_graph **out, struct stk_cudnn *cudnn,
                           stoker_error *error);
void stk_cudnn_graph_destroy(struct stk_cudnn_graph **graph); /* NULL-safe; plans may outlive it */

stk_cudnn_ref stk_cudnn_graph_tensor(struct stk_cudnn_graph *graph,
                                     const struct stk_cudnn_tensor *tensor);
/* Tensors are numbered from 1 on. */
uint32_t stk_cudnn_graph_tensors(const struct stk_cudnn_graph *graph);
const struct stk_cudnn_tensor *stk_cudnn_graph_described(const struct stk_cudnn_graph *graph,
                                                         stk_cudnn_ref tensor);

enum stk_cudnn_direction {
    STK_CUDNN_FORWARD,         /* x, w -> y */
    STK_CUDNN_BACKWARD_DATA,   /* y, w -> x */
    STK_CUDNN_BACKWARD_WEIGHTS /* x, y -> w */
};

struct stk_cudnn_window {
    int64_t stride[2], padding[2]; /* height, width */
};

void stk_cudnn_graph_convolution(struct stk_cudnn_graph *graph, enum stk_cudnn_direction direction,
                                 const struct stk_cudnn_window *window, stk_cudnn_ref x,
                                 stk_cudnn_ref w, stk_cudnn_ref y);

void stk_cudnn_graph_add(struct stk_cudnn_graph *graph, stk_cudnn_ref a, stk_cudnn_ref b,
                         stk_cudnn_ref sum); /* b may have extents of 1 */
void stk_cudnn_graph_relu(struct stk_cudnn_graph *graph, stk_cudnn_ref x, stk_cudnn_ref y);

/* Finish the graph and ask for its engines. Returns the graph's first error, or STOKER_ENOTSUP. */
int stk_cudnn_graph_close(struct stk_cudnn_graph *graph, stoker_error *error);

/* ---- candidates and plans -------------------------------------------------------------------- */

enum { STK_CUDNN_CANDIDATES_MAX = 64 };

uint32_t stk_cudnn_graph_candidates(const struct stk_cudnn_graph *graph);
void stk_cudnn_graph_candidate(const struct stk_cudnn_graph *graph, uint32_t index,
                               struct stk_engine_notes *out);

/* Build the plan of a candidate. STOKER_ENOTSUP: the engine refuses; try the next. */
int stk_cudnn_plan_create(struct stk_cudnn_plan **out, struct stk_cudnn_graph *graph,
                          uint32_t candidate, stoker_error *error);
void stk_cudnn_plan_destroy(struct stk_cudnn_plan **plan); /* NULL-safe */
uint64_t stk_cudnn_plan_workspace_bytes(const struct stk_cudnn_plan *plan);

/* The address of one tensor in device memory. */
struct stk_cudnn_binding {
    stk_cudnn_ref tensor;
    void *data;
};

/* Enqueue on a stream (a cudaStream_t; NULL = the default one); allocates no device memory.
 * workspace: device memory of the plan's size, 16-byte aligned. */
int stk_cudnn_plan_run(struct stk_cudnn_plan *plan, const struct stk_cudnn_binding *bindings,
                       uint32_t count, void *workspace, void *stream, stoker_error *error);

#endif
