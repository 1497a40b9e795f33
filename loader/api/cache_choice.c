/* cache_choice.c - see cache_choice.h. */
#include "loader/api/cache_choice.h"

#include <inttypes.h>
#include <stdio.h>

#include "loader/base/budget.h"

enum { BLOCK_BYTES = 65536 }; /* rows that one read brings into the cache */

size_t stk_cache_choice_row_bytes(const stoker_loader *loader)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    const struct stk_framing *framing = &pipeline->transform.framing;
    return stk_pipeline_keeps_resized(&loader->facts)
               ? (size_t)framing->resize_height * framing->resize_width *
                     pipeline->transform.channels
               : pipeline->dataset->row_bytes;
}

/* Bytes of one sample in a cache of this kind. */
static size_t stride_of(const stoker_loader *loader, stoker_cache kind)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    const struct stk_field_plan *plan = &pipeline->field_plan;
    const bool encoded = kind == STOKER_CACHE_ENCODED;
    if (plan->several)
        return encoded
                   ? (pipeline->encoded_bytes_max > 0 ? plan->part_bytes : 0) * pipeline->part_count
                   : plan->record_bytes;
    return encoded ? pipeline->encoded_bytes_max : stk_cache_choice_row_bytes(loader);
}

/* A cache of this kind for all samples. */
static struct stk_cache_options cache_of(const stoker_loader *loader, stoker_cache kind,
                                         uint64_t budget_bytes)
{
    const struct stk_pipeline *pipeline = &loader->pipeline;
    const size_t row_bytes = stride_of(loader, STOKER_CACHE_DECODED);
    uint32_t block_rows = 1;
    while (pipeline->dataset->info.dense && block_rows * 2 * row_bytes <= BLOCK_BYTES)
        block_rows *= 2;
    return (struct stk_cache_options){
        .kind = kind,
        .budget_bytes = budget_bytes,
        .count = pipeline->dataset->info.count,
        .stride_bytes = stride_of(loader, kind),
        .block_rows = block_rows,
        .whole_places = pipeline->dataset->info.dense,
    };
}

static bool fits(const struct stk_cache_options *cache)
{
    return cache->stride_bytes > 0 && stk_cache_bytes(cache, cache->count) <= cache->budget_bytes;
}

static bool is_in_memory(const stoker_loader *loader)
{
    return loader->facts.source == STK_SOURCE_MEMORY;
}

static stoker_cache choose_cache(const stoker_loader *loader, uint64_t budget)
{
    const struct stk_pipeline_facts *facts = &loader->facts;
    const struct stk_cache_options decoded = cache_of(loader, STOKER_CACHE_DECODED, budget);
    const struct stk_cache_options encoded = cache_of(loader, STOKER_CACHE_ENCODED, budget);
    if (loader->cache_needless ||
        loader->pipeline.dataset->ops->make != NULL) /* it makes other rows each time */
        return STOKER_CACHE_NONE;
    if (loader->options.cache != STOKER_CACHE_AUTO)
        return loader->options.cache;
    if ((stk_pipeline_keeps_resized(facts) || !facts->any_size) && fits(&decoded))
        return STOKER_CACHE_DECODED;
    return fits(&encoded) ? STOKER_CACHE_ENCODED : STOKER_CACHE_NONE;
}

int stk_cache_choice_make(stoker_loader *loader)
{
    const uint64_t asked = loader->options.cache_bytes;
    const uint64_t budget = asked != STOKER_BYTES_AUTO ? asked : stk_budget_left();
    loader->cache_needless =
        loader->pipeline.device_cache.on || (is_in_memory(loader) && !loader->facts.has_codec);
    const stoker_cache kind = choose_cache(loader, budget);
    const struct stk_cache_options cache = cache_of(loader, kind, budget);
    int rc = stk_cache_init(&loader->pipeline.cache, &cache);
    if (rc == STOKER_ENOMEM && loader->options.cache == STOKER_CACHE_AUTO) {
        rc = 0; /* optional: init has left a cache that holds nothing */
        (void)snprintf(loader->cache_reason, sizeof(loader->cache_reason),
                       "no memory for %" PRIu64 " samples of at most %zu bytes", cache.count,
                       cache.stride_bytes);
    }
    if (rc == 0 && loader->pipeline.cache.kind == STOKER_CACHE_AUTO)
        loader->pipeline.cache.kind = STOKER_CACHE_NONE;
    stk_budget_reserve(stk_cache_reserved_bytes(&loader->pipeline.cache));
    if (loader->options.cache == STOKER_CACHE_AUTO && kind == STOKER_CACHE_NONE &&
        loader->cache_reason[0] == '\0' && !is_in_memory(loader))
        (void)snprintf(loader->cache_reason, sizeof(loader->cache_reason),
                       "%" PRIu64 " samples of at most %zu bytes do not fit in the %" PRIu64
                       " bytes that a cache may take",
                       cache.count, cache.stride_bytes, budget);
    loader->facts.cache =
        loader->pipeline.device_cache.on ? STOKER_CACHE_DEVICE : loader->pipeline.cache.kind;
    return rc;
}
