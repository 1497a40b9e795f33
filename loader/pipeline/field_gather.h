/* field_gather.h - rows of several fields that are all in memory as stored: field by field, a span at a time.
 *
 *   field 0: row 0, row 1, ...  field 1: row 0, ...      each copy prefetches what comes a few copies later
 */
#ifndef STK_PIPELINE_FIELD_GATHER_H
#define STK_PIPELINE_FIELD_GATHER_H

#include "loader/pipeline/row_maker.h"

/* Returns true if every part of a located span is raw, in memory, and has the bytes of its fields, none of which
 * varies. */
bool stk_field_gather_can(const struct stk_pipeline *pipeline, const struct stk_span *span);

/* Write the fields of all rows of such a span. */
void stk_field_gather(struct stk_row_maker *maker, const struct stk_span *span);

#endif
