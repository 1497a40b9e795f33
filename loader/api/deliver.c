/* deliver.c - see deliver.h. */
#include "loader/api/deliver.h"

#include <string.h>

#include <stoker/stoker.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/base/text/printable.h"

enum {
    FILES_LOOK_NS = 1000000, /* between two checks of the files, */
    FILES_LOOK_SHARE = 100   /* which take at most 1/100 of the time */
};

/* ---- rows that failed ---- */

int stk_deliver_fail(stoker_loader *loader, const stoker_error *error)
{
    loader->error = *error;
    stk_printable(loader->error.message); /* a user's callback may have written them */
    stk_printable(loader->error.path);
    atomic_store_explicit(&loader->failed, true, memory_order_release);
    return error->code;
}

static struct stk_place place_of(const struct stk_failure *failure)
{
    return (struct stk_place){ .path = failure->path,
                               .offset = failure->offset,
                               .sample = failure->sample,
                               .os_errno = failure->os_errno };
}

static int too_many(stoker_loader *loader, const struct stk_failure *failure)
{
    const struct stk_place place = place_of(failure);
    stoker_error error;
    (void)stk_error_set(&error, STOKER_EBADSAMPLES, (stoker_stage)failure->stage, &place,
                        "more than %llu samples are bad",
                        (unsigned long long)loader->options.max_bad_samples);
    return stk_deliver_fail(loader, &error);
}

/* Record what the workers noted about the rows of a batch. */
static int file_failures(stoker_loader *loader, struct stk_slot *slot, uint32_t rows)
{
    for (uint32_t row = 0; row < rows; row++) {
        if (slot->row_bad[row] == STK_ROW_GOOD)
            continue;
        const struct stk_failure *failure = &slot->failures[row];
        const struct stk_place place = place_of(failure);
        stoker_error report;
        (void)stk_error_set(&report, failure->code, (stoker_stage)failure->stage, &place,
                            failure->detail[0] != '\0' ? "%s" : NULL, failure->detail);
        stk_ledger_add(&loader->ledger.bad_samples, 1);
        const int rc = stk_bad_samples_file(&loader->bad_samples, &report);
        stk_log_bad_sample(loader, &report);
        if (rc == STOKER_EBADSAMPLES)
            return too_many(loader, failure);
        if (rc < 0) {
            (void)stk_error_set(&report, rc, (stoker_stage)failure->stage, &place,
                                "the list of bad samples");
            return stk_deliver_fail(loader, &report);
        }
    }
    return 0;
}

/* The rows of a batch that are left for the consumer. */
struct rows {
    uint32_t count;
    uint32_t padded; /* the last ones of them */
};

/* Move the bytes of a row, and its length, to another place of a slot. */
static void move_row(const struct stk_slots *slots, struct stk_slot *slot, uint32_t from,
                     uint32_t to)
{
    for (uint32_t i = 0; i < slots->fields.count; i++) {
        const struct stk_slot_field *field = &slots->fields.each[i];
        size_t bytes = field->stride_bytes;
        if (field->entry_bytes > 0) {
            uint64_t *lengths = stk_slot_field_lengths(field, slot->lengths);
            lengths[to] = lengths[from];
            const size_t used = lengths[from] * field->entry_bytes;
            bytes = used < bytes ? used : bytes;
        }
        memcpy(stk_slot_field_row(field, slot->images, to),
               stk_slot_field_row(field, slot->images, from), bytes);
    }
    slot->ids[to] = slot->ids[from];
    if (slot->fresh != NULL)
        slot->fresh[to] = slot->fresh[from];
}

/* Close the gaps of skipped rows; returns the number of rows left. */
static uint32_t close_gaps(const struct stk_pipeline *pipeline, struct stk_slot *slot,
                           uint32_t rows)
{
    const struct stk_slots *slots = &pipeline->slots;
    int32_t *places =
        pipeline->decode.on ? stk_device_decode_places(&pipeline->decode, slots->head) : NULL;
    uint32_t kept = 0;
    for (uint32_t row = 0; row < rows; row++) {
        if (slot->row_bad[row] == STK_ROW_SKIPPED)
            continue;
        if (kept != row)
            move_row(slots, slot, row, kept);
        if (places != NULL)
            places[kept] = places[row];
        kept++;
    }
    return kept;
}

static uint32_t count_skipped(const struct stk_slot *slot, uint32_t first, uint32_t end)
{
    uint32_t skipped = 0;
    for (uint32_t row = first; row < end; row++)
        skipped += slot->row_bad[row] == STK_ROW_SKIPPED;
    return skipped;
}

/* Returns true if every row of a full slot is good. */
static bool is_clean(const struct stk_slot *slot)
{
    return slot->failure_row == UINT32_MAX &&
           atomic_load_explicit(&slot->bad_rows, memory_order_relaxed) == 0;
}

static int nothing_is_left(stoker_loader *loader, const struct stk_failure *failure)
{
    const struct stk_place place = place_of(failure);
    stoker_error error;
    (void)stk_error_set(&error, STOKER_EBADSAMPLES, (stoker_stage)failure->stage, &place,
                        "a whole epoch without one good sample; this one: %s%s%s", failure->detail,
                        failure->detail[0] != '\0' ? ": " : "", stoker_strerror(failure->code));
    return stk_deliver_fail(loader, &error);
}

/* The same if the epoch's last batch is empty, as it may be with several ranks: every sample was
 * bad in a batch before. */
static int nothing_was_left(stoker_loader *loader)
{
    const struct stk_place nowhere = STK_NOWHERE;
    stoker_error error;
    stoker_error first = { .message = "" };
    (void)stk_bad_samples_report(&loader->bad_samples, 0, &first);
    (void)stk_error_set(&error, STOKER_EBADSAMPLES, first.stage, &nowhere,
                        "a whole epoch without one good sample; the first: %s", first.message);
    return stk_deliver_fail(loader, &error);
}

/* Returns true if the epoch that ends with this batch, and enough epochs before it to cover as many
 * samples as the data set has, had no good sample. With several ranks an epoch holds only a part of
 * the data set. */
static bool ends_barren(stoker_loader *loader, const struct stk_batch_place *place, uint32_t kept)
{
    const stoker_loader_options *options = &loader->options;
    const uint64_t count = loader->pipeline.dataset->info.count;
    const uint64_t left_out = options->last == STOKER_LAST_DROP && options->batch_values_max == 0
                                  ? count % ((uint64_t)options->batch_size * options->world_size)
                                  : 0;
    loader->epoch_is_good = loader->epoch_is_good || kept > 0;
    loader->barren_samples =
        loader->epoch_is_good ? 0 : loader->barren_samples + place->rows - place->padded;
    if (place->last)
        loader->epoch_is_good = false;
    return place->last && loader->barren_samples > 0 && loader->barren_samples + left_out >= count;
}

/* ---- files that changed ---- */

/* Check if rows were read from a file that has changed: before each epoch's last batch is
 * delivered, and every FILES_LOOK_NS or a hundred times the duration of a check, whichever is
 * longer. A late check still finds a change: the file stays changed, and rows from the cache are
 * not delivered any more. */
static int check_files(stoker_loader *loader, const struct stk_batch_place *place)
{
    struct stk_pipeline *pipeline = &loader->pipeline;
    const struct stk_stamps *stamps = &pipeline->dataset->stamps;
    if (stamps->count == 0 ||
        !atomic_load_explicit(&pipeline->reads_unchecked, memory_order_relaxed))
        return 0;
    const uint64_t begin_ns = stk_now_ns();
    if (!place->last && begin_ns < loader->files_look_ns)
        return 0;
    (void)atomic_exchange(&pipeline->reads_unchecked, false);
    const uint32_t file = stk_stamps_first_changed(stamps);
    if (file == UINT32_MAX) {
        const uint64_t end_ns = stk_now_ns();
        const uint64_t wait_ns = FILES_LOOK_SHARE * (end_ns - begin_ns);
        loader->files_look_ns = end_ns + (wait_ns > FILES_LOOK_NS ? wait_ns : FILES_LOOK_NS);
        return 0;
    }
    struct stk_place whole = STK_NOWHERE;
    stoker_error error;
    whole.path = loader->files[file].path;
    (void)stk_stamps_refuse(stamps, file, whole, &error);
    return stk_deliver_fail(loader, &error);
}

/* Account for the slot's failed rows; *rows are left. */
static int settle(stoker_loader *loader, struct stk_slot *slot, const struct stk_batch_place *place,
                  struct rows *rows)
{
    *rows = (struct rows){ .count = place->rows, .padded = place->padded };
    if (slot->failure_row != UINT32_MAX) {
        stk_ledger_add(&loader->ledger.bad_samples, 1);
        return stk_deliver_fail(loader, &slot->failure);
    }
    if (atomic_load_explicit(&slot->bad_rows, memory_order_relaxed) > 0) {
        int rc = file_failures(loader, slot, place->rows);
        if (rc < 0)
            return rc;
        rows->padded -= count_skipped(slot, place->rows - place->padded, place->rows);
        rows->count = close_gaps(&loader->pipeline, slot, place->rows);
        if (loader->pipeline.blend.on && stk_blend_is_left(&loader->pipeline, slot))
            stk_blend_slot(&loader->pipeline.blend, &loader->pipeline.slots, slot, place,
                           rows->count);
    }
    /* Otherwise an endless run over files that are all gone would skip forever. */
    if (loader->options.on_bad_sample != STOKER_ON_BAD_FAIL &&
        ends_barren(loader, place, rows->count))
        return place->rows == 0 ? nothing_was_left(loader)
                                : nothing_is_left(loader, &slot->failures[place->rows - 1]);
    if (loader->pipeline.finish->needed && !slot->finished)
        stk_finish_slot(loader->pipeline.finish, &loader->pipeline.slots, slot, rows->count);
    return check_files(loader, place);
}

/* ---- what the consumer sees ---- */

/* Where a batch is. */
struct view {
    const uint64_t *ids; /* in host memory */
    const uint64_t *device_ids;
    uint64_t turn;
    struct stk_lease *lease;
};

/* Batches of the epoch delivered before this loader was created, which may have resumed it. */
static uint64_t batches_before(const struct stk_schedule *schedule, uint64_t epoch)
{
    if (schedule->lengths != NULL) /* not known: the batches before were not planned */
        return 0;
    return epoch == schedule->first_epoch ? schedule->epoch_batches - schedule->first_batches : 0;
}

static void describe(stoker_loader *loader, const struct view *view,
                     const struct stk_batch_place *place, struct rows rows, stoker_batch *batch)
{
    const struct stk_outputs *outputs = &loader->outputs;
    stoker_field *fields = view->lease->fields;
    stk_outputs_describe(outputs, loader->options.batch_size, rows.count, fields);
    *batch = (stoker_batch){
        .images = fields[0].values,
        .labels = { .rank = 1, .shape = { rows.count } },
        .fields = fields,
        .field_count = outputs->count,
        .ids = view->ids,
        .count = rows.count,
        .padded = rows.padded,
        .epoch = place->epoch,
        .index = place->index + batches_before(&loader->pipeline.schedule, place->epoch),
        .device = loader->device->ops->kind,
        .device_index = loader->device->index,
        .device_ids = view->device_ids,
        .loader = loader,
        .turn = view->turn,
        .lease = view->lease,
    };
    if (outputs->label != STK_NO_FIELD)
        batch->labels = fields[outputs->label].values;
    loader->state_epoch = place->epoch;
    loader->state_position = stk_schedule_position_after(&loader->pipeline.schedule, place);
    loader->end_pending = place->last;
    stk_ledger_add(&loader->ledger.batches, 1);
    stk_ledger_add(&loader->ledger.samples, rows.count);
    stk_ledger_add(&loader->ledger.length_values, place->values);
    stk_ledger_add(&loader->ledger.length_room, place->room);
    stk_ledger_add(&loader->ledger.bytes, rows.count * loader->row_bytes);
}

int stk_deliver_in_place(stoker_loader *loader, stoker_batch *batch)
{
    struct stk_slots *slots = &loader->pipeline.slots;
    struct stk_slot *slot = stk_slots_of(slots, slots->head);
    const struct stk_batch_place place =
        stk_schedule_place(&loader->pipeline.schedule, slots->head);
    struct rows rows;
    const uint64_t begin_ns = stk_trace_begin(loader->trace.rings, STOKER_TRACE_LEND, slots->head);
    int rc = settle(loader, slot, &place, &rows);
    if (rc < 0) {
        stk_trace_cancel(loader->trace.rings);
        return rc;
    }
    const struct view view = {
        .ids = slot->ids,
        .device_ids = slot->ids,
        .turn = slots->head,
        .lease = &slot->memory->lease,
    };
    atomic_store_explicit(&view.lease->turn, view.turn, memory_order_relaxed);
    describe(loader, &view, &place, rows, batch);
    stk_slots_take(slots);
    stk_trace_end(loader->trace.rings, STOKER_TRACE_LEND, begin_ns, view.turn, 0, rows.count);
    return STOKER_OK;
}

int stk_deliver_send(stoker_loader *loader)
{
    const struct stk_slots *slots = &loader->pipeline.slots;
    const struct stk_batch_place place =
        stk_schedule_place(&loader->pipeline.schedule, slots->head);
    struct rows rows;
    int rc = settle(loader, stk_slots_of(slots, slots->head), &place, &rows);
    if (rc == 0)
        rc = stk_transfer_send(&loader->transfer, rows.count, &place);
    if (rc == 0)
        stk_transfer_buffer(&loader->transfer, slots->head - 1)->padded = rows.padded;
    if (rc == 0)
        stk_ledger_add(&loader->ledger.copies, 1);
    return rc;
}

int stk_deliver_send_ahead(stoker_loader *loader)
{
    const struct stk_slots *slots = &loader->pipeline.slots;
    int rc = 0;
    while (rc == 0 && slots->head < slots->batches && stk_slots_ready(slots) &&
           stk_transfer_has_room(&loader->transfer) && is_clean(stk_slots_of(slots, slots->head)))
        rc = stk_deliver_send(loader);
    return rc;
}

void stk_deliver_sent(stoker_loader *loader, stoker_batch *batch)
{
    struct stk_transfer *transfer = &loader->transfer;
    const uint64_t turn = transfer->delivered;
    const uint64_t begin_ns = stk_trace_begin(loader->trace.rings, STOKER_TRACE_LEND, turn);
    const struct stk_batch_place place = stk_schedule_place(&loader->pipeline.schedule, turn);
    struct stk_buffer *buffer = stk_transfer_lend(transfer);
    if (loader->kept.any_thread)
        stk_transfer_share(buffer);
    const struct view view = {
        .ids = buffer->ids,
        .device_ids = (void *)(buffer->memory + loader->pipeline.slots.ids_at),
        .turn = turn,
        .lease = &buffer->lease,
    };
    const struct rows rows = { .count = buffer->rows, .padded = buffer->padded };
    describe(loader, &view, &place, rows, batch);
    stk_trace_end(loader->trace.rings, STOKER_TRACE_LEND, begin_ns, turn, 0, buffer->rows);
}
