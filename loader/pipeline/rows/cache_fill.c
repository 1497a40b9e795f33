/* cache_fill.c - see cache_fill.h. */
#include "loader/pipeline/rows/cache_fill.h"

/* Returns true if a read fills whole blocks: the neighbors of a row that is verified would not
 * be. */
static bool fills_block(const struct stk_cache *cache, const stoker_part *part)
{
    return part->extent.memory == NULL && part->extent.path == NULL && stk_part_is_row(part) &&
           (part->codec == NULL || part->codec->verify == NULL) &&
           part->extent.bytes == cache->stride_bytes;
}

/* Returns true if it saves a read, or a decode. */
static bool is_worth_it(const struct stk_pipeline *pipeline, const struct stk_span *span,
                        uint32_t row)
{
    const bool decoded = pipeline->plan.cached != STK_CACHED_ENCODED;
    for (uint32_t i = 0; i < span->part_count; i++) {
        const stoker_part *part = stk_span_part(span, row, i);
        if ((part->extent.memory == NULL && part->extent.bytes > 0) ||
            (decoded && !stk_part_is_row(part)))
            return true;
    }
    return false;
}

/* Bytes of an encoded record up to the end of its last part. */
static uint64_t used_bytes(const struct stk_pipeline *pipeline, const struct stk_span *span,
                           uint32_t row)
{
    const uint32_t last = span->part_count - 1;
    const stoker_extent *extent = &stk_span_part(span, row, last)->extent;
    return last * pipeline->field_plan.part_bytes + (extent->memory == NULL ? extent->bytes : 0);
}

const uint8_t *stk_cache_fill_find(const struct stk_pipeline *pipeline, const struct stk_span *span,
                                   uint32_t row)
{
    const struct stk_cache *cache = &pipeline->cache;
    const uint64_t id = *stk_span_id(span, row);
    const uint8_t *held = stk_cache_find(cache, id);
    return held == NULL || cache->whole_places ||
                   used_bytes(pipeline, span, row) <= stk_cache_length(cache, id)
               ? held
               : NULL;
}

void stk_cache_fill_begin(struct stk_pipeline *pipeline, struct stk_span *span, uint32_t row)
{
    struct stk_cache *cache = &pipeline->cache;
    const uint64_t id = *stk_span_id(span, row);
    if ((cache->kind != STOKER_CACHE_ENCODED && cache->kind != STOKER_CACHE_DECODED) ||
        (cache->block_rows > 1 ? !fills_block(cache, stk_span_part(span, row, 0))
                               : !is_worth_it(pipeline, span, row)))
        return;
    span->records[row] =
        stk_cache_begin(cache, id,
                        cache->kind == STOKER_CACHE_ENCODED ? used_bytes(pipeline, span, row)
                                                            : cache->stride_bytes);
}

void stk_cache_fill_widen(const struct stk_pipeline *pipeline, struct stk_read_order *order)
{
    const struct stk_cache *cache = &pipeline->cache;
    const uint64_t id = *stk_span_id(order->span, order->row);
    const uint64_t before = id - stk_cache_block_first(cache, id);
    order->block_rows = stk_cache_block_rows(cache, id);
    order->to -= before * cache->stride_bytes;
    order->offset -= before * order->bytes;
    order->bytes *= order->block_rows;
}

void stk_cache_fill_commit(struct stk_pipeline *pipeline, struct stk_span *span, uint32_t row)
{
    if (span->records[row] == NULL)
        return;
    span->records[row] = NULL;
    stk_cache_commit(&pipeline->cache, *stk_span_id(span, row));
}

void stk_cache_fill_cancel(struct stk_pipeline *pipeline, struct stk_span *span, uint32_t row)
{
    if (span->records[row] != NULL)
        stk_cache_cancel(&pipeline->cache, *stk_span_id(span, row));
    span->records[row] = NULL;
}
