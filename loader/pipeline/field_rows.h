/* field_rows.h - rows of samples with several fields or parts: from the bytes of a part to the rows of its fields.
 *
 *   bytes ─▶ codec ─▶ row of the slot ───────────────────────────────────┐ fields delivered as stored
 *              │                                                         ├─▶ slot, and the length if it varies
 *              ├──▶ worker's memory ─▶ transform or convert ─────────────┤ field 0 and masks, if they are changed
 *              └──▶ record in the cache ─▶ copy, transform or convert ───┘ if the cache takes the sample
 */
#ifndef STK_PIPELINE_FIELD_ROWS_H
#define STK_PIPELINE_FIELD_ROWS_H

#include "loader/pipeline/row_maker.h"

/* Decode a part's verified bytes and write its fields. record: the sample's, being filled, or NULL; it becomes NULL if
 * the image does not fit there. Returns 0 or the error, with its message in *said. */
int stk_field_rows_make(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                        uint32_t part, const stoker_encoded *encoded, uint8_t **record,
                        stoker_error *said);

/* Write a mask with the geometry of its image from its pixels as stored. */
void stk_field_rows_mask(const struct stk_row_maker *maker, const struct stk_span *span,
                         uint32_t row, uint32_t field, const void *pixels);

/* The row's parts are made: check that its masks have the size of its image. Returns 0, or STOKER_EFORMAT with the part of the
 * first mask that has not in *part, and the reason in *said. */
int stk_field_rows_check_sizes(const struct stk_row_maker *maker, const struct stk_span *span,
                               uint32_t row, uint32_t *part, stoker_error *said);

/* Let the data set make all fields of a sample: its make(). Returns 0 or the error, with its message in *said. */
int stk_field_rows_call_make(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                             stoker_error *said);

/* Write all fields of a sample from its decoded record. */
void stk_field_rows_write(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                          uint8_t *record);

#endif
