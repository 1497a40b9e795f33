/* batch.c - releases a batch, and orders its use on CUDA streams. */
#include <string.h>

#include <stoker/cuda.h>
#include <stoker/stoker.h>

#include "loader/api/deliver.h"
#include "loader/api/lend/poll.h"
#include "loader/api/loader.h"

/* A buffer became free: start the copy of the batch that waits for it. next() reports a failure. */
static void send_more(stoker_loader *loader)
{
    if (loader->options.non_blocking &&
        !atomic_load_explicit(&loader->failed, memory_order_relaxed) &&
        stk_transfer_retire(&loader->transfer) == 0)
        (void)stk_deliver_send_ahead(loader);
}

/* The batch has no user any more. Returns false if it was released before, through a copy of it:
 * then nothing happens. */
static bool give_back_slot(stoker_loader *loader, struct stk_lease *lease, uint64_t turn)
{
    if (stk_lease_turn(lease) != turn)
        return false;
    if (!lease->kept)
        return stk_slots_release(&loader->pipeline.slots, turn);
    stk_kept_put(&loader->kept, lease);
    return true;
}

/* A stream that cannot be used fails one call; options.on_log gets the message. Any
 * thread. Returns rc. */
static int blame_stream(stoker_loader *loader, int rc, const char *why)
{
    if (rc == STOKER_EINVAL)
        stk_messages_put(&loader->pipeline.messages, STOKER_LOG_WARNING, "%s", why);
    return rc;
}

/* Give back a buffer of the GPU, which stays in use until the stream reaches this point. */
static bool give_back_buffer(stoker_loader *loader, struct stk_lease *lease, uint64_t turn,
                             struct CUstream_st *stream, int *rc)
{
    struct stk_buffer *buffer = stk_transfer_buffer_of(lease);
    char why[STK_DEVICE_WHY_BYTES];
    if (!stk_buffer_holds(buffer, turn))
        return false;
    *rc =
        blame_stream(loader, stk_transfer_release_on(&loader->transfer, buffer, stream, why), why);
    if (*rc != STOKER_EINVAL && lease->kept)
        stk_kept_put(&loader->kept, lease);
    return true;
}

static int end_work(void *self, struct stk_lease *lease, void *stream, bool again)
{
    stoker_loader *loader = self;
    char why[STK_DEVICE_WHY_BYTES];
    if (!loader->on_device)
        return 0;
    const int rc =
        stk_transfer_end_work(&loader->transfer, stk_transfer_buffer_of(lease), stream, why);
    return again ? rc : blame_stream(loader, rc, why);
}

/* Work with a buffer has ended on all streams when the lease comes here. */
static void give_back_returned(stoker_loader *loader, struct stk_lease *lease)
{
    if (!loader->on_device) {
        (void)give_back_slot(loader, lease, stk_lease_turn(lease));
        return;
    }
    struct stk_buffer *buffer = stk_transfer_buffer_of(lease);
    if (!buffer->lent)
        return;
    stk_transfer_free(&loader->transfer, buffer);
    if (lease->kept)
        stk_kept_put(&loader->kept, lease);
}

static void give_back(void *self, struct stk_lease *lease)
{
    stoker_loader *loader = self;
    const uint64_t turn = stk_lease_turn(lease);
    const uint64_t begin_ns = stk_trace_begin(loader->trace.rings, STOKER_TRACE_RELEASE, turn);
    give_back_returned(loader, lease);
    stk_trace_end(loader->trace.rings, STOKER_TRACE_RELEASE, begin_ns, turn, 0, 0);
}

static void wake(void *self)
{
    struct stk_slots *slots = &((stoker_loader *)self)->pipeline.slots;
    stk_slots_wake_consumer(slots);
    stk_slots_set_event(slots);
}

struct stk_leases_owner stk_batch_owner(stoker_loader *loader, void (*last_out)(void *))
{
    return (struct stk_leases_owner){ .self = loader,
                                      .end_work = end_work,
                                      .give_back = give_back,
                                      .wake = wake,
                                      .last_out = last_out };
}

static int release_lease(stoker_loader *loader, struct stk_lease *lease, uint64_t turn,
                         struct CUstream_st *stream)
{
    if (loader->kept.any_thread)
        return stk_leases_return(&loader->leases, lease, turn, stream);
    int rc = STOKER_OK;
    if (stk_leases_any_out(&loader->leases) &&
        !stk_leases_release(&loader->leases, lease, turn, stream, &rc))
        return rc;
    stk_leases_collect(&loader->leases);
    const uint64_t begin_ns = stk_trace_begin(loader->trace.rings, STOKER_TRACE_RELEASE, turn);
    if (loader->on_device ? give_back_buffer(loader, lease, turn, stream, &rc)
                          : give_back_slot(loader, lease, turn))
        stk_trace_end(loader->trace.rings, STOKER_TRACE_RELEASE, begin_ns, turn, 0, 0);
    else
        stk_trace_cancel(loader->trace.rings);
    if (loader->on_device && rc != STOKER_EINVAL) {
        send_more(loader);
        stk_poll_update(loader);
    }
    return rc;
}

static void forget(stoker_batch *batch)
{
    memset((char *)batch + sizeof(batch->struct_size), 0,
           batch->struct_size - sizeof(batch->struct_size));
}

bool stk_batch_is_lent(const stoker_loader *loader, const struct stk_lease *lease, uint64_t turn)
{
    if (stk_lease_turn(lease) != turn || (atomic_load(&lease->users) & STK_LEASE_RELEASED) != 0)
        return false;
    if (lease->kept)
        return true;
    return loader->on_device
               ? stk_buffer_holds(stk_transfer_buffer_of((struct stk_lease *)lease), turn)
               : stk_slots_holds(&loader->pipeline.slots, turn);
}

const stoker_field *stoker_batch_field(const stoker_batch *batch, const char *name)
{
    if (batch == NULL || batch->fields == NULL || name == NULL)
        return NULL;
    for (uint32_t i = 0; i < batch->field_count; i++)
        if (strcmp(batch->fields[i].name, name) == 0)
            return &batch->fields[i];
    return NULL;
}

/* With STOKER_EINVAL the batch is still lent, and *batch is as before. */
static int release_on(stoker_batch *batch, struct CUstream_st *stream)
{
    stoker_loader *loader = batch->loader;
    int rc = STOKER_EFORKED;
    if (!stk_fork_guard_tripped(&loader->guard))
        rc = release_lease(loader, batch->lease, batch->turn, stream);
    if (rc != STOKER_EINVAL)
        forget(batch);
    return rc;
}

/* If the stream is capturing a CUDA graph, the batch is given back when that has ended. */
void stoker_batch_release(stoker_batch *batch)
{
    if (batch == NULL || batch->loader == NULL)
        return;
    stoker_loader *loader = batch->loader;
    struct stk_lease *lease = batch->lease;
    void *stream = loader->on_device ? stk_transfer_buffer_of(lease)->stream : NULL;
    if (release_on(batch, stream) == STOKER_EINVAL) {
        stk_leases_release_later(&loader->leases, lease, stream);
        forget(batch);
    }
}

int stoker_batch_release_on(stoker_batch *batch, struct CUstream_st *stream)
{
    if (batch == NULL || batch->loader == NULL)
        return STOKER_OK;
    stoker_loader *loader = batch->loader;
    char why[STK_DEVICE_WHY_BYTES];
    int rc = STOKER_OK;
    if (loader->device->ops->finish != NULL && !stk_fork_guard_tripped(&loader->guard))
        rc = blame_stream(loader, loader->device->ops->finish(loader->device, stream, why), why);
    if (rc == STOKER_EINVAL)
        return rc;
    const int released = release_on(batch, stream);
    return rc < 0 ? rc : released;
}

int stoker_batch_wait_on(const stoker_batch *batch, struct CUstream_st *stream)
{
    if (batch == NULL || batch->loader == NULL)
        return STOKER_EINVAL;
    stoker_loader *loader = batch->loader;
    if (stk_fork_guard_tripped(&loader->guard))
        return STOKER_EFORKED;
    if (!loader->on_device)
        return STOKER_OK;
    struct stk_buffer *buffer = stk_transfer_buffer_of(batch->lease);
    char why[STK_DEVICE_WHY_BYTES];
    if (!stk_buffer_holds(buffer, batch->turn))
        return STOKER_EINVAL;
    return blame_stream(loader, stk_transfer_wait_on(&loader->transfer, buffer, stream, why), why);
}
