/* transfer.c - see transfer.h: events order the two streams, and the host waits only in wait().
 *
 *   back end's stream   ... │ from ─▶ via │ ready          stream_wait: wait for arrived │ ...
 *   copy stream                    wait for ready │ copy │ left or arrived
 */
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/backend/cuda/device/device.h"

struct stk_transfer {
    struct stk_backend *backend;
    cudaStream_t stream;
    cudaEvent_t ready[STK_TRANSFER_SLOTS]; /* on the back end's stream */
    cudaEvent_t left[STK_TRANSFER_SLOTS];  /* on the copy stream: to_host is done */
    /* On the copy stream: from_host or from_peer is done. */
    cudaEvent_t arrived[STK_TRANSFER_SLOTS];
};

/* ---- create and destroy ---------------------------------------------------------------------- */

static int make_events(const struct stk_backend *backend, cudaEvent_t *events, stoker_error *error)
{
    int rc = STOKER_OK;
    for (int slot = 0; slot < STK_TRANSFER_SLOTS && rc == STOKER_OK; slot++)
        rc = stk_cuda_make_event(backend, &events[slot], error);
    return rc;
}

static int make(struct stk_transfer *transfer, stoker_error *error)
{
    const struct stk_backend *const backend = transfer->backend;
    int rc = stk_cuda_make_stream(backend, &transfer->stream, error);
    if (rc == STOKER_OK)
        rc = make_events(backend, transfer->ready, error);
    if (rc == STOKER_OK)
        rc = make_events(backend, transfer->left, error);
    if (rc == STOKER_OK)
        rc = make_events(backend, transfer->arrived, error);
    return rc;
}

static void drop_events(const struct stk_backend *backend, const cudaEvent_t *events)
{
    for (int slot = 0; slot < STK_TRANSFER_SLOTS; slot++)
        stk_cuda_drop_event(backend, events[slot]);
}

/* As stk_cuda_drain(), for the copy stream. */
static void drain(const struct stk_transfer *transfer)
{
    const struct stk_backend *const backend = transfer->backend;
    for (int attempt = 0; attempt < 2; attempt++)
        if (stk_cuda_check(backend, backend->runtime.cudaStreamSynchronize(transfer->stream),
                           "drain", NULL) == STOKER_OK)
            return;
}

static void transfer_destroy(struct stk_transfer *transfer)
{
    if (transfer == NULL)
        return;
    const struct stk_backend *const backend = transfer->backend;
    int before = backend->device;
    const bool entered = stk_cuda_enter(backend, &before, NULL) == STOKER_OK;
    if (transfer->stream != NULL)
        drain(transfer);
    stk_cuda_drop_stream(backend, transfer->stream);
    drop_events(backend, transfer->ready);
    drop_events(backend, transfer->left);
    drop_events(backend, transfer->arrived);
    if (entered)
        stk_cuda_leave(backend, before);
    stk_free(transfer);
}

static int transfer_create(struct stk_transfer **out, struct stk_backend *backend,
                           stoker_error *error)
{
    int before;
    struct stk_transfer *transfer = stk_calloc(1, sizeof(*transfer));
    if (transfer == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "copies between two devices");
    transfer->backend = backend;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc == STOKER_OK) {
        rc = make(transfer, error);
        stk_cuda_leave(backend, before);
    }
    if (rc == STOKER_OK)
        *out = transfer;
    else
        transfer_destroy(transfer);
    return rc;
}

static void *transfer_allocate(struct stk_transfer *transfer, size_t bytes)
{
    const struct stk_backend *const backend = transfer->backend;
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

/* Wait first: copies may still use the memory. */
static void transfer_release(struct stk_transfer *transfer, void *memory)
{
    const struct stk_backend *const backend = transfer->backend;
    int before;
    const bool entered = stk_cuda_enter(backend, &before, NULL) == STOKER_OK;
    stk_cuda_drain(backend);
    drain(transfer);
    (void)stk_cuda_check(backend, backend->runtime.cudaFreeHost(memory), "cudaFreeHost", NULL);
    if (entered)
        stk_cuda_leave(backend, before);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Queue the copy to `via`, if any, and the event that *from is ready. Its device must be
 * current. */
static int make_ready(struct stk_transfer *transfer, uint32_t slot, const void **from, void *via,
                      size_t bytes, stoker_error *error)
{
    struct stk_backend *const backend = transfer->backend;
    int rc = STOKER_OK;
    if (via != NULL) {
        rc = stk_cuda_copy(backend, via, *from, bytes, cudaMemcpyDeviceToDevice, error);
        *from = via;
    }
    return rc == STOKER_OK ? stk_cuda_record(backend, transfer->ready[slot], backend->stream, error)
                           : rc;
}

static int transfer_to_host(struct stk_transfer *transfer, uint32_t slot, void *to,
                            const void *from, void *via, size_t bytes, stoker_error *error)
{
    struct stk_backend *const backend = transfer->backend;
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = make_ready(transfer, slot, &from, via, bytes, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_wait_for(backend, transfer->stream, transfer->ready[slot], error);
    if (rc == STOKER_OK)
        rc = stk_cuda_check(backend,
                            backend->runtime.cudaMemcpyAsync(
                                to, from, bytes, cudaMemcpyDeviceToHost, transfer->stream),
                            "cudaMemcpyAsync", error);
    if (rc == STOKER_OK)
        rc = stk_cuda_record(backend, transfer->left[slot], transfer->stream, error);
    stk_cuda_leave(backend, before);
    return rc;
}

static int transfer_wait(struct stk_transfer *transfer, uint32_t slot, stoker_error *error)
{
    const struct stk_backend *const backend = transfer->backend;
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_cuda_check(backend, backend->runtime.cudaEventSynchronize(transfer->left[slot]),
                        "cudaEventSynchronize", error);
    stk_cuda_leave(backend, before);
    return rc;
}

static int transfer_from_host(struct stk_transfer *transfer, uint32_t slot, void *to,
                              const void *from, size_t bytes, stoker_error *error)
{
    const struct stk_backend *const backend = transfer->backend;
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_cuda_check(
        backend,
        backend->runtime.cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, transfer->stream),
        "cudaMemcpyAsync", error);
    if (rc == STOKER_OK)
        rc = stk_cuda_record(backend, transfer->arrived[slot], transfer->stream, error);
    stk_cuda_leave(backend, before);
    return rc;
}

static int ready_at(struct stk_transfer *source, uint32_t slot, const void **from, void *via,
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

static int transfer_from_peer(struct stk_transfer *transfer, struct stk_transfer *peer,
                              uint32_t slot, void *to, const void *from, void *via, size_t bytes,
                              stoker_error *error)
{
    const struct stk_backend *const backend = transfer->backend;
    int before;
    int rc = ready_at(peer, slot, &from, via, bytes, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_cuda_wait_for(backend, transfer->stream, peer->ready[slot], error);
    if (rc == STOKER_OK)
        rc = stk_cuda_check(backend,
                            backend->runtime.cudaMemcpyPeerAsync(to, backend->device, from,
                                                                 peer->backend->device, bytes,
                                                                 transfer->stream),
                            "cudaMemcpyPeerAsync", error);
    if (rc == STOKER_OK)
        rc = stk_cuda_record(backend, transfer->arrived[slot], transfer->stream, error);
    stk_cuda_leave(backend, before);
    return rc;
}

static int transfer_stream_wait(struct stk_transfer *transfer, uint32_t slot, stoker_error *error)
{
    const struct stk_backend *const backend = transfer->backend;
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_cuda_wait_for(backend, backend->stream, transfer->arrived[slot], error);
    stk_cuda_leave(backend, before);
    return rc;
}

/* ---- peer access ----------------------------------------------------------------------------- */

/* It stays enabled: other parts of the program may have come to use it. A failure is no error,
 * since there is another way; a device that is lost fails at the next call, too. */
static bool enable_access(const struct stk_backend *backend, int peer)
{
    const struct stk_cuda_runtime *const cuda = &backend->runtime;
    int can = 0;
    int before;
    if (stk_cuda_enter(backend, &before, NULL) != STOKER_OK)
        return false;
    cudaError_t code = cuda->cudaDeviceCanAccessPeer(&can, backend->device, peer);
    if (code == cudaSuccess && can != 0)
        code = cuda->cudaDeviceEnablePeerAccess(peer, 0);
    const bool enabled =
        can != 0 && (code == cudaSuccess || code == cudaErrorPeerAccessAlreadyEnabled);
    if (code != cudaSuccess)
        (void)cuda->cudaGetLastError();
    stk_cuda_leave(backend, before);
    return enabled;
}

/* Both ways: the copy of either may be done by either device. */
static bool transfer_reach(struct stk_transfer *transfer, struct stk_transfer *peer)
{
    return enable_access(transfer->backend, peer->backend->device) &&
           enable_access(peer->backend, transfer->backend->device);
}

/* ---- norms ----------------------------------------------------------------------------------- */

static struct stk_norm *local_norm(struct stk_backend *backend)
{
    _Static_assert(offsetof(struct stk_train_state, finite) -
                           offsetof(struct stk_train_state, norm_squared) ==
                       offsetof(struct stk_norm, finite),
                   "the state has one in it");
    return (struct stk_norm *)(void *)&backend->block->state.norm_squared;
}

static struct stk_norm *peer_norm(struct stk_backend *backend)
{
    _Static_assert(sizeof(struct stk_train_other) == sizeof(struct stk_norm), "one and the same");
    return (struct stk_norm *)(void *)&backend->block->other;
}

const struct stk_transfer_ops stk_cuda_transfer = {
    .create = transfer_create,
    .destroy = transfer_destroy,
    .allocate = transfer_allocate,
    .release = transfer_release,
    .to_host = transfer_to_host,
    .wait = transfer_wait,
    .from_host = transfer_from_host,
    .from_peer = transfer_from_peer,
    .stream_wait = transfer_stream_wait,
    .reach = transfer_reach,
    .local_norm = local_norm,
    .peer_norm = peer_norm,
};
