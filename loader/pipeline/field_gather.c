/* field_gather.c - see field_gather.h. */
#include "loader/pipeline/field_gather.h"

#include <string.h>

#include "loader/pipeline/field_rows.h"
#include "loader/pipeline/image_row.h"

enum { LINE = 64, AHEAD_BYTES = 8192, AHEAD_COPIES_MAX = 16 };

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

/* Copy a row and prefetch another one of the same length. */
static void copy(uint8_t *to, const uint8_t *from, const uint8_t *later, size_t bytes)
{
    size_t at = 0;
    for (; at + LINE <= bytes; at += LINE) {
        __builtin_prefetch(later + at, 0, 3);
        memcpy(to + at, from + at, LINE);
    }
    if (at < bytes) {
        __builtin_prefetch(later + at, 0, 3);
        memcpy(to + at, from + at, bytes - at);
    }
}

/* One field of all rows; `offset`: of the field in its part. */
static void gather(const struct stk_pipeline *pipeline, const struct stk_span *span, uint32_t field,
                   size_t offset)
{
    const struct stk_field *stored = &pipeline->dataset->fields[field];
    const struct stk_slot_field *place = &pipeline->slots.fields.each[field];
    const uint32_t part = stored->info.part;
    const uint32_t last = span->rows - 1;
    const size_t distance = 1 + AHEAD_BYTES / stored->bytes;
    const uint32_t ahead = distance < AHEAD_COPIES_MAX ? (uint32_t)distance : AHEAD_COPIES_MAX;
    uint8_t *to = stk_slot_field_row(place, span->slot->images, span->first_row);
    for (uint32_t row = 0; row < span->rows; row++) {
        /* Behind the span's last row comes its first one, in a part that is read soon. */
        const bool more = row + ahead <= last;
        const uint32_t next = part + ahead < span->part_count ? part + ahead : part;
        const stoker_part *later =
            more ? stk_span_part(span, row + ahead, part) : stk_span_part(span, 0, next);
        const uint8_t *from = stk_span_part(span, row, part)->extent.memory;
        copy(to, from + offset, later->extent.memory, stored->bytes);
        to += place->stride_bytes;
    }
}

void stk_field_gather(struct stk_row_maker *maker, const struct stk_span *span)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_dataset *dataset = pipeline->dataset;
    for (uint32_t part = 0; part < span->part_count; part++) {
        const struct stk_part_fields own = dataset->part_fields[part];
        size_t offset = 0;
        for (uint32_t i = own.first; i < own.first + own.count; i++) {
            if (i == 0 && pipeline->plan.finish != STK_FINISH_COPY) {
                for (uint32_t row = 0; row < span->rows; row++)
                    span->sources[row] = stk_span_part(span, row, part)->extent.memory;
                stk_image_rows_write(maker, span, 0);
            } else if (pipeline->field_plan.masks != NULL &&
                       pipeline->field_plan.masks[i].pixel_bytes > 0) {
                for (uint32_t row = 0; row < span->rows; row++) {
                    const uint8_t *from = stk_span_part(span, row, part)->extent.memory;
                    stk_field_rows_mask(maker, span, row, i, from + offset);
                }
            } else {
                gather(pipeline, span, i, offset);
            }
            offset += dataset->fields[i].bytes;
        }
    }
}
