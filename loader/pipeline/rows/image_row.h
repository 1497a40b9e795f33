/* image_row.h - writes a decoded image to its row: converted, and transformed if asked for.
 *
 *   decoded image ──┬─ no transform ─▶ convert ─────────────────────────────────┬─▶ row of the slot
 *                   └─ transform, drawn by (seed, epoch, sample id) ─▶ convert ─┘
 *
 * Of an image that is not cached only the part is decoded that the draw leaves visible: the codec
 * measures it, then the draw is made, then the codec decodes that part.
 *
 * If all images are resized to one fixed size, the cache holds them resized: the random part
 * comes after.
 */
#ifndef STK_PIPELINE_IMAGE_ROW_H
#define STK_PIPELINE_IMAGE_ROW_H

#include "loader/pipeline/rows/worker_scratch.h"

/* Describe pixels in the data set's shape, and pixels as the cache holds them. */
struct stk_image stk_image_row_stored(const struct stk_pipeline *pipeline, const void *pixels);
struct stk_image stk_image_row_cached(const struct stk_pipeline *pipeline, const void *pixels);

/* Decode a part that fills maker->rows[0..count), the image first, which is decoded in its own size
 * to maker->image: only the part that the row needs, if the codec can. Describes what was decoded
 * in *image. Returns 0 or the codec's error. */
int stk_image_row_decode(struct stk_row_maker *maker, const struct stk_part_ref *ref,
                         uint32_t count, struct stk_image *image, stoker_error *said);

/* Copy an image to `to` as the cache holds it, resized or as decoded; *image then describes the
 * copy. Returns false if it has another size than the cache's rows. */
bool stk_image_row_keep(struct stk_row_maker *maker, struct stk_image *image, uint8_t *to);

/* Write row `row` of a span. */
void stk_image_row_write(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                         const struct stk_image *image);

/* Write all rows of a resident span from rows[0..span->rows), which `ahead` more pointers to
 * prefetch follow. */
void stk_image_rows_write(struct stk_row_maker *maker, const struct stk_span *span,
                          const void *const *rows, uint32_t ahead);

#endif
