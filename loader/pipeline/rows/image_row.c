/* image_row.c - see image_row.h. */
#include "loader/pipeline/rows/image_row.h"

#include <assert.h>
#include <string.h>

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

static bool fits(const struct stk_pipeline *pipeline, const struct stk_image *image)
{
    const bool is_part = image->eighths != 0;
    return may_be_cached(pipeline, is_part ? image->whole_height : image->height,
                         is_part ? image->whole_width : image->width);
}

/* A sample's draw, which decides what of its image is needed. */
struct draw {
    const struct stk_pipeline *pipeline;
    uint64_t epoch, id;
};

static void choose_region(const void *chooser, stoker_size size, stoker_region *out)
{
    const struct draw *draw = chooser;
    const struct stk_pipeline *pipeline = draw->pipeline;
    const struct stk_transform_plan *plan = &pipeline->transform;
    if (pipeline->plan.cached == STK_CACHED_RESIZED)
        stk_transform_resize_region(plan, size.height, size.width, out);
    else if (pipeline->plan.cached == STK_CACHED_DECODED &&
             may_be_cached(pipeline, size.height, size.width))
        *out = (stoker_region){ 0, 0, size.height, size.width, 8 };
    else
        stk_transform_region(plan, size.height, size.width, draw->epoch, draw->id, out);
}

/* Describe what was decoded, and count it if it is a part. */
static struct stk_image describe(const struct stk_row_maker *maker,
                                 const struct stk_image_decoding *decoding)
{
    const stoker_region *got = &decoding->got;
    if (got->height < decoding->size.height || got->width < decoding->size.width)
        stk_ledger_add(&maker->ledger->regions, 1);
    return (struct stk_image){ .pixels = maker->image,
                               .height = got->height,
                               .width = got->width,
                               .slack = true,
                               .whole_height = decoding->size.height,
                               .whole_width = decoding->size.width,
                               .y = got->y,
                               .x = got->x,
                               .eighths = got->eighths };
}

/* What is noted about a sample, or room for it. */
static stoker_notes find_notes(const struct stk_row_maker *maker, uint64_t id, size_t bytes)
{
    const struct stk_cache *kept = &maker->pipeline->notes;
    const size_t part = bytes / STK_NOTES_PART;
    const void *known = stk_cache_find(kept, id);
    assert((uintptr_t)known % STK_CACHE_LINE == 0);
    if (known != NULL)
        return (stoker_notes){ .known = known, .known_bytes = stk_cache_length(kept, id) };
    return (stoker_notes){ .room = maker->notes,
                           .room_bytes = part < kept->stride_bytes ? part : kept->stride_bytes };
}

static void keep_notes(const struct stk_row_maker *maker, uint64_t id, const stoker_notes *notes)
{
    struct stk_cache *kept = &maker->pipeline->notes;
    uint8_t *to = stk_cache_begin(kept, id, notes->noted_bytes);
    if (to == NULL)
        return;
    memcpy(to, notes->room, notes->noted_bytes);
    stk_cache_commit(kept, id);
}

int stk_image_row_decode(struct stk_row_maker *maker, const struct stk_part_ref *ref,
                         uint32_t count, struct stk_image *image, stoker_error *said)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_dataset_info *set = &pipeline->dataset->info;
    stoker_encoded encoded = stk_ref_encoded(ref);
    stoker_notes notes = { 0 };
    if (pipeline->notes.kind != STOKER_CACHE_NONE) {
        notes = find_notes(maker, stk_ref_id(ref), encoded.size);
        encoded.notes = &notes;
    }
    /* Not the id that the codec gets: a view's codec may know the sample by another one. */
    const struct draw draw = { pipeline, ref->span->epoch, stk_ref_id(ref) };
    struct stk_image_decoding decoding = {
        .bytes_max = pipeline->image_bytes_max,
        .channels = (uint32_t)set->shape[2],
        .choose = choose_region,
        .chooser = &draw,
    };
    if (pipeline->plan.crops)
        decoding.one_size = (stoker_size){ (uint32_t)set->shape[0], (uint32_t)set->shape[1] };
    maker->rows[0].data = maker->image;
    const int rc = stk_codecs_decode_image(&maker->codecs, stk_ref_part(ref)->codec, &encoded,
                                           maker->rows, count, &decoding, said);
    if (rc == 0)
        *image = describe(maker, &decoding);
    if (rc == 0 && encoded.notes != NULL && notes.room != NULL && notes.noted_bytes > 0)
        keep_notes(maker, stk_ref_id(ref), &notes);
    return rc;
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

void stk_image_rows_write(struct stk_row_maker *maker, const struct stk_span *span,
                          const void *const *rows, uint32_t ahead)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    if (pipeline->plan.finish != STK_FINISH_TRANSFORM) {
        pipeline->convert.rows(&pipeline->convert, rows, span->rows, ahead,
                               row_at(pipeline, span, 0));
        return;
    }
    const struct stk_image image = stk_image_row_cached(pipeline, rows[0]);
    stk_transform_rows(&pipeline->transform, maker->transform, rows, image.height, image.width,
                       span->rows, ahead, span->epoch, stk_span_id(span, 0),
                       row_at(pipeline, span, 0));
}

bool stk_image_row_keep(struct stk_row_maker *maker, struct stk_image *image, uint8_t *to)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    if (!fits(pipeline, image))
        return false;
    if (pipeline->plan.cached == STK_CACHED_RESIZED)
        stk_transform_resize(&pipeline->transform, maker->transform, image, to);
    else if (image->pixels != to)
        memcpy(to, image->pixels, pipeline->dataset->row_bytes);
    *image = stk_image_row_cached(pipeline, to);
    return true;
}
