/* image_row.c - see image_row.h. */
#include "loader/pipeline/image_row.h"

#include <string.h>

static uint8_t *row_at(const struct stk_pipeline *pipeline, const struct stk_span *span,
                       uint32_t row)
{
    return stk_pipeline_row(pipeline, span->slot, span->first_row + row);
}

struct stk_image stk_image_row_stored(const struct stk_pipeline *pipeline, const void *pixels)
{
    const stoker_dataset_info *set = &pipeline->dataset->info;
    if (!pipeline->transforms)
        return (struct stk_image){ .pixels = pixels };
    return (struct stk_image){ .pixels = pixels,
                               .height = (uint32_t)set->shape[0],
                               .width = (uint32_t)set->shape[1] };
}

struct stk_image stk_image_row_cached(const struct stk_pipeline *pipeline, const void *pixels)
{
    if (!pipeline->keeps_resized)
        return stk_image_row_stored(pipeline, pixels);
    return (struct stk_image){ .pixels = pixels,
                               .height = pipeline->transform.framing.resize_height,
                               .width = pipeline->transform.framing.resize_width };
}

void stk_image_row_write(struct stk_worker *worker, const struct stk_span *span, uint32_t row,
                         const struct stk_image *image)
{
    const struct stk_pipeline *pipeline = worker->pipeline;
    const void *pixels = image->pixels;
    uint8_t *to = row_at(pipeline, span, row);
    if (pipeline->transforms)
        stk_transform_row(&pipeline->transform, worker->transform, image, span->epoch,
                          span->slot->ids[span->first_row + row], NULL, to);
    else
        pipeline->convert.rows(&pipeline->convert, &pixels, 1, 0, to);
}

void stk_image_rows_write(struct stk_worker *worker, const struct stk_span *span, uint32_t ahead)
{
    const struct stk_pipeline *pipeline = worker->pipeline;
    if (!pipeline->transforms) {
        pipeline->convert.rows(&pipeline->convert, span->sources, span->rows, ahead,
                               row_at(pipeline, span, 0));
        return;
    }
    const struct stk_image image = stk_image_row_cached(pipeline, span->sources[0]);
    stk_transform_rows(&pipeline->transform, worker->transform, span->sources, image.height,
                       image.width, span->rows, ahead, span->epoch,
                       &span->slot->ids[span->first_row], row_at(pipeline, span, 0));
}

/* Returns true if the cache's rows have the image's size. */
static bool fits(const struct stk_pipeline *pipeline, const struct stk_image *image)
{
    const stoker_dataset_info *set = &pipeline->dataset->info;
    return pipeline->keeps_resized ||
           (image->height == set->shape[0] && image->width == set->shape[1]);
}

void stk_image_row_cache(struct stk_worker *worker, const struct stk_span *span, uint64_t id,
                         struct stk_image *image)
{
    struct stk_pipeline *pipeline = worker->pipeline;
    struct stk_cache *cache = &pipeline->cache;
    if (cache->kind != STOKER_CACHE_DECODED || cache->block_rows != 1 || !fits(pipeline, image) ||
        !stk_pipeline_may_cache(pipeline, span->batch) || !stk_cache_begin(cache, id))
        return;
    uint8_t *to = stk_cache_row(cache, id);
    if (pipeline->keeps_resized)
        stk_transform_resize(&pipeline->transform, worker->transform, image, to);
    else
        memcpy(to, image->pixels, cache->stride_bytes);
    stk_cache_commit(cache, id, cache->stride_bytes);
    *image = stk_image_row_cached(pipeline, to);
}
