/* span_rows.c - see span_rows.h. */
#include "loader/pipeline/rows/span_rows.h"

#include <assert.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/dataset/part.h"
#include "loader/dataset/recall.h"
#include "loader/pipeline/rows/bad_row.h"
#include "loader/pipeline/rows/dataset_values.h"
#include "loader/pipeline/rows/field_rows.h"
#include "loader/pipeline/rows/file_pieces.h"
#include "loader/pipeline/rows/hook_calls.h"
#include "loader/pipeline/rows/image_row.h"

enum {
    PREFETCH_BYTES = 4096,          /* ahead of a copy; the processor finds more of a large row */
    PREFETCH_SPAN_BYTES = 128 << 10 /* prefetched of a span at most: a fraction of any L2 cache */
};

/* ---- look up ---- */

static void find_at(const struct stk_span *span, uint32_t part, const uint64_t *ids,
                    const uint8_t *rows, size_t stride_bytes)
{
    const uint32_t count = span->rows; /* the compiler must assume that stores change *span */
    const void **sources = stk_span_sources(span, part);
    for (uint32_t row = 0; row < count; row++)
        sources[row] = rows + ids[row] * stride_bytes;
}

/* Find all rows by their ids alone, without locate(). If the cache holds resized images it must
 * hold all rows of a span, which have one size. */
static bool find_sources(const struct stk_pipeline *pipeline, struct stk_span *span,
                         const uint64_t *ids)
{
    const struct stk_cache *cache = &pipeline->cache;
    const void *const *rows = pipeline->dataset->part_rows;
    span->from_cache = rows == NULL || pipeline->plan.cached == STK_CACHED_RESIZED;
    for (uint32_t part = 0; !span->from_cache && part < span->part_count; part++)
        find_at(span, part, ids, rows[part], pipeline->field_plan.parts[part].raw_bytes);
    if (!span->from_cache)
        return true;
    if (!stk_pipeline_caches_records(pipeline))
        return false;
    if (stk_cache_holds_all(cache, pipeline->dataset->info.count)) {
        const uint32_t count = span->rows; /* as in find_at() */
        const void **sources = span->sources;
        for (uint32_t row = 0; row < count; row++)
            sources[row] = stk_cache_held(cache, ids[row]);
        return true;
    }
    for (uint32_t row = 0; row < span->rows; row++) {
        span->sources[row] = stk_cache_find(cache, ids[row]);
        if (span->sources[row] == NULL)
            return false;
    }
    return true;
}

/* Returns true if the GPU holds all rows of a span. Otherwise they are marked fresh;
 * stk_row_begin() clears the mark of rows that are held. */
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

/* Returns true if all parts of a located span are raw, in memory, and have the bytes of their
 * fields. Not if the cache holds resized images: all rows of a span must have one size. */
static bool find_located_sources(const struct stk_pipeline *pipeline, struct stk_span *span)
{
    if (pipeline->plan.route != STK_ROUTE_GATHER || pipeline->plan.cached == STK_CACHED_RESIZED)
        return false;
    span->from_cache = false;
    const uint32_t count = span->rows, parts = span->part_count;
    for (uint32_t part = 0; part < parts; part++) {
        const size_t bytes = pipeline->field_plan.parts[part].raw_bytes;
        const stoker_part *at = stk_span_part(span, 0, part);
        const void **sources = stk_span_sources(span, part);
        for (uint32_t row = 0; row < count; row++, at += parts) {
            if (at->codec != NULL || at->extent.memory == NULL || at->extent.bytes != bytes)
                return false;
            sources[row] = at->extent.memory;
        }
    }
    return true;
}

/* Prefetch the samples of a located span that lie in memory into the L2 cache: their decoder would
 * wait for each. The processor prefetches samples in order by itself. Must be inlined: gcc removes
 * calls of a function that only prefetches. */
static inline __attribute__((always_inline)) void prefetch_samples(
    const struct stk_pipeline *pipeline, const struct stk_span *span)
{
    const uint32_t count = pipeline->plan.runs ? 0 : span->rows * span->part_count;
    size_t left = PREFETCH_SPAN_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        const stoker_extent *extent = &span->samples[i].extent;
        if (extent->memory == NULL || extent->bytes > left)
            return;
        left -= extent->bytes;
        for (size_t at = 0; at < extent->bytes; at += STK_CACHE_LINE)
            __builtin_prefetch((const uint8_t *)extent->memory + at, 0, 2);
    }
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
    /* Hooks run row by row, and a row that fails may need a substitute: then no span is
     * resident. */
    const bool hooked = stk_hooks_rows(&pipeline->hooks);
    span->on_device = find_on_device(pipeline, span, ids);
    span->resident = span->on_device || (!hooked && find_sources(pipeline, span, ids));
    if (span->resident || span->part_count == 0)
        return 0;
    span->turn = stk_recall_turn();
    rc = stk_parts_locate(dataset, ids, span->rows, span->samples, error);
    if (rc != 0)
        return rc;
    if (pipeline->first_pieces != NULL)
        stk_file_pieces_find(maker, span);
    span->resident = !hooked && find_located_sources(pipeline, span);
    if (!span->resident)
        prefetch_samples(pipeline, span);
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

void stk_span_relocate(const struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                       uint32_t rows)
{
    stoker_error unused; /* it has located them before */
    const int rc = rows == 0 ? 0
                             : stk_parts_locate(maker->pipeline->dataset, stk_span_id(span, row),
                                                rows, stk_span_part(span, row, 0), &unused);
    assert(rc == 0);
    (void)rc;
}

void stk_span_renew(const struct stk_row_maker *maker, struct stk_span *span, uint32_t turn)
{
    const bool is_located = !span->on_device && !(span->resident && span->from_cache);
    if (!maker->pipeline->dataset->recalls || span->turn == turn || span->part_count == 0 ||
        !is_located)
        return;
    span->turn = turn;
    span->resident = false;
    stk_span_relocate(maker, span, span->started, span->rows - span->started);
}

/* ---- gather ---- */

/* Add the first rows of the next span, to be prefetched. Returns their number. */
static uint32_t look_ahead(const struct stk_span *span, const struct stk_span *next)
{
    if (next == NULL || !next->resident || next->on_device || next->from_cache != span->from_cache)
        return 0;
    const uint32_t lists = span->from_cache ? 1 : span->part_count;
    for (uint32_t part = 0; part < lists; part++)
        /* Always the maximum: there is room, and a copy of known size is a few moves. */
        memcpy(stk_span_sources(span, part) + span->rows, stk_span_sources(next, part),
               STK_AHEAD_ROWS_MAX * sizeof(next->sources[0]));
    return next->rows < STK_AHEAD_ROWS_MAX ? next->rows : STK_AHEAD_ROWS_MAX;
}

/* Copy a field of one length that lies at `offset` in each source. */
static void copy_rows(const struct stk_pipeline *pipeline, const struct stk_span *span,
                      uint32_t field, const void *const *sources, size_t offset, uint32_t ahead)
{
    const struct stk_slot_field *place = &pipeline->slots.fields.each[field];
    const size_t bytes = pipeline->dataset->fields[field].bytes, stride = place->stride_bytes;
    const size_t fetched = bytes < PREFETCH_BYTES ? bytes : PREFETCH_BYTES;
    const uint32_t count = span->rows, known = count + ahead;
    const size_t rows = PREFETCH_BYTES / fetched;
    const uint32_t distance = rows < STK_AHEAD_ROWS_MAX ? (uint32_t)rows : STK_AHEAD_ROWS_MAX;
    uint8_t *to = stk_slot_field_row(place, span->slot->images, span->first_row);
    for (uint32_t row = 0; row < count; row++, to += stride) {
        const uint8_t *later = sources[row + distance < known ? row + distance : row];
        for (size_t at = 0; at < fetched; at += STK_CACHE_LINE)
            __builtin_prefetch(later + offset + at, 0, 3);
        memcpy(to, (const uint8_t *)sources[row] + offset, bytes);
    }
}

/* Write one field of all rows of a span, which lies at `offset` in each source. */
static void gather_field(struct stk_row_maker *maker, const struct stk_span *span, uint32_t field,
                         const void *const *sources, size_t offset, uint32_t ahead)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const bool varies = pipeline->dataset->fields[field].info.varies;
    if (field == 0 && !varies) { /* the first of its part, and of a record */
        assert(offset == 0);
        stk_image_rows_write(maker, span, sources, ahead);
    } else if (!varies && !stk_field_is_mask(&pipeline->field_plan, field)) {
        copy_rows(pipeline, span, field, sources, offset, ahead);
    } else {
        for (uint32_t row = 0; row < span->rows; row++)
            stk_field_rows_write(maker, span, row, field, (const uint8_t *)sources[row] + offset);
    }
}

void stk_span_gather(struct stk_row_maker *maker, struct stk_span *span,
                     const struct stk_span *next)
{
    const stoker_dataset *dataset = maker->pipeline->dataset;
    const struct stk_field_plan *plan = &maker->pipeline->field_plan;
    const uint32_t ahead = span->on_device ? 0 : look_ahead(span, next);
    size_t at = 0; /* in a raw part, whose fields follow each other */
    for (uint32_t i = 0; !span->on_device && i < dataset->info.field_count; i++) {
        const uint32_t part = dataset->fields[i].info.part;
        if (part == STOKER_NO_PART)
            continue;
        at = i == plan->parts[part].own.first ? 0 : at;
        if (span->from_cache)
            gather_field(maker, span, i, span->sources, plan->record_at[i], ahead);
        else
            gather_field(maker, span, i, stk_span_sources(span, part), at, ahead);
        at += dataset->fields[i].bytes;
    }
    stk_ledger_add(&maker->ledger->cache_hits, span->rows);
    span->started = span->rows;
    span->left = 0;
}
