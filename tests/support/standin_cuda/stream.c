/* stream.c - streams that are threads, and events: the functions of the CUDA runtime about them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "state.h"

/* One recording of an event. Waiting for it is not affected by later recordings. */
struct standin_mark {
    bool done;
    struct timespec at; /* done */
    int holders;        /* references: the event while it is the latest, and each operation */
};

struct CUevent_st {
    int device;
    bool sleeps; /* the host, while it waits for it */
    /* Where it was recorded last: number of the stream, operations there by then. */
    uint64_t stream, at;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct standin_mark *latest; /* NULL = never recorded */
    int holders;                 /* references: the program, and each operation */
    struct standin_fork *fork;
};

struct CUstream_st {
    struct CUstream_st *next;
    int device;
    int priority;
    uint64_t number;
    uint64_t put; /* operations so far; guarded by lock */
    bool forgets;
    struct standin_lane *lane;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct standin_operation *first;
    struct standin_operation **end;
    bool busy;
    bool ending;
    uint64_t random;
};

/* What this thread last waited for by an event: `at` operations of the stream of that number. */
static _Thread_local uint64_t awaited_stream, awaited_at;

static pthread_mutex_t default_lock = PTHREAD_MUTEX_INITIALIZER;
static cudaStream_t default_streams[STANDIN_DEVICES_MAX]; /* guarded by default_lock */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static cudaStream_t all_streams; /* guarded by all_lock */

/* Locked by every copy and kernel while it runs. */
static pthread_rwlock_t working = PTHREAD_RWLOCK_INITIALIZER;

void standin_lose(int code)
{
    pthread_rwlock_wrlock(&working);
    atomic_store(&standin.lost, code);
    pthread_rwlock_unlock(&working);
}

static cudaStream_t resolve(cudaStream_t stream);

/* ---- events ---- */

/* Under the event's lock. */
static void drop_mark(struct standin_mark *mark)
{
    if (mark != NULL && --mark->holders == 0)
        free(mark);
}

static void drop(cudaEvent_t event, struct standin_mark *mark)
{
    pthread_mutex_lock(&event->lock);
    const bool last = --event->holders == 0;
    drop_mark(mark);
    if (last)
        drop_mark(event->latest);
    pthread_mutex_unlock(&event->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&event->lock);
    pthread_cond_destroy(&event->moved);
    free(event);
}

/* The operation's mark: a new one, or the latest. Adds references to event and mark. */
static struct standin_mark *hold(cudaEvent_t event, bool records)
{
    pthread_mutex_lock(&event->lock);
    event->holders++;
    if (records) {
        drop_mark(event->latest);
        event->latest = calloc(1, sizeof(*event->latest));
        if (event->latest == NULL)
            abort();
        event->latest->holders = 1;
    }
    struct standin_mark *mark = event->latest;
    if (mark != NULL)
        mark->holders++;
    pthread_mutex_unlock(&event->lock);
    return mark;
}

struct standin_fork **standin_event_fork(cudaEvent_t event)
{
    return &event->fork;
}

/* The time when its latest mark was reached. */
static cudaError_t done_at(cudaEvent_t event, struct timespec *at)
{
    pthread_mutex_lock(&event->lock);
    const struct standin_mark *mark = event->latest;
    const cudaError_t code = mark == NULL ? cudaErrorInvalidResourceHandle
                             : mark->done ? cudaSuccess
                                          : cudaErrorNotReady;
    if (code == cudaSuccess)
        *at = mark->at;
    pthread_mutex_unlock(&event->lock);
    return code;
}

static void wait_for_mark(cudaEvent_t event, const struct standin_mark *mark)
{
    pthread_mutex_lock(&event->lock);
    while (mark != NULL && !mark->done)
        pthread_cond_wait(&event->moved, &event->lock);
    pthread_mutex_unlock(&event->lock);
}

static void pass_mark(cudaEvent_t event, struct standin_mark *mark)
{
    pthread_mutex_lock(&event->lock);
    mark->done = true;
    (void)clock_gettime(CLOCK_MONOTONIC, &mark->at);
    pthread_cond_broadcast(&event->moved);
    pthread_mutex_unlock(&event->lock);
}

/* ---- streams ---- */

/* Operations on memory do nothing once the GPU is lost. */
static void touch(const struct standin_operation *operation)
{
    pthread_rwlock_rdlock(&working);
    if (atomic_load(&standin.lost) != 0)
        (void)0;
    else if (operation->kind == STANDIN_COPY)
        memcpy(operation->to, operation->from, operation->bytes);
    else if (operation->kind == STANDIN_LAUNCH) {
        standin_launch = operation;
        if (operation->kernel->run == NULL)
            standin_source_run(operation);
        else
            operation->kernel->run(operation->kernel, operation->argument);
    } else
        memset(operation->to, operation->value, operation->bytes);
    pthread_rwlock_unlock(&working);
}

void standin_operation_run(const struct standin_operation *operation)
{
    switch (operation->kind) {
    case STANDIN_COPY:
    case STANDIN_FILL:
        touch(operation);
        if (operation->pinned != NULL)
            (void)standin_pin_use(operation->pinned, 1, -1);
        break;
    case STANDIN_CALL:
        if (atomic_load(&standin.lost) == 0)
            operation->call(operation->argument);
        break;
    case STANDIN_LAUNCH:
        touch(operation);
        break;
    case STANDIN_MARK:
        pass_mark(operation->event, operation->mark);
        break;
    case STANDIN_WAIT:
        wait_for_mark(operation->event, operation->mark);
        break;
    case STANDIN_GRAPH:
        standin_graph_run(operation->graph);
        break;
    }
}

void standin_operation_end(const struct standin_operation *operation)
{
    free(operation->staged);
    if (operation->kind == STANDIN_LAUNCH)
        free(operation->argument);
    if (operation->kind == STANDIN_MARK || operation->kind == STANDIN_WAIT)
        drop(operation->event, operation->mark);
    if (operation->kind == STANDIN_GRAPH)
        standin_graph_end(operation->graph);
}

void standin_dawdle(uint64_t *random)
{
    *random = *random * 6364136223846793005U + 1442695040888963407U;
    const uint32_t most_us = atomic_load(&standin.delay_us);
    if (most_us > 0 && *random >> 63 != 0)
        usleep((useconds_t)((*random >> 33) % most_us));
}

static void *work(void *argument)
{
    cudaStream_t stream = argument;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        while (stream->first == NULL && !stream->ending) {
            stream->busy = false;
            pthread_cond_broadcast(&stream->moved);
            pthread_cond_wait(&stream->moved, &stream->lock);
        }
        struct standin_operation *operation = stream->first;
        if (operation == NULL)
            break;
        stream->first = operation->next;
        if (stream->first == NULL)
            stream->end = &stream->first;
        stream->busy = true;
        pthread_mutex_unlock(&stream->lock);
        standin_dawdle(&stream->random);
        standin_operation_run(operation);
        standin_operation_end(operation);
        free(operation);
        pthread_mutex_lock(&stream->lock);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

static bool forgets(const struct CUstream_st *stream)
{
    switch (atomic_load(&standin.lie)) {
    case STANDIN_CUDA_FORGETS_WAITS:
        return true;
    case STANDIN_CUDA_LATER_FORGET_WAITS:
        return stream->number > 1;
    case STANDIN_CUDA_URGENT_FORGET_WAITS:
        return stream->priority < 0;
    default:
        return false;
    }
}

static cudaStream_t make(int device, int priority)
{
    static _Atomic uint64_t numbers;
    cudaStream_t stream = calloc(1, sizeof(*stream));
    if (stream == NULL)
        abort();
    stream->number = 1 + atomic_fetch_add(&numbers, 1U);
    stream->device = device;
    stream->priority = priority;
    stream->forgets = forgets(stream);
    stream->end = &stream->first;
    stream->random = (uint64_t)(uintptr_t)stream;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->moved, NULL);
    if (pthread_create(&stream->thread, NULL, work, stream) != 0)
        abort();
    pthread_mutex_lock(&all_lock);
    stream->next = all_streams;
    all_streams = stream;
    pthread_mutex_unlock(&all_lock);
    return stream;
}

/* Returns when all operations of the stream are done. */
static void unmake(cudaStream_t stream)
{
    pthread_mutex_lock(&all_lock);
    cudaStream_t *link = &all_streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    pthread_mutex_unlock(&all_lock);
    pthread_mutex_lock(&stream->lock);
    stream->ending = true;
    pthread_cond_broadcast(&stream->moved);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->moved);
    free(stream);
}

static cudaStream_t resolve(cudaStream_t stream)
{
    if (stream != NULL)
        return stream;
    const int device = standin_current();
    pthread_mutex_lock(&default_lock);
    if (default_streams[device] == NULL)
        default_streams[device] = make(device, 0);
    stream = default_streams[device];
    pthread_mutex_unlock(&default_lock);
    return stream;
}

void standin_streams_end(void)
{
    pthread_mutex_lock(&default_lock);
    for (int i = 0; i < STANDIN_DEVICES_MAX; i++)
        if (default_streams[i] != NULL) {
            unmake(default_streams[i]);
            default_streams[i] = NULL;
        }
    pthread_mutex_unlock(&default_lock);
}

int standin_stream_priority(cudaStream_t stream)
{
    return resolve(stream)->priority;
}

int standin_stream_device(cudaStream_t stream)
{
    return resolve(stream)->device;
}

struct standin_lane **standin_stream_lane(cudaStream_t stream)
{
    return &resolve(stream)->lane;
}

uint64_t standin_stream_put(cudaStream_t stream, const struct standin_operation *operation)
{
    stream = resolve(stream);
    struct standin_operation *kept = malloc(sizeof(*kept));
    if (kept == NULL)
        abort();
    if (operation->kind == STANDIN_COPY)
        atomic_fetch_add(&standin.copies, 1U);
    *kept = *operation;
    kept->next = NULL;
    pthread_mutex_lock(&stream->lock);
    *stream->end = kept;
    stream->end = &kept->next;
    stream->busy = true;
    const uint64_t at = ++stream->put;
    pthread_cond_broadcast(&stream->moved);
    pthread_mutex_unlock(&stream->lock);
    return at;
}

bool standin_stream_awaited(cudaStream_t stream)
{
    stream = resolve(stream);
    pthread_mutex_lock(&stream->lock);
    const bool awaited = awaited_stream == stream->number && awaited_at == stream->put;
    pthread_mutex_unlock(&stream->lock);
    return awaited;
}

void standin_stream_wait_idle(cudaStream_t stream)
{
    stream = resolve(stream);
    pthread_mutex_lock(&stream->lock);
    while (stream->busy)
        pthread_cond_wait(&stream->moved, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
}

/* ---- calls about streams ---- */

/* Numbers fall as priorities rise, and are pulled into the range. */
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    STANDIN_BEGIN;
    *least = 0;
    *greatest = STANDIN_PRIORITY_GREATEST;
    return standin_end(cudaSuccess);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    (void)flags;
    STANDIN_BEGIN;
    const int least = priority > 0 ? 0 : priority;
    *out = make(standin_current(),
                least < STANDIN_PRIORITY_GREATEST ? STANDIN_PRIORITY_GREATEST : least);
    atomic_fetch_add(&standin.live, 1);
    return standin_end(cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    return cudaStreamCreateWithPriority(out, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *out)
{
    return cudaStreamCreateWithFlags(out, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    const cudaError_t refused = standin_begin();
    standin_capture_forget_stream(stream);
    unmake(stream);
    atomic_fetch_sub(&standin.live, 1);
    return standin_end(refused);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    STANDIN_TRY(standin_begin_look());
    STANDIN_TRY(standin_unsafe_on(stream));
    stream = resolve(stream);
    pthread_mutex_lock(&stream->lock);
    const bool idle = !stream->busy;
    pthread_mutex_unlock(&stream->lock);
    return standin_end_look(idle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    STANDIN_BEGIN;
    standin_host()->waits++;
    standin_host()->spins++;
    STANDIN_TRY(standin_unsafe_on(stream));
    standin_stream_wait_idle(stream);
    return standin_end(cudaSuccess);
}

cudaError_t cudaDeviceSynchronize(void)
{
    STANDIN_BEGIN;
    standin_host()->waits++;
    standin_host()->spins++;
    STANDIN_TRY(standin_unsafe());
    pthread_mutex_lock(&all_lock);
    for (cudaStream_t stream = all_streams; stream != NULL; stream = stream->next)
        if (stream->device == standin_current())
            standin_stream_wait_idle(stream);
    pthread_mutex_unlock(&all_lock);
    return standin_end(cudaSuccess);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    STANDIN_BEGIN;
    cudaError_t code = cudaSuccess;
    if (!standin_capture_wait(event, stream, &code) && !resolve(stream)->forgets)
        standin_stream_put(stream, &(struct standin_operation){ .kind = STANDIN_WAIT,
                                                                .event = event,
                                                                .mark = hold(event, false) });
    return standin_end(code);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void *argument)
{
    STANDIN_BEGIN;
    const struct standin_operation operation = { .kind = STANDIN_CALL,
                                                 .call = call,
                                                 .argument = argument };
    return standin_end(standin_enqueue(stream, &operation));
}

/* ---- calls about events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    STANDIN_BEGIN;
    cudaEvent_t event = calloc(1, sizeof(*event));
    if (event == NULL)
        abort();
    pthread_mutex_init(&event->lock, NULL);
    pthread_cond_init(&event->moved, NULL);
    event->device = standin_current();
    event->sleeps = (flags & cudaEventBlockingSync) != 0;
    event->holders = 1;
    atomic_fetch_add(&standin.live, 1);
    *out = event;
    return standin_end(cudaSuccess);
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    const cudaError_t refused = standin_begin();
    standin_capture_forget_event(event);
    atomic_fetch_sub(&standin.live, 1);
    drop(event, NULL);
    return standin_end(refused);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    STANDIN_BEGIN;
    if (event->device != standin_stream_device(stream))
        return standin_end(cudaErrorInvalidResourceHandle);
    cudaError_t code = cudaSuccess;
    if (standin_capture_mark(event, stream, &code))
        return standin_end(code);
    const struct standin_operation operation = { .kind = STANDIN_MARK,
                                                 .event = event,
                                                 .mark = hold(event, true) };
    const uint64_t at = standin_stream_put(stream, &operation);
    pthread_mutex_lock(&event->lock);
    event->stream = resolve(stream)->number;
    event->at = at;
    pthread_mutex_unlock(&event->lock);
    return standin_end(cudaSuccess);
}

/* An error if the host may not query the event at all. */
static cudaError_t check_asking(cudaEvent_t event)
{
    const cudaError_t captured = standin_captured_event(event);
    return captured != cudaSuccess ? captured : standin_unsafe();
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    STANDIN_TRY(standin_begin_look());
    STANDIN_TRY(check_asking(event));
    const enum standin_cuda_lie lie = atomic_load_explicit(&standin.lie, memory_order_relaxed);
    pthread_mutex_lock(&event->lock);
    const bool done = event->latest == NULL || event->latest->done;
    pthread_mutex_unlock(&event->lock);
    return standin_end_look(lie == STANDIN_CUDA_SAYS_DONE || done);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    STANDIN_BEGIN;
    standin_host()->waits++;
    standin_host()->spins += event->sleeps ? 0 : 1;
    STANDIN_TRY(check_asking(event));
    struct standin_mark *mark = hold(event, false);
    wait_for_mark(event, mark);
    pthread_mutex_lock(&event->lock);
    awaited_stream = event->stream;
    awaited_at = event->at;
    pthread_mutex_unlock(&event->lock);
    drop(event, mark);
    return standin_end(cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    struct timespec begin, end;
    STANDIN_BEGIN;
    STANDIN_TRY(check_asking(from));
    STANDIN_TRY(check_asking(to));
    STANDIN_TRY(done_at(from, &begin));
    STANDIN_TRY(done_at(to, &end));
    *ms = (float)((double)(end.tv_sec - begin.tv_sec) * 1e3 +
                  (double)(end.tv_nsec - begin.tv_nsec) / 1e6);
    return standin_end(cudaSuccess);
}
