/* crossing.c - see crossing.h: events order two streams, and the host waits for none but in await.
 *
 *   back end's stream   ... │ from ─▶ via │ ready          follow: wait for arrived │ ...
 *   copy stream                    wait for ready │ copy │ left or arrived
 */
#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/backend/cuda/device/device.h"

struct stk_crossing {
    struct stk_backend *backend;
    cudaStream_t stream;
    cudaEvent_t ready[STK_CROSSING_SLOTS];   /* on the back end's stream */
    cudaEvent_t left[STK_CROSSING_SLOTS];    /* on the copy stream: out is over */
    cudaEvent_t arrived[STK_CROSSING_SLOTS]; /* on the copy stream: in and over are */
};

static int record(const struct stk_backend *backend, cudaEvent_t event, cudaStream_t stream,
                  stoker_error *error)
{
    return stk_cuda_check(backend, backend->runtime.cudaEventRecord(event, stream),
                          "cudaEventRecord", error);
}

static int wait_for(const struct stk_backend *backend, cudaStream_t stream, cudaEvent_t event,
                    stoker_error *error)
{
    return stk_cuda_check(backend, backend->runtime.cudaStreamWaitEvent(stream, event, 0),
                          "cudaStreamWaitEvent", error);
}

/* ---- create and destroy ---------------------------------------------------------------------------- */

static int make_events(const struct stk_backend *backend, cudaEvent_t *events, stoker_error *error)
{
    int rc = STOKER_OK;
    for (int slot = 0; slot < STK_CROSSING_SLOTS && rc == STOKER_OK; slot++)
        rc = stk_cuda_check(
            backend,
            backend->runtime.cudaEventCreateWithFlags(&events[slot], cudaEventDisableTiming),
            "cudaEventCreate", error);
    return rc;
}

static int make(struct stk_crossing *crossing, stoker_error *error)
{
    const struct stk_backend *const backend = crossing->backend;
    int rc = stk_cuda_check(
        backend,
        backend->runtime.cudaStreamCreateWithFlags(&crossing->stream, cudaStreamNonBlocking),
        "cudaStreamCreate", error);
    if (rc == STOKER_OK)
        rc = make_events(backend, crossing->ready, error);
    if (rc == STOKER_OK)
        rc = make_events(backend, crossing->left, error);
    if (rc == STOKER_OK)
        rc = make_events(backend, crossing->arrived, error);
    return rc;
}

static void drop_events(const struct stk_backend *backend, const cudaEvent_t *events)
{
    for (int slot = 0; slot < STK_CROSSING_SLOTS; slot++)
        if (events[slot] != NULL)
            (void)stk_cuda_check(backend, backend->runtime.cudaEventDestroy(events[slot]),
                                 "cudaEventDestroy", NULL);
}

/* Before memory is given back that copies use: as stk_cuda_drain. */
static void drain(const struct stk_crossing *crossing)
{
    const struct stk_backend *const backend = crossing->backend;
    for (int attempt = 0; attempt < 2; attempt++)
        if (stk_cuda_check(backend, backend->runtime.cudaStreamSynchronize(crossing->stream),
                           "drain", NULL) == STOKER_OK)
            return;
}

static void crossing_destroy(struct stk_crossing *crossing)
{
    if (crossing == NULL)
        return;
    const struct stk_backend *const backend = crossing->backend;
    int before = backend->device;
    const bool entered = stk_cuda_enter(backend, &before, NULL) == STOKER_OK;
    if (crossing->stream != NULL) {
        drain(crossing);
        (void)stk_cuda_check(backend, backend->runtime.cudaStreamDestroy(crossing->stream),
                             "cudaStreamDestroy", NULL);
    }
    drop_events(backend, crossing->ready);
    drop_events(backend, crossing->left);
    drop_events(backend, crossing->arrived);
    if (entered)
        stk_cuda_leave(backend, before);
    stk_free(crossing);
}

static int crossing_create(struct stk_crossing **out, struct stk_backend *backend,
                           stoker_error *error)
{
    int before;
    struct stk_crossing *crossing = stk_calloc(1, sizeof(*crossing));
    if (crossing == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS,
                             &(struct stk_place)STK_NOWHERE, "copies between two devices");
    crossing->backend = backend;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc == STOKER_OK) {
        rc = make(crossing, error);
        stk_cuda_leave(backend, before);
    }
    if (rc == STOKER_OK)
        *out = crossing;
    else
        crossing_destroy(crossing);
    return rc;
}

static void *crossing_allocate(struct stk_crossing *crossing, size_t bytes)
{
    const struct stk_backend *const backend = crossing->backend;
    void *memory = NULL;
    int before;
    if (stk_cuda_enter(backend, &before, NULL) != STOKER_OK)
        return NULL;
    if (stk_cuda_check(backend,
                       backend->runtime.cudaHostAlloc(&memory, bytes, cudaHostAllocPortable),
                       "cudaHostAlloc", NULL) != STOKER_OK)
        memory = NULL;
    stk_cuda_leave(backend, before);
    return memory;
}

/* Copies read and write it until they are over. */
static void crossing_release(struct stk_crossing *crossing, void *memory)
{
    const struct stk_backend *const backend = crossing->backend;
    int before;
    const bool entered = stk_cuda_enter(backend, &before, NULL) == STOKER_OK;
    stk_cuda_drain(backend);
    drain(crossing);
    (void)stk_cuda_check(backend, backend->runtime.cudaFreeHost(memory), "cudaFreeHost", NULL);
    if (entered)
        stk_cuda_leave(backend, before);
}

/* ---- copies ---------------------------------------------------------------------------------------- */

/* Let `from` lie ready, and say so. Its device is current. */
static int make_ready(struct stk_crossing *crossing, uint32_t slot, const void **from, void *via,
                      size_t bytes, stoker_error *error)
{
    struct stk_backend *const backend = crossing->backend;
    int rc = STOKER_OK;
    if (via != NULL) {
        rc = stk_cuda_copy(backend, via, *from, bytes, cudaMemcpyDeviceToDevice, error);
        *from = via;
    }
    return rc == STOKER_OK ? record(backend, crossing->ready[slot], backend->stream, error) : rc;
}

static int crossing_out(struct stk_crossing *crossing, uint32_t slot, void *to, const void *from,
                        void *via, size_t bytes, stoker_error *error)
{
    struct stk_backend *const backend = crossing->backend;
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = make_ready(crossing, slot, &from, via, bytes, error);
    if (rc == STOKER_OK)
        rc = wait_for(backend, crossing->stream, crossing->ready[slot], error);
    if (rc == STOKER_OK)
        rc = stk_cuda_check(backend,
                            backend->runtime.cudaMemcpyAsync(
                                to, from, bytes, cudaMemcpyDeviceToHost, crossing->stream),
                            "cudaMemcpyAsync", error);
    if (rc == STOKER_OK)
        rc = record(backend, crossing->left[slot], crossing->stream, error);
    stk_cuda_leave(backend, before);
    return rc;
}

static int crossing_await(struct stk_crossing *crossing, uint32_t slot, stoker_error *error)
{
    const struct stk_backend *const backend = crossing->backend;
    return stk_cuda_check(backend, backend->runtime.cudaEventSynchronize(crossing->left[slot]),
                          "cudaEventSynchronize", error);
}

static int crossing_in(struct stk_crossing *crossing, uint32_t slot, void *to, const void *from,
                       size_t bytes, stoker_error *error)
{
    const struct stk_backend *const backend = crossing->backend;
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_cuda_check(
        backend,
        backend->runtime.cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, crossing->stream),
        "cudaMemcpyAsync", error);
    if (rc == STOKER_OK)
        rc = record(backend, crossing->arrived[slot], crossing->stream, error);
    stk_cuda_leave(backend, before);
    return rc;
}

static int ready_at(struct stk_crossing *source, uint32_t slot, const void **from, void *via,
                    size_t bytes, stoker_error *error)
{
    int before;
    int rc = stk_cuda_enter(source->backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = make_ready(source, slot, from, via, bytes, error);
    stk_cuda_leave(source->backend, before);
    return rc;
}

static int crossing_over(struct stk_crossing *crossing, struct stk_crossing *source, uint32_t slot,
                         void *to, const void *from, void *via, size_t bytes, stoker_error *error)
{
    const struct stk_backend *const backend = crossing->backend;
    int before;
    int rc = ready_at(source, slot, &from, via, bytes, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = wait_for(backend, crossing->stream, source->ready[slot], error);
    if (rc == STOKER_OK)
        rc = stk_cuda_check(backend,
                            backend->runtime.cudaMemcpyPeerAsync(to, backend->device, from,
                                                                 source->backend->device, bytes,
                                                                 crossing->stream),
                            "cudaMemcpyPeerAsync", error);
    if (rc == STOKER_OK)
        rc = record(backend, crossing->arrived[slot], crossing->stream, error);
    stk_cuda_leave(backend, before);
    return rc;
}

static int crossing_follow(struct stk_crossing *crossing, uint32_t slot, stoker_error *error)
{
    const struct stk_backend *const backend = crossing->backend;
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = wait_for(backend, backend->stream, crossing->arrived[slot], error);
    stk_cuda_leave(backend, before);
    return rc;
}

/* ---- norms ----------------------------------------------------------------------------------------- */

static struct stk_norm *own_norm(struct stk_backend *backend)
{
    _Static_assert(offsetof(struct stk_train_state, finite) -
                           offsetof(struct stk_train_state, norm_squared) ==
                       offsetof(struct stk_norm, finite),
                   "the state has one in it");
    return (struct stk_norm *)(void *)&backend->block->state.norm_squared;
}

static struct stk_norm *other_norm(struct stk_backend *backend)
{
    _Static_assert(sizeof(struct stk_train_other) == sizeof(struct stk_norm), "one and the same");
    return (struct stk_norm *)(void *)&backend->block->other;
}

const struct stk_crossing_ops stk_cuda_crossing = {
    .create = crossing_create,
    .destroy = crossing_destroy,
    .allocate = crossing_allocate,
    .release = crossing_release,
    .out = crossing_out,
    .await = crossing_await,
    .in = crossing_in,
    .over = crossing_over,
    .follow = crossing_follow,
    .own_norm = own_norm,
    .other_norm = other_norm,
};
