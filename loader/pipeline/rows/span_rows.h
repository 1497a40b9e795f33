/* span_rows.h - all rows of a span at once: look them up, and gather them if every one is in
 * memory. Other rows are made one at a time (row.h).
 *
 *   locate ──┬─▶ resident     each row is in memory, as stored or in the cache: gather each field
 *            ├─▶ on_device    the GPU holds each row: only ids, labels and flags are left to write
 *            └─▶ samples[]    row.h begins each row
 */
#ifndef STK_PIPELINE_SPAN_ROWS_H
#define STK_PIPELINE_SPAN_ROWS_H

#include <stdint.h>

#include "loader/pipeline/rows/worker_scratch.h"

/* Look up all rows of a claimed span and write their fields from values(): sets resident, with
 * sources, else samples. If locate() or values() fails, all rows are lost: then span->started is
 * span->rows, and left is 0. */
void stk_span_locate(struct stk_row_maker *maker, struct stk_span *span);

/* Give up all rows of a span: the run ends with the error. */
void stk_span_lose(struct stk_span *span, const stoker_error *error);

/* Locate rows again, which located before. */
void stk_span_relocate(const struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                       uint32_t rows);

/* After stk_recall_enter(): locate the rows that have not started again, if `turn` is a later one;
 * then the span is not resident. */
void stk_span_renew(const struct stk_row_maker *maker, struct stk_span *span, uint32_t turn);

/* Convert all rows of a resident span and prefetch the first rows of the next one (or NULL). */
void stk_span_gather(struct stk_row_maker *maker, struct stk_span *span,
                     const struct stk_span *next);

#endif
