/* field_rows.h - from the bytes of one part to the rows of its fields.
 *
 *   bytes ─┬─ raw ──────────────────────────────────────┬─▶ slot, and the length if it varies
 *          └─ codec ─┬─▶ row of the slot ───────────────┤   delivered as stored
 *                    ├─▶ worker's memory ───────────────┤   field 0 and masks: transform, convert
 *                    └─▶ record in the cache ─▶ copy ... ┘   if the cache takes the sample
 */
#ifndef STK_PIPELINE_FIELD_ROWS_H
#define STK_PIPELINE_FIELD_ROWS_H

#include "loader/pipeline/rows/worker_scratch.h"

/* Make the fields of a part from its verified bytes: write them to the slot, and to the decoded
 * record of the sample if there is one; it is dropped if the image does not fit there. Returns 0
 * or the error, with its message in *said. */
int stk_field_rows_make(struct stk_row_maker *maker, const struct stk_part_ref *ref,
                        stoker_error *said);

/* The row's parts are made: check that its masks have the size of its image. Returns 0, or
 * STOKER_EFORMAT with the part of the first mask that has not in *part, and the reason in *said. */
int stk_field_rows_check_sizes(const struct stk_row_maker *maker, const struct stk_span *span,
                               uint32_t row, uint32_t *part, stoker_error *said);

/* Let the data set make all fields of a sample: its make(). Returns 0 or the error, with its
 * message in *said. */
int stk_field_rows_call_make(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                             stoker_error *said);

/* Write a field from its row in a decoded record; a mask, or one that does not vary, also from
 * its row in a raw part. */
void stk_field_rows_write(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                          uint32_t field, const uint8_t *from);

#endif
