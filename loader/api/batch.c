/* batch.c - releases a batch, and orders its use on CUDA streams. */
#include <string.h>

#include <stoker/cuda.h>
#include <stoker/stoker.h>

#include "loader/api/deliver.h"
#include "loader/api/loader.h"

/* A buffer became free: send what waits for it. next() reports an error. */
static void send_more(stoker_loader *loader)
{
    if (loader->options.non_blocking &&
        !atomic_load_explicit(&loader->failed, memory_order_relaxed) &&
        stk_transfer_retire(&loader->transfer) == 0)
        (void)stk_deliver_send_ahead(loader);
}

/* Returns false if the batch was released before, through a copy of it: then nothing happens. */
static bool release_lent(stoker_loader *loader, uint64_t turn, struct CUstream_st *stream, int *rc)
{
    if (!loader->on_device)
        return stk_slots_release(&loader->pipeline.slots, turn);
    const bool held = stk_transfer_holds(&loader->transfer, turn);
    *rc = stk_transfer_release_on(&loader->transfer, turn, stream);
    return held;
}

static int end_work(void *self, uint64_t turn, void *stream)
{
    stoker_loader *loader = self;
    return loader->on_device ? stk_transfer_end_work(&loader->transfer, turn, stream) : 0;
}

static void give_back(void *self, uint64_t turn)
{
    stoker_loader *loader = self;
    const uint64_t begin_ns = stk_trace_begin(loader->trace.rings, STOKER_TRACE_RELEASE, turn);
    if (loader->on_device)
        stk_transfer_free(&loader->transfer, turn);
    else
        (void)stk_slots_release(&loader->pipeline.slots, turn);
    stk_trace_end(loader->trace.rings, STOKER_TRACE_RELEASE, begin_ns, turn, 0, 0);
}

struct stk_dlpack_owner stk_batch_owner(stoker_loader *loader, void (*last_out)(void *))
{
    return (struct stk_dlpack_owner){
        .self = loader, .end_work = end_work, .give_back = give_back, .last_out = last_out
    };
}

static int release_on(stoker_batch *batch, struct CUstream_st *stream)
{
    stoker_loader *loader = batch->loader;
    const uint64_t turn = batch->turn;
    memset((char *)batch + sizeof(batch->struct_size), 0,
           batch->struct_size - sizeof(batch->struct_size));
    if (stk_fork_guard_tripped(&loader->guard))
        return STOKER_EFORKED;
    int rc = STOKER_OK;
    if (stk_dlpack_refs_any(&loader->refs) &&
        !stk_dlpack_refs_release(&loader->refs, turn, stream, &rc))
        return rc;
    stk_dlpack_refs_collect(&loader->refs);
    const uint64_t begin_ns = stk_trace_begin(loader->trace.rings, STOKER_TRACE_RELEASE, turn);
    if (release_lent(loader, turn, stream, &rc))
        stk_trace_end(loader->trace.rings, STOKER_TRACE_RELEASE, begin_ns, turn, 0, 0);
    else
        stk_trace_cancel(loader->trace.rings);
    if (loader->on_device)
        send_more(loader);
    return rc;
}

void stoker_batch_release(stoker_batch *batch)
{
    if (batch == NULL || batch->loader == NULL)
        return;
    const stoker_loader *loader = batch->loader;
    (void)release_on(batch, loader->on_device
                                ? stk_transfer_buffer(&loader->transfer, batch->turn)->stream
                                : NULL);
}

int stoker_batch_release_on(stoker_batch *batch, struct CUstream_st *stream)
{
    if (batch == NULL || batch->loader == NULL)
        return STOKER_OK;
    const struct stk_device *device = batch->loader->device;
    int rc = STOKER_OK;
    if (device->ops->finish != NULL && !stk_fork_guard_tripped(&batch->loader->guard))
        rc = device->ops->finish(batch->loader->device, stream);
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
    return stk_transfer_wait_on(&loader->transfer, batch->turn, stream);
}
