/* nccl.c - see standin_nccl.h. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/standin_cuda/standin_cuda.h"
#include "support/standin_nccl/room.h"
#include "support/standin_nccl/standin_nccl.h"
#include "trainer/peers/nccl/functions.h"

enum { VERSION = 22800, UNHANDLED_CUDA_ERROR = 1, INTERNAL_ERROR = 3 };

enum kind { SUM_FLOATS = 1, SUM_DOUBLES, GATHER, BROADCAST };

/* What a call has queued. Kept with its communicator: a graph may run it again. */
struct call {
    struct call *next;
    struct ncclComm *communicator;
    enum kind kind;
    bool captured;
    /* Number of the operation among the rank's on all communicators; captured: 0. */
    uint64_t turn;
    const unsigned char *from; /* accessible addresses */
    unsigned char *to;
    uint64_t bytes; /* that this rank gives */
};

struct ncclComm {
    struct ncclComm *next; /* in the list of those that are gone */
    struct room *room;
    uint32_t rank, ranks;
    int device;
    struct call *calls; /* only the rank's thread uses them */
    bool joined;
    uint32_t looks; /* that still see the last call in progress */
    _Atomic int error;
    _Atomic int in_graphs; /* captured calls in graphs that are alive */
    _Atomic bool gone, running;
    uint64_t barriers, operations; /* only the stream that runs an operation uses them */
};

static struct {
    _Atomic int version;
    _Atomic uint64_t calls[ROOM_RANKS_MAX], operations[ROOM_RANKS_MAX];
    _Atomic uint64_t turns[ROOM_RANKS_MAX];
    _Atomic uint64_t violations;
    _Atomic int64_t live;
    _Atomic bool failed;
    _Atomic uint32_t delay_us[ROOM_RANKS_MAX];
    /* Set while no rank runs. */
    uint32_t failing_rank, failing_operations_rank, refusing_rank;
    uint64_t failing_call, failing_operation; /* 0 = none */
    int code;
    pthread_mutex_t lock;
    struct ncclComm *gone; /* guarded by lock */
} standin = { .version = VERSION, .refusing_rank = UINT32_MAX, .lock = PTHREAD_MUTEX_INITIALIZER };

static _Thread_local char last_error[96];

/* ---- controls -------------------------------------------------------------------- */

static void bury(struct ncclComm *communicator)
{
    while (communicator->calls != NULL) {
        struct call *const next = communicator->calls->next;
        free(communicator->calls);
        communicator->calls = next;
    }
    room_leave(communicator->room);
    free(communicator);
}

void standin_nccl_reset(void)
{
    while (standin.gone != NULL) {
        struct ncclComm *const next = standin.gone->next;
        bury(standin.gone);
        standin.gone = next;
    }
    for (uint32_t r = 0; r < ROOM_RANKS_MAX; r++) {
        atomic_store(&standin.calls[r], 0U);
        atomic_store(&standin.operations[r], 0U);
        atomic_store(&standin.turns[r], 0U);
        atomic_store(&standin.delay_us[r], 0U);
    }
    atomic_store(&standin.version, VERSION);
    atomic_store(&standin.violations, 0U);
    atomic_store(&standin.failed, false);
    standin.failing_call = 0;
    standin.failing_operation = 0;
    standin.refusing_rank = UINT32_MAX;
}

void standin_nccl_version(int version)
{
    atomic_store(&standin.version, version);
}

void standin_nccl_fail(uint32_t rank, uint64_t nth, int code)
{
    standin.failing_rank = rank;
    standin.failing_call = nth;
    standin.code = code;
}

void standin_nccl_fail_operation(uint32_t rank, uint64_t nth, int code)
{
    standin.failing_operations_rank = rank;
    standin.failing_operation = nth;
    standin.code = code;
}

bool standin_nccl_failed(void)
{
    return atomic_load(&standin.failed);
}

void standin_nccl_delay(uint32_t rank, uint32_t us)
{
    atomic_store(&standin.delay_us[rank], us);
}

void standin_nccl_refuse_capture(uint32_t rank)
{
    standin.refusing_rank = rank;
}

uint64_t standin_nccl_calls(uint32_t rank)
{
    return atomic_load(&standin.calls[rank]);
}

uint64_t standin_nccl_operations(uint32_t rank)
{
    return atomic_load(&standin.operations[rank]);
}

uint64_t standin_nccl_violations(void)
{
    return atomic_load(&standin.violations);
}

int64_t standin_nccl_live(void)
{
    return atomic_load(&standin.live);
}

/* ---- errors ---------------------------------------------------------------------- */

static int refuse(int code, const char *why)
{
    (void)snprintf(last_error, sizeof(last_error), "%s", why);
    return code;
}

/* The result of a call of this rank that is to fail; else 0. */
static int count_call(uint32_t rank)
{
    const uint64_t number = atomic_fetch_add(&standin.calls[rank], 1U) + 1;
    if (rank != standin.failing_rank || number != standin.failing_call)
        return STK_NCCL_SUCCESS;
    atomic_store(&standin.failed, true);
    return refuse(standin.code, "as the test asked");
}

/* NCCL's names, with the types that the trainer calls them by. */
#define DECLARE(name) __typeof__(*((struct stk_nccl_functions *)NULL)->name) name
DECLARE(ncclGetVersion);
DECLARE(ncclGetErrorString);
DECLARE(ncclGetLastError);
DECLARE(ncclGetUniqueId);
DECLARE(ncclCommInitRankConfig);
DECLARE(ncclCommGetAsyncError);
DECLARE(ncclCommFinalize);
DECLARE(ncclCommDestroy);
DECLARE(ncclCommAbort);
DECLARE(ncclAllReduce);
DECLARE(ncclAllGather);
DECLARE(ncclBroadcast);

int ncclGetVersion(int *version)
{
    *version = atomic_load(&standin.version);
    return STK_NCCL_SUCCESS;
}

const char *ncclGetErrorString(int result)
{
    switch (result) {
    case STK_NCCL_SUCCESS:
        return "no error";
    case UNHANDLED_CUDA_ERROR:
        return "unhandled cuda error";
    case STK_NCCL_SYSTEM_ERROR:
        return "unhandled system error";
    case INTERNAL_ERROR:
        return "internal error";
    case STK_NCCL_INVALID_ARGUMENT:
        return "invalid argument";
    case STK_NCCL_INVALID_USAGE:
        return "invalid usage";
    case STK_NCCL_REMOTE_ERROR:
        return "remote process exited or there was a network error";
    default:
        return "unknown result code";
    }
}

const char *ncclGetLastError(struct ncclComm *communicator)
{
    (void)communicator;
    return last_error;
}

/* ---- operations, on a stream ------------------------------------------------------ */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool meets(struct ncclComm *c)
{
    return room_barrier(c->room, c->rank, c->ranks, ++c->barriers, &c->gone);
}

/* All ranks are in the same operation, and have queued those of all communicators in the same
 * order: NCCL may else wait for ever. */
static bool same(const struct ncclComm *c)
{
    const struct room_place *const place = c->room->shared->place;
    const struct room_place *const mine = &place[c->rank];
    for (uint32_t r = 0; r < c->ranks; r++)
        if (place[r].kind != mine->kind || place[r].bytes != mine->bytes ||
            place[r].captured != mine->captured || place[r].number != mine->number ||
            place[r].turn != mine->turn)
            return false;
    return true;
}

static void add_floats(float *to, const unsigned char *from, uint64_t bytes)
{
    const float *const values = (const void *)from;
    for (uint64_t i = 0; i < bytes / sizeof(*to); i++)
        to[i] += values[i];
}

static void add_doubles(double *to, const unsigned char *from, uint64_t bytes)
{
    const double *const values = (const void *)from;
    for (uint64_t i = 0; i < bytes / sizeof(*to); i++)
        to[i] += values[i];
}

/* Every rank's bytes [done, done + bytes) are in the room. */
static void combine(const struct call *call, uint64_t done, uint64_t bytes)
{
    const struct ncclComm *const c = call->communicator;
    struct room_shared *const shared = c->room->shared;
    unsigned char *const to = call->to + done;
    for (uint32_t r = 0; r < c->ranks; r++)
        if (call->kind == GATHER)
            memcpy(call->to + r * call->bytes + done, shared->data[r], bytes);
        else if (r == 0)
            memcpy(to, shared->data[0], bytes);
        else if (call->kind == SUM_FLOATS)
            add_floats((void *)to, shared->data[r], bytes);
        else if (call->kind == SUM_DOUBLES)
            add_doubles((void *)to, shared->data[r], bytes);
}

static void take_part(const struct call *call)
{
    struct ncclComm *const c = call->communicator;
    struct room_shared *const shared = c->room->shared;
    struct room_place *const place = &shared->place[c->rank];
    place->kind = (uint32_t)call->kind;
    place->captured = call->captured ? 1 : 0;
    place->bytes = call->bytes;
    place->number = c->operations++;
    place->turn = call->turn;
    for (uint64_t done = 0; done < call->bytes; done += ROOM_CHUNK_BYTES) {
        const uint64_t bytes = least(call->bytes - done, ROOM_CHUNK_BYTES);
        memcpy(shared->data[c->rank], call->from + done, bytes);
        if (!meets(c))
            return;
        if (!same(c)) {
            atomic_store(&c->error, STK_NCCL_INVALID_USAGE);
            return;
        }
        combine(call, done, bytes);
        if (!meets(c))
            return;
    }
}

/* A cudaHostFn_t. */
static void run(void *argument)
{
    const struct call *const call = argument;
    struct ncclComm *const c = call->communicator;
    const uint32_t delay_us = atomic_load(&standin.delay_us[c->rank]);
    if (delay_us > 0)
        (void)usleep(delay_us);
    if (atomic_load(&c->gone) || atomic_load(&c->error) != 0)
        return;
    if (atomic_exchange(&c->running, true)) {
        atomic_fetch_add(&standin.violations, 1U);
        return;
    }
    const uint64_t number = atomic_fetch_add(&standin.operations[c->rank], 1U) + 1;
    if (c->rank == standin.failing_operations_rank && number == standin.failing_operation) {
        atomic_store(&standin.failed, true);
        atomic_store(&c->error, standin.code);
    } else {
        take_part(call);
    }
    atomic_store(&c->running, false);
}

/* A graph with a call in it was made, or the last of its users has gone. */
static void count_in_graph(cudaHostFn_t function, void *argument, int by)
{
    if (function == run)
        atomic_fetch_add(&((struct call *)argument)->communicator->in_graphs, by);
}

__attribute__((constructor)) static void begin(void)
{
    standin_cuda_count_captured(count_in_graph);
}

/* NCCL 2.30, init.cc, commDestroySync(), which Finalize's, Destroy's and Abort's work ends with:
 * "keep polling until all graphs referencing us die". The flag of an abort does not end it. */
static void await_graphs(struct ncclComm *c)
{
    while (atomic_load(&c->in_graphs) != 0)
        (void)usleep(200);
}

/* ---- communicators --------------------------------------------------------------- */

int ncclGetUniqueId(struct stk_nccl_id *id)
{
    const int code = count_call(0);
    if (code != STK_NCCL_SUCCESS)
        return code;
    memset(id, 0, sizeof(*id));
    room_name(id->internal);
    return STK_NCCL_SUCCESS;
}

int ncclCommInitRankConfig(struct ncclComm **out, int ranks, struct stk_nccl_id id, int rank,
                           struct stk_nccl_config *config)
{
    int device = 0;
    if (rank < 0 || rank >= ranks || ranks > ROOM_RANKS_MAX)
        return refuse(STK_NCCL_INVALID_ARGUMENT, "rank");
    const int code = count_call((uint32_t)rank);
    if (code != STK_NCCL_SUCCESS)
        return code;
    if (config->size != sizeof(*config) || config->magic != STK_NCCL_MAGIC ||
        config->version < STK_NCCL_VERSION_MIN || config->blocking != 0)
        return refuse(STK_NCCL_INVALID_ARGUMENT, "config");
    if (cudaGetDevice(&device) != cudaSuccess)
        return refuse(UNHANDLED_CUDA_ERROR, "cudaGetDevice");
    struct ncclComm *const c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    c->rank = (uint32_t)rank;
    c->ranks = (uint32_t)ranks;
    c->device = device;
    c->room = room_enter(id.internal);
    if (c->room == NULL) {
        free(c);
        return refuse(STK_NCCL_SYSTEM_ERROR, "shared memory");
    }
    struct room_place *const place = &c->room->shared->place[rank];
    place->device = device;
    atomic_store_explicit(&place->joined, 1U, memory_order_release);
    atomic_fetch_add(&standin.live, 1);
    *out = c;
    return STK_NCCL_IN_PROGRESS;
}

static int join(struct ncclComm *c)
{
    const struct room_place *const place = c->room->shared->place;
    for (uint32_t r = 0; r < c->ranks; r++)
        if (atomic_load_explicit(&place[r].joined, memory_order_acquire) == 0)
            return STK_NCCL_IN_PROGRESS;
    for (uint32_t r = 0; r < c->ranks; r++)
        for (uint32_t other = 0; other < r; other++)
            if (place[r].device == place[other].device)
                return refuse(STK_NCCL_INVALID_USAGE, "Duplicate GPU detected");
    c->joined = true;
    room_forget(c->room);
    return STK_NCCL_SUCCESS;
}

int ncclCommGetAsyncError(struct ncclComm *communicator, int *result)
{
    *result = atomic_load(&communicator->error);
    if (*result == STK_NCCL_SUCCESS && !communicator->joined)
        *result = join(communicator);
    if (*result == STK_NCCL_SUCCESS && communicator->looks > 0) {
        communicator->looks--;
        *result = STK_NCCL_IN_PROGRESS;
    }
    return STK_NCCL_SUCCESS;
}

static void end(struct ncclComm *communicator)
{
    atomic_store(&communicator->gone, true);
    (void)pthread_mutex_lock(&standin.lock);
    communicator->next = standin.gone;
    standin.gone = communicator;
    (void)pthread_mutex_unlock(&standin.lock);
    atomic_fetch_sub(&standin.live, 1);
}

int ncclCommFinalize(struct ncclComm *communicator)
{
    const int code = count_call(communicator->rank);
    await_graphs(communicator);
    if (code == STK_NCCL_SUCCESS)
        communicator->looks = 2;
    return code == STK_NCCL_SUCCESS ? STK_NCCL_IN_PROGRESS : code;
}

int ncclCommDestroy(struct ncclComm *communicator)
{
    const int code = count_call(communicator->rank);
    await_graphs(communicator);
    end(communicator);
    return code;
}

int ncclCommAbort(struct ncclComm *communicator)
{
    const int code = count_call(communicator->rank);
    atomic_store(&communicator->gone, true); /* kernels end */
    await_graphs(communicator);
    end(communicator);
    return code;
}

/* ---- queueing -------------------------------------------------------------------- */

struct launch {
    int device;
    void *stream;
    struct call *call;
    cudaError_t result;
};

static void *launch(void *argument)
{
    struct launch *const job = argument;
    job->result = cudaSetDevice(job->device);
    if (job->result == cudaSuccess)
        job->result = cudaLaunchHostFunc(job->stream, run, job->call);
    return NULL;
}

/* A communicator that does not block starts a thread for each call (group.cc), which does its CUDA
 * work, also into a stream that another thread captures. */
static cudaError_t launch_elsewhere(struct call *call, void *stream)
{
    struct launch job = { .device = call->communicator->device, .stream = stream, .call = call };
    pthread_t thread;
    if (pthread_create(&thread, NULL, launch, &job) != 0 || pthread_join(thread, NULL) != 0)
        abort();
    return job.result;
}

static int queue(const struct call *made, void *stream)
{
    struct ncclComm *const c = made->communicator;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const int code = count_call(c->rank);
    if (code != STK_NCCL_SUCCESS)
        return code;
    if (!c->joined || c->looks > 0)
        return refuse(STK_NCCL_INVALID_USAGE, "the last call is in progress");
    if (made->from == NULL || made->to == NULL)
        return refuse(STK_NCCL_INVALID_ARGUMENT, "not memory of a GPU");
    if (cudaStreamIsCapturing(stream, &status) != cudaSuccess)
        return refuse(UNHANDLED_CUDA_ERROR, "cudaStreamIsCapturing");
    if (status != cudaStreamCaptureStatusNone && c->rank == standin.refusing_rank)
        return refuse(STK_NCCL_INVALID_USAGE, "no capture, as the test asked");
    struct call *const call = malloc(sizeof(*call));
    if (call == NULL)
        abort();
    *call = *made;
    call->captured = status != cudaStreamCaptureStatusNone;
    if (!call->captured)
        call->turn = atomic_fetch_add(&standin.turns[c->rank], 1U) + 1;
    call->next = c->calls;
    c->calls = call;
    if (launch_elsewhere(call, stream) != cudaSuccess)
        return refuse(UNHANDLED_CUDA_ERROR, "cudaLaunchHostFunc");
    c->looks = atomic_load(&standin.calls[c->rank]) % 3 == 0 ? 2 : 0;
    return c->looks > 0 ? STK_NCCL_IN_PROGRESS : STK_NCCL_SUCCESS;
}

static int queue_kind(enum kind kind, const void *from, void *to, uint64_t bytes,
                      struct ncclComm *communicator, void *stream)
{
    const uint64_t wanted = kind == GATHER ? bytes * communicator->ranks : bytes;
    const struct call call = { .communicator = communicator,
                               .kind = kind,
                               .from = standin_cuda_view_range(from, bytes),
                               .to = standin_cuda_view_range(to, wanted),
                               .bytes = bytes };
    return queue(&call, stream);
}

int ncclAllReduce(const void *from, void *to, size_t count, int type, int operation,
                  struct ncclComm *communicator, void *stream)
{
    if (operation != STK_NCCL_SUM || (type != STK_NCCL_FLOAT64 && type != STK_NCCL_FLOAT32))
        return refuse(STK_NCCL_INVALID_ARGUMENT, "type");
    if (type == STK_NCCL_FLOAT64)
        return queue_kind(SUM_DOUBLES, from, to, count * sizeof(double), communicator, stream);
    return queue_kind(SUM_FLOATS, from, to, count * sizeof(float), communicator, stream);
}

int ncclAllGather(const void *from, void *to, size_t count, int type, struct ncclComm *communicator,
                  void *stream)
{
    if (type != STK_NCCL_FLOAT32)
        return refuse(STK_NCCL_INVALID_ARGUMENT, "type");
    return queue_kind(GATHER, from, to, count * sizeof(float), communicator, stream);
}

int ncclBroadcast(const void *from, void *to, size_t count, int type, int root,
                  struct ncclComm *communicator, void *stream)
{
    if (type != STK_NCCL_BYTES || root != 0)
        return refuse(STK_NCCL_INVALID_ARGUMENT, "type");
    return queue_kind(BROADCAST, from, to, count, communicator, stream);
}
