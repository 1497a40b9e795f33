/* row.c - see row.h. */
#include "loader/pipeline/row.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/clock.h"
#include "loader/base/error.h"
#include "loader/pipeline/fetch.h"
#include "loader/pipeline/image_row.h"

static uint64_t *row_id(const struct stk_span *span, uint32_t row)
{
    return &span->slot->ids[span->first_row + row];
}

static uint8_t *row_images(const struct stk_worker *worker, const struct stk_span *span,
                           uint32_t row)
{
    return stk_pipeline_row(worker->pipeline, span->slot, span->first_row + row);
}

struct stk_place stk_row_place(const struct stk_worker *worker, const struct stk_span *span,
                               uint32_t row)
{
    const stoker_sample *sample = &span->samples[row];
    struct stk_place place = STK_NOWHERE;
    place.sample = *row_id(span, row);
    if (sample->extent.memory == NULL && sample->extent.path != NULL)
        place.path = sample->extent.path;
    else if (sample->extent.memory == NULL && sample->extent.bytes > 0 &&
             sample->extent.file < worker->pipeline->dataset->info.file_count) {
        place.path = worker->pipeline->files[sample->extent.file].path;
        place.offset = sample->extent.offset;
    }
    return place;
}

/* ---- rows that are in memory as stored ---- */

/* The decoded row if it is in memory, else NULL. If the cache holds resized images, only those count, since all
 * rows of a span must have one size. */
static const uint8_t *resident(const struct stk_pipeline *pipeline, const stoker_sample *sample,
                               uint64_t id)
{
    if (sample->codec == NULL && sample->extent.memory != NULL)
        return sample->extent.bytes == pipeline->dataset->row_bytes && !pipeline->keeps_resized
                   ? sample->extent.memory
                   : NULL;
    return stk_pipeline_caches_rows(pipeline) ? stk_cache_find(&pipeline->cache, id) : NULL;
}

/* Find all rows by their ids alone, without locate(). */
static bool find_sources(const struct stk_pipeline *pipeline, struct stk_span *span,
                         const uint64_t *ids)
{
    const uint8_t *rows = pipeline->keeps_resized ? NULL : pipeline->dataset->info.rows;
    size_t stride_bytes = pipeline->dataset->row_bytes;
    if (!stk_pipeline_caches_rows(pipeline) && rows == NULL)
        return false;
    if (rows == NULL && stk_cache_holds_all(&pipeline->cache, pipeline->dataset->info.count)) {
        rows = stk_cache_row(&pipeline->cache, 0);
        stride_bytes = pipeline->cache.stride_bytes;
    }
    if (rows != NULL) {
        const uint32_t count = span->rows; /* the compiler must assume that stores change *span */
        const void **sources = span->sources;
        for (uint32_t row = 0; row < count; row++)
            sources[row] = rows + ids[row] * stride_bytes;
        return true;
    }
    for (uint32_t row = 0; row < span->rows; row++) {
        span->sources[row] = stk_cache_find(&pipeline->cache, ids[row]);
        if (span->sources[row] == NULL)
            return false;
    }
    return true;
}

/* Returns true if the GPU holds all rows of a span. Otherwise they are marked fresh; stk_row_start() clears the mark
 * of rows that are held. */
static bool find_on_device(const struct stk_pipeline *pipeline, const struct stk_span *span,
                           const uint64_t *ids)
{
    if (!pipeline->device_cache.on)
        return false;
    bool all = true;
    for (uint32_t row = 0; row < span->rows && all; row++)
        all = stk_device_cache_holds(&pipeline->device_cache, ids[row]);
    memset(&span->slot->fresh[span->first_row], all ? 0 : 1, span->rows);
    return all;
}

static bool find_located_sources(const struct stk_pipeline *pipeline, struct stk_span *span,
                                 const uint64_t *ids)
{
    for (uint32_t row = 0; row < span->rows; row++) {
        span->sources[row] = resident(pipeline, &span->samples[row], ids[row]);
        if (span->sources[row] == NULL)
            return false;
    }
    return true;
}

static void *span_labels(const struct stk_pipeline *pipeline, const struct stk_span *span)
{
    return (uint8_t *)span->slot->labels +
           span->first_row * stoker_dtype_bytes(pipeline->dataset->info.label_dtype);
}

int stk_row_locate(struct stk_worker *worker, struct stk_span *span, stoker_error *error)
{
    const struct stk_pipeline *pipeline = worker->pipeline;
    const stoker_dataset *dataset = pipeline->dataset;
    const uint64_t *ids = row_id(span, 0);
    if (span->rows == 0) { /* a rank may have no rows of a batch */
        span->on_device = span->resident = false;
        return 0;
    }
    const bool labelled = span->slot->labels == NULL || dataset->ops->labels != NULL;
    span->on_device = find_on_device(pipeline, span, ids);
    span->resident = labelled && (span->on_device || find_sources(pipeline, span, ids));
    if (span->resident) {
        if (span->slot->labels != NULL)
            dataset->ops->labels(dataset->self, ids, span->rows, span_labels(pipeline, span));
        return 0;
    }
    int rc = dataset->ops->locate(dataset->self, ids, span->rows, span->samples, error);
    if (rc != 0)
        return rc < 0 ? rc : STOKER_EINVAL; /* > 0 has no meaning here */
    span->resident = span->on_device || find_located_sources(pipeline, span, ids);
    if (span->resident)
        stk_row_write_labels(worker, span);
    return 0;
}

void stk_row_write_labels(const struct stk_worker *worker, const struct stk_span *span)
{
    if (span->slot->labels == NULL)
        return;
    void *to = span_labels(worker->pipeline, span);
    if (worker->pipeline->dataset->info.label_dtype == STOKER_DTYPE_INT64) {
        int64_t *labels = to;
        for (uint32_t row = 0; row < span->rows; row++)
            labels[row] = span->samples[row].label.index;
    } else {
        float *labels = to;
        for (uint32_t row = 0; row < span->rows; row++)
            labels[row] = span->samples[row].label.value;
    }
}

void stk_row_gather(struct stk_worker *worker, struct stk_span *span, const struct stk_span *next)
{
    uint32_t ahead = 0;
    if (next != NULL && next->resident && !next->on_device) {
        ahead = next->rows < STK_AHEAD_ROWS_MAX ? next->rows : STK_AHEAD_ROWS_MAX;
        /* Always the maximum: there is room, and a copy of known size is a few moves. */
        memcpy(span->sources + span->rows, next->sources,
               STK_AHEAD_ROWS_MAX * sizeof(next->sources[0]));
    }
    if (!span->on_device)
        stk_image_rows_write(worker, span, ahead);
    stk_ledger_add(&worker->ledger.cache_hits, span->rows);
    span->started = span->rows;
    span->left = 0;
}

static void complete(struct stk_span *span)
{
    assert(span->left > 0);
    span->left--;
}

/* ---- a row that has to be decoded ---- */

static bool decodes_any(const struct stk_pipeline *pipeline, const stoker_codec *codec)
{
    return pipeline->any_size && codec->decode_any != NULL;
}

static int open_codec(const struct stk_pipeline *pipeline, const stoker_codec *codec,
                      void **scratch)
{
    if (decodes_any(pipeline, codec))
        return codec->open_any == NULL ? 0 : codec->open_any(codec->self, scratch);
    return codec->open == NULL ? 0 : codec->open(codec->self, scratch);
}

/* Map a value > 0 of the user's code, which has no meaning, to STOKER_EINVAL. */
static int refuse_stop(int rc, const char *call, stoker_error *said)
{
    if (rc <= 0)
        return rc;
    (void)snprintf(said->message, sizeof(said->message),
                   "%s returned %d, which is neither 0 nor an error", call, rc);
    return STOKER_EINVAL;
}

/* This worker's scratch for a codec, opened on first use. */
static int codec_scratch(struct stk_worker *worker, const stoker_codec *codec, void **scratch,
                         stoker_error *said)
{
    struct stk_codec_state *state;
    int rc = stk_codecs_find(&worker->codecs, codec, &state);
    if (rc == 0 && state->codec == NULL) {
        rc = refuse_stop(open_codec(worker->pipeline, codec, scratch), "open()", said);
        if (rc == 0)
            stk_codecs_add(&worker->codecs, state, codec, *scratch);
    }
    if (rc == 0)
        *scratch = state->scratch;
    return rc;
}

static stoker_encoded encoded_of(const struct stk_span *span, uint32_t row, const uint8_t *bytes,
                                 size_t size)
{
    const stoker_sample *sample = &span->samples[row];
    return (stoker_encoded){ .bytes = bytes,
                             .size = size,
                             .sample = stk_codec_id(sample, *row_id(span, row)),
                             .tag = sample->tag };
}

/* Complete the codec's message with the location. */
static void decode_failed(struct stk_worker *worker, struct stk_span *span, uint32_t row, int code,
                          const stoker_error *said)
{
    struct stk_place place = stk_row_place(worker, span, row);
    stoker_error error;
    (void)stk_error_set(&error, code, STOKER_STAGE_DECODE, &place, said->message[0] ? "%s" : NULL,
                        said->message);
    stk_row_fail(worker, span, row, &error, said->message);
}

/* Decode an image of any size to `to`, which has room for pipeline->image_bytes_max. */
static int decode_any(const struct stk_pipeline *pipeline, const stoker_codec *codec, void *scratch,
                      const stoker_encoded *encoded, uint8_t *to, stoker_size *size,
                      stoker_error *said)
{
    int rc =
        codec->decode_any(codec->self, scratch, encoded, to, pipeline->image_bytes_max, size, said);
    rc = refuse_stop(rc, "decode_any()", said);
    if (rc < 0)
        return rc;
    const uint64_t channels = pipeline->dataset->info.shape[2];
    const bool fits = size->height >= 1 && size->width >= 1 &&
                      size->height <= STOKER_SOURCE_SIDE_MAX &&
                      size->width <= STOKER_SOURCE_SIDE_MAX &&
                      (uint64_t)size->height * size->width * channels <= pipeline->image_bytes_max;
    if (fits)
        return 0;
    (void)snprintf(said->message, sizeof(said->message), "decode_any() returned %u x %u pixels",
                   size->height, size->width);
    return STOKER_ELIMIT;
}

/* Decode to `to` and describe the result in *image. */
static int decode_to(struct stk_worker *worker, const stoker_codec *codec,
                     const stoker_encoded *encoded, uint8_t *to, struct stk_image *image,
                     stoker_error *said)
{
    const struct stk_pipeline *pipeline = worker->pipeline;
    void *scratch = NULL;
    int rc = codec_scratch(worker, codec, &scratch, said);
    if (rc < 0)
        return rc;
    *image = stk_image_row_stored(pipeline, to);
    if (!decodes_any(pipeline, codec)) {
        rc = codec->decode(codec->self, scratch, encoded, to, pipeline->dataset->row_bytes, said);
        return refuse_stop(rc, "decode()", said);
    }
    stoker_size size = { 0, 0 };
    rc = decode_any(pipeline, codec, scratch, encoded, to, &size, said);
    image->height = size.height;
    image->width = size.width;
    image->slack = true;
    return rc;
}

/* Decode to the worker's own memory, then cache and write the image. */
static int decode_apart(struct stk_worker *worker, struct stk_span *span, uint32_t row,
                        const stoker_encoded *encoded, stoker_error *said)
{
    struct stk_image image;
    int rc = decode_to(worker, span->samples[row].codec, encoded, worker->row, &image, said);
    if (rc < 0)
        return rc;
    stk_image_row_cache(worker, span, *row_id(span, row), &image);
    stk_image_row_write(worker, span, row, &image);
    return 0;
}

/* Decode straight to the final place: the cache or the slot. */
static int decode_in_place(struct stk_worker *worker, struct stk_span *span, uint32_t row,
                           const stoker_encoded *encoded, stoker_error *said)
{
    struct stk_pipeline *pipeline = worker->pipeline;
    const uint64_t id = *row_id(span, row);
    const bool to_cache =
        pipeline->cache.kind == STOKER_CACHE_DECODED && pipeline->cache.block_rows == 1 &&
        stk_pipeline_may_cache(pipeline, span->batch) && stk_cache_begin(&pipeline->cache, id);
    uint8_t *to = to_cache           ? stk_cache_row(&pipeline->cache, id)
                  : pipeline->copies ? row_images(worker, span, row)
                                     : worker->row;
    struct stk_image image;
    int rc = decode_to(worker, span->samples[row].codec, encoded, to, &image, said);
    if (rc < 0) {
        if (to_cache)
            stk_cache_cancel(&pipeline->cache, id);
        return rc;
    }
    if (to_cache)
        stk_cache_commit(&pipeline->cache, id, pipeline->dataset->row_bytes);
    if (to_cache || !pipeline->copies)
        stk_image_row_write(worker, span, row, &image);
    return 0;
}

static void decode_row(struct stk_worker *worker, struct stk_span *span, uint32_t row,
                       const uint8_t *bytes, size_t size)
{
    const struct stk_pipeline *pipeline = worker->pipeline;
    const stoker_encoded encoded = encoded_of(span, row, bytes, size);
    stoker_error said;
    stk_error_clear(&said);
    int rc = pipeline->any_size || pipeline->keeps_resized
                 ? decode_apart(worker, span, row, &encoded, &said)
                 : decode_in_place(worker, span, row, &encoded, &said);
    if (rc < 0)
        decode_failed(worker, span, row, rc, &said);
    else
        complete(span);
}

bool stk_row_is_stored(const stoker_sample *sample)
{
    return sample->codec == NULL || sample->codec->bytes_are_row;
}

bool stk_row_verify(struct stk_worker *worker, struct stk_span *span, uint32_t row,
                    const uint8_t *bytes, size_t size)
{
    const stoker_codec *codec = span->samples[row].codec;
    if (codec == NULL || codec->verify == NULL)
        return true;
    const stoker_encoded encoded = encoded_of(span, row, bytes, size);
    stoker_error said;
    stk_error_clear(&said);
    const int rc = refuse_stop(codec->verify(codec->self, &encoded, &said), "verify()", &said);
    if (rc < 0)
        decode_failed(worker, span, row, rc, &said);
    return rc == 0;
}

void stk_row_finish(struct stk_worker *worker, struct stk_span *span, uint32_t row,
                    const uint8_t *bytes, size_t size)
{
    if (!stk_row_is_stored(&span->samples[row])) {
        decode_row(worker, span, row, bytes, size);
        return;
    }
    if (size != worker->pipeline->dataset->row_bytes) {
        struct stk_place place = stk_row_place(worker, span, row);
        stoker_error error;
        char what[STK_DETAIL_BYTES];
        (void)snprintf(what, sizeof(what), "%zu bytes, but a row has %zu", size,
                       worker->pipeline->dataset->row_bytes);
        (void)stk_error_set(&error, STOKER_EFORMAT, STOKER_STAGE_DECODE, &place, "%s", what);
        stk_row_fail(worker, span, row, &error, what);
        return;
    }
    if (bytes != row_images(worker, span, row)) { /* else it was read straight into the row */
        struct stk_image image = stk_image_row_stored(worker->pipeline, bytes);
        if (worker->pipeline->keeps_resized)
            stk_image_row_cache(worker, span, *row_id(span, row), &image);
        stk_image_row_write(worker, span, row, &image);
    }
    complete(span);
}

void stk_row_start(struct stk_worker *worker, struct stk_span *span, uint32_t row)
{
    const struct stk_pipeline *pipeline = worker->pipeline;
    const stoker_sample *sample = &span->samples[row];
    const uint64_t id = *row_id(span, row);
    if (stk_device_cache_holds(&pipeline->device_cache, id)) {
        span->slot->fresh[span->first_row + row] = 0;
        stk_ledger_add(&worker->ledger.cache_hits, 1);
        complete(span);
        return;
    }
    const uint8_t *decoded = resident(pipeline, sample, id);
    if (decoded != NULL) {
        stk_ledger_add(&worker->ledger.cache_hits, 1);
        const struct stk_image image = stk_image_row_cached(pipeline, decoded);
        stk_image_row_write(worker, span, row, &image);
        complete(span);
        return;
    }
    if (sample->extent.memory != NULL || sample->extent.bytes == 0) {
        if (stk_row_verify(worker, span, row, sample->extent.memory, sample->extent.bytes))
            stk_row_finish(worker, span, row, sample->extent.memory, sample->extent.bytes);
        return;
    }
    if (pipeline->cache.kind == STOKER_CACHE_ENCODED) {
        const uint8_t *held = stk_cache_find(&pipeline->cache, id);
        if (held != NULL) {
            stk_ledger_add(&worker->ledger.cache_hits, 1);
            stk_row_finish(worker, span, row, held, *stk_cache_size(&pipeline->cache, id));
            return;
        }
    }
    if (worker->fetch_count == 0) { /* describe() announced no files */
        struct stk_place place = stk_row_place(worker, span, row);
        static const char what[] = "no such file";
        stoker_error error;
        (void)stk_error_set(&error, STOKER_ELIMIT, STOKER_STAGE_LOCATE, &place, "%s", what);
        stk_row_fail(worker, span, row, &error, what);
        return;
    }
    stk_fetch_queue(worker, span, row);
}

/* ---- failed rows ---- */

static void note_failure(const struct stk_worker *worker, struct stk_span *span, uint32_t row,
                         enum stk_row_state state, const stoker_error *error, const char *what)
{
    struct stk_slot *slot = span->slot;
    const uint32_t at = span->first_row + row;
    if (slot->row_bad[at] == STK_ROW_GOOD) { /* keep the first cause */
        struct stk_failure *failure = &slot->failures[at];
        *failure = (struct stk_failure){
            .sample = error->sample,
            .offset = error->offset,
            .code = error->code,
            .os_errno = error->os_errno,
            .path = error->path[0] != '\0' ? stk_row_place(worker, span, row).path : NULL,
            .stage = (uint32_t)error->stage,
        };
        (void)snprintf(failure->detail, sizeof(failure->detail), "%s", what == NULL ? "" : what);
        atomic_fetch_add_explicit(&slot->bad_rows, 1U, memory_order_relaxed);
    }
    slot->row_bad[at] = (uint8_t)state;
}

static bool start_substitute(struct stk_worker *worker, struct stk_span *span, uint32_t row)
{
    struct stk_pipeline *pipeline = worker->pipeline;
    const uint64_t position = span->position + (uint64_t)row * pipeline->schedule.world_size;
    if (span->attempts[row] >= STK_SUBSTITUTES_MAX ||
        atomic_load_explicit(&pipeline->slots.stopping, memory_order_relaxed))
        return false;
    uint64_t id = stk_bad_samples_substitute(pipeline->sampler.seed, span->epoch, position,
                                             span->attempts[row]++, pipeline->sampler.count);
    *row_id(span, row) = id;
    stoker_error error;
    if (pipeline->dataset->ops->locate(pipeline->dataset->self, &id, 1, &span->samples[row],
                                       &error) != 0)
        return false;
    stk_row_start(worker, span, row);
    return true;
}

void stk_row_fail(struct stk_worker *worker, struct stk_span *span, uint32_t row,
                  const stoker_error *error, const char *what)
{
    const stoker_on_bad policy = worker->pipeline->on_bad;
    if (policy == STOKER_ON_BAD_SUBSTITUTE) {
        note_failure(worker, span, row, STK_ROW_SUBSTITUTED, error, what);
        if (start_substitute(worker, span, row))
            return;
    } else if (policy == STOKER_ON_BAD_SKIP) {
        note_failure(worker, span, row, STK_ROW_SKIPPED, error, what);
        complete(span);
        return;
    }
    stk_row_lose(span, row, error);
}

void stk_row_lose(struct stk_span *span, uint32_t row, const stoker_error *error)
{
    stk_slot_fail(span->slot, span->first_row + row, error);
    complete(span);
}
