/* dataset_values.c - see dataset_values.h. */
#include "loader/pipeline/rows/dataset_values.h"

#include <string.h>

#include "loader/dataset/part.h"
#include "loader/pipeline/rows/image_row.h"

/* Fields that are widened later have rows of more bytes than values() writes: give each row its
 * place. */
static void spread(uint8_t *rows, size_t from_bytes, size_t stride_bytes, uint32_t count)
{
    for (uint32_t row = count; row-- > 1;)
        memmove(rows + row * stride_bytes, rows + row * from_bytes, from_bytes);
}

static int write_field(const struct stk_pipeline *pipeline, const struct stk_span *span,
                       uint32_t field, uint32_t first, uint32_t count, stoker_error *error)
{
    const stoker_dataset *dataset = pipeline->dataset;
    const struct stk_slot_field *place = &pipeline->slots.fields.each[field];
    const size_t bytes = dataset->fields[field].bytes;
    uint8_t *rows = stk_slot_field_row(place, span->slot->images, span->first_row + first);
    const int rc = stk_parts_values(dataset, field, stk_span_id(span, first), count, rows, error);
    if (place->stride_bytes != bytes)
        spread(rows, bytes, place->stride_bytes, count);
    return rc;
}

/* Field 0, if it is not delivered as stored: row by row through the worker's memory. */
static int write_changed(struct stk_row_maker *maker, const struct stk_span *span, uint32_t first,
                         uint32_t count, stoker_error *error)
{
    const stoker_dataset *dataset = maker->pipeline->dataset;
    int rc = 0;
    for (uint32_t row = first; row < first + count && rc == 0; row++) {
        rc = stk_parts_values(dataset, 0, stk_span_id(span, row), 1, maker->image, error);
        const struct stk_image image = stk_image_row_stored(maker->pipeline, maker->image);
        if (rc == 0)
            stk_image_row_write(maker, span, row, &image);
    }
    return rc;
}

int stk_values_write(struct stk_row_maker *maker, const struct stk_span *span, uint32_t first,
                     uint32_t count, stoker_error *error)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_dataset *dataset = pipeline->dataset;
    int rc = 0;
    for (uint32_t i = 0; i < dataset->info.field_count && rc == 0; i++) {
        if (dataset->fields[i].info.part != STOKER_NO_PART || dataset->ops->make != NULL)
            continue;
        if (i == 0 && pipeline->plan.finish != STK_FINISH_COPY)
            rc = write_changed(maker, span, first, count, error);
        else
            rc = write_field(pipeline, span, i, first, count, error);
    }
    return rc;
}
