/* capture.c - streams that record their operations instead of running them.
 *
 *   begin ──▶ CAPTURING ──end──▶ a graph
 *                 │
 *                 └─ a call that capturing forbids ──▶ INVALID ──end──▶ an error, no graph
 *
 * The tail of a stream is a set of nodes: its next operation comes after all of them. A recorded
 * event has a copy of the tail, a fork; a stream that waits for it adds those nodes to its own
 * tail, and is captured, too. At the end, all forks must have joined the stream that started.
 *
 * cudaStreamWaitEvent and cudaEventRecord with the `External` flags are not supported.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

/* Nodes of a graph, each once. */
struct set {
    uint32_t *nodes;
    uint32_t count;
};

struct capture {
    struct capture *next;
    uint64_t number;
    cudaStream_t origin;
    pthread_t thread;
    enum cudaStreamCaptureMode mode;
    bool invalid;
    cudaGraph_t graph;
    struct standin_lane *lanes;
    uint32_t lane_count; /* lanes so far */
};

/* The state of a stream in a capture. */
struct standin_lane {
    struct standin_lane *next;
    struct capture *capture;
    cudaStream_t stream;
    uint32_t index;
    struct set tail;
};

/* The state of an event in a capture. */
struct standin_fork {
    uint64_t capture; /* number of the capture */
    struct set tail;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture *captures; /* guarded by lock, like all that it refers to */
static uint64_t numbers;

static _Thread_local enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

/* ---- sets ---- */

static void set_add(struct set *set, uint32_t node)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (set->nodes[i] == node)
            return;
    set->nodes = realloc(set->nodes, (set->count + 1) * sizeof(*set->nodes));
    if (set->nodes == NULL)
        abort();
    set->nodes[set->count++] = node;
}

static void set_add_all(struct set *set, const struct set *more)
{
    for (uint32_t i = 0; i < more->count; i++)
        set_add(set, more->nodes[i]);
}

static void set_clear(struct set *set)
{
    free(set->nodes);
    *set = (struct set){ 0 };
}

/* ---- captures, under the lock ---- */

static struct capture *numbered(uint64_t number)
{
    struct capture *capture = captures;
    while (capture != NULL && capture->number != number)
        capture = capture->next;
    return capture;
}

static struct standin_lane *join(struct capture *capture, cudaStream_t stream)
{
    struct standin_lane *lane = calloc(1, sizeof(*lane));
    if (lane == NULL)
        abort();
    *lane = (struct standin_lane){
        .next = capture->lanes, .capture = capture, .stream = stream, .index = capture->lane_count++
    };
    capture->lanes = lane;
    *standin_stream_lane(stream) = lane;
    return lane;
}

/* Its streams run operations again. The caller owns the graph. */
static void end_capture(struct capture *capture)
{
    while (capture->lanes != NULL) {
        struct standin_lane *lane = capture->lanes;
        capture->lanes = lane->next;
        *standin_stream_lane(lane->stream) = NULL;
        set_clear(&lane->tail);
        free(lane);
    }
    struct capture **link = &captures;
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    free(capture);
}

/* Returns true if every stream's work is ordered before the next work of the first one. */
static bool all_joined(const struct capture *capture)
{
    const uint32_t nodes = standin_graph_nodes(capture->graph);
    bool *reached = calloc(nodes > 0 ? nodes : 1, sizeof(*reached));
    if (reached == NULL)
        abort();
    const struct standin_lane *origin = *standin_stream_lane(capture->origin);
    for (uint32_t i = 0; i < origin->tail.count; i++)
        standin_graph_reach(capture->graph, origin->tail.nodes[i], reached);
    bool joined = true;
    for (const struct standin_lane *lane = capture->lanes; lane != NULL; lane = lane->next)
        for (uint32_t i = 0; i < lane->tail.count; i++)
            joined = joined && reached[lane->tail.nodes[i]];
    free(reached);
    return joined;
}

/* Returns true if the capture forbids this thread calls that may block. */
static bool forbids(const struct capture *capture)
{
    const bool own = pthread_equal(capture->thread, pthread_self()) != 0;
    if (thread_mode == cudaStreamCaptureModeRelaxed)
        return false;
    if (own)
        return capture->mode != cudaStreamCaptureModeRelaxed;
    return thread_mode == cudaStreamCaptureModeGlobal &&
           capture->mode == cudaStreamCaptureModeGlobal;
}

/* ---- for other calls ---- */

bool standin_capturing(cudaStream_t stream)
{
    struct standin_lane **lane = standin_stream_lane(stream);
    pthread_mutex_lock(&lock);
    const bool capturing = *lane != NULL;
    pthread_mutex_unlock(&lock);
    return capturing;
}

/* Record the operation. Under the lock. */
static cudaError_t record(struct standin_lane *lane, const struct standin_operation *operation)
{
    if (operation->pinned != NULL)
        (void)standin_pin_use(operation->pinned, 1, -1); /* in use only after a launch */
    if (lane->capture->invalid) {
        standin_operation_end(operation);
        return cudaErrorStreamCaptureInvalidated;
    }
    const uint32_t node = standin_graph_add(lane->capture->graph, lane->index, operation,
                                            lane->tail.nodes, lane->tail.count);
    set_clear(&lane->tail);
    set_add(&lane->tail, node);
    return cudaSuccess;
}

cudaError_t standin_enqueue(cudaStream_t stream, const struct standin_operation *operation)
{
    struct standin_lane **lane = standin_stream_lane(stream);
    cudaError_t code = cudaSuccess;
    pthread_mutex_lock(&lock);
    const bool capturing = *lane != NULL;
    if (capturing)
        code = record(*lane, operation);
    pthread_mutex_unlock(&lock);
    if (!capturing)
        standin_stream_put(stream, operation);
    return code;
}

cudaError_t standin_unsafe(void)
{
    cudaError_t code = cudaSuccess;
    pthread_mutex_lock(&lock);
    for (struct capture *capture = captures; capture != NULL; capture = capture->next)
        if (forbids(capture)) {
            capture->invalid = true;
            code = cudaErrorStreamCaptureUnsupported;
        }
    pthread_mutex_unlock(&lock);
    return code;
}

cudaError_t standin_unsafe_on(cudaStream_t stream)
{
    struct standin_lane **lane = standin_stream_lane(stream);
    pthread_mutex_lock(&lock);
    const bool capturing = *lane != NULL;
    if (capturing)
        (*lane)->capture->invalid = true;
    pthread_mutex_unlock(&lock);
    return capturing ? cudaErrorStreamCaptureUnsupported : standin_unsafe();
}

/* Under the lock. */
static void forget_fork(cudaEvent_t event)
{
    struct standin_fork **fork = standin_event_fork(event);
    if (*fork != NULL)
        set_clear(&(*fork)->tail);
    free(*fork);
    *fork = NULL;
}

bool standin_capture_mark(cudaEvent_t event, cudaStream_t stream, cudaError_t *code)
{
    struct standin_lane **lane = standin_stream_lane(stream);
    pthread_mutex_lock(&lock);
    const bool capturing = *lane != NULL;
    forget_fork(event);
    if (capturing && (*lane)->capture->invalid) {
        *code = cudaErrorStreamCaptureInvalidated;
    } else if (capturing) {
        struct standin_fork *fork = calloc(1, sizeof(*fork));
        if (fork == NULL)
            abort();
        fork->capture = (*lane)->capture->number;
        set_add_all(&fork->tail, &(*lane)->tail);
        *standin_event_fork(event) = fork;
    }
    pthread_mutex_unlock(&lock);
    return capturing;
}

/* Under the lock. */
static cudaError_t wait_for_fork(struct standin_lane **lane, cudaStream_t stream,
                                 const struct standin_fork *fork)
{
    struct capture *capture = fork == NULL ? NULL : numbered(fork->capture);
    if (*lane == NULL && capture == NULL)
        return cudaErrorCapturedEvent; /* its capture has ended */
    if (*lane != NULL && (*lane)->capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    if (*lane != NULL && capture != (*lane)->capture) {
        (*lane)->capture->invalid = true;
        if (capture == NULL)
            return cudaErrorStreamCaptureIsolation; /* a graph cannot wait for work outside */
        capture->invalid = true;
        return cudaErrorStreamCaptureMerge;
    }
    if (stream == NULL) {
        capture->invalid = true;
        return cudaErrorStreamCaptureImplicit;
    }
    set_add_all(*lane == NULL ? &join(capture, stream)->tail : &(*lane)->tail, &fork->tail);
    return cudaSuccess;
}

bool standin_capture_wait(cudaEvent_t event, cudaStream_t stream, cudaError_t *code)
{
    struct standin_lane **lane = standin_stream_lane(stream);
    pthread_mutex_lock(&lock);
    const struct standin_fork *fork = *standin_event_fork(event);
    const bool concerned = *lane != NULL || fork != NULL;
    if (concerned)
        *code = wait_for_fork(lane, stream, fork);
    pthread_mutex_unlock(&lock);
    return concerned;
}

cudaError_t standin_captured_event(cudaEvent_t event)
{
    pthread_mutex_lock(&lock);
    const bool captured = *standin_event_fork(event) != NULL;
    pthread_mutex_unlock(&lock);
    return captured ? cudaErrorCapturedEvent : cudaSuccess;
}

void standin_capture_forget_event(cudaEvent_t event)
{
    pthread_mutex_lock(&lock);
    forget_fork(event);
    pthread_mutex_unlock(&lock);
}

/* A capture that loses a stream is over. */
void standin_capture_forget_stream(cudaStream_t stream)
{
    struct standin_lane **lane = standin_stream_lane(stream);
    pthread_mutex_lock(&lock);
    if (*lane != NULL) {
        standin_graph_drop((*lane)->capture->graph);
        end_capture((*lane)->capture);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- calls ---- */

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    STANDIN_BEGIN;
    const enum cudaStreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return standin_end(cudaSuccess);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    STANDIN_BEGIN;
    if (stream == NULL || atomic_load(&standin.no_capture))
        return standin_end(cudaErrorStreamCaptureUnsupported);
    if (standin_capturing(stream))
        return standin_end(cudaErrorIllegalState);
    struct capture *capture = calloc(1, sizeof(*capture));
    if (capture == NULL)
        abort();
    *capture = (struct capture){
        .origin = stream, .thread = pthread_self(), .mode = mode, .graph = standin_graph_create()
    };
    pthread_mutex_lock(&lock);
    capture->number = ++numbers;
    capture->next = captures;
    captures = capture;
    (void)join(capture, stream);
    pthread_mutex_unlock(&lock);
    return standin_end(cudaSuccess);
}

/* The result of ending a capture from this stream. Under the lock. */
static cudaError_t check_end(const struct standin_lane *lane, cudaStream_t stream)
{
    if (lane == NULL)
        return cudaErrorIllegalState;
    const struct capture *capture = lane->capture;
    if (capture->origin != stream)
        return cudaErrorStreamCaptureUnmatched;
    if (capture->mode != cudaStreamCaptureModeRelaxed &&
        pthread_equal(capture->thread, pthread_self()) == 0)
        return cudaErrorStreamCaptureWrongThread;
    if (capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    return all_joined(capture) ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    const cudaError_t refused = standin_begin();
    struct standin_lane **lane = standin_stream_lane(stream);
    pthread_mutex_lock(&lock);
    cudaError_t code = check_end(*lane, stream);
    const bool over = code == cudaSuccess || code == cudaErrorStreamCaptureInvalidated ||
                      code == cudaErrorStreamCaptureUnjoined;
    if (code == cudaSuccess)
        code = refused;
    *out = NULL;
    if (over) {
        struct capture *capture = (*lane)->capture;
        if (code == cudaSuccess)
            *out = capture->graph;
        else
            standin_graph_drop(capture->graph);
        end_capture(capture);
    }
    pthread_mutex_unlock(&lock);
    return standin_end(code);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    STANDIN_BEGIN;
    struct standin_lane **lane = standin_stream_lane(stream);
    pthread_mutex_lock(&lock);
    *status = *lane == NULL               ? cudaStreamCaptureStatusNone
              : (*lane)->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                          : cudaStreamCaptureStatusActive;
    pthread_mutex_unlock(&lock);
    return standin_end(cudaSuccess);
}
