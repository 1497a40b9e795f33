/* state.h - state shared by the files of the stand-in: counts, lies, operations. */
#ifndef STK_TESTS_STANDIN_CUDA_STATE_H
#define STK_TESTS_STANDIN_CUDA_STATE_H

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "standin_cuda.h"

enum { STANDIN_DEVICES_MAX = 8 };

struct standin_state {
    _Atomic int devices;
    _Atomic int no_driver;
    _Atomic int driver; /* version */
    _Atomic uint64_t calls;
    _Atomic uint64_t fail_at; /* value of `calls` that fails; 0 = none */
    _Atomic int fail_code;
    _Atomic bool fail_loses;
    _Atomic bool failed;
    _Atomic int lost; /* the error of every call from now on; 0 = none */
    _Atomic uint32_t delay_us;
    _Atomic enum standin_cuda_lie lie;
    _Atomic bool no_capture;
    _Atomic bool reads_pageable;
    _Atomic uint64_t late_copies;
    _Atomic uint64_t staged;
    _Atomic uint64_t violations;
    _Atomic uint64_t strays;
    _Atomic uint64_t launches;
    _Atomic int launch_priority;
    _Atomic uint64_t graph_launches;
    _Atomic uint64_t copies;
    _Atomic uint64_t memory_bytes; /* per device */
    _Atomic int capability;        /* 10 x major + minor */
    _Atomic int64_t live;
    _Atomic bool initialized[STANDIN_DEVICES_MAX]; /* per device */
    _Atomic bool peers;                            /* devices can access each other */
    _Atomic bool accesses[STANDIN_DEVICES_MAX][STANDIN_DEVICES_MAX]; /* [from][to]: enabled */
    _Atomic uint64_t direct, through_host;                           /* copies between devices */
    _Atomic bool no_contexts;                  /* the driver's functions are not found */
    const struct standin_cuda_kernel *kernels; /* set by the test while nothing runs */
};
extern struct standin_state standin;

/* ---- calls.c: start and end of every call ---- */

/* Count the call; return its error if it is to fail. The current device is initialized, but for
 * `light`. */
cudaError_t standin_begin(void);
cudaError_t standin_begin_light(void);
/* Begin and end a query, such as cudaEventQuery. Consecutive queries count as one call, so a test
 * that makes every call fail once need not go through hundreds of polls. */
cudaError_t standin_begin_look(void);
cudaError_t standin_end_look(bool done);
/* Returns true if the calls of this thread are the test's own. */
bool standin_own_calls(void);
/* Store the code for cudaGetLastError(), and return it. */
cudaError_t standin_end(cudaError_t code);

#define STANDIN_BEGIN       STANDIN_TRY(standin_begin())
#define STANDIN_BEGIN_LIGHT STANDIN_TRY(standin_begin_light())
/* A call ends with the first error. */
#define STANDIN_TRY(code)                                                                          \
    do {                                                                                           \
        const cudaError_t refused = (code);                                                        \
        if (refused != cudaSuccess)                                                                \
            return standin_end(refused);                                                           \
    } while (0)

/* The counts of the calling thread. */
struct standin_cuda_host *standin_host(void);

/* ---- context.c ---- */

/* The calling thread's current device. */
int standin_current(void);
void standin_set_current(int device);
/* Returns true if this thread has a context, pushed or made by an earlier call. */
bool standin_has_context(void);
/* A call initializes the device, unless it is the test's own. */
void standin_initialize(int device);

/* ---- kernels.c ---- */

struct standin_function {
    const char *name;
    void (*address)(void);
};

/* Functions of the driver about kernels; the list ends with a NULL name. */
extern const struct standin_function standin_kernel_functions[];

/* ---- memory.c ---- */

cudaError_t standin_memory_alloc(void **out, size_t bytes);
uint64_t standin_memory_used(int device);
cudaError_t standin_memory_free(void *memory);
int standin_memory_device(const void *memory); /* its device; -1: host memory */
cudaError_t standin_pin(void *base, size_t bytes);
cudaError_t standin_unpin(void *base);
bool standin_on_device(const void *memory, size_t bytes, bool *inside); /* *inside: all of it is */

/* Add `change` copies to the users of the page-locked range that contains it. False: it is not
 * page-locked. */
bool standin_pin_use(const void *memory, size_t bytes, int change);

/* The range whose accessible mapping contains the address. Returns false if there is none. */
bool standin_view_range(const void *address, void **view, size_t *bytes);

/* ---- source.c ---- */

struct standin_operation;

/* Runs a launch from the kernel's source. */
/* The launch that runs in this thread. */
extern _Thread_local const struct standin_operation *standin_launch;
void standin_source_run(const struct standin_operation *operation);

/* ---- stream.c ---- */

enum standin_kind {
    STANDIN_COPY,
    STANDIN_FILL,
    STANDIN_MARK,
    STANDIN_WAIT,
    STANDIN_CALL,
    STANDIN_LAUNCH,
    STANDIN_GRAPH
};

struct standin_mark;
struct standin_lane;
struct standin_fork;

struct standin_operation {
    enum standin_kind kind;
    struct standin_operation *next;
    void *to; /* copy: accessible addresses */
    const void *from;
    size_t bytes;
    int value;          /* fill: value of each byte */
    void *staged;       /* copy: memory to free, NULL = none */
    const void *pinned; /* copy: the page-locked range in use, NULL = none */
    struct CUevent_st *event;
    struct standin_mark *mark;
    cudaHostFn_t call;
    void *argument;
    const struct standin_cuda_kernel *kernel;
    unsigned grid_x, grid_y, threads; /* launch */
    cudaGraphExec_t graph;
};

/* Run it; it keeps what it owns. */
void standin_operation_run(const struct standin_operation *operation);
/* Release what it owns. */
void standin_operation_end(const struct standin_operation *operation);
/* Sometimes wait for a random time. */
void standin_dawdle(uint64_t *random);

int standin_stream_priority(cudaStream_t stream);
int standin_stream_device(cudaStream_t stream);
/* Append a copy of the operation. NULL = the default stream of the current device. Returns the
 * number of operations so far. */
uint64_t standin_stream_put(cudaStream_t stream, const struct standin_operation *operation);
/* The capture that records its operations; NULL = it runs them. Guarded by capture.c's lock. */
struct standin_lane **standin_stream_lane(cudaStream_t stream);
/* Returns true if this thread has waited, by an event, for all that is on the stream. */
bool standin_stream_awaited(cudaStream_t stream);
void standin_stream_wait_idle(cudaStream_t stream);
void standin_streams_end(void); /* the default streams */
void standin_lose(int code);    /* lose the GPU: later copies access no memory */

/* Its fork in a capture; NULL = not recorded in one. Guarded by capture.c's lock. */
struct standin_fork **standin_event_fork(cudaEvent_t event);

/* ---- capture.c ---- */

/* Record the operation if the stream is capturing, else append it. On failure the operation is
 * released. */
cudaError_t standin_enqueue(cudaStream_t stream, const struct standin_operation *operation);
/* Returns true if it is capturing. */
bool standin_capturing(cudaStream_t stream);
/* For a call that may block, or wait for the whole device: fails and ends the capture if a capture
 * forbids it. */
cudaError_t standin_unsafe(void);
/* For a call that is not allowed on a capturing stream: the same. */
cudaError_t standin_unsafe_on(cudaStream_t stream);
/* Both return true if the capture handled the call; then *code is its result. */
bool standin_capture_mark(cudaEvent_t event, cudaStream_t stream, cudaError_t *code);
bool standin_capture_wait(cudaEvent_t event, cudaStream_t stream, cudaError_t *code);
/* cudaErrorCapturedEvent if the event was recorded in a capture. */
cudaError_t standin_captured_event(cudaEvent_t event);
void standin_capture_forget_event(cudaEvent_t event);
void standin_capture_forget_stream(cudaStream_t stream);

/* ---- graph.c ---- */

/* Add a node for an operation; `after`: nodes that come before it. Takes over what the operation
 * owns. */
cudaGraph_t standin_graph_create(void);
uint32_t standin_graph_add(cudaGraph_t graph, uint32_t lane,
                           const struct standin_operation *operation, const uint32_t *after,
                           uint32_t after_count);
uint32_t standin_graph_nodes(cudaGraph_t graph);
/* Set reached[] for the node and all that come before it. */
void standin_graph_reach(cudaGraph_t graph, uint32_t node, bool *reached);
void standin_graph_drop(cudaGraph_t graph);
/* Runs on the thread of the stream that it was launched on. */
void standin_graph_run(cudaGraphExec_t exec);
void standin_graph_forget(void); /* what was launched last */
void standin_graph_end(cudaGraphExec_t exec);

#endif
