/* values.c - see values.h. */
#include "loader/pipeline/values.h"

int stk_values_write(const struct stk_pipeline *pipeline, const struct stk_span *span,
                     uint32_t first, uint32_t count)
{
    const stoker_dataset *dataset = pipeline->dataset;
    if (span->slot->labels == NULL)
        return 0;
    const struct stk_slot_field *place = &pipeline->slots.fields.each[dataset->label];
    /* values() writes dense rows: one by one if each has more room, for another type. */
    const bool dense = place->stride_bytes == stoker_dtype_bytes(dataset->info.label_dtype);
    const uint32_t step = dense ? count : 1;
    int rc = 0;
    for (uint32_t row = first; row < first + count && rc == 0; row += step)
        rc = dataset->ops->values(
            dataset->self, (uint32_t)dataset->label, stk_span_id(span, row), step,
            stk_slot_field_row(place, span->slot->images, span->first_row + row));
    return rc > 0 ? STOKER_EINVAL : rc; /* values() has no normal stop */
}
