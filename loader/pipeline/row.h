/* row.h - one row: find its bytes, decode, convert, or give it up. */
#ifndef STK_PIPELINE_ROW_H
#define STK_PIPELINE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/worker.h"

/* Look every row of a claimed span up: sets resident, and then sources and labels, or samples.
 * 0, or the error of a data set that lost a sample. */
int stk_row_locate(struct stk_worker *worker, struct stk_span *span, stoker_error *error);

/* Copy the labels of a span that is not resident, or not told by ids alone, to its slot. */
void stk_row_write_labels(const struct stk_worker *worker, const struct stk_span *span);

/* Convert all rows of a resident span, and ask for the first rows of the next one (or NULL). */
void stk_row_gather(struct stk_worker *worker, struct stk_span *span, const struct stk_span *next);

/* Begin a row. It is then complete, or a fetch for it is queued: the caller made sure that
 * one is free. */
void stk_row_start(struct stk_worker *worker, struct stk_span *span, uint32_t row);

/* Whether the bytes of a sample are its row: nothing to decode, but perhaps to verify. */
bool stk_row_is_stored(const stoker_sample *sample);

/* Verify the bytes of a row, if its codec can, before they are kept or decoded. False: they are
 * not as they were stored, and the row is given up. */
bool stk_row_verify(struct stk_worker *worker, struct stk_span *span, uint32_t row,
                    const uint8_t *bytes, size_t size);

/* Complete a row from its encoded bytes, which are verified. */
void stk_row_finish(struct stk_worker *worker, struct stk_span *span, uint32_t row,
                    const uint8_t *bytes, size_t size);

/* A row cannot be had: fail, skip, or begin its substitute. `what` is the part of the error's
 * message that a report is to keep; NULL = none. */
void stk_row_fail(struct stk_worker *worker, struct stk_span *span, uint32_t row,
                  const stoker_error *error, const char *what);

/* A row fails whatever the policy: the run ends with this error. */
void stk_row_lose(struct stk_span *span, uint32_t row, const stoker_error *error);

/* Errors for the row's sample with file and offset filled in. */
struct stk_place stk_row_place(const struct stk_worker *worker, const struct stk_span *span,
                               uint32_t row);

#endif
