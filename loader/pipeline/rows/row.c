/* row.c - see row.h. */
#include "loader/pipeline/rows/row.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/pipeline/rows/bad_row.h"
#include "loader/pipeline/rows/cache_fill.h"
#include "loader/pipeline/rows/field_rows.h"
#include "loader/pipeline/rows/hook_calls.h"
#include "loader/pipeline/rows/image_row.h"

/* ---- parts that are complete, or failed ---- */

/* The failure of a row that still waits for reads, or NULL. */
static struct stk_failed_row *failed_row(const struct stk_row_maker *maker,
                                         const struct stk_span *span, uint32_t row)
{
    for (uint32_t i = 0; i < maker->failed_max; i++)
        if (maker->failed[i].span == span && maker->failed[i].row == row)
            return &maker->failed[i];
    return NULL;
}

static enum stk_row_step settle_bad_row(struct stk_row_maker *maker, struct stk_span *span,
                                        uint32_t row, uint32_t part, const stoker_error *error,
                                        const char *what)
{
    return stk_bad_row_settle(maker, span, row, part, error, what) ? STK_ROW_AGAIN : STK_ROW_DONE;
}

/* The row's parts are in the slot. */
static enum stk_row_step complete(struct stk_row_maker *maker, struct stk_span *span, uint32_t row)
{
    if (!stk_hooks_rows(&maker->pipeline->hooks))
        return STK_ROW_DONE;
    stoker_error said, error;
    const int rc = stk_hook_row(maker, span, row, &said);
    if (rc == 0)
        return STK_ROW_DONE;
    const struct stk_place place = stk_bad_row_place(maker, span, row, 0);
    (void)stk_error_set(&error, rc, STOKER_STAGE_HOOK, &place, "%s", said.message);
    return settle_bad_row(maker, span, row, 0, &error, said.message);
}

/* The last part of a row that is being cached, or whose parts may have failed, or may not fit
 * each other: settle it. */
static enum stk_row_step check_row(struct stk_row_maker *maker, struct stk_span *span, uint32_t row)
{
    struct stk_failed_row *failed = maker->failed_count > 0 ? failed_row(maker, span, row) : NULL;
    stoker_error said, error;
    uint32_t part;
    const int rc = failed == NULL ? stk_field_rows_check_sizes(maker, span, row, &part, &said) : 0;
    if (failed == NULL && rc == 0) {
        stk_cache_fill_commit(maker->pipeline, span, row);
        return complete(maker, span, row);
    }
    stk_cache_fill_cancel(maker->pipeline, span, row);
    if (failed == NULL) {
        const struct stk_place place = stk_bad_row_place(maker, span, row, part);
        (void)stk_error_set(&error, rc, STOKER_STAGE_DECODE, &place, "%s", said.message);
        return settle_bad_row(maker, span, row, part, &error, said.message);
    }
    failed->span = NULL;
    failed->row = 0;
    maker->failed_count--;
    return settle_bad_row(maker, span, row, failed->part, &failed->error, failed->what);
}

/* One part more needs nothing any more. */
static enum stk_row_step end_part(struct stk_row_maker *maker, struct stk_span *span, uint32_t row)
{
    if (--span->parts_left[row] > 0)
        return STK_ROW_READ;
    return span->records[row] != NULL || span->part_sizes != NULL || maker->failed_count > 0
               ? check_row(maker, span, row)
               : complete(maker, span, row);
}

/* A part failed: settle that when the last of the row's reads has ended. */
static enum stk_row_step fail_part(struct stk_row_maker *maker, const struct stk_part_ref *ref,
                                   const stoker_error *error, const char *what)
{
    struct stk_span *span = ref->span;
    struct stk_failed_row *failed = failed_row(maker, span, ref->row);
    if (failed == NULL && span->parts_left[ref->row] == 1) {
        stk_cache_fill_cancel(maker->pipeline, span, ref->row);
        return settle_bad_row(maker, span, ref->row, ref->part, error, what);
    }
    if (failed == NULL) {
        failed = failed_row(maker, NULL, 0);
        assert(failed != NULL);
        failed->part = UINT32_MAX;
        maker->failed_count++;
    }
    if (ref->part < failed->part) {
        failed->span = span;
        failed->row = ref->row;
        failed->part = ref->part;
        failed->error = *error;
        (void)snprintf(failed->what, sizeof(failed->what), "%s", what);
    }
    return end_part(maker, span, ref->row);
}

/* A part is bad, or cannot be read. If the sample has other fields with a part, name the first
 * field of this one; `code` is the reason if nothing is said. */
static enum stk_row_step fail_at(struct stk_row_maker *maker, const struct stk_part_ref *ref,
                                 int code, stoker_stage stage, const struct stk_place *place,
                                 const char *said)
{
    const stoker_dataset *dataset = maker->pipeline->dataset;
    const struct stk_part_fields own = dataset->part_fields[ref->part];
    char what[STK_DETAIL_BYTES];
    stoker_error error;
    if ((dataset->info.part_count == 1 && own.count == 1) || strncmp(said, "field ", 6) == 0)
        (void)snprintf(what, sizeof(what), "%s", said);
    else
        (void)snprintf(what, sizeof(what), "field \"%s\": %s", dataset->fields[own.first].info.name,
                       said[0] != '\0' ? said : stoker_strerror(code));
    (void)stk_error_set(&error, code, stage, place, what[0] != '\0' ? "%s" : NULL, what);
    return fail_part(maker, ref, &error, what);
}

/* Complete the codec's message with the location. */
static enum stk_row_step decode_failed(struct stk_row_maker *maker, const struct stk_part_ref *ref,
                                       int code, const stoker_error *said)
{
    const struct stk_place place = stk_bad_row_place(maker, ref->span, ref->row, ref->part);
    return fail_at(maker, ref, code, STOKER_STAGE_DECODE, &place, said->message);
}

/* ---- bytes to rows ---- */

/* The row of the first field of a part. */
static uint8_t *first_row(const struct stk_row_maker *maker, const struct stk_part_ref *ref)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const uint32_t field = pipeline->field_plan.parts[ref->part].own.first;
    return stk_slot_field_row(&pipeline->slots.fields.each[field], ref->span->slot->images,
                              ref->span->first_row + ref->row);
}

/* The row of a part whose bytes are delivered as they are stored, or NULL. */
static uint8_t *row_as_stored(const struct stk_row_maker *maker, const struct stk_part_ref *ref)
{
    const struct stk_part_plan *plan = &maker->pipeline->field_plan.parts[ref->part];
    return stk_part_is_as_stored(plan, stk_ref_part(ref)) ? first_row(maker, ref) : NULL;
}

/* Complete a part from its verified bytes, on the CPU. */
static enum stk_row_step finish_here(struct stk_row_maker *maker, const struct stk_part_ref *ref)
{
    const struct stk_part_plan *plan = &maker->pipeline->field_plan.parts[ref->part];
    if (plan->route == STK_ROUTE_READ_IN_PLACE && ref->bytes == first_row(maker, ref) &&
        ref->span->records[ref->row] == NULL)
        return end_part(maker, ref->span, ref->row); /* it was read there */
    stoker_error said;
    stk_error_clear(&said);
    const int rc = stk_field_rows_make(maker, ref, &said);
    return rc < 0 ? decode_failed(maker, ref, rc, &said) : end_part(maker, ref->span, ref->row);
}

/* Let an image wait in the worker's lane, if it is one for the GPU, else decode it here. */
static enum stk_row_step queue_image(struct stk_row_maker *maker, const struct stk_part_ref *ref)
{
    const stoker_part *sample = stk_ref_part(ref);
    const stoker_encoded encoded = stk_ref_encoded(ref);
    const struct stk_span *span = ref->span;
    stoker_image_header header;
    stoker_error said;
    stk_error_clear(&said);
    const int rc = stk_codecs_probe(sample->codec, &encoded, true, &header, &said);
    if (rc < 0)
        return decode_failed(maker, ref, rc, &said);
    if (!stk_decode_lane_add(maker->lane, ref, &header))
        return finish_here(maker, ref);
    if (span->part_sizes != NULL)
        span->part_sizes[(size_t)ref->row * span->part_count + ref->part] =
            (stoker_size){ header.height, header.width };
    return STK_ROW_READ;
}

/* Complete a part from its verified bytes, or leave it to the GPU, which makes field 0 alone. */
static enum stk_row_step finish_part(struct stk_row_maker *maker, const struct stk_part_ref *ref)
{
    const struct stk_part_fields own = maker->pipeline->field_plan.parts[ref->part].own;
    return maker->lane != NULL && own.first == 0 && own.count == 1 &&
                   stk_codec_is_file(stk_ref_part(ref)->codec)
               ? queue_image(maker, ref)
               : finish_here(maker, ref);
}

uint32_t stk_row_decode(struct stk_row_maker *maker)
{
    struct stk_decode_lane *lane = maker->lane;
    if (lane == NULL || lane->count == 0)
        return 0;
    (void)stk_decode_lane_run(lane); /* a failure is the device's, which each row reports */
    return lane->count;
}

enum stk_row_step stk_row_decoded(struct stk_row_maker *maker, uint32_t index,
                                  struct stk_span **span, uint32_t *row)
{
    const struct stk_lane_image *image = &maker->lane->images[index];
    const char *failure = stk_device_failure(maker->lane->decode->device);
    *span = image->ref.span;
    *row = image->ref.row;
    maker->order_count = 0;
    if (image->decoded)
        return end_part(maker, *span, *row);
    if (failure == NULL) /* the GPU cannot decode it: the CPU does, or knows what is wrong */
        return finish_here(maker, &image->ref);
    const struct stk_place nowhere = STK_NOWHERE;
    stoker_error error;
    (void)stk_error_set(&error, STOKER_EDEVICE, STOKER_STAGE_TRANSFER, &nowhere, "%s", failure);
    stk_bad_row_lose(*span, *row, &error); /* whatever the policy */
    return end_part(maker, *span, *row);
}

/* Verify the bytes of a part, if its codec can, before they are cached or decoded; into: copy
 * them there meanwhile. */
static int verify(const struct stk_part_ref *ref, uint8_t *into, stoker_error *said)
{
    const stoker_codec *codec = stk_ref_part(ref)->codec;
    if (codec == NULL || codec->verify == NULL)
        return 0;
    const stoker_encoded encoded = stk_ref_encoded(ref);
    stk_error_clear(said);
    return stk_codecs_verify(codec, &encoded, into, said);
}

/* ---- reads ---- */

static bool is_announced(const struct stk_pipeline *pipeline, const stoker_extent *extent)
{
    const stoker_dataset_info *info = &pipeline->dataset->info;
    return extent->bytes <= pipeline->encoded_bytes_max &&
           (extent->path == NULL
                ? extent->file < info->file_count
                : info->has_paths && (info->directory != STOKER_DIRECTORY_OF_FILE ||
                                      extent->file < info->file_count));
}

/* The extent names what describe() did not announce: fill in *what and return the code. */
static int refuse_extent(const struct stk_pipeline *pipeline, const stoker_extent *extent,
                         char *what, size_t what_bytes)
{
    const stoker_dataset_info *info = &pipeline->dataset->info;
    if (extent->path != NULL && !info->has_paths) {
        (void)snprintf(what, what_bytes, "the extent has a path, but describe() set no has_paths");
        return STOKER_EINVAL;
    }
    if (extent->path == NULL || info->directory == STOKER_DIRECTORY_OF_FILE) {
        if (extent->file >= info->file_count) {
            (void)snprintf(what, what_bytes, "the extent names file %u of %u", extent->file,
                           info->file_count);
            return STOKER_EINVAL;
        }
    }
    (void)snprintf(what, what_bytes, "the extent has %llu bytes, describe() announced at most %llu",
                   (unsigned long long)extent->bytes, (unsigned long long)info->encoded_bytes_max);
    return STOKER_ELIMIT;
}

/* The part cannot be read. */
static enum stk_row_step refuse_order(struct stk_row_maker *maker, const struct stk_part_ref *ref)
{
    const stoker_extent *extent = &stk_ref_part(ref)->extent;
    struct stk_place place = stk_bad_row_place(maker, ref->span, ref->row, ref->part);
    char what[STK_DETAIL_BYTES];
    stoker_error error;
    const int code = refuse_extent(maker->pipeline, extent, what, sizeof(what));
    if (extent->path == NULL)
        place.offset = extent->offset;
    (void)stk_error_set(&error, code, STOKER_STAGE_LOCATE, &place, "%s", what);
    return fail_part(maker, ref, &error, what);
}

/* A part's place in the encoded record of its sample, which is being cached, or NULL. */
static uint8_t *record_place(const struct stk_row_maker *maker, const struct stk_part_ref *ref)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    uint8_t *record = ref->span->records[ref->row];
    return record == NULL || pipeline->plan.cached != STK_CACHED_ENCODED
               ? NULL
               : record + ref->part * pipeline->field_plan.part_bytes;
}

/* Where a part is read to: its place in the cache, its row, or NULL: memory of fetch, which alone
 * has room for the extra byte of a whole file. */
static uint8_t *place_to_read(const struct stk_row_maker *maker, const struct stk_part_ref *ref)
{
    const struct stk_field_plan *plan = &maker->pipeline->field_plan;
    const stoker_part *sample = stk_ref_part(ref);
    uint8_t *record = ref->span->records[ref->row];
    if (sample->extent.path != NULL)
        return NULL;
    if (record == NULL)
        return row_as_stored(maker, ref);
    const bool bare = maker->pipeline->plan.cached == STK_CACHED_DECODED &&
                      !plan->record_has_gaps && stk_part_is_row(sample) &&
                      sample->extent.bytes == plan->record_bytes;
    return bare ? record : record_place(maker, ref);
}

/* Order the read of a part to `to`. */
static enum stk_row_step order_to(struct stk_row_maker *maker, const struct stk_part_ref *ref,
                                  uint8_t *to)
{
    const stoker_extent *extent = &stk_ref_part(ref)->extent;
    struct stk_read_order *order = &maker->orders[maker->order_count++];
    *order = (struct stk_read_order){
        .span = ref->span,
        .row = ref->row,
        .part = ref->part,
        .to = to,
        .offset = extent->offset,
        .bytes = (uint32_t)extent->bytes, /* at most encoded_bytes_max */
    };
    if (to != NULL && to == ref->span->records[ref->row] && maker->pipeline->cache.block_rows > 1)
        stk_cache_fill_widen(maker->pipeline, order);
    return STK_ROW_READ;
}

static enum stk_row_step order_read(struct stk_row_maker *maker, const struct stk_part_ref *ref)
{
    if (!maker->may_read || !is_announced(maker->pipeline, &stk_ref_part(ref)->extent))
        return refuse_order(maker, ref);
    return order_to(maker, ref, place_to_read(maker, ref));
}

/* The read failed: read the row of a block alone, or give it up. */
static enum stk_row_step read_failed(struct stk_row_maker *maker, const struct stk_part_ref *ref,
                                     const struct stk_completion *done)
{
    const stoker_part *part = stk_ref_part(ref);
    if (part->extent.path == NULL)
        stk_pipeline_note_unchecked(maker->pipeline, part->codec);
    if (done->alone_may_work) {
        stk_cache_fill_cancel(maker->pipeline, ref->span, ref->row);
        return order_to(maker, ref, NULL);
    }
    struct stk_place place = stk_bad_row_place(maker, ref->span, ref->row, ref->part);
    if (place.offset != STOKER_NO_OFFSET)
        place.offset = done->offset;
    place.os_errno = done->os_errno;
    const bool changed =
        done->code == STOKER_ECHANGED && (part->extent.path == NULL || part->version != 0);
    if (!done->nothing_is_read && !changed)
        return fail_at(maker, ref, done->code, STOKER_STAGE_READ, &place, done->what);
    stoker_error error;
    (void)stk_error_set(&error, done->code, STOKER_STAGE_READ, &place,
                        done->what[0] != '\0' ? "%s" : NULL, done->what);
    stk_cache_fill_cancel(maker->pipeline, ref->span, ref->row);
    stk_bad_row_lose(ref->span, ref->row, &error); /* whatever the policy */
    return end_part(maker, ref->span, ref->row);
}

enum stk_row_step stk_row_take(struct stk_row_maker *maker, const struct stk_completion *done)
{
    struct stk_span *span = done->span;
    const stoker_part *sample = stk_span_part(span, done->row, done->part);
    /* Of a block the row's own bytes. */
    const struct stk_part_ref ref = {
        .span = span,
        .row = done->row,
        .part = done->part,
        .bytes = done->block_rows > 0 ? span->records[done->row] : done->bytes,
        .size = sample->extent.bytes,
    };
    maker->order_count = 0;
    if (done->code < 0)
        return read_failed(maker, &ref, done);
    if (sample->extent.path == NULL)
        stk_pipeline_note_unchecked(maker->pipeline, sample->codec);
    stoker_error said;
    const int rc = verify(&ref, NULL, &said);
    if (rc < 0)
        return decode_failed(maker, &ref, rc, &said);
    uint8_t *place = record_place(maker, &ref);
    if (place != NULL && place != ref.bytes)
        memcpy(place, ref.bytes, ref.size);
    return finish_part(maker, &ref);
}

/* ---- the start of a row ---- */

/* Begin a part; record: what the cache holds of the sample as stored, or NULL. */
static enum stk_row_step begin_part(struct stk_row_maker *maker, struct stk_span *span,
                                    uint32_t row, uint32_t part, const uint8_t *record)
{
    const stoker_extent *extent = &stk_span_part(span, row, part)->extent;
    const bool in_file = extent->memory == NULL && extent->bytes > 0;
    struct stk_part_ref ref = {
        .span = span, .row = row, .part = part, .bytes = extent->memory, .size = extent->bytes
    };
    if (in_file && record == NULL)
        return order_read(maker, &ref);
    if (in_file) { /* verified when it was cached */
        ref.bytes = record + part * maker->pipeline->field_plan.part_bytes;
        return finish_part(maker, &ref);
    }
    stoker_error said;
    const stoker_codec *codec = stk_ref_part(&ref)->codec;
    uint8_t *into = codec != NULL && codec->verify != NULL ? row_as_stored(maker, &ref) : NULL;
    const int rc = verify(&ref, into, &said);
    if (rc < 0)
        return decode_failed(maker, &ref, rc, &said);
    if (into != NULL)
        ref.bytes = into;
    return finish_part(maker, &ref);
}

/* A sample that its data set makes. */
static enum stk_row_step begin_made(struct stk_row_maker *maker, struct stk_span *span,
                                    uint32_t row)
{
    stoker_error said;
    stk_pipeline_note_unchecked(maker->pipeline, NULL); /* it may read files */
    const int rc = stk_field_rows_call_make(maker, span, row, &said);
    if (rc == 0)
        return complete(maker, span, row);
    if (rc == STOKER_INTERRUPTED && maker->in_next)
        return STK_ROW_LATER;
    struct stk_place place = STK_NOWHERE;
    place.sample = *stk_span_id(span, row);
    stoker_error error;
    (void)stk_error_set(&error, rc == STOKER_INTERRUPTED ? STOKER_EINVAL : rc, STOKER_STAGE_DECODE,
                        &place, "make(): %s",
                        said.message[0] != '\0' ? said.message : stoker_strerror(rc));
    if (rc != STOKER_INTERRUPTED && rc != STOKER_ENOMEM)
        return settle_bad_row(maker, span, row, 0, &error, said.message);
    stk_bad_row_lose(span, row, &error); /* not the sample's fault */
    return STK_ROW_DONE;
}

/* Returns true if the GPU holds a row, and marks it. */
static bool is_on_device(const struct stk_pipeline *pipeline, const struct stk_span *span,
                         uint32_t row)
{
    const bool held = stk_device_cache_holds(&pipeline->device_cache, *stk_span_id(span, row));
    if (held)
        span->slot->fresh[span->first_row + row] = 0;
    return held;
}

/* Complete a row that a cache holds as it is needed. Returns false if it does not; *record: the
 * sample as stored if the cache holds that, else its record is begun, if the cache takes it. */
static bool take_cached(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                        const uint8_t **record)
{
    struct stk_pipeline *pipeline = maker->pipeline;
    bool complete = is_on_device(pipeline, span, row);
    const uint8_t *held = complete ? NULL : stk_cache_fill_find(pipeline, span, row);
    if (complete || held != NULL)
        stk_ledger_add(&maker->ledger->cache_hits, 1);
    else
        stk_cache_fill_begin(pipeline, span, row);
    if (held == NULL || !stk_pipeline_caches_records(pipeline)) {
        *record = held;
        return complete;
    }
    for (uint32_t i = 0; i < pipeline->dataset->info.field_count; i++)
        if (pipeline->dataset->fields[i].info.part != STOKER_NO_PART)
            stk_field_rows_write(maker, span, row, i, held + pipeline->field_plan.record_at[i]);
    return true;
}

enum stk_row_step stk_row_begin(struct stk_row_maker *maker, struct stk_span *span, uint32_t row)
{
    struct stk_pipeline *pipeline = maker->pipeline;
    const uint8_t *record = NULL;
    maker->order_count = 0;
    if (pipeline->dataset->ops->make != NULL)
        return begin_made(maker, span, row);
    if (span->part_count == 0 || (stk_pipeline_plan_keeps_samples(&pipeline->plan) &&
                                  take_cached(maker, span, row, &record)))
        return complete(maker, span, row);
    span->parts_left[row] = (uint8_t)span->part_count;
    enum stk_row_step step = STK_ROW_READ;
    for (uint32_t part = 0; part < span->part_count; part++)
        step = begin_part(maker, span, row, part, record);
    return maker->order_count > 0 ? STK_ROW_READ : step;
}
