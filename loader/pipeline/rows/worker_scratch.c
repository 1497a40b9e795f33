/* worker_scratch.c - see worker_scratch.h. */
#include "loader/pipeline/rows/worker_scratch.h"

#include "loader/base/memory/memory.h"

/* Apart from the memory of reads, which a ring may page-lock: most of what is reserved for the
 * largest image is never touched. */
static int map_scratch(struct stk_row_maker *maker)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const bool transforms = pipeline->plan.finish == STK_FINISH_TRANSFORM;
    const size_t plan_bytes =
        transforms ? (stk_transform_scratch_bytes(&pipeline->transform) + 63) / 64 * 64 : 0;
    const size_t image_bytes = pipeline->plan.any_size || pipeline->plan.crops
                                   ? pipeline->image_bytes_max + STK_IMAGE_SLACK_BYTES
                                   : pipeline->dataset->row_bytes;
    const size_t masks_at = plan_bytes + (image_bytes + 63) / 64 * 64;
    const size_t mask_bytes = pipeline->field_plan.mask_bytes;
    const size_t mask_end = masks_at + mask_bytes + pipeline->field_plan.mask_scratch_bytes;
    const size_t notes_at = (mask_end + 63) / 64 * 64;
    int rc = stk_region_map(&maker->scratch, notes_at + pipeline->notes.stride_bytes);
    if (rc < 0)
        return rc;
    maker->transform = maker->scratch.base;
    maker->image = (uint8_t *)maker->scratch.base + plan_bytes;
    maker->masks = (uint8_t *)maker->scratch.base + masks_at;
    maker->mask_scratch = maker->masks + mask_bytes;
    maker->notes = (uint8_t *)maker->scratch.base + notes_at;
    return 0;
}

int stk_row_maker_init(struct stk_row_maker *maker, struct stk_pipeline *pipeline,
                       struct stk_ledger_entry *ledger, bool reads)
{
    const uint32_t parts = pipeline->part_count;
    *maker = (struct stk_row_maker){
        .pipeline = pipeline,
        .ledger = ledger,
        .may_read = reads && pipeline->plan.has_files,
        /* A row fails at once unless a read of another part is under way, or its image waits for
         * the GPU. */
        .failed_max = parts > 1 ? pipeline->read_depth + parts + 1 +
                                      (pipeline->decode.on ? STK_BATCH_DECODER_IMAGES_MAX : 0)
                                : 0,
    };
    maker->orders = stk_calloc((size_t)parts + 1, sizeof(maker->orders[0]));
    maker->rows = stk_calloc(pipeline->dataset->info.field_count, sizeof(maker->rows[0]));
    if (maker->failed_max > 0)
        maker->failed = stk_calloc(maker->failed_max, sizeof(maker->failed[0]));
    if (maker->orders == NULL || maker->rows == NULL ||
        (maker->failed_max > 0 && maker->failed == NULL) || stk_codecs_init(&maker->codecs) < 0)
        return STOKER_ENOMEM;
    return map_scratch(maker);
}

void stk_row_maker_destroy(struct stk_row_maker *maker)
{
    stk_decode_lane_close(&maker->lane);
    stk_codecs_destroy(&maker->codecs);
    stk_region_unmap(&maker->scratch);
    stk_free(maker->orders);
    stk_free(maker->rows);
    stk_free(maker->failed);
    *maker = (struct stk_row_maker){ 0 };
}
