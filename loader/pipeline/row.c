/* row.c - see row.h. */
#include "loader/pipeline/row.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/pipeline/bad_row.h"
#include "loader/pipeline/cache_fill.h"
#include "loader/pipeline/field_rows.h"
#include "loader/pipeline/hook_calls.h"
#include "loader/pipeline/image_row.h"
#include "loader/pipeline/span_rows.h"

static uint8_t *slot_row(const struct stk_row_maker *maker, const struct stk_span *span,
                         uint32_t row)
{
    return stk_pipeline_row(maker->pipeline, span->slot, span->first_row + row);
}

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

static enum stk_row_step settle(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                                uint32_t part, const stoker_error *error, const char *what)
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
    return settle(maker, span, row, 0, &error, said.message);
}

/* Publish the record that a row's parts have filled, or drop it. */
static void end_record(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                       bool complete)
{
    const uint64_t id = *stk_span_id(span, row);
    if (span->records[row] != NULL && complete)
        stk_cache_fill_commit(maker->pipeline, id);
    else if (span->records[row] != NULL)
        stk_cache_fill_cancel(maker->pipeline, id);
    span->records[row] = NULL;
}

/* The parts of a row do not fit each other. */
static enum stk_row_step disagree(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                                  uint32_t part, int code, const stoker_error *said)
{
    const struct stk_place place = stk_bad_row_place(maker, span, row, part);
    stoker_error error;
    (void)stk_error_set(&error, code, STOKER_STAGE_DECODE, &place, "%s", said->message);
    return settle(maker, span, row, part, &error, said->message);
}

/* The last part of a row of several: settle it. */
static enum stk_row_step end_row(struct stk_row_maker *maker, struct stk_span *span, uint32_t row)
{
    struct stk_failed_row *failed = maker->failed_count == 0 ? NULL : failed_row(maker, span, row);
    stoker_error said;
    uint32_t part = 0;
    const int rc = failed == NULL ? stk_field_rows_check_sizes(maker, span, row, &part, &said) : 0;
    end_record(maker, span, row, failed == NULL && rc == 0);
    if (rc < 0)
        return disagree(maker, span, row, part, rc, &said);
    if (failed == NULL)
        return complete(maker, span, row);
    failed->span = NULL;
    failed->row = 0;
    maker->failed_count--;
    return settle(maker, span, row, failed->part, &failed->error, failed->what);
}

/* One part more needs nothing any more. */
static enum stk_row_step end_part(struct stk_row_maker *maker, struct stk_span *span, uint32_t row)
{
    if (!maker->pipeline->field_plan.several)
        return complete(maker, span, row);
    return --span->parts_left[row] > 0 ? STK_ROW_READ : end_row(maker, span, row);
}

/* A part failed: settle that when the last of the row's reads has ended. */
static enum stk_row_step fail(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                              uint32_t part, const stoker_error *error, const char *what)
{
    if (!maker->pipeline->field_plan.several)
        return settle(maker, span, row, part, error, what);
    struct stk_failed_row *failed = failed_row(maker, span, row);
    if (failed == NULL) {
        failed = failed_row(maker, NULL, 0);
        assert(failed != NULL);
        failed->part = UINT32_MAX;
        maker->failed_count++;
    }
    if (part < failed->part) {
        failed->span = span;
        failed->row = row;
        failed->part = part;
        failed->error = *error;
        (void)snprintf(failed->what, sizeof(failed->what), "%s", what);
    }
    return end_part(maker, span, row);
}

/* With several fields, name the first one that the part fills; `code` is the reason if nothing is
 * said. */
static void describe_part(const struct stk_row_maker *maker, uint32_t part, int code,
                          const char *said, char *what, size_t what_bytes)
{
    const stoker_dataset *dataset = maker->pipeline->dataset;
    const bool named = !maker->pipeline->field_plan.several || strncmp(said, "field ", 6) == 0;
    if (named)
        (void)snprintf(what, what_bytes, "%s", said);
    else
        (void)snprintf(what, what_bytes, "field \"%s\": %s",
                       dataset->fields[dataset->part_fields[part].first].info.name,
                       said[0] != '\0' ? said : stoker_strerror(code));
}

/* Complete the codec's message with the location. */
static enum stk_row_step decode_failed(struct stk_row_maker *maker, struct stk_span *span,
                                       uint32_t row, uint32_t part, int code,
                                       const stoker_error *said)
{
    const struct stk_place place = stk_bad_row_place(maker, span, row, part);
    char what[STK_DETAIL_BYTES];
    stoker_error error;
    describe_part(maker, part, code, said->message, what, sizeof(what));
    (void)stk_error_set(&error, code, STOKER_STAGE_DECODE, &place, what[0] ? "%s" : NULL, what);
    return fail(maker, span, row, part, &error, what);
}

/* ---- bytes to rows ---- */

static stoker_encoded encoded_of(const struct stk_span *span, uint32_t row, uint32_t part,
                                 const uint8_t *bytes, size_t size)
{
    const stoker_part *sample = stk_span_part(span, row, part);
    return (stoker_encoded){ .bytes = bytes,
                             .size = size,
                             .sample = stk_codec_id(sample, *stk_span_id(span, row)),
                             .tag = sample->tag };
}

/* Decode to the worker's own memory, then cache and write the image. */
static int decode_apart(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                        const stoker_codec *codec, const stoker_encoded *encoded,
                        stoker_error *said)
{
    struct stk_image image;
    int rc = stk_image_row_decode(maker, span, row, codec, encoded, maker->image, &image, said);
    if (rc < 0)
        return rc;
    stk_image_row_cache(maker, span, *stk_span_id(span, row), &image);
    stk_image_row_write(maker, span, row, &image);
    return 0;
}

/* Decode straight to the final place: the cache or the slot. */
static int decode_in_place(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                           const stoker_codec *codec, const stoker_encoded *encoded,
                           stoker_error *said)
{
    struct stk_pipeline *pipeline = maker->pipeline;
    const uint64_t id = *stk_span_id(span, row);
    uint8_t *cached = stk_cache_fill_begin(pipeline, span->batch, id);
    uint8_t *to = cached;
    if (to == NULL)
        to = pipeline->plan.finish == STK_FINISH_COPY ? slot_row(maker, span, row) : maker->image;
    struct stk_image image;
    int rc = stk_image_row_decode(maker, span, row, codec, encoded, to, &image, said);
    if (cached != NULL && rc < 0)
        stk_cache_fill_cancel(pipeline, id);
    else if (cached != NULL)
        stk_cache_fill_commit(pipeline, id);
    if (rc == 0 && to != slot_row(maker, span, row))
        stk_image_row_write(maker, span, row, &image);
    return rc;
}

/* Write a raw row. Returns 0 or the error, with its message in *said. */
static int write_raw(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                     const uint8_t *bytes, size_t size, stoker_error *said)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    if (size != pipeline->dataset->row_bytes) {
        (void)snprintf(said->message, sizeof(said->message), "%zu bytes, but a row has %zu", size,
                       pipeline->dataset->row_bytes);
        return STOKER_EFORMAT;
    }
    if (bytes == slot_row(maker, span, row)) /* it was read straight into the row */
        return 0;
    struct stk_image image = stk_image_row_stored(pipeline, bytes);
    if (pipeline->plan.cached == STK_CACHED_RESIZED)
        stk_image_row_cache(maker, span, *stk_span_id(span, row), &image);
    stk_image_row_write(maker, span, row, &image);
    return 0;
}

/* Make the fields of one part of several. */
static int make_fields(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                       uint32_t part, const stoker_encoded *encoded, stoker_error *said)
{
    const bool decoded = maker->pipeline->plan.cached != STK_CACHED_ENCODED;
    uint8_t *record = decoded ? span->records[row] : NULL;
    const int rc = stk_field_rows_make(maker, span, row, part, encoded, &record, said);
    if (rc == 0 && decoded && record == NULL)
        end_record(maker, span, row, false);
    return rc;
}

/* ---- images that a GPU decodes ---- */

/* Returns true if the part's image may be decoded elsewhere, and fills field 0 alone. */
static bool is_image_file(const struct stk_row_maker *maker, const struct stk_span *span,
                          uint32_t row, uint32_t part)
{
    const stoker_dataset *dataset = maker->pipeline->dataset;
    const stoker_codec *codec = stk_span_part(span, row, part)->codec;
    const struct stk_part_fields own = dataset->part_fields[part];
    return maker->lane != NULL && stk_codecs_can_inspect(codec) && own.first == 0 && own.count == 1;
}

/* Let the image wait in the worker's lane, if it is one for the GPU. *taken: it does, or it is bad, which is then the result. */
static int take_image(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                      uint32_t part, const stoker_encoded *encoded, bool *taken, stoker_error *said)
{
    const stoker_part *sample = stk_span_part(span, row, part);
    stoker_image_header header;
    *taken = false;
    if (!is_image_file(maker, span, row, part))
        return 0;
    const int rc = stk_codecs_inspect(sample->codec, encoded, &header, said);
    const struct stk_lane_image image = {
        .span = span,
        .row = row,
        .part = part,
        .bytes = encoded->bytes,
        .size = encoded->size,
    };
    *taken =
        rc < 0 || stk_decode_lane_add(maker->lane, &image, &header, sample->extent.memory != NULL);
    if (rc == 0 && *taken && span->part_sizes != NULL)
        span->part_sizes[(size_t)row * span->part_count + part] =
            (stoker_size){ header.height, header.width };
    return rc;
}

/* Complete a part from its verified bytes, on the CPU. */
static enum stk_row_step finish_here(struct stk_row_maker *maker, struct stk_span *span,
                                     uint32_t row, uint32_t part, const uint8_t *bytes, size_t size)
{
    const stoker_part *sample = stk_span_part(span, row, part);
    const stoker_encoded encoded = encoded_of(span, row, part, bytes, size);
    stoker_error said;
    stk_error_clear(&said);
    int rc;
    if (maker->pipeline->field_plan.several)
        rc = make_fields(maker, span, row, part, &encoded, &said);
    else if (stk_sample_is_row(sample))
        rc = write_raw(maker, span, row, bytes, size, &said);
    else if (maker->pipeline->plan.route == STK_ROUTE_DECODE_APART)
        rc = decode_apart(maker, span, row, sample->codec, &encoded, &said);
    else
        rc = decode_in_place(maker, span, row, sample->codec, &encoded, &said);
    return rc < 0 ? decode_failed(maker, span, row, part, rc, &said) : end_part(maker, span, row);
}

/* Complete a part from its verified bytes, or leave it to the GPU. */
static enum stk_row_step finish(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                                uint32_t part, const uint8_t *bytes, size_t size)
{
    const stoker_encoded encoded = encoded_of(span, row, part, bytes, size);
    bool taken;
    stoker_error said;
    stk_error_clear(&said);
    const int rc = take_image(maker, span, row, part, &encoded, &taken, &said);
    if (rc < 0)
        return decode_failed(maker, span, row, part, rc, &said);
    return taken ? STK_ROW_READ : finish_here(maker, span, row, part, bytes, size);
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
    *span = image->span;
    *row = image->row;
    maker->order_count = 0;
    if (image->decoded)
        return end_part(maker, *span, *row);
    if (failure == NULL) /* the GPU cannot decode it: the CPU does, or knows what is wrong */
        return finish_here(maker, *span, *row, image->part, image->bytes, image->size);
    const struct stk_place nowhere = STK_NOWHERE;
    stoker_error error;
    (void)stk_error_set(&error, STOKER_EDEVICE, STOKER_STAGE_TRANSFER, &nowhere, "%s", failure);
    stk_bad_row_lose(*span, *row, &error); /* whatever the policy */
    return end_part(maker, *span, *row);
}

/* Verify the bytes of a part, if its codec can, before they are cached or decoded; into: copy them there meanwhile. */
static int verify(const struct stk_span *span, uint32_t row, uint32_t part, const uint8_t *bytes,
                  size_t size, uint8_t *into, stoker_error *said)
{
    const stoker_codec *codec = stk_span_part(span, row, part)->codec;
    if (codec == NULL || codec->verify == NULL)
        return 0;
    const stoker_encoded encoded = encoded_of(span, row, part, bytes, size);
    stk_error_clear(said);
    return stk_codecs_verify(codec, &encoded, into, said);
}

/* Returns true if a part in memory is copied to its row while it is verified. */
static bool is_verified_into(const struct stk_row_maker *maker, const struct stk_span *span,
                             uint32_t row, uint32_t part)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_part *sample = stk_span_part(span, row, part);
    return !pipeline->field_plan.several && pipeline->plan.finish == STK_FINISH_COPY &&
           sample->extent.bytes == pipeline->dataset->row_bytes &&
           stk_codecs_can_verify_into(sample->codec);
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

static enum stk_row_step order_alone(struct stk_row_maker *maker, struct stk_span *span,
                                     uint32_t row, uint32_t part, uint8_t *to)
{
    const stoker_extent *extent = &stk_span_part(span, row, part)->extent;
    maker->orders[maker->order_count++] = (struct stk_read_order){
        .span = span,
        .row = row,
        .part = part,
        .to = to,
        .offset = extent->offset,
        .bytes = extent->bytes,
    };
    return STK_ROW_READ;
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
    (void)snprintf(what, what_bytes, "the extent has %u bytes, describe() announced at most %u",
                   extent->bytes, info->encoded_bytes_max);
    return STOKER_ELIMIT;
}

/* The part cannot be read. */
static enum stk_row_step refuse_order(struct stk_row_maker *maker, struct stk_span *span,
                                      uint32_t row, uint32_t part)
{
    const stoker_extent *extent = &stk_span_part(span, row, part)->extent;
    struct stk_place place = stk_bad_row_place(maker, span, row, part);
    char what[STK_DETAIL_BYTES];
    stoker_error error;
    const int code = refuse_extent(maker->pipeline, extent, what, sizeof(what));
    if (extent->path == NULL)
        place.offset = extent->offset;
    (void)stk_error_set(&error, code, STOKER_STAGE_LOCATE, &place, "%s", what);
    return fail(maker, span, row, part, &error, what);
}

/* Order the read of a part: into the cache if it takes it, into the row if it is delivered as stored, else to memory
 * of fetch, which alone has room for the extra byte of a whole file. */
static enum stk_row_step order(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                               uint32_t part)
{
    struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_part *sample = stk_span_part(span, row, part);
    const bool whole = sample->extent.path != NULL;
    if (!maker->may_read || !is_announced(pipeline, &sample->extent))
        return refuse_order(maker, span, row, part);
    struct stk_read_order *into = &maker->orders[maker->order_count];
    *into = (struct stk_read_order){ .span = span, .row = row, .part = part };
    if (pipeline->field_plan.several)
        return order_alone(maker, span, row, part, NULL);
    if (!whole && stk_cache_fill_aim(pipeline, into)) {
        maker->order_count++;
        return STK_ROW_READ;
    }
    const bool in_place = pipeline->plan.finish == STK_FINISH_COPY && !whole &&
                          stk_sample_is_row(sample) &&
                          sample->extent.bytes == pipeline->dataset->row_bytes;
    return order_alone(maker, span, row, part, in_place ? slot_row(maker, span, row) : NULL);
}

/* The read failed: read the row of a block alone, or give it up. */
static enum stk_row_step read_failed(struct stk_row_maker *maker, const struct stk_completion *done)
{
    struct stk_span *span = done->span;
    const uint32_t row = done->row;
    const stoker_part *part = stk_span_part(span, row, done->part);
    if (part->extent.path == NULL)
        stk_pipeline_note_unchecked(maker->pipeline, part->codec);
    if (done->block_rows > 0)
        stk_cache_fill_cancel(maker->pipeline, *stk_span_id(span, row));
    if (done->alone_may_work)
        return order_alone(maker, span, row, done->part, NULL);
    struct stk_place place = stk_bad_row_place(maker, span, row, done->part);
    if (place.offset != STOKER_NO_OFFSET)
        place.offset = done->offset;
    place.os_errno = done->os_errno;
    char what[STK_DETAIL_BYTES];
    stoker_error error;
    describe_part(maker, done->part, done->code, done->what, what, sizeof(what));
    (void)stk_error_set(&error, done->code, STOKER_STAGE_READ, &place,
                        what[0] != '\0' ? "%s" : NULL, what);
    if (!done->nothing_is_read)
        return fail(maker, span, row, done->part, &error, what);
    stk_bad_row_lose(span, row, &error); /* whatever the policy */
    return end_part(maker, span, row);
}

/* Copy a part's verified bytes to the record of the sample, if it is being cached as stored. */
static void keep_encoded(const struct stk_pipeline *pipeline, const struct stk_completion *done)
{
    uint8_t *record = done->span->records[done->row];
    if (pipeline->plan.cached == STK_CACHED_ENCODED && record != NULL)
        memcpy(record + done->part * pipeline->field_plan.part_bytes, done->bytes, done->size);
}

enum stk_row_step stk_row_take(struct stk_row_maker *maker, const struct stk_completion *done)
{
    struct stk_pipeline *pipeline = maker->pipeline;
    struct stk_span *span = done->span;
    const uint32_t row = done->row;
    const stoker_part *sample = stk_span_part(span, row, done->part);
    const uint64_t id = *stk_span_id(span, row);
    maker->order_count = 0;
    if (done->code < 0)
        return read_failed(maker, done);

    const bool whole = sample->extent.path != NULL;
    const uint8_t *bytes = done->block_rows > 0 ? stk_cache_row(&pipeline->cache, id) : done->bytes;
    if (!whole)
        stk_pipeline_note_unchecked(pipeline, sample->codec);
    stoker_error said;
    const int rc = verify(span, row, done->part, bytes, sample->extent.bytes, NULL, &said);
    if (rc < 0) {
        if (done->block_rows > 0)
            stk_cache_fill_cancel(pipeline, id);
        return decode_failed(maker, span, row, done->part, rc, &said);
    }
    if (pipeline->field_plan.several)
        keep_encoded(pipeline, done);
    else if (done->block_rows > 0)
        stk_cache_fill_commit_read(pipeline, done);
    else if (whole)
        stk_cache_fill_copy(pipeline, done);
    return finish(maker, span, row, done->part, bytes, sample->extent.bytes);
}

/* ---- the start of a row ---- */

/* Returns true if the GPU holds a row, and marks it. */
static bool is_on_device(const struct stk_pipeline *pipeline, const struct stk_span *span,
                         uint32_t row)
{
    const bool held = stk_device_cache_holds(&pipeline->device_cache, *stk_span_id(span, row));
    if (held)
        span->slot->fresh[span->first_row + row] = 0;
    return held;
}

/* Complete a row that is in memory as it is needed. Returns false if it is not. */
static bool take_resident(struct stk_row_maker *maker, struct stk_span *span, uint32_t row)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const uint64_t id = *stk_span_id(span, row);
    if (!is_on_device(pipeline, span, row)) {
        const uint8_t *decoded = stk_span_row_in_memory(pipeline, stk_span_part(span, row, 0), id);
        if (decoded == NULL)
            return false;
        const struct stk_image image = stk_image_row_cached(pipeline, decoded);
        stk_image_row_write(maker, span, row, &image);
    }
    stk_ledger_add(&maker->ledger->cache_hits, 1);
    return true;
}

static enum stk_row_step begin_part(struct stk_row_maker *maker, struct stk_span *span,
                                    uint32_t row, uint32_t part)
{
    const stoker_extent *extent = &stk_span_part(span, row, part)->extent;
    if (extent->memory == NULL && extent->bytes > 0)
        return order(maker, span, row, part);
    stoker_error said;
    uint8_t *into = is_verified_into(maker, span, row, part) ? slot_row(maker, span, row) : NULL;
    const int rc = verify(span, row, part, extent->memory, extent->bytes, into, &said);
    return rc < 0 ? decode_failed(maker, span, row, part, rc, &said)
                  : finish(maker, span, row, part, into != NULL ? into : extent->memory,
                           extent->bytes);
}

/* The sample as stored if the cache holds it, else NULL. */
static const uint8_t *held_encoded(const struct stk_row_maker *maker, uint64_t id)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    if (pipeline->plan.cached != STK_CACHED_ENCODED)
        return NULL;
    const uint8_t *held = stk_cache_find(&pipeline->cache, id);
    if (held != NULL)
        stk_ledger_add(&maker->ledger->cache_hits, 1);
    return held;
}

/* ---- rows of several fields or parts ---- */

/* Begin a part whose bytes are in the sample's encoded record. */
static enum stk_row_step begin_held(struct stk_row_maker *maker, struct stk_span *span,
                                    uint32_t row, uint32_t part, const uint8_t *record)
{
    const stoker_extent *extent = &stk_span_part(span, row, part)->extent;
    if (extent->memory != NULL || extent->bytes == 0)
        return begin_part(maker, span, row, part);
    return finish(maker, span, row, part, record + part * maker->pipeline->field_plan.part_bytes,
                  extent->bytes);
}

/* A sample that its data set makes. */
static enum stk_row_step begin_made(struct stk_row_maker *maker, struct stk_span *span,
                                    uint32_t row)
{
    stoker_error said;
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
        return settle(maker, span, row, 0, &error, said.message);
    stk_bad_row_lose(span, row, &error); /* not the sample's fault */
    return STK_ROW_DONE;
}

static enum stk_row_step begin_several(struct stk_row_maker *maker, struct stk_span *span,
                                       uint32_t row)
{
    struct stk_pipeline *pipeline = maker->pipeline;
    const uint64_t id = *stk_span_id(span, row);
    if (pipeline->dataset->ops->make != NULL) {
        stk_pipeline_note_unchecked(pipeline, NULL); /* it may read files */
        return begin_made(maker, span, row);
    }
    if (span->part_count == 0)
        return complete(maker, span, row);
    if (is_on_device(pipeline, span, row)) {
        stk_ledger_add(&maker->ledger->cache_hits, 1);
        return complete(maker, span, row);
    }
    if (pipeline->cache.kind == STOKER_CACHE_DECODED &&
        stk_cache_find(&pipeline->cache, id) != NULL) {
        stk_ledger_add(&maker->ledger->cache_hits, 1);
        stk_field_rows_write(maker, span, row, stk_cache_row(&pipeline->cache, id));
        return complete(maker, span, row);
    }
    const uint8_t *held = held_encoded(maker, id);
    span->records[row] =
        held != NULL ? NULL : stk_cache_fill_begin_record(pipeline, span->batch, id);
    span->parts_left[row] = (uint8_t)span->part_count;
    enum stk_row_step step = STK_ROW_READ;
    for (uint32_t part = 0; part < span->part_count; part++)
        step = held != NULL ? begin_held(maker, span, row, part, held)
                            : begin_part(maker, span, row, part);
    return maker->order_count > 0 ? STK_ROW_READ : step;
}

enum stk_row_step stk_row_begin(struct stk_row_maker *maker, struct stk_span *span, uint32_t row)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    maker->order_count = 0;
    if (pipeline->field_plan.several)
        return begin_several(maker, span, row);
    if (take_resident(maker, span, row))
        return complete(maker, span, row);
    const stoker_extent *extent = &stk_span_part(span, row, 0)->extent;
    const uint64_t id = *stk_span_id(span, row);
    const uint8_t *held =
        extent->memory == NULL && extent->bytes > 0 ? held_encoded(maker, id) : NULL;
    return held != NULL ? finish(maker, span, row, 0, held, *stk_cache_size(&pipeline->cache, id))
                        : begin_part(maker, span, row, 0);
}
