/* dataset_values.h - the fields of a span's rows that come from values(), not from parts. */
#ifndef STK_PIPELINE_VALUES_H
#define STK_PIPELINE_VALUES_H

#include "loader/pipeline/rows/worker_scratch.h"

/* Write them for rows first..first + count - 1 of a span, whose ids are set. Returns 0 or a
 * stoker_err < 0, which *error explains. */
int stk_values_write(struct stk_row_maker *maker, const struct stk_span *span, uint32_t first,
                     uint32_t count, stoker_error *error);

#endif
