/* row.h - the rows of a span: locate, decode, transform, write. What a row needs next is the answer; the worker does it.
 *
 *   begin ──┬─▶ DONE    the row is in the slot, or its failure is noted there
 *           ├─▶ READ    maker->orders[order_count] must be read: take() each completion, with the same answers
 *           └─▶ AGAIN   a part was bad: the row has a substitute now, and begins again
 *
 * A row is DONE when all its parts are and its hook has run. A part that fails makes the sample bad; that is settled when no other read of
 * the row is under way, by the lowest bad part, so that every run reports the same.
 */
#ifndef STK_PIPELINE_ROW_H
#define STK_PIPELINE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/row_maker.h"

enum stk_row_step { STK_ROW_DONE, STK_ROW_READ, STK_ROW_AGAIN };

/* Look up all rows of a claimed span: sets resident, with sources and labels, else samples. If locate() fails, all
 * rows are lost: then span->started is span->rows, and left is 0. */
void stk_row_locate(struct stk_row_maker *maker, struct stk_span *span);

/* Give up all rows of a span: the run ends with the error. */
void stk_row_lose_all(struct stk_span *span, const stoker_error *error);

/* Convert all rows of a resident span and prefetch the first rows of the next one (or NULL). */
void stk_row_gather(struct stk_row_maker *maker, struct stk_span *span,
                    const struct stk_span *next);

/* Begin a row of a located span that is not resident. */
enum stk_row_step stk_row_begin(struct stk_row_maker *maker, struct stk_span *span, uint32_t row);

/* Continue a row with a read that has ended. READ may come without orders: other reads of the row are under way. */
enum stk_row_step stk_row_take(struct stk_row_maker *maker, const struct stk_completion *done);

#endif
