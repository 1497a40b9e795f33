/* destroy.c - see destroy.h. */
#include "loader/api/destroy.h"

#include <stdbool.h>
#include <stoker/stoker.h>

#include "loader/api/choose/blend.h"
#include "loader/api/choose/cache_choice.h"
#include "loader/api/choose/length_choice.h"
#include "loader/api/lend/poll.h"
#include "loader/api/loader.h"
#include "loader/base/clock.h"
#include "loader/base/cpu/thread.h"
#include "loader/base/memory/budget.h"
#include "loader/pipeline/reads/fetch_ring.h"

#define DESTROY_WAIT_NS UINT64_C(6000000000) /* a second more than a ring's own limit */
#define DEVICE_WAIT_NS  UINT64_C(5000000000)

/* Returns true if every worker has ended; the others' memory is not freed. */
static bool stop_workers(stoker_loader *loader)
{
    if (loader->workers == NULL)
        return true;
    stk_slots_stop(&loader->pipeline.slots);
    atomic_store(&loader->pipeline.active_workers, UINT32_MAX); /* resting workers wake, too */
    stk_futex_wake(&loader->pipeline.active_workers, UINT32_MAX);

    const uint64_t deadline_ns = stk_now_ns() + DESTROY_WAIT_NS;
    bool all_gone = true;
    for (uint32_t i = 0; i < loader->workers_made; i++) {
        struct stk_worker *worker = &loader->workers[i];
        if (!loader->threads)
            stk_fetch_ring_close(&worker->fetcher, STK_CLOSE_WAIT_NS);
        (void)stk_worker_join(worker, deadline_ns);
        all_gone = all_gone && !stk_worker_is_stuck(worker);
    }
    return all_gone;
}

/* No batch is in use any more: free slots, device and the loader itself. */
void stk_loader_free(void *self)
{
    stoker_loader *loader = self;
    stk_poll_close(loader);
    stk_leases_collect(&loader->leases);
    stk_kept_destroy(loader);
    if (!stk_transfer_destroy(&loader->transfer, stk_now_ns() + DEVICE_WAIT_NS))
        return; /* the GPU still reads our slots, or the consumer's work still runs there */
    stk_alias_free(&loader->draws.alias);
    stk_trace_destroy(&loader->trace);
    stk_leases_destroy(&loader->leases);
    if (loader->has_messages) /* deleters may have some */
        stk_messages_destroy(&loader->pipeline.messages);
    stk_free(loader->tensors);
    stk_free(loader->fields);
    stk_outputs_destroy(&loader->outputs);
    stk_length_choice_stop(loader);
    stk_mix_free(&loader->mix);
    stk_window_free(loader->pipeline.sampler.window);
    stk_blend_plan_destroy(&loader->pipeline.blend);
    stk_device_blend_destroy(&loader->device_blend);
    stk_slots_destroy(&loader->pipeline.slots);
    stk_field_plan_destroy(&loader->pipeline.field_plan);
    stk_device_convert_destroy(&loader->device_convert);
    stk_device_decode_destroy(&loader->pipeline.decode);
    stk_device_cache_destroy(&loader->pipeline.device_cache);
    stk_device_close(loader->device);
    stk_fork_guard_destroy(&loader->guard);
    stoker_dataset_close(&loader->dataset); /* batches refer to the names of its fields */
    stk_free(loader);
}

/* Take the cache out of the loader, whose workers have ended. */
static void keep_cache(struct stk_kept_cache *kept, stoker_loader *loader)
{
    struct stk_cache *cache = &loader->pipeline.cache;
    stk_cache_abandon(cache);
    stk_cache_choice_name(loader, cache->kind, kept->key);
    kept->cache = *cache;
    *cache = (struct stk_cache){ .kind = STOKER_CACHE_NONE };
}

void stk_loader_destroy_keeping(stoker_loader **out, struct stk_kept_cache *kept)
{
    stoker_loader *loader = *out;
    *out = NULL;
    if (loader->guard.page.base != NULL && stk_fork_guard_tripped(&loader->guard))
        return; /* the parent's threads and rings do not exist in this process */
    if (!stop_workers(loader))
        return; /* a device still writes to our memory: leak it and the data set, never free them */
    for (uint32_t i = 0; i < loader->workers_made; i++)
        stk_worker_destroy(&loader->workers[i]);
    if (loader->has_caller_worker)
        stk_worker_destroy(&loader->caller_worker);
    stk_free(loader->workers);
    stk_budget_give_back(stk_cache_choice_reserved_bytes(loader));
    if (kept != NULL && loader->pipeline.cache.kind != STOKER_CACHE_NONE &&
        loader->options.reader == NULL)
        keep_cache(kept, loader);
    stk_cache_destroy(&loader->pipeline.cache);
    stk_cache_destroy(&loader->pipeline.notes);
    stk_free(loader->pipeline.first_pieces);
    if (loader->has_bad_samples)
        stk_bad_samples_destroy(&loader->bad_samples);
    stk_block_store_free(&loader->block_reader.store);
    stk_free(loader->files);
    stk_kept_outlive(loader);
    if (stk_leases_end(&loader->leases)) /* else the last release or deleter does it */
        stk_loader_free(loader);
}

void stoker_loader_destroy(stoker_loader **loader)
{
    if (loader != NULL && *loader != NULL)
        stk_loader_destroy_keeping(loader, NULL);
}
