/* hook_calls.c - see hook_calls.h. */
#include "loader/pipeline/hook_calls.h"

#include "loader/base/error.h"

/* The fields of one row. Returns their number. */
static uint32_t row_fields(const struct stk_pipeline *pipeline, const struct stk_slot *slot,
                           uint32_t row, stoker_row fields[STK_HOOK_FIELDS_MAX])
{
    const size_t label_bytes = stoker_dtype_bytes(pipeline->dataset->info.label_dtype);
    fields[0] = (stoker_row){ .data = stk_pipeline_row(pipeline, slot, row),
                              .bytes_max = pipeline->convert.to_bytes };
    if (slot->labels == NULL)
        return 1;
    const struct stk_slots *slots = &pipeline->slots;
    fields[1] = (stoker_row){ .data = stk_slot_field_row(&slots->fields.each[slots->label],
                                                         slot->images, row),
                              .bytes_max = label_bytes };
    return 2;
}

/* What the transforms did is drawn again: they are a pure function. */
static stoker_hook_sample sample_of(const struct stk_row_maker *maker, const struct stk_span *span,
                                    uint32_t row)
{
    const struct stk_framing *framing = &maker->pipeline->transform.framing;
    stoker_hook_sample sample = { .id = *stk_span_id(span, row), .epoch = span->epoch };
    struct stk_frame frame;
    if (maker->pipeline->plan.finish != STK_FINISH_TRANSFORM)
        return sample;
    /* After an exact resize every image has one size, whether it comes from a cache or not. */
    const bool exact = framing->resizing == STK_RESIZE_EXACT;
    sample.source_height = exact ? framing->resize_height : span->sizes[row].height;
    sample.source_width = exact ? framing->resize_width : span->sizes[row].width;
    stk_frame_draw(framing, sample.source_height, sample.source_width, sample.epoch, sample.id,
                   &frame);
    sample.crop_top = frame.top;
    sample.crop_left = frame.left;
    sample.crop_height = frame.height;
    sample.crop_width = frame.width;
    sample.grid_height = frame.grid_height;
    sample.grid_width = frame.grid_width;
    sample.y = frame.y;
    sample.x = frame.x;
    sample.out_height = framing->out_height;
    sample.out_width = framing->out_width;
    sample.flip = frame.flip != 0;
    sample.angle = stk_retouch_angle(&framing->retouch, sample.epoch, sample.id);
    return sample;
}

int stk_hook_row(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                 stoker_error *said)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_hook_sample sample = sample_of(maker, span, row);
    stoker_row fields[STK_HOOK_FIELDS_MAX];
    const uint32_t count = row_fields(pipeline, span->slot, span->first_row + row, fields);
    return stk_hooks_run_row(&pipeline->hooks, &maker->hooks, fields, count, &sample, said);
}

static void run_batch(struct stk_row_maker *maker, struct stk_slot *slot,
                      const struct stk_batch_place *place)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_hook_batch shown = {
        .epoch = place->epoch, .position = place->position, .ids = slot->ids, .rows = place->rows
    };
    stoker_row first[STK_HOOK_FIELDS_MAX];
    stoker_hook_field fields[STK_HOOK_FIELDS_MAX];
    const uint32_t count = row_fields(pipeline, slot, 0, first);
    for (uint32_t i = 0; i < count; i++)
        fields[i] = (stoker_hook_field){ .data = first[i].data, .row_bytes = first[i].bytes_max };
    if (count == 2) /* room for another type that it may get when the batch is delivered */
        fields[1].row_bytes = pipeline->slots.fields.each[pipeline->slots.label].stride_bytes;
    const struct stk_place nowhere = STK_NOWHERE;
    stoker_error said, error;
    const int rc =
        stk_hooks_run_batch(&pipeline->hooks, &maker->hooks, fields, count, &shown, &said);
    if (rc == 0)
        return;
    (void)stk_error_set(&error, rc, STOKER_STAGE_HOOK, &nowhere, "%s", said.message);
    stk_slot_fail(slot, 0, &error);
}

void stk_hook_batch(struct stk_row_maker *maker, uint64_t batch)
{
    struct stk_pipeline *pipeline = maker->pipeline;
    struct stk_slot *slot = stk_slots_of(&pipeline->slots, batch);
    const struct stk_batch_place place = stk_schedule_place(&pipeline->schedule, batch);
    if (place.rows > 0 &&
        slot->failure_row == UINT32_MAX) /* no worker holds a span of it any more */
        run_batch(maker, slot, &place);
}
