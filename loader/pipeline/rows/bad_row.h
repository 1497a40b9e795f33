/* bad_row.h - apply the policy on_bad_sample to a row whose sample cannot be delivered.
 *
 *   FAIL         the batch fails; the run ends there
 *   SKIP         a note in the slot; the consumer closes the gap
 *   SUBSTITUTE   a note in the slot, and another sample for the row
 */
#ifndef STK_PIPELINE_BAD_ROW_H
#define STK_PIPELINE_BAD_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/base/error.h"
#include "loader/pipeline/rows/worker_scratch.h"

/* Where a part of a row is stored, for errors. */
struct stk_place stk_bad_row_place(const struct stk_row_maker *maker, const struct stk_span *span,
                                   uint32_t row, uint32_t part);

/* A row failed. `what`: the part of the message that a report keeps, or "". Returns true if the row
 * has another sample now, located; else it is complete. */
bool stk_bad_row_settle(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                        uint32_t part, const stoker_error *error, const char *what);

/* A row failed, regardless of the policy: the run ends with this error. */
void stk_bad_row_lose(const struct stk_span *span, uint32_t row, const stoker_error *error);

#endif
