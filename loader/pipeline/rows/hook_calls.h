/* hook_calls.h - shows a row, or a complete batch, of a slot to its hook.
 *
 *   row complete ─▶ fields, geometry ─▶ row hook
 *   last row of the batch ─▶ fields of all rows ─▶ batch hook ─▶ published
 */
#ifndef STK_PIPELINE_HOOK_CALLS_H
#define STK_PIPELINE_HOOK_CALLS_H

#include "loader/pipeline/rows/worker_scratch.h"

/* Call the row hook on a row that is in the slot. On failure *said has the message. */
int stk_hook_row(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                 stoker_error *said);

/* Call the batch hook on a batch that is complete but not published, unless one of its rows has
 * failed. A failure is noted in the slot. */
void stk_hook_batch(struct stk_row_maker *maker, uint64_t batch);

#endif
