/* field_gather.c - see field_gather.h. */
#include "loader/pipeline/field_gather.h"

#include <string.h>

#include "loader/pipeline/field_rows.h"
#include "loader/pipeline/image_row.h"

enum {
    LINE = 64,
    AHEAD_BYTES = 2048,
    LARGE_BYTES = 32 << 10 /* the processor prefetches most of such a field */
};

/* Bytes of a raw part; SIZE_MAX, which none has, if one of its fields varies. */
static size_t raw_bytes(const stoker_dataset *dataset, uint32_t part)
{
    const struct stk_part_fields own = dataset->part_fields[part];
    size_t bytes = 0;
    for (uint32_t i = own.first; i < own.first + own.count; i++) {
        if (dataset->fields[i].info.varies)
            return SIZE_MAX;
        bytes += dataset->fields[i].bytes;
    }
    return bytes;
}

bool stk_field_gather_can(const struct stk_pipeline *pipeline, const struct stk_span *span)
{
    for (uint32_t part = 0; part < span->part_count; part++) {
        const size_t bytes = raw_bytes(pipeline->dataset, part);
        for (uint32_t row = 0; row < span->rows; row++) {
            const stoker_part *at = stk_span_part(span, row, part);
            if (at->codec != NULL || at->extent.memory == NULL || at->extent.bytes != bytes)
                return false;
        }
    }
    return true;
}

/* Neither changed nor resized on the way to its batch. */
static bool is_copied(const struct stk_pipeline *pipeline, uint32_t field)
{
    const bool is_mask =
        pipeline->field_plan.masks != NULL && pipeline->field_plan.masks[field].pixel_bytes > 0;
    return !is_mask && (field > 0 || pipeline->plan.finish == STK_FINISH_COPY);
}

/* A sample's part, and what is copied after it. */
struct stream {
    const uint8_t *from, *next;
    size_t bytes;
};

/* Prefetch as many bytes as are copied now, from AHEAD_BYTES behind them: all at once, before the copy, which is a single
 * instruction on many processors. */
static void prefetch(const struct stream *stream, size_t at, size_t bytes)
{
    const size_t end = at + AHEAD_BYTES + bytes;
    size_t i = at + AHEAD_BYTES;
    for (; i < end && i < stream->bytes; i += LINE)
        __builtin_prefetch(stream->from + i, 0, 3);
    for (; i < end; i += LINE)
        __builtin_prefetch(stream->next + (i - stream->bytes), 0, 3);
}

/* The fields of one row of a part that are copied. */
static void copy_row(const struct stk_pipeline *pipeline, const struct stk_span *span, uint32_t row,
                     struct stk_part_fields own, const struct stream *stream)
{
    size_t at = 0;
    for (uint32_t i = own.first; i < own.first + own.count; i++) {
        const size_t bytes = pipeline->dataset->fields[i].bytes;
        uint8_t *to = stk_slot_field_row(&pipeline->slots.fields.each[i], span->slot->images,
                                         span->first_row + row);
        if (bytes < LARGE_BYTES)
            prefetch(stream, at, bytes);
        if (is_copied(pipeline, i))
            memcpy(to, stream->from + at, bytes);
        at += bytes;
    }
}

/* Row by row, since the fields of a part follow each other in memory. */
static void copy_rows(const struct stk_pipeline *pipeline, const struct stk_span *span,
                      uint32_t part, size_t bytes)
{
    const struct stk_part_fields own = pipeline->dataset->part_fields[part];
    for (uint32_t row = 0; row < span->rows; row++) {
        /* The row's next part, which is copied a span of rows later; of the last part, the next row. */
        const bool last = part + 1 == span->part_count;
        const uint32_t later = last && row + 1 < span->rows ? row + 1 : row;
        const struct stream stream = {
            .from = stk_span_part(span, row, part)->extent.memory,
            .next = stk_span_part(span, later, last ? part : part + 1)->extent.memory,
            .bytes = bytes,
        };
        copy_row(pipeline, span, row, own, &stream);
    }
}

/* A field that is changed on its way; `offset`: of the field in its part. */
static void write_changed(struct stk_row_maker *maker, const struct stk_span *span, uint32_t part,
                          uint32_t field, size_t offset)
{
    if (field == 0) { /* offset is 0 */
        for (uint32_t row = 0; row < span->rows; row++)
            span->sources[row] = stk_span_part(span, row, part)->extent.memory;
        stk_image_rows_write(maker, span, 0);
        return;
    }
    for (uint32_t row = 0; row < span->rows; row++) {
        const uint8_t *from = stk_span_part(span, row, part)->extent.memory;
        stk_field_rows_mask(maker, span, row, field, from + offset);
    }
}

void stk_field_gather(struct stk_row_maker *maker, const struct stk_span *span)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_dataset *dataset = pipeline->dataset;
    for (uint32_t part = 0; part < span->part_count; part++) {
        const struct stk_part_fields own = dataset->part_fields[part];
        size_t offset = 0;
        bool any = false;
        for (uint32_t i = own.first; i < own.first + own.count; i++) {
            if (!is_copied(pipeline, i))
                write_changed(maker, span, part, i, offset);
            any = any || is_copied(pipeline, i);
            offset += dataset->fields[i].bytes;
        }
        if (any)
            copy_rows(pipeline, span, part, offset);
    }
}
