/* test_capture.c - the stand-in records streams as CUDA does, and forbids what CUDA forbids.
 *
 * Method: two small kernels on device memory, x += n and x *= n, whose order shows in the
 * result. */
#include <cuda_runtime_api.h>
#include <pthread.h>

#include "support/leaks.h"
#include "support/standin_cuda/standin_cuda.h"

struct change {
    int64_t *x;
    int64_t n;
};

static void add(const struct standin_cuda_kernel *kernel, void *argument)
{
    (void)kernel;
    const struct change *change = argument;
    *(int64_t *)standin_cuda_view(change->x) += change->n;
}

static void multiply(const struct standin_cuda_kernel *kernel, void *argument)
{
    (void)kernel;
    const struct change *change = argument;
    *(int64_t *)standin_cuda_view(change->x) *= change->n;
}

static const struct standin_cuda_kernel kernels[] = {
    { "add", sizeof(struct change), add },
    { "multiply", sizeof(struct change), multiply },
    { NULL, 0, NULL },
};

/* Two streams, an event for each way between them, two numbers of the device and two of the
 * host. */
struct scene {
    cudaStream_t a, b;
    cudaEvent_t fork, join;
    int64_t *x, *y;
    int64_t *host;
};

static void scene_make(struct scene *s)
{
    standin_cuda_reset(1);
    standin_cuda_kernels(kernels);
    cr_assert_eq(cudaStreamCreateWithFlags(&s->a, cudaStreamNonBlocking), cudaSuccess);
    cr_assert_eq(cudaStreamCreateWithFlags(&s->b, cudaStreamNonBlocking), cudaSuccess);
    cr_assert_eq(cudaEventCreateWithFlags(&s->fork, cudaEventDisableTiming), cudaSuccess);
    cr_assert_eq(cudaEventCreateWithFlags(&s->join, cudaEventDisableTiming), cudaSuccess);
    cr_assert_eq(cudaMalloc((void **)&s->x, 2 * sizeof(*s->x)), cudaSuccess);
    s->y = s->x + 1;
    cr_assert_eq(cudaHostAlloc((void **)&s->host, 2 * sizeof(*s->host), cudaHostAllocDefault),
                 cudaSuccess);
    cr_assert_eq(cudaMemset(s->x, 0, 2 * sizeof(*s->x)), cudaSuccess);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
}

static void scene_end(struct scene *s)
{
    cr_assert_eq(cudaStreamDestroy(s->a), cudaSuccess);
    cr_assert_eq(cudaStreamDestroy(s->b), cudaSuccess);
    cr_assert_eq(cudaEventDestroy(s->fork), cudaSuccess);
    cr_assert_eq(cudaEventDestroy(s->join), cudaSuccess);
    cr_assert_eq(cudaFree(s->x), cudaSuccess);
    cr_assert_eq(cudaFreeHost(s->host), cudaSuccess);
    standin_cuda_reset(1);
    cr_assert_eq(standin_cuda_live(), 0);
    cr_assert_eq(standin_cuda_violations(), 0);
    stk_test_check_leaks();
}

static cudaError_t launch(const struct standin_cuda_kernel *kernel, int64_t *x, int64_t n,
                          cudaStream_t stream)
{
    struct change change = { x, n };
    void *arguments[] = { &change };
    const dim3 one = { 1, 1, 1 };
    return cudaLaunchKernel(kernel, one, one, arguments, 0, stream);
}

static int64_t read_back(const struct scene *s, const int64_t *x)
{
    int64_t value = -1;
    cr_assert_eq(cudaMemcpy(&value, x, sizeof(value), cudaMemcpyDeviceToHost), cudaSuccess);
    (void)s;
    return value;
}

static cudaGraphExec_t made_executable(cudaGraph_t graph)
{
    cudaGraphExec_t exec = NULL;
    cr_assert_eq(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    cr_assert_eq(cudaGraphDestroy(graph), cudaSuccess);
    return exec;
}

Test(cuda_capture, a_captured_step_runs_when_launched_and_not_before)
{
    struct scene s;
    scene_make(&s);
    cudaGraph_t graph = NULL;
    cr_assert_eq(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    cr_assert_eq(cudaMemsetAsync(s.y, 0, sizeof(*s.y), s.a), cudaSuccess);
    cr_assert_eq(cudaMemcpyAsync(s.x, &s.host[0], sizeof(*s.x), cudaMemcpyHostToDevice, s.a),
                 cudaSuccess);
    cr_assert_eq(launch(&kernels[0], s.x, 2, s.a), cudaSuccess);
    cr_assert_eq(launch(&kernels[1], s.x, 10, s.a), cudaSuccess);
    cr_assert_eq(cudaMemcpyAsync(&s.host[1], s.x, sizeof(*s.x), cudaMemcpyDeviceToHost, s.a),
                 cudaSuccess);
    cr_assert_eq(cudaStreamEndCapture(s.a, &graph), cudaSuccess);
    cr_assert_eq(standin_cuda_launches(), 0);
    cr_assert_eq(read_back(&s, s.x), 0);

    cudaGraphExec_t exec = made_executable(graph);
    for (int64_t i = 1; i <= 3; i++) {
        s.host[0] = i; /* read when the graph runs, not when it was captured */
        cr_assert_eq(cudaGraphLaunch(exec, s.b), cudaSuccess);
        cr_assert_eq(cudaStreamSynchronize(s.b), cudaSuccess);
        cr_assert_eq(s.host[1], (i + 2) * 10);
    }
    char nodes[64];
    cr_assert_eq(standin_cuda_last_graph(nodes, sizeof(nodes)), 5, "%s", nodes);
    cr_assert_eq(standin_cuda_launches(), 6);
    cr_assert_eq(standin_cuda_graph_launches(), 3);
    cr_assert_eq(cudaGraphExecDestroy(exec), cudaSuccess);
    scene_end(&s);
}

/* x = (0 + 3) * 7, y = 5 on the other stream, then x += 1 after both. */
static cudaError_t capture_two(const struct scene *s, bool wait_back, cudaGraph_t *graph)
{
    cr_assert_eq(cudaStreamBeginCapture(s->a, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    cr_assert_eq(launch(&kernels[0], s->x, 3, s->a), cudaSuccess);
    cr_assert_eq(cudaEventRecord(s->fork, s->a), cudaSuccess);
    cr_assert_eq(cudaStreamWaitEvent(s->b, s->fork, 0), cudaSuccess);
    cr_assert_eq(launch(&kernels[0], s->y, 5, s->b), cudaSuccess);
    cr_assert_eq(launch(&kernels[1], s->x, 7, s->b), cudaSuccess);
    cr_assert_eq(cudaEventRecord(s->join, s->b), cudaSuccess);
    if (wait_back)
        cr_assert_eq(cudaStreamWaitEvent(s->a, s->join, 0), cudaSuccess);
    cr_assert_eq(launch(&kernels[0], s->x, 1, s->a), cudaSuccess);
    return cudaStreamEndCapture(s->a, graph);
}

Test(cuda_capture, events_carry_a_capture_to_another_stream_and_back)
{
    struct scene s;
    scene_make(&s);
    cudaGraph_t graph = NULL;
    cr_assert_eq(capture_two(&s, true, &graph), cudaSuccess);
    cudaGraphExec_t exec = made_executable(graph);
    for (int i = 1; i <= 20; i++) {
        cr_assert_eq(cudaMemset(s.x, 0, sizeof(*s.x)), cudaSuccess);
        cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
        cr_assert_eq(cudaGraphLaunch(exec, s.a), cudaSuccess);
        cr_assert_eq(cudaStreamSynchronize(s.a), cudaSuccess);
        cr_assert_eq(read_back(&s, s.x), 22);
        cr_assert_eq(read_back(&s, s.y), 5 * i);
    }
    /* Both streams run again what they are given. */
    cr_assert_eq(launch(&kernels[0], s.x, 100, s.b), cudaSuccess);
    cr_assert_eq(cudaStreamSynchronize(s.b), cudaSuccess);
    cr_assert_eq(read_back(&s, s.x), 122);
    cr_assert_eq(cudaGraphExecDestroy(exec), cudaSuccess);
    scene_end(&s);
}

Test(cuda_capture, a_stream_that_does_not_come_back_is_an_error)
{
    struct scene s;
    scene_make(&s);
    cudaGraph_t graph = NULL;
    cr_assert_eq(capture_two(&s, false, &graph), cudaErrorStreamCaptureUnjoined);
    cr_assert_null(graph);
    cr_assert_eq(launch(&kernels[0], s.x, 4, s.b), cudaSuccess);
    cr_assert_eq(cudaStreamSynchronize(s.b), cudaSuccess);
    cr_assert_eq(read_back(&s, s.x), 4);
    scene_end(&s);
}

/* ---- what is forbidden meanwhile ---- */

static cudaError_t allocates(struct scene *s)
{
    (void)s;
    void *memory = NULL;
    const cudaError_t code = cudaMalloc(&memory, 64);
    if (code == cudaSuccess)
        (void)cudaFree(memory);
    return code;
}

static cudaError_t waits_for_stream(struct scene *s)
{
    return cudaStreamSynchronize(s->a);
}

static cudaError_t waits_for_other_stream(struct scene *s)
{
    return cudaStreamSynchronize(s->b);
}

static cudaError_t waits_for_device(struct scene *s)
{
    (void)s;
    return cudaDeviceSynchronize();
}

static cudaError_t asks_stream(struct scene *s)
{
    return cudaStreamQuery(s->a);
}

static cudaError_t asks_event(struct scene *s)
{
    return cudaEventQuery(s->join); /* that was recorded outside */
}

static cudaError_t copies_and_waits(struct scene *s)
{
    return cudaMemcpy(s->host, s->x, sizeof(*s->x), cudaMemcpyDeviceToHost);
}

static cudaError_t copies_pageable(struct scene *s)
{
    int64_t value = 0;
    return cudaMemcpyAsync(s->x, &value, sizeof(value), cudaMemcpyHostToDevice, s->a);
}

static cudaError_t waits_for_outside(struct scene *s)
{
    return cudaStreamWaitEvent(s->a, s->join, 0);
}

static const struct forbidden {
    const char *what;
    cudaError_t (*call)(struct scene *s);
    cudaError_t code;
    bool relaxed_too;
} forbidden[] = {
    { "allocation", allocates, cudaErrorStreamCaptureUnsupported, false },
    { "the stream's end", waits_for_stream, cudaErrorStreamCaptureUnsupported, true },
    { "another stream's end", waits_for_other_stream, cudaErrorStreamCaptureUnsupported, false },
    { "the device's end", waits_for_device, cudaErrorStreamCaptureUnsupported, false },
    { "the stream's state", asks_stream, cudaErrorStreamCaptureUnsupported, true },
    { "an event's state", asks_event, cudaErrorStreamCaptureUnsupported, false },
    { "a copy with a wait", copies_and_waits, cudaErrorStreamCaptureUnsupported, false },
    { "pageable memory", copies_pageable, cudaErrorStreamCaptureUnsupported, true },
    { "an event outside", waits_for_outside, cudaErrorStreamCaptureIsolation, true },
};

enum { FORBIDDEN = sizeof(forbidden) / sizeof(forbidden[0]) };

static void try_forbidden(const struct forbidden *f, enum cudaStreamCaptureMode mode, bool fails)
{
    struct scene s;
    scene_make(&s);
    cudaGraph_t graph = NULL;
    cr_assert_eq(cudaEventRecord(s.join, s.b), cudaSuccess);
    cr_assert_eq(cudaEventSynchronize(s.join), cudaSuccess);
    cr_assert_eq(cudaStreamBeginCapture(s.a, mode), cudaSuccess);
    cr_assert_eq(f->call(&s), fails ? f->code : cudaSuccess, "%s", f->what);
    enum cudaStreamCaptureStatus status;
    cr_assert_eq(cudaStreamIsCapturing(s.a, &status), cudaSuccess);
    cr_assert_eq(status, fails ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive,
                 "%s", f->what);
    cr_assert_eq(launch(&kernels[0], s.x, 1, s.a),
                 fails ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    cr_assert_eq(cudaStreamEndCapture(s.a, &graph),
                 fails ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    cr_assert_eq(graph == NULL, fails);
    if (graph != NULL)
        cr_assert_eq(cudaGraphDestroy(graph), cudaSuccess);
    scene_end(&s);
}

Test(cuda_capture, what_cuda_forbids_fails_and_ends_the_capture)
{
    for (int i = 0; i < FORBIDDEN; i++) {
        try_forbidden(&forbidden[i], cudaStreamCaptureModeGlobal, true);
        try_forbidden(&forbidden[i], cudaStreamCaptureModeThreadLocal, true);
        try_forbidden(&forbidden[i], cudaStreamCaptureModeRelaxed, forbidden[i].relaxed_too);
    }
}

struct other_thread {
    pthread_t thread;
    cudaError_t code;
};

static void *allocate_elsewhere(void *argument)
{
    ((struct other_thread *)argument)->code = allocates(NULL);
    return NULL;
}

/* Another thread's allocation ends a global capture, and leaves one of this thread alone. */
static void try_elsewhere(enum cudaStreamCaptureMode mode, bool fails)
{
    struct scene s;
    scene_make(&s);
    struct other_thread other;
    cudaGraph_t graph = NULL;
    cr_assert_eq(cudaStreamBeginCapture(s.a, mode), cudaSuccess);
    cr_assert_eq(pthread_create(&other.thread, NULL, allocate_elsewhere, &other), 0);
    cr_assert_eq(pthread_join(other.thread, NULL), 0);
    cr_assert_eq(other.code, fails ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
    cr_assert_eq(cudaStreamEndCapture(s.a, &graph),
                 fails ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
    if (graph != NULL)
        cr_assert_eq(cudaGraphDestroy(graph), cudaSuccess);
    scene_end(&s);
}

Test(cuda_capture, a_capture_of_one_thread_allows_what_others_do)
{
    try_elsewhere(cudaStreamCaptureModeGlobal, true);
    try_elsewhere(cudaStreamCaptureModeThreadLocal, false);
}

Test(cuda_capture, an_event_of_a_capture_says_nothing_outside)
{
    struct scene s;
    scene_make(&s);
    cudaGraph_t graph = NULL;
    cr_assert_eq(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeRelaxed), cudaSuccess);
    cr_assert_eq(launch(&kernels[0], s.x, 1, s.a), cudaSuccess);
    cr_assert_eq(cudaEventRecord(s.fork, s.a), cudaSuccess);
    cr_assert_eq(cudaEventQuery(s.fork), cudaErrorCapturedEvent);
    cr_assert_eq(cudaEventSynchronize(s.fork), cudaErrorCapturedEvent);
    cr_assert_eq(cudaStreamEndCapture(s.a, &graph), cudaSuccess);
    cr_assert_eq(cudaStreamWaitEvent(s.b, s.fork, 0), cudaErrorCapturedEvent);
    cr_assert_eq(cudaEventRecord(s.fork, s.a), cudaSuccess); /* and now it is one outside */
    cr_assert_eq(cudaEventSynchronize(s.fork), cudaSuccess);
    cr_assert_eq(cudaGraphDestroy(graph), cudaSuccess);
    scene_end(&s);
}

Test(cuda_capture, a_capture_begins_and_ends_on_its_own_stream)
{
    struct scene s;
    scene_make(&s);
    cudaGraph_t graph = NULL;
    cr_assert_eq(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal),
                 cudaErrorStreamCaptureUnsupported);
    cr_assert_eq(cudaStreamEndCapture(s.a, &graph), cudaErrorIllegalState);
    cr_assert_eq(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeGlobal), cudaSuccess);
    cr_assert_eq(cudaStreamBeginCapture(s.a, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
    cr_assert_eq(cudaEventRecord(s.fork, s.a), cudaSuccess);
    cr_assert_eq(cudaStreamWaitEvent(s.b, s.fork, 0), cudaSuccess);
    cr_assert_eq(cudaStreamEndCapture(s.b, &graph), cudaErrorStreamCaptureUnmatched);
    cr_assert_eq(cudaStreamEndCapture(s.a, &graph), cudaSuccess);
    cr_assert_eq(cudaGraphDestroy(graph), cudaSuccess);
    scene_end(&s);
}

/* Every call of a capture and a launch fails once. */
static cudaError_t capture_and_launch(const struct scene *s)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaError_t code = cudaStreamBeginCapture(s->a, cudaStreamCaptureModeThreadLocal);
    if (code != cudaSuccess)
        return code;
    code = launch(&kernels[0], s->x, 1, s->a);
    const cudaError_t ended = cudaStreamEndCapture(s->a, &graph);
    if (code == cudaSuccess)
        code = ended;
    if (code == cudaSuccess)
        code = cudaGraphInstantiate(&exec, graph, 0);
    if (graph != NULL && cudaGraphDestroy(graph) != cudaSuccess)
        code = cudaErrorUnknown;
    if (code == cudaSuccess)
        code = cudaGraphLaunch(exec, s->a);
    if (exec != NULL && cudaGraphExecDestroy(exec) != cudaSuccess)
        code = cudaErrorUnknown;
    return code;
}

Test(cuda_capture, each_call_may_fail)
{
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        struct scene s;
        scene_make(&s);
        standin_cuda_fail(nth, cudaErrorUnknown, false);
        const cudaError_t code = capture_and_launch(&s);
        failed = standin_cuda_failed();
        cr_assert_eq(code != cudaSuccess, failed);
        standin_cuda_fail(1000, cudaErrorUnknown, false);
        scene_end(&s);
        cr_assert_lt(nth, 20);
    }
}

/* ---- counts ---- */

Test(cuda_capture, what_holds_up_the_host_is_counted)
{
    struct scene s;
    scene_make(&s);
    int64_t value;
    const struct standin_cuda_host before = standin_cuda_host();
    cr_assert_eq(cudaMemsetAsync(s.x, 0, sizeof(*s.x), s.a), cudaSuccess);
    cr_assert_eq(launch(&kernels[0], s.x, 1, s.a), cudaSuccess);
    cr_assert_eq(cudaEventRecord(s.fork, s.a), cudaSuccess);
    cr_assert_eq(cudaStreamWaitEvent(s.b, s.fork, 0), cudaSuccess);
    cr_assert_eq(cudaMemcpyAsync(s.host, s.x, sizeof(*s.x), cudaMemcpyDeviceToHost, s.b),
                 cudaSuccess);
    struct standin_cuda_host now = standin_cuda_host();
    cr_assert_eq(memcmp(&now, &before, sizeof(now)), 0); /* none of that waits */

    cr_assert_eq(cudaEventSynchronize(s.fork), cudaSuccess);
    cr_assert_eq(cudaStreamSynchronize(s.b), cudaSuccess);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
    cr_assert_eq(cudaMemcpyAsync(&value, s.x, sizeof(value), cudaMemcpyDeviceToHost, s.a),
                 cudaSuccess); /* to pageable memory */
    cr_assert_eq(allocates(NULL), cudaSuccess);
    standin_cuda_own_calls(true);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
    standin_cuda_own_calls(false);
    now = standin_cuda_host();
    cr_assert_eq(now.waits - before.waits, 3);
    cr_assert_eq(now.copies - before.copies, 1);
    cr_assert_eq(now.allocations - before.allocations, 2); /* and what gives it back */
    scene_end(&s);
}

CleanTest(cuda_capture, memory_is_limited_and_reported)
{
    size_t free_bytes, total_bytes;
    void *memory = NULL;
    void *more = NULL;
    standin_cuda_reset(2);
    standin_cuda_memory(1 << 20);
    cr_assert_eq(cudaMalloc(&memory, 3 << 18), cudaSuccess);
    cr_assert_eq(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    cr_assert_eq(free_bytes, 1 << 18);
    cr_assert_eq(total_bytes, 1 << 20);
    cr_assert_eq(cudaMalloc(&more, (1 << 18) + 1), cudaErrorMemoryAllocation);
    cr_assert_eq(cudaSetDevice(1), cudaSuccess);
    cr_assert_eq(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    cr_assert_eq(free_bytes, 1 << 20);
    struct cudaDeviceProp properties;
    cr_assert_eq(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
    cr_assert_str_eq(properties.name, "Stand-in GPU 1");
    cr_assert_eq(properties.totalGlobalMem, 1 << 20);
    cr_assert_eq(cudaGetDeviceProperties(&properties, 2), cudaErrorInvalidDevice);
    cr_assert_eq(cudaFree(memory), cudaSuccess);
    standin_cuda_reset(1);
}
