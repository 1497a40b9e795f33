/* image_row.c - see image_row.h. */
#include "loader/pipeline/image_row.h"

#include <string.h>

#include "loader/pipeline/cache_fill.h"

static uint8_t *row_at(const struct stk_pipeline *pipeline, const struct stk_span *span,
                       uint32_t row)
{
    return stk_pipeline_row(pipeline, span->slot, span->first_row + row);
}

struct stk_image stk_image_row_stored(const struct stk_pipeline *pipeline, const void *pixels)
{
    const stoker_dataset_info *set = &pipeline->dataset->info;
    if (pipeline->plan.finish != STK_FINISH_TRANSFORM)
        return (struct stk_image){ .pixels = pixels };
    return (struct stk_image){ .pixels = pixels,
                               .height = (uint32_t)set->shape[0],
                               .width = (uint32_t)set->shape[1] };
}

struct stk_image stk_image_row_cached(const struct stk_pipeline *pipeline, const void *pixels)
{
    if (pipeline->plan.cached != STK_CACHED_RESIZED)
        return stk_image_row_stored(pipeline, pixels);
    return (struct stk_image){ .pixels = pixels,
                               .height = pipeline->transform.framing.resize_height,
                               .width = pipeline->transform.framing.resize_width };
}

/* Returns true if the cache's rows are made of images of that size. */
static bool may_be_cached(const struct stk_pipeline *pipeline, uint32_t height, uint32_t width)
{
    const stoker_dataset_info *set = &pipeline->dataset->info;
    return pipeline->plan.cached == STK_CACHED_RESIZED ||
           (height == set->shape[0] && width == set->shape[1]);
}

void stk_image_row_region(const struct stk_pipeline *pipeline, uint64_t epoch, uint64_t id,
                          stoker_size size, stoker_region *out)
{
    const struct stk_transform_plan *plan = &pipeline->transform;
    if (pipeline->plan.cached == STK_CACHED_RESIZED)
        stk_transform_resize_region(plan, size.height, size.width, out);
    else if (pipeline->plan.cached == STK_CACHED_DECODED &&
             may_be_cached(pipeline, size.height, size.width))
        *out = (stoker_region){ 0, 0, size.height, size.width, 8 };
    else
        stk_transform_region(plan, size.height, size.width, epoch, id, out);
}

void stk_image_row_write(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                         const struct stk_image *image)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const void *pixels = image->pixels;
    uint8_t *to = row_at(pipeline, span, row);
    if (span->sizes != NULL) /* for the row hook */
        span->sizes[row] = image->eighths == 0
                               ? (stoker_size){ image->height, image->width }
                               : (stoker_size){ image->whole_height, image->whole_width };
    if (pipeline->plan.finish == STK_FINISH_TRANSFORM)
        stk_transform_row(&pipeline->transform, maker->transform, image, span->epoch,
                          span->slot->ids[span->first_row + row], NULL, to);
    else
        pipeline->convert.rows(&pipeline->convert, &pixels, 1, 0, to);
}

void stk_image_rows_write(struct stk_row_maker *maker, const struct stk_span *span, uint32_t ahead)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    if (pipeline->plan.finish != STK_FINISH_TRANSFORM) {
        pipeline->convert.rows(&pipeline->convert, span->sources, span->rows, ahead,
                               row_at(pipeline, span, 0));
        return;
    }
    const struct stk_image image = stk_image_row_cached(pipeline, span->sources[0]);
    stk_transform_rows(&pipeline->transform, maker->transform, span->sources, image.height,
                       image.width, span->rows, ahead, span->epoch,
                       &span->slot->ids[span->first_row], row_at(pipeline, span, 0));
}

void stk_image_row_cache(struct stk_row_maker *maker, const struct stk_span *span, uint64_t id,
                         struct stk_image *image)
{
    struct stk_pipeline *pipeline = maker->pipeline;
    const bool is_part = image->eighths != 0;
    const bool fits = may_be_cached(pipeline, is_part ? image->whole_height : image->height,
                                    is_part ? image->whole_width : image->width);
    uint8_t *to = fits ? stk_cache_fill_begin(pipeline, span->batch, id) : NULL;
    if (to == NULL)
        return;
    if (pipeline->plan.cached == STK_CACHED_RESIZED)
        stk_transform_resize(&pipeline->transform, maker->transform, image, to);
    else
        memcpy(to, image->pixels, pipeline->cache.stride_bytes);
    stk_cache_fill_commit(pipeline, id);
    *image = stk_image_row_cached(pipeline, to);
}
