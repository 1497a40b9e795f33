/* picture.h - from a decoded image to its row: converted alone, or transformed as well.
 *
 *   decoded image ──┬─ nothing asked for ─▶ convert ──────────────────────────▶ row of the slot
 *                   └─ transforms ─▶ drawn by (seed, epoch, sample), converted ─▶
 *
 * A set that is resized to one size for good is cached as resized: what is random comes after it.
 */
#ifndef STK_PIPELINE_PICTURE_H
#define STK_PIPELINE_PICTURE_H

#include "loader/pipeline/worker.h"

/* An image in the data set's shape, and one as rows in the cache are. */
struct stk_image stk_picture_stored(const struct stk_pipeline *pipeline, const void *pixels);
struct stk_image stk_picture_cached(const struct stk_pipeline *pipeline, const void *pixels);

/* Write row `row` of a span from its image. */
void stk_picture_put(struct stk_worker *worker, const struct stk_span *span, uint32_t row,
                     const struct stk_image *picture);

/* Write all rows of a resident span from span->sources; `ahead` more of them are known. */
void stk_picture_put_all(struct stk_worker *worker, const struct stk_span *span, uint32_t ahead);

/* Keep an image of this sample that was decoded to the worker's own memory, if the cache takes it:
 * then *picture becomes the one in the cache. */
void stk_picture_keep(struct stk_worker *worker, const struct stk_span *span, uint64_t id,
                      struct stk_image *picture);

#endif
