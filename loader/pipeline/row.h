/* row.h - one row: find its bytes, decode, convert, or give up. */
#ifndef STK_PIPELINE_ROW_H
#define STK_PIPELINE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/worker.h"

/* Look up all rows of a claimed span: sets resident, with sources and labels, else samples. Returns 0 or the error
 * of locate(). */
int stk_row_locate(struct stk_worker *worker, struct stk_span *span, stoker_error *error);

/* Copy the labels of a span's samples to its slot. */
void stk_row_write_labels(const struct stk_worker *worker, const struct stk_span *span);

/* Convert all rows of a resident span and prefetch the first rows of the next one (or NULL). */
void stk_row_gather(struct stk_worker *worker, struct stk_span *span, const struct stk_span *next);

/* Start a row: complete it, or queue a fetch for it. A fetch must be free. */
void stk_row_start(struct stk_worker *worker, struct stk_span *span, uint32_t row);

/* Returns true if the bytes of a sample are its row: not decoded, but perhaps verified. */
bool stk_row_is_stored(const stoker_sample *sample);

/* Verify the bytes of a row, if its codec can, before they are cached or decoded. Returns false if they are corrupt:
 * the row has failed then. */
bool stk_row_verify(struct stk_worker *worker, struct stk_span *span, uint32_t row,
                    const uint8_t *bytes, size_t size);

/* Complete a row from its verified bytes. */
void stk_row_finish(struct stk_worker *worker, struct stk_span *span, uint32_t row,
                    const uint8_t *bytes, size_t size);

/* A row failed: fail the batch, skip the row, or start a substitute, by the policy. `what`: the part of the message
 * that a report keeps; NULL = none. */
void stk_row_fail(struct stk_worker *worker, struct stk_span *span, uint32_t row,
                  const stoker_error *error, const char *what);

/* A row failed, regardless of the policy: the run ends with this error. */
void stk_row_lose(struct stk_span *span, uint32_t row, const stoker_error *error);

/* The row's sample, file and offset, for errors. */
struct stk_place stk_row_place(const struct stk_worker *worker, const struct stk_span *span,
                               uint32_t row);

#endif
