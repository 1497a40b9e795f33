/* stats.c - sums up a loader's work so far, for any thread. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <stoker/stoker.h>

#include "loader/api/loader.h"
#include "loader/base/clock.h"
#include "loader/base/struct_size.h"
#include "loader/reader/readers.h"

static void sum_cache(const stoker_loader *loader, stoker_stats *stats)
{
    const struct stk_cache *cache = &loader->pipeline.cache;
    const struct stk_device_cache *device = &loader->pipeline.device_cache;
    stats->cache = device->on ? STOKER_CACHE_DEVICE : cache->kind;
    stats->cache_bytes =
        device->on ? device->count * device->row_bytes : stk_cache_reserved_bytes(cache);
    stats->cache_held_bytes =
        device->on
            ? stk_ledger_read(&device->held_rows) * device->row_bytes
            : atomic_load_explicit(&stk_cache_counts(cache)->held_bytes, memory_order_relaxed);
    stats->notes_bytes = atomic_load_explicit(
        &stk_cache_counts(&loader->pipeline.notes)->held_bytes, memory_order_relaxed);
    memcpy(stats->cache_reason, loader->cache_reason, sizeof(stats->cache_reason));
    if (cache->share.header != NULL)
        stats->cache_sharers = stk_members_count(&cache->share.header->members);
    memcpy(stats->share_reason, loader->share_reason, sizeof(stats->share_reason));
    stats->cache_paused = stk_cache_is_paused(cache);
    if (stats->cache_paused)
        (void)snprintf(stats->cache_reason, sizeof(stats->cache_reason),
                       "memory is short: the cache holds %" PRIu64
                       " bytes and takes no more for now",
                       stats->cache_held_bytes);
}

static void sum_memory(const stoker_loader *loader, stoker_stats *stats)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    stats->slot_bytes = pipeline->slots.memory.bytes;
    sum_cache(loader, stats);
    uint64_t slots_locked = pipeline->slots.memory.locked ? pipeline->slots.memory.bytes : 0;
    for (uint32_t i = 0; i < loader->worker_count; i++) {
        const struct stk_worker *worker = &loader->workers[i];
        stats->scratch_bytes +=
            stk_fetch_memory_bytes(&worker->fetcher) + worker->maker.scratch.bytes;
        stats->locked_bytes +=
            atomic_load_explicit(&worker->fetcher.locked_bytes, memory_order_relaxed);
        const uint64_t by_ring =
            atomic_load_explicit(&worker->fetcher.locked_slot_bytes, memory_order_relaxed);
        slots_locked = by_ring > slots_locked ? by_ring : slots_locked;
    }
    stats->locked_bytes += slots_locked;
    stats->scratch_bytes += stk_fetch_memory_bytes(&loader->caller_worker.fetcher) +
                            loader->caller_worker.maker.scratch.bytes;
    stats->trace_bytes = loader->trace.memory.bytes;
    stats->pinned = pipeline->slots.memory.locked;
    stats->huge_pages = pipeline->slots.memory.huge;
    (void)snprintf(stats->pin_reason, sizeof(stats->pin_reason), "%.*s",
                   (int)sizeof(stats->pin_reason) - 1, pipeline->slots.pin_reason);
}

static uint64_t used_bytes(const struct stk_cache *cache)
{
    const uint64_t tables = stk_cache_reserved_bytes(cache) - cache->rows.bytes;
    return tables +
           atomic_load_explicit(&stk_cache_counts(cache)->held_bytes, memory_order_relaxed);
}

/* Of what options.memory_bytes limits. */
static void sum_limited(const stoker_loader *loader, stoker_stats *stats)
{
    const struct stk_cache *cache = &loader->pipeline.cache;
    const struct stk_cache *notes = &loader->pipeline.notes;
    const uint64_t limit = loader->options.memory_bytes;
    const uint64_t lent_max = atomic_load_explicit(&loader->kept.bytes_max, memory_order_relaxed);
    stats->memory_bytes = stats->slot_bytes + used_bytes(cache) + used_bytes(notes) +
                          (loader->on_device ? 0 : stats->lent_bytes);
    stats->memory_bytes_max = limit != STOKER_BYTES_AUTO
                                  ? limit
                                  : stats->slot_bytes + stk_cache_reserved_bytes(cache) +
                                        stk_cache_reserved_bytes(notes) +
                                        (loader->on_device ? 0 : lent_max);
}

static void sum_lent(const stoker_loader *loader, stoker_stats *stats)
{
    const struct stk_kept *kept = &loader->kept;
    const uint32_t limit = atomic_load_explicit(&kept->limit, memory_order_relaxed);
    stats->lent_slots = atomic_load_explicit(&kept->count, memory_order_relaxed);
    stats->lent_bytes = atomic_load_explicit(&kept->bytes, memory_order_relaxed);
    if (limit != STK_KEPT_FREE)
        (void)snprintf(stats->lent_reason, sizeof(stats->lent_reason),
                       "%s: %" PRIu32 " more slots take %" PRIu64 " of %" PRIu64 " bytes",
                       limit == STK_KEPT_BUDGET
                           ? "what memory_bytes leaves for kept batches is used up"
                           : "no memory for another kept batch",
                       stats->lent_slots, stats->lent_bytes,
                       atomic_load_explicit(&kept->bytes_max, memory_order_relaxed));
}

static void sum_device(const stoker_loader *loader, stoker_stats *stats)
{
    const struct stk_device *device = loader->device;
    const struct stk_transfer *transfer = &loader->transfer;
    const bool numbered = device->ops->kind != STOKER_DEVICE_CPU;
    (void)snprintf(stats->device, sizeof(stats->device), numbered ? "%s:%u" : "%s",
                   device->ops->name, (unsigned)device->index);
    memcpy(stats->device_reason, loader->device_reason, sizeof(stats->device_reason));
    stats->device_bytes =
        transfer->buffer_bytes * transfer->buffer_count +
        loader->device_convert.steps.scratch_bytes +
        loader->pipeline.device_cache.count * loader->pipeline.device_cache.row_bytes +
        stk_device_decode_bytes(&loader->pipeline.decode, loader->worker_count);
    stats->copies = stk_ledger_read(&loader->ledger.copies);
    stats->copy_bytes = stk_ledger_read(&transfer->copy_bytes);
    stats->converts_on_device = loader->device_convert.on;
    memcpy(stats->convert_reason, loader->convert_reason, sizeof(stats->convert_reason));
    stats->copy_waits = stk_ledger_read(&loader->ledger.copy_waits);
    stats->decodes_on_device = loader->pipeline.decode.on;
    memcpy(stats->decode_reason, loader->decode_reason, sizeof(stats->decode_reason));
    stats->device_images = stk_ledger_read(&loader->pipeline.decode.images);
    stats->length_values = stk_ledger_read(&loader->ledger.length_values);
    stats->length_room = stk_ledger_read(&loader->ledger.length_room);
    stats->device_image_bytes = stk_ledger_read(&loader->pipeline.decode.file_bytes_sent);
}

static void sum_reader(const stoker_loader *loader, stoker_stats *stats)
{
    const uint32_t on_pread = atomic_load(&loader->pipeline.pread_workers);
    stats->read_depth = loader->pipeline.read_depth;
    (void)snprintf(stats->reader, sizeof(stats->reader), "%s",
                   on_pread == loader->worker_count ? stk_reader_pread.name
                                                    : loader->pipeline.reader->name);
    if (on_pread > 0)
        (void)snprintf(stats->reader_reason, sizeof(stats->reader_reason),
                       "%u of %u workers got no ring, or lost it, and use pread", on_pread,
                       loader->worker_count);
    else
        memcpy(stats->reader_reason, loader->reader_reason, sizeof(stats->reader_reason));
}

static void sum_blocks(const stoker_loader *loader, stoker_stats *stats)
{
    if (!loader->has_blocks)
        return;
    const struct stk_block_counts counts = stk_block_store_counts(loader->block_reader.store);
    stats->blocks = counts.loads;
    stats->blocks_again = counts.again;
    stats->block_bytes = counts.stored_bytes;
    stats->block_memory_bytes = counts.memory_bytes;
}

/* A caller that assists counts as a worker, extra or replacing one. */
static uint32_t workers_running(const stoker_loader *loader)
{
    if (!loader->threads)
        return 0;
    return atomic_load(&loader->pipeline.active_workers) +
           (atomic_load(&loader->caller_assists) ? 1 : 0);
}

static uint64_t in_proportion(uint64_t amount, uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (uint64_t)((double)amount * ((double)part / (double)whole));
}

/* CPU time of all work. The consumer's CPU time is estimated: from samples if there are no threads,
 * else from the workers' ratio of CPU time to time. */
static uint64_t cpu_ns(const stoker_loader *loader)
{
    uint64_t busy_ns = 0;
    uint64_t used_ns = 0;
    for (uint32_t i = 0; i < loader->worker_count; i++) {
        busy_ns += stk_ledger_busy_ns(&loader->workers[i].ledger);
        used_ns += stk_worker_cpu_ns(&loader->workers[i]);
    }
    if (!loader->threads)
        return in_proportion(busy_ns, stk_ledger_read(&loader->ledger.sampled_cpu_ns),
                             stk_ledger_read(&loader->ledger.sampled_ns));
    return used_ns +
           in_proportion(stk_ledger_busy_ns(&loader->caller_worker.ledger), used_ns, busy_ns);
}

int stoker_loader_stats(const stoker_loader *loader, stoker_stats *out)
{
    if (loader == NULL || out == NULL || !stk_struct_size_fits(out->struct_size, sizeof(size_t)))
        return STOKER_EINVAL;
    if (stk_fork_guard_tripped(&loader->guard))
        return STOKER_EFORKED;
    stoker_stats stats = {
        .struct_size = out->struct_size,
        .batches = stk_ledger_read(&loader->ledger.batches),
        .samples = stk_ledger_read(&loader->ledger.samples),
        .bytes = stk_ledger_read(&loader->ledger.bytes),
        .bad_samples = stk_ledger_read(&loader->ledger.bad_samples),
        .elapsed_ns = stk_now_ns() - loader->created_ns,
        .first_batch_ns = stk_ledger_read(&loader->ledger.first_batch_ns),
        .stall_ns = stk_ledger_read(&loader->ledger.stall_ns),
        .stalls = stk_ledger_read(&loader->ledger.stalls),
        .workers = workers_running(loader),
        .workers_max = loader->threads ? loader->worker_count : 0,
        .cpus = loader->cpus,
        .slots = loader->pipeline.slots.slot_count,
        .cpu_ns = cpu_ns(loader),
    };
    stats.slots_ready = stk_slots_ready_count(&loader->pipeline.slots, stats.batches);
    for (uint32_t i = 0; i < loader->worker_count; i++)
        stk_ledger_sum(&loader->workers[i].ledger, &stats);
    stk_ledger_sum(&loader->caller_worker.ledger, &stats);
    sum_memory(loader, &stats);
    sum_reader(loader, &stats);
    sum_blocks(loader, &stats);
    sum_device(loader, &stats);
    sum_lent(loader, &stats);
    sum_limited(loader, &stats);
    stk_pipeline_plan_print(&loader->pipeline.plan, stats.route, sizeof(stats.route));
    stk_ledger_judge(&stats);
    stk_struct_write(out, out->struct_size, &stats, sizeof(stats));
    return STOKER_OK;
}
