/* log.c - see log.h. */
#include "loader/api/report/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <stoker/stoker.h>

#include "loader/api/loader.h"
#include "loader/base/text/printable.h"
#include "loader/reader/readers.h"

enum { BAD_SAMPLES_FIRST = 10 };

void stk_log_say(const stoker_loader *loader, stoker_log_level level, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    if (loader->options.on_log == NULL)
        return;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    stk_printable(line);
    loader->options.on_log(loader->options.log_self, level, line);
}

/* ---- choices of create ---- */

static void say_device(const stoker_loader *loader)
{
    const struct stk_device *device = loader->device;
    const bool is_cpu = device->ops->kind == STOKER_DEVICE_CPU;
    /* AUTO asks for a GPU, so its absence matters. STOKER_DEVICE=cpu is a choice. */
    const bool lacks = loader->options.device == STOKER_DEVICE_AUTO && is_cpu &&
                       strncmp(loader->device_reason, "no GPU", 6) == 0;
    const stoker_log_level level = lacks ? STOKER_LOG_WARNING : STOKER_LOG_INFO;
    if (is_cpu)
        stk_log_say(loader, level, "device %s: %s", device->ops->name, loader->device_reason);
    else
        stk_log_say(loader, level, "device %s:%" PRIu32 ": %s", device->ops->name, device->index,
                    loader->device_reason);
    if (loader->gpu_node >= 0)
        stk_log_say(loader, STOKER_LOG_INFO,
                    "workers and slots keep to NUMA node %" PRId32 ", which is near the GPU",
                    loader->gpu_node);
    if (loader->convert_reason[0] != '\0')
        stk_log_say(loader, STOKER_LOG_INFO, "the GPU does not convert rows: %s",
                    loader->convert_reason);
    if (loader->decode_reason[0] != '\0')
        stk_log_say(loader, STOKER_LOG_WARNING, "the GPU does not decode images: %s",
                    loader->decode_reason);
}

static void say_reader(const stoker_loader *loader)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    if (pipeline->encoded_bytes_max == 0)
        return;
    const bool fell_back =
        pipeline->plan.reader == STK_READER_ANY && pipeline->reader == &stk_reader_pread;
    stk_log_say(loader, fell_back ? STOKER_LOG_WARNING : STOKER_LOG_INFO, "reader %s: %s",
                pipeline->reader->name, loader->reader_reason);
    const struct stk_fetcher *fetcher = &loader->workers[0].fetcher;
    if (fetcher->reader == &stk_reader_uring && fetcher->scratch.bytes > 0 &&
        atomic_load_explicit(&fetcher->locked_bytes, memory_order_relaxed) == 0)
        stk_log_say(loader, STOKER_LOG_INFO,
                    "the buffers of %zu bytes for reads are not registered with the kernel: they "
                    "are too large, or RLIMIT_MEMLOCK is too small; reads take more CPU time",
                    fetcher->scratch.bytes);
}

/* The caller asked for a kind of cache and got none, or one that does not hold all samples. */
static void say_lack_of_cache(const stoker_loader *loader)
{
    const struct stk_cache *cache = &loader->pipeline.cache;
    const char *asked = stoker_cache_name(loader->options.cache);
    const uint64_t count = loader->pipeline.dataset->info.count;
    if (loader->pipeline.dataset->ops->make != NULL)
        stk_log_say(loader, STOKER_LOG_WARNING,
                    "cache %s: a data set that makes its own samples is not cached", asked);
    else if (cache->kind == STOKER_CACHE_NONE && !loader->cache_needless)
        stk_log_say(loader, STOKER_LOG_WARNING,
                    "cache %s: memory_bytes leaves room for no sample: nothing is kept", asked);
    else if (cache->kind == STOKER_CACHE_NONE)
        stk_log_say(loader, STOKER_LOG_INFO,
                    "cache %s: not needed, all samples lie in memory as they are", asked);
    else if (cache->capacity < count && !loader->facts.pieces)
        stk_log_say(loader, STOKER_LOG_WARNING,
                    "cache %s: %" PRIu64 " of %" PRIu64 " samples fit in memory_bytes; the others "
                    "are read in every epoch",
                    asked, cache->capacity, count);
    else if (!cache->whole_places && !loader->facts.pieces &&
             cache->rows_bytes / cache->stride_bytes < count)
        stk_log_say(loader, STOKER_LOG_INFO,
                    "cache %s: of %" PRIu64 " samples of at most %zu bytes those that arrive first "
                    "are kept, %" PRIu64 " bytes in all; others are read in every epoch",
                    asked, count, cache->stride_bytes, cache->rows_bytes);
}

static void say_cache(const stoker_loader *loader)
{
    const stoker_cache asked = loader->options.cache;
    const bool on_device = loader->pipeline.device_cache.on;
    const bool in_vain = asked == STOKER_CACHE_AUTO && !loader->cache_needless &&
                         loader->facts.cache == STOKER_CACHE_NONE;
    if (loader->cache_reason[0] != '\0')
        stk_log_say(loader,
                    in_vain && !loader->cache_declined ? STOKER_LOG_WARNING : STOKER_LOG_INFO,
                    "%s: %s",
                    on_device ? "cache in GPU memory"
                    : in_vain ? "no cache"
                              : "no cache in GPU memory",
                    loader->cache_reason);
    if (asked == STOKER_CACHE_ENCODED || asked == STOKER_CACHE_DECODED)
        say_lack_of_cache(loader);
    const struct stk_cache *cache = &loader->pipeline.cache;
    if (cache->kind != STOKER_CACHE_NONE)
        stk_log_say(loader, STOKER_LOG_INFO,
                    "cache %s: up to %" PRIu64 " bytes of memory for %" PRIu64 " %s",
                    stoker_cache_name(cache->kind), stk_cache_reserved_bytes(cache),
                    cache->capacity, loader->facts.pieces ? "pieces of files" : "samples");
    if (loader->share_reason[0] != '\0')
        stk_log_say(loader, loader->share_failed ? STOKER_LOG_WARNING : STOKER_LOG_INFO,
                    "the cache is not shared with other processes: %s", loader->share_reason);
}

static void say_slots(const stoker_loader *loader)
{
    const struct stk_slots *slots = &loader->pipeline.slots;
    if (slots->pin_reason[0] != '\0')
        stk_log_say(loader, STOKER_LOG_WARNING, "the slots are not page-locked: %s",
                    slots->pin_reason);
    if (loader->slots_wanted > slots->slot_count)
        stk_log_say(loader, STOKER_LOG_WARNING,
                    "%" PRIu32 " slots of %zu bytes instead of %" PRIu32
                    ": more would take over an eighth of the memory that is available, or what the "
                    "cache leaves of memory_bytes",
                    slots->slot_count, slots->slot_bytes, loader->slots_wanted);
}

static void say_route(const stoker_loader *loader)
{
    char route[sizeof(((stoker_stats *)0)->route)];
    stk_pipeline_plan_print(&loader->pipeline.plan, route, sizeof(route));
    stk_log_say(loader, STOKER_LOG_INFO, "%" PRIu32 " slots of %zu bytes, %" PRIu32 " workers; %s",
                loader->pipeline.slots.slot_count, loader->pipeline.slots.slot_bytes,
                loader->threads ? atomic_load(&loader->pipeline.active_workers) : 0, route);
}

/* Images beside field 0, which a caller may expect to be changed like it. */
static void say_fields(const stoker_loader *loader)
{
    const stoker_dataset *dataset = loader->pipeline.dataset;
    const bool transforms = stk_transform_wanted(&loader->options.transform);
    const bool planes = loader->options.layout == STOKER_LAYOUT_NCHW;
    for (uint32_t i = 1; i < dataset->info.field_count; i++) {
        const stoker_field_info *info = &dataset->fields[i].info;
        const bool pixels =
            info->kind == STOKER_FIELD_KIND_IMAGE || info->kind == STOKER_FIELD_KIND_MASK;
        if (transforms && info->kind == STOKER_FIELD_KIND_IMAGE)
            stk_log_say(loader, STOKER_LOG_WARNING,
                        "transform is for field 0 and masks: the image \"%s\" stays as stored",
                        info->name);
        if (planes && pixels && info->shape[2] > 1)
            stk_log_say(loader, STOKER_LOG_WARNING,
                        "layout is for field 0: \"%s\" stays NHWC, as stored", info->name);
    }
}

void stk_log_choices(stoker_loader *loader)
{
    if (loader->options.on_log == NULL)
        return;
    say_device(loader);
    say_reader(loader);
    say_cache(loader);
    say_slots(loader);
    say_fields(loader);
    say_route(loader);
    stk_log_update(loader);
}

/* ---- while running ---- */

void stk_log_bad_sample(stoker_loader *loader, const stoker_error *report)
{
    struct stk_log *log = &loader->log;
    if (loader->options.on_log == NULL)
        return;
    const char *what =
        loader->options.on_bad_sample == STOKER_ON_BAD_SKIP ? "skipped" : "substituted";
    log->bad_samples++;
    if (log->bad_samples > BAD_SAMPLES_FIRST && log->bad_samples < log->bad_samples_next)
        return;
    if (log->bad_samples > BAD_SAMPLES_FIRST)
        stk_log_say(loader, STOKER_LOG_WARNING, "sample %s (%" PRIu64 " so far): %s", what,
                    log->bad_samples, report->message);
    else
        stk_log_say(loader, STOKER_LOG_WARNING, "sample %s: %s", what, report->message);
    if (log->bad_samples >= BAD_SAMPLES_FIRST)
        log->bad_samples_next = 2 * log->bad_samples;
}

static void say_cache_paused(stoker_loader *loader)
{
    const struct stk_cache *cache = &loader->pipeline.cache;
    const bool paused = stk_cache_is_paused(cache);
    if (paused == loader->log.cache_paused)
        return;
    loader->log.cache_paused = paused;
    if (paused)
        stk_log_say(
            loader, STOKER_LOG_WARNING,
            "memory is short: the cache holds %" PRIu64 " bytes and takes no more for now",
            atomic_load_explicit(&stk_cache_counts(cache)->held_bytes, memory_order_relaxed));
    else
        stk_log_say(loader, STOKER_LOG_INFO, "memory is no longer short: the cache grows again");
}

static void say_cache_spoilt(stoker_loader *loader)
{
    const bool spoilt =
        atomic_load_explicit(&loader->pipeline.cache.spoilt, memory_order_relaxed) > 0;
    if (spoilt && !loader->log.cache_spoilt)
        stk_log_say(loader, STOKER_LOG_WARNING,
                    "the shared cache was changed by another process: a checksum of its rows is "
                    "wrong; they are read from the files instead");
    loader->log.cache_spoilt = spoilt;
}

static void say_kept_limit(stoker_loader *loader)
{
    const uint32_t limit = atomic_load_explicit(&loader->kept.limit, memory_order_relaxed);
    if (limit == loader->log.kept_limit)
        return;
    loader->log.kept_limit = limit;
    stoker_stats stats = { .struct_size = sizeof(stats) };
    if (limit != STK_KEPT_FREE && stoker_loader_stats(loader, &stats) == STOKER_OK)
        stk_log_say(loader, STOKER_LOG_WARNING, "%s", stats.lent_reason);
}

static void say_pread_workers(stoker_loader *loader)
{
    const uint32_t workers = atomic_load(&loader->pipeline.pread_workers);
    if (workers == loader->log.pread_workers)
        return;
    loader->log.pread_workers = workers;
    stk_log_say(loader, STOKER_LOG_WARNING,
                "%" PRIu32 " of %" PRIu32 " workers got no ring, or lost it, and use pread",
                workers, loader->worker_count);
}

void stk_log_update(stoker_loader *loader)
{
    struct stk_messages *messages = &loader->pipeline.messages;
    struct stk_message message;
    if (loader->options.on_log == NULL)
        return;
    say_pread_workers(loader);
    say_cache_paused(loader);
    say_cache_spoilt(loader);
    say_kept_limit(loader);
    if (!stk_messages_any(messages))
        return;
    while (stk_messages_take(messages, &message))
        stk_log_say(loader, message.level, "%s", message.text);
    const uint64_t lost = stk_messages_take_lost(messages);
    if (lost > 0)
        stk_log_say(loader, STOKER_LOG_WARNING, "%" PRIu64 " more messages of workers were lost",
                    lost);
}
