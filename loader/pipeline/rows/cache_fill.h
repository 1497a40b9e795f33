/* cache_fill.h - write samples to the cache. No other file writes to it.
 *
 *   begin ─▶ read or make the record's parts in its place ─▶ commit | cancel
 *
 * If samples lie side by side in a file, one read brings in a block of neighbors (widen). Only
 * verified bytes are cached. */
#ifndef STK_PIPELINE_CACHE_FILL_H
#define STK_PIPELINE_CACHE_FILL_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/plan/pipeline.h"
#include "loader/pipeline/slots/span.h"

/* The record of a row's sample if it is held; NULL if not, or if locate() now reports a longer
 * one. */
const uint8_t *stk_cache_fill_find(const struct stk_pipeline *pipeline, const struct stk_span *span,
                                   uint32_t row);

/* Begin the record of a row's sample: sets span->records[row], which stays NULL if the cache does
 * not take it. */
void stk_cache_fill_begin(struct stk_pipeline *pipeline, struct stk_span *span, uint32_t row);

/* Let a read of a part into its record read the whole block. */
void stk_cache_fill_widen(const struct stk_pipeline *pipeline, struct stk_read_order *order);

/* Publish the record of a row, or drop it, if there is one: sets span->records[row] to NULL. No
 * read into the record may be under way. */
void stk_cache_fill_commit(struct stk_pipeline *pipeline, struct stk_span *span, uint32_t row);
void stk_cache_fill_cancel(struct stk_pipeline *pipeline, struct stk_span *span, uint32_t row);

#endif
