/* cache_fill.h - writes the cache: the only place that does.
 *
 *   raw samples in files     a read fills the block of neighbours directly        aim ─▶ commit_read | cancel
 *   whole files              read to other memory first, then copied              copy
 *   decoded rows, images     made in their place                                  begin ─▶ commit | cancel
 *   several fields or parts  a record of all, made part by part                   begin_record ─▶ commit | cancel
 *
 * Only verified bytes are cached. */
#ifndef STK_PIPELINE_CACHE_FILL_H
#define STK_PIPELINE_CACHE_FILL_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/pipeline.h"
#include "loader/pipeline/span.h"

/* Returns true if the bytes of a sample are its row: not decoded, but perhaps verified. */
static inline bool stk_sample_is_row(const stoker_part *sample)
{
    return sample->codec == NULL || sample->codec->bytes_are_row;
}

/* Let the read fill the cache block of its sample: one read for all rows of the block. Returns false if the cache
 * does not take it. */
bool stk_cache_fill_aim(struct stk_pipeline *pipeline, struct stk_read_order *order);

/* Publish the block of a sample that such a read has filled, or drop it. */
void stk_cache_fill_commit_read(struct stk_pipeline *pipeline, const struct stk_completion *done);
void stk_cache_fill_cancel(struct stk_pipeline *pipeline, uint64_t id);

/* Copy the verified bytes of a whole file that was read to other memory, if they fit. */
void stk_cache_fill_copy(struct stk_pipeline *pipeline, const struct stk_completion *done);

/* The place of a decoded row, to be made there and then committed or cancelled. NULL: the cache does not take it. */
uint8_t *stk_cache_fill_begin(struct stk_pipeline *pipeline, uint64_t batch, uint64_t id);
void stk_cache_fill_commit(struct stk_pipeline *pipeline, uint64_t id);

/* The record of a sample of several fields or parts, ENCODED or DECODED. The same. */
uint8_t *stk_cache_fill_begin_record(struct stk_pipeline *pipeline, uint64_t batch, uint64_t id);

#endif
