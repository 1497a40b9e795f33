/* row.h - one row at a time: decode, transform, write. The result tells the worker what the row
 * needs next.
 *
 *   begin ──┬─▶ DONE    the row is in the slot, or its failure is noted there
 *           ├─▶ READ    maker->orders[order_count] must be read: take() each completion; answers as begin()
 *           └─▶ AGAIN   a part was bad: the row has a substitute now, and begins again
 *
 * An image that a GPU decodes waits in the worker's lane (decode_lane.h) after begin() or take()
 * have answered READ; decode() runs the lane, and decoded() then has the answer for each.
 *
 * A row is DONE when all its parts are and its hook has run. A part that fails makes the sample
 * bad; that is settled when no other read of the row is under way, by the lowest bad part, so
 * that every run reports the same.
 */
#ifndef STK_PIPELINE_ROW_H
#define STK_PIPELINE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/rows/worker_scratch.h"

/* LATER: inside next(), the row has to begin again in a later call. */
enum stk_row_step { STK_ROW_DONE, STK_ROW_READ, STK_ROW_AGAIN, STK_ROW_LATER };

/* Begin a row of a located span that is not resident (span_rows.h). */
enum stk_row_step stk_row_begin(struct stk_row_maker *maker, struct stk_span *span, uint32_t row);

/* Continue a row with a read that has ended. READ may come without orders: other reads of the row
 * are under way. */
enum stk_row_step stk_row_take(struct stk_row_maker *maker, const struct stk_completion *done);

/* Returns true if stk_row_decode() must come before the next row is begun or continued. */
static inline bool stk_row_must_decode(const struct stk_row_maker *maker)
{
    return maker->lane != NULL && stk_decode_lane_is_full(maker->lane);
}

/* Let the GPU decode the images that wait. Returns their number, for each of which decoded() is
 * called before another row is begun. */
uint32_t stk_row_decode(struct stk_row_maker *maker);

/* Continue the row of image `index`; sets *span. */
enum stk_row_step stk_row_decoded(struct stk_row_maker *maker, uint32_t index,
                                  struct stk_span **span, uint32_t *row);

/* All images have been taken. */
static inline void stk_row_decoded_all(struct stk_row_maker *maker)
{
    stk_decode_lane_clear(maker->lane);
}

#endif
