/* cache_fill.c - see cache_fill.h. */
#include "loader/pipeline/cache_fill.h"

#include <string.h>

/* The first lap of the ring bypasses the cache: a random row's place there is on a fresh page, and the first batch
 * should not wait until the kernel has cleared a page per row. */
static bool may_fill(const struct stk_pipeline *pipeline, uint64_t batch)
{
    return batch >= pipeline->slots.slot_count;
}

static bool takes_bytes(const struct stk_pipeline *pipeline, const stoker_part *sample)
{
    const struct stk_cache *cache = &pipeline->cache;
    if (sample->codec != NULL && sample->codec->verify != NULL && cache->block_rows > 1)
        return false; /* its neighbours would not be verified */
    if (pipeline->plan.cached == STK_CACHED_ENCODED)
        return sample->extent.bytes <= cache->stride_bytes;
    return pipeline->plan.cached == STK_CACHED_DECODED && stk_sample_is_row(sample) &&
           sample->extent.bytes == cache->stride_bytes;
}

bool stk_cache_fill_aim(struct stk_pipeline *pipeline, struct stk_read_order *order)
{
    struct stk_cache *cache = &pipeline->cache;
    const stoker_part *sample = stk_span_part(order->span, order->row, order->part);
    const uint64_t id = *stk_span_id(order->span, order->row);
    if (!takes_bytes(pipeline, sample) || !may_fill(pipeline, order->span->batch) ||
        !stk_cache_begin(cache, id))
        return false;
    const uint64_t first = stk_cache_block_first(cache, id);
    order->block_rows = stk_cache_block_rows(cache, id);
    order->to = stk_cache_row(cache, first);
    order->offset = sample->extent.offset - (id - first) * sample->extent.bytes;
    order->bytes = order->block_rows * sample->extent.bytes;
    return true;
}

void stk_cache_fill_commit_read(struct stk_pipeline *pipeline, const struct stk_completion *done)
{
    struct stk_cache *cache = &pipeline->cache;
    const uint64_t id = *stk_span_id(done->span, done->row);
    const uint64_t first = stk_cache_block_first(cache, id);
    if (cache->kind == STOKER_CACHE_ENCODED)
        for (uint32_t i = 0; i < done->block_rows; i++)
            *stk_cache_size(cache, first + i) = done->size / done->block_rows;
    stk_cache_commit(cache, id, done->size);
}

void stk_cache_fill_cancel(struct stk_pipeline *pipeline, uint64_t id)
{
    stk_cache_cancel(&pipeline->cache, id);
}

void stk_cache_fill_copy(struct stk_pipeline *pipeline, const struct stk_completion *done)
{
    struct stk_cache *cache = &pipeline->cache;
    const uint64_t id = *stk_span_id(done->span, done->row);
    if (!takes_bytes(pipeline, stk_span_part(done->span, done->row, done->part)) ||
        !may_fill(pipeline, done->span->batch) || !stk_cache_begin(cache, id))
        return;
    memcpy(stk_cache_row(cache, id), done->bytes, done->size);
    if (cache->kind == STOKER_CACHE_ENCODED)
        *stk_cache_size(cache, id) = done->size;
    stk_cache_commit(cache, id, done->size);
}

uint8_t *stk_cache_fill_begin(struct stk_pipeline *pipeline, uint64_t batch, uint64_t id)
{
    struct stk_cache *cache = &pipeline->cache;
    const bool begun = cache->kind == STOKER_CACHE_DECODED && cache->block_rows == 1 &&
                       may_fill(pipeline, batch) && stk_cache_begin(cache, id);
    return begun ? stk_cache_row(cache, id) : NULL;
}

void stk_cache_fill_commit(struct stk_pipeline *pipeline, uint64_t id)
{
    stk_cache_commit(&pipeline->cache, id, pipeline->cache.stride_bytes);
}

uint8_t *stk_cache_fill_begin_record(struct stk_pipeline *pipeline, uint64_t batch, uint64_t id)
{
    struct stk_cache *cache = &pipeline->cache;
    const bool begun =
        (cache->kind == STOKER_CACHE_ENCODED || cache->kind == STOKER_CACHE_DECODED) &&
        may_fill(pipeline, batch) && stk_cache_begin(cache, id);
    return begun ? stk_cache_row(cache, id) : NULL;
}
