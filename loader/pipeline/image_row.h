/* image_row.h - writes a decoded image to its row: converted, and transformed if asked for.
 *
 *   decoded image ──┬─ no transform ─▶ convert ───────────────────────────────────┬─▶ row of the slot
 *                   └─ transform, drawn by (seed, epoch, sample id) ─▶ convert ───┘
 *
 * Of an image that is not cached only the part is decoded that the draw leaves visible: the codec measures it, then the
 * draw is made, then the codec decodes that part.
 *
 * If all images are resized to one fixed size, the cache holds them resized: the random part comes after.
 */
#ifndef STK_PIPELINE_IMAGE_ROW_H
#define STK_PIPELINE_IMAGE_ROW_H

#include "loader/pipeline/row_maker.h"

/* Describe pixels in the data set's shape, and pixels as the cache holds them. */
struct stk_image stk_image_row_stored(const struct stk_pipeline *pipeline, const void *pixels);
struct stk_image stk_image_row_cached(const struct stk_pipeline *pipeline, const void *pixels);

/* Find the part of an image of that size that its row needs, and the cache, if it takes images of that size. */
void stk_image_row_region(const struct stk_pipeline *pipeline, uint64_t epoch, uint64_t id,
                          stoker_size size, stoker_region *out);

/* Write row `row` of a span. */
void stk_image_row_write(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                         const struct stk_image *image);

/* Write all rows of a resident span from span->sources, which holds `ahead` more pointers to prefetch. */
void stk_image_rows_write(struct stk_row_maker *maker, const struct stk_span *span, uint32_t ahead);

/* Copy an image from the worker's own memory to the cache, if it takes it: *image then describes the copy. */
void stk_image_row_cache(struct stk_row_maker *maker, const struct stk_span *span, uint64_t id,
                         struct stk_image *image);

#endif
