/* hook_calls.c - see hook_calls.h. */
#include "loader/pipeline/rows/hook_calls.h"

#include <stdio.h>

#include "loader/base/error.h"

/* One field of a row as its worker wrote it. */
static stoker_row field_of(const struct stk_pipeline *pipeline, const struct stk_slot *slot,
                           uint32_t field, uint32_t row)
{
    const struct stk_slot_field *place = &pipeline->slots.fields.each[field];
    const struct stk_output *output = &pipeline->finish->outputs[field];
    stoker_row out = { .data = stk_slot_field_row(place, slot->images, row),
                       .bytes_max = output->elements * output->retype.from_bytes };
    if (output->varies) {
        out.bytes_max *= (size_t)output->pack.length_max;
        out.length = stk_slot_field_lengths(place, slot->lengths)[row];
    } else if (field == 0) {
        out.bytes_max = pipeline->convert.to_bytes;
    }
    return out;
}

/* Take over the lengths that a hook set. Returns 0 or STOKER_EINVAL, with *said saying why. */
static int take_lengths(const struct stk_pipeline *pipeline, const struct stk_slot *slot,
                        const stoker_row *fields, uint32_t row, stoker_error *said)
{
    for (uint32_t i = 0; i < pipeline->dataset->info.field_count; i++) {
        const struct stk_output *output = &pipeline->finish->outputs[i];
        if (!output->varies)
            continue;
        if (fields[i].length > output->pack.length_max) {
            (void)snprintf(said->message, sizeof(said->message),
                           "the row hook set length %llu of field \"%s\", at most %llu fit",
                           (unsigned long long)fields[i].length, output->view.name,
                           (unsigned long long)output->pack.length_max);
            return STOKER_EINVAL;
        }
        stk_slot_field_lengths(&pipeline->slots.fields.each[i], slot->lengths)[row] =
            fields[i].length;
    }
    return 0;
}

/* Describe what the transforms did by drawing it again: the draws are a pure function. */
static stoker_hook_sample sample_of(const struct stk_row_maker *maker, const struct stk_span *span,
                                    uint32_t row)
{
    const struct stk_framing *framing = &maker->pipeline->transform.framing;
    stoker_hook_sample sample = { .struct_size = sizeof(sample),
                                  .id = *stk_span_id(span, row),
                                  .epoch = span->epoch };
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
    const uint32_t count = pipeline->dataset->info.field_count; /* those of a batch come later */
    stoker_row fields[STOKER_FIELDS_MAX];
    for (uint32_t i = 0; i < count; i++)
        fields[i] = field_of(pipeline, span->slot, i, span->first_row + row);
    const int rc = stk_hooks_run_row(&pipeline->hooks, &maker->hooks, fields, count, &sample, said);
    return rc == 0 ? take_lengths(pipeline, span->slot, fields, span->first_row + row, said) : rc;
}

static void run_batch(struct stk_row_maker *maker, struct stk_slot *slot,
                      const struct stk_batch_place *place)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_hook_batch shown = { .struct_size = sizeof(shown),
                                      .epoch = place->epoch,
                                      .position = place->position,
                                      .ids = slot->ids,
                                      .rows = place->rows };
    const uint32_t count = pipeline->slots.fields.count;
    stoker_hook_field fields[STOKER_FIELDS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        const struct stk_slot_field *at = &pipeline->slots.fields.each[i];
        fields[i] = (stoker_hook_field){ .data = stk_slot_field_row(at, slot->images, 0),
                                         .row_bytes = at->stride_bytes };
        if (at->entry_bytes > 0)
            fields[i].lengths = stk_slot_field_lengths(at, slot->lengths);
    }
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
