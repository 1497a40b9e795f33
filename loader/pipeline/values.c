/* values.c - see values.h. */
#include "loader/pipeline/values.h"

int stk_values_write(const struct stk_pipeline *pipeline, const struct stk_span *span,
                     uint32_t first, uint32_t count)
{
    const stoker_dataset *dataset = pipeline->dataset;
    if (span->slot->labels == NULL)
        return 0;
    const size_t bytes = stoker_dtype_bytes(dataset->info.label_dtype);
    const int rc = dataset->ops->values(
        dataset->self, (uint32_t)dataset->label, stk_span_id(span, first), count,
        (uint8_t *)span->slot->labels + (span->first_row + first) * bytes);
    return rc > 0 ? STOKER_EINVAL : rc; /* values() has no normal stop */
}
