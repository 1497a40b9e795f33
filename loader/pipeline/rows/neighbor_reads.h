/* neighbor_reads.h - one read for rows whose samples are contiguous, and one decode if the codec
 * can.
 *
 *   bytes   | row 0 ......|              equally long, at equal distances;
 *                     | row 1 ......|    they may overlap, as windows of tokens do
 *                               | row 2 ......|
 *
 *   begin ──┬─▶ NONE   the row is no part of a run: stk_row_begin()
 *           ├─▶ DONE   all rows of the run are in the slot
 *           ├─▶ READ   one read for all of them: take() its completion
 *           └─▶ ALONE  one of them is bad, perhaps: each is to be begun alone
 *
 * After a failure the rows are begun again one by one, so that each gets the result that it would
 * have gotten alone.
 */
#ifndef STK_PIPELINE_RUN_H
#define STK_PIPELINE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/rows/worker_scratch.h"

enum stk_run_step { STK_RUN_NONE, STK_RUN_DONE, STK_RUN_READ, STK_RUN_ALONE };

/* Begin the run that starts at a row of a located span that is not resident. order->run_rows is
 * the number of its rows, the rest of *order is set for READ; order->to is NULL if it needs
 * memory of fetch. */
enum stk_run_step stk_run_begin(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                                struct stk_read_order *order);

/* Continue a run with the read that has ended. DONE, ALONE, or NONE: take() each row with
 * stk_run_row(). */
enum stk_run_step stk_run_take(struct stk_row_maker *maker, const struct stk_completion *done);

/* The completion of row `i` of a run, as if it had been read alone. */
struct stk_completion stk_run_row(const struct stk_completion *done, uint32_t i);

#endif
