/* span_rows.c - see span_rows.h. */
#include "loader/pipeline/span_rows.h"

#include <string.h>

#include "loader/base/error.h"
#include "loader/dataset/part.h"
#include "loader/pipeline/bad_row.h"
#include "loader/pipeline/field_gather.h"
#include "loader/pipeline/hook_calls.h"
#include "loader/pipeline/image_row.h"
#include "loader/pipeline/values.h"

const uint8_t *stk_span_row_in_memory(const struct stk_pipeline *pipeline,
                                      const stoker_part *sample, uint64_t id)
{
    if (sample->codec == NULL && sample->extent.memory != NULL)
        return sample->extent.bytes == pipeline->dataset->row_bytes &&
                       pipeline->plan.cached != STK_CACHED_RESIZED
                   ? sample->extent.memory
                   : NULL;
    return stk_pipeline_caches_rows(pipeline) ? stk_cache_find(&pipeline->cache, id) : NULL;
}

/* Find all rows by their ids alone, without locate(). */
static bool find_sources(const struct stk_pipeline *pipeline, struct stk_span *span,
                         const uint64_t *ids)
{
    const uint8_t *rows = pipeline->dataset->info.rows;
    size_t stride_bytes = pipeline->dataset->row_bytes;
    if (pipeline->plan.cached == STK_CACHED_RESIZED)
        rows = NULL;
    if (!stk_pipeline_caches_rows(pipeline) && rows == NULL)
        return false;
    if (rows == NULL && stk_cache_holds_all(&pipeline->cache, pipeline->dataset->info.count)) {
        rows = stk_cache_row(&pipeline->cache, 0);
        stride_bytes = pipeline->cache.stride_bytes;
    }
    if (rows != NULL) {
        const uint32_t count = span->rows; /* the compiler must assume that stores change *span */
        const void **sources = span->sources;
        for (uint32_t row = 0; row < count; row++)
            sources[row] = rows + ids[row] * stride_bytes;
        return true;
    }
    for (uint32_t row = 0; row < span->rows; row++) {
        span->sources[row] = stk_cache_find(&pipeline->cache, ids[row]);
        if (span->sources[row] == NULL)
            return false;
    }
    return true;
}

/* Returns true if the GPU holds all rows of a span. Otherwise they are marked fresh; stk_row_begin() clears the mark
 * of rows that are held. */
static bool find_on_device(const struct stk_pipeline *pipeline, const struct stk_span *span,
                           const uint64_t *ids)
{
    if (!pipeline->device_cache.on)
        return false;
    bool all = true;
    for (uint32_t row = 0; row < span->rows && all; row++)
        all = stk_device_cache_holds(&pipeline->device_cache, ids[row]);
    memset(&span->slot->fresh[span->first_row], all ? 0 : 1, span->rows);
    return all;
}

static bool find_located_sources(const struct stk_pipeline *pipeline, struct stk_span *span,
                                 const uint64_t *ids)
{
    if (pipeline->field_plan.several)
        return stk_field_gather_can(pipeline, span);
    for (uint32_t row = 0; row < span->rows; row++) {
        span->sources[row] = stk_span_row_in_memory(pipeline, &span->samples[row], ids[row]);
        if (span->sources[row] == NULL)
            return false;
    }
    return true;
}

/* Until a lane makes them, rows are the host's. */
static void place_on_host(const struct stk_pipeline *pipeline, const struct stk_span *span)
{
    if (!pipeline->decode.on)
        return;
    int32_t *places = stk_device_decode_places(&pipeline->decode, span->batch);
    for (uint32_t row = 0; row < span->rows; row++)
        places[span->first_row + row] = STK_MADE_ON_HOST;
}

static int locate(struct stk_row_maker *maker, struct stk_span *span, stoker_error *error)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_dataset *dataset = pipeline->dataset;
    const uint64_t *ids = stk_span_id(span, 0);
    if (span->rows == 0) { /* a rank may have no rows of a batch */
        span->on_device = span->resident = false;
        return 0;
    }
    place_on_host(pipeline, span);
    int rc = stk_values_write(maker, span, 0, span->rows, error);
    if (rc != 0)
        return rc;
    /* Hooks run row by row, and a row that fails may need a substitute: then no span is resident. */
    const bool hooked = stk_hooks_rows(&pipeline->hooks);
    span->on_device = find_on_device(pipeline, span, ids);
    span->resident = span->on_device || (!hooked && find_sources(pipeline, span, ids));
    if (span->resident || span->part_count == 0)
        return 0;
    rc = stk_parts_locate(dataset, ids, span->rows, span->samples, error);
    if (rc != 0)
        return rc;
    span->resident = !hooked && find_located_sources(pipeline, span, ids);
    return 0;
}

void stk_span_lose(struct stk_span *span, const stoker_error *error)
{
    for (uint32_t row = 0; row < span->rows; row++)
        stk_bad_row_lose(span, row, error);
    if (span->rows == 0) /* a batch that could not be planned */
        stk_slot_fail(span->slot, 0, error);
    span->on_device = span->resident = false;
    span->started = span->rows;
    span->left = 0;
}

void stk_span_locate(struct stk_row_maker *maker, struct stk_span *span)
{
    stoker_error error;
    stk_error_clear(&error);
    if (locate(maker, span, &error) != 0)
        stk_span_lose(span, &error);
}

void stk_span_gather(struct stk_row_maker *maker, struct stk_span *span,
                     const struct stk_span *next)
{
    const bool several = maker->pipeline->field_plan.several;
    uint32_t ahead = 0;
    if (!several && next != NULL && next->resident && !next->on_device) {
        ahead = next->rows < STK_AHEAD_ROWS_MAX ? next->rows : STK_AHEAD_ROWS_MAX;
        /* Always the maximum: there is room, and a copy of known size is a few moves. */
        memcpy(span->sources + span->rows, next->sources,
               STK_AHEAD_ROWS_MAX * sizeof(next->sources[0]));
    }
    if (several && !span->on_device)
        stk_field_gather(maker, span);
    else if (!span->on_device)
        stk_image_rows_write(maker, span, ahead);
    stk_ledger_add(&maker->ledger->cache_hits, span->rows);
    span->started = span->rows;
    span->left = 0;
}
