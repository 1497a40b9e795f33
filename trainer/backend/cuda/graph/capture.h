/* capture.h - a step captured once and launched as one CUDA graph. */
#ifndef STK_TRAINER_BACKEND_CUDA_GRAPH_CAPTURE_H
#define STK_TRAINER_BACKEND_CUDA_GRAPH_CAPTURE_H

#include "trainer/backend/cuda/device/device.h"

enum { STK_CUDA_GRAPHS = 16 };

/* Steps with equal keys share a graph. */
struct stk_cuda_graph_key {
    const void *activations;
    uint32_t count;              /* samples of the pass */
    bool first, last;            /* pass of its group */
    uint64_t samples;            /* samples of the group, in its last pass; else 0 */
    uint64_t first_sample, seed; /* keys of dropout; 0 without dropout */
    uint64_t shares;             /* how the samples are dealt to ranks */
    /* Samples and labels that are read where they are; NULL: they are copied first. */
    const void *read, *labeled;
};

struct stk_cuda_graph {
    struct stk_cuda_graph_key key;
    uint64_t used;        /* tick of the last use; 0 = empty */
    cudaGraphExec_t exec; /* NULL = not captured */
    bool refused;         /* capturing failed */
};

/* Zeroed = empty. */
struct stk_cuda_graphs {
    struct stk_cuda_graphs *next; /* in backend->graphs, while it is not empty */
    bool listed;
    struct stk_cuda_graph graph[STK_CUDA_GRAPHS];
    uint64_t tick;
};

/* Queues a step on the stream. */
typedef int stk_cuda_queue(void *context, stoker_error *error);

/* Queue a step, as its graph if there is one. The device must be current. */
int stk_cuda_graphs_run(struct stk_backend *backend, struct stk_cuda_graphs *graphs,
                        const struct stk_cuda_graph_key *key, stk_cuda_queue *queue, void *context,
                        stoker_error *error);
/* Destroy the graphs for `count` samples; 0 = all. */
void stk_cuda_graphs_drop(struct stk_backend *backend, struct stk_cuda_graphs *graphs,
                          uint32_t count);
/* Destroy the graphs of all programs, which may still run: the GPU frees them when they end. */
void stk_cuda_graphs_drop_all(struct stk_backend *backend);

#endif
