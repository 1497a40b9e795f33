/* field_rows.c - see field_rows.h. */
#include "loader/pipeline/field_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/rng.h"
#include "loader/dataset/part.h"
#include "loader/pipeline/image_row.h"

static uint8_t *slot_row(const struct stk_pipeline *pipeline, const struct stk_span *span,
                         uint32_t row, uint32_t field)
{
    return stk_slot_field_row(&pipeline->slots.fields.each[field], span->slot->images,
                              span->first_row + row);
}

/* The length of a field that varies, in a record. */
static uint64_t *record_length(const struct stk_pipeline *pipeline, uint32_t field, uint8_t *record)
{
    return (uint64_t *)(void *)(record + pipeline->field_plan.record_at[field]) - 1;
}

static bool is_changed(const struct stk_pipeline *pipeline, uint32_t field)
{
    return field == 0 && pipeline->plan.finish != STK_FINISH_COPY;
}

static bool varies(const struct stk_pipeline *pipeline, uint32_t field)
{
    return pipeline->dataset->fields[field].info.varies;
}

/* Bytes of a decoded row that are in use. */
static size_t used_bytes(const struct stk_pipeline *pipeline, uint32_t field, uint64_t length)
{
    const struct stk_field *info = &pipeline->dataset->fields[field];
    return info->info.varies ? (size_t)length * info->entry_bytes : info->bytes;
}

static bool is_mask(const struct stk_pipeline *pipeline, uint32_t field)
{
    return pipeline->field_plan.masks != NULL && pipeline->field_plan.masks[field].pixel_bytes > 0;
}

/* The worker's memory for a mask before its geometry. */
static uint8_t *mask_memory(const struct stk_row_maker *maker, uint32_t field)
{
    const stoker_dataset *dataset = maker->pipeline->dataset;
    uint8_t *at = maker->masks;
    for (uint32_t i = 0; i < field; i++)
        if (is_mask(maker->pipeline, i))
            at += (dataset->fields[i].bytes + 63) / 64 * 64;
    return at;
}

/* A mask as the data set describes it. */
static struct stk_image mask_stored(const struct stk_pipeline *pipeline, uint32_t field,
                                    const void *pixels)
{
    const uint64_t *shape = pipeline->dataset->fields[field].info.shape;
    return (struct stk_image){ .pixels = pixels,
                               .height = (uint32_t)shape[0],
                               .width = (uint32_t)shape[1] };
}

static void write_mask(const struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                       uint32_t field, const struct stk_image *mask)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    stk_mask_row(&pipeline->field_plan.masks[field], maker->mask_scratch, mask, span->epoch,
                 *stk_span_id(span, row), slot_row(pipeline, span, row, field));
}

void stk_field_rows_mask(const struct stk_row_maker *maker, const struct stk_span *span,
                         uint32_t row, uint32_t field, const void *pixels)
{
    const struct stk_image mask = mask_stored(maker->pipeline, field, pixels);
    write_mask(maker, span, row, field, &mask);
}

/* Write a field from its decoded row, which may be the row of the slot already. image: what lies there, of field 0. */
static void write_field(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                        uint32_t field, const stoker_row *from, const struct stk_image *image)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const struct stk_slot_field *place = &pipeline->slots.fields.each[field];
    uint8_t *to = slot_row(pipeline, span, row, field);
    if (varies(pipeline, field))
        stk_slot_field_lengths(place, span->slot->lengths)[span->first_row + row] = from->length;
    if (is_changed(pipeline, field))
        stk_image_row_write(maker, span, row, image);
    else if (is_mask(pipeline, field))
        stk_field_rows_mask(maker, span, row, field, from->data);
    else if (from->data != to)
        memcpy(to, from->data, used_bytes(pipeline, field, from->length));
}

/* ---- decode ---- */

/* Where the fields of a part are decoded to. */
static void aim(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                struct stk_part_fields own, uint8_t *record)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    for (uint32_t i = own.first; i < own.first + own.count; i++) {
        uint8_t *to = slot_row(pipeline, span, row, i);
        if (record != NULL && !(i == 0 && pipeline->plan.cached == STK_CACHED_RESIZED))
            to = record + pipeline->field_plan.record_at[i];
        else if (is_changed(pipeline, i))
            to = maker->image;
        else if (is_mask(pipeline, i))
            to = mask_memory(maker, i);
        maker->rows[i] =
            (stoker_row){ .data = to, .bytes_max = pipeline->dataset->fields[i].bytes };
    }
}

/* Returns true if a part is one mask, which is decoded in its own size. */
static bool is_any_mask(const struct stk_pipeline *pipeline, struct stk_part_fields own,
                        const stoker_codec *codec)
{
    return pipeline->field_plan.masks_differ && own.count == 1 && is_mask(pipeline, own.first) &&
           codec != NULL && codec->decode_any != NULL;
}

/* The worker's memory for an image is free: each part is written before the next one is decoded. */
static int decode_mask(struct stk_row_maker *maker, uint32_t field, const stoker_codec *codec,
                       const stoker_encoded *encoded, struct stk_image *mask, stoker_error *said)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    struct stk_decoding decoding = {
        .to = maker->image,
        .row_bytes = pipeline->dataset->fields[field].bytes,
        .bytes_max = pipeline->image_bytes_max,
        .channels = pipeline->field_plan.masks[field].pixel_bytes,
        .any_size = true,
    };
    const int rc = stk_codecs_decode(&maker->codecs, codec, encoded, &decoding, said);
    *mask = (struct stk_image){ .pixels = maker->image,
                                .height = decoding.got.height,
                                .width = decoding.got.width };
    return rc;
}

static int decode(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                  uint32_t part, const stoker_encoded *encoded, struct stk_image *image,
                  stoker_error *said)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const struct stk_part_fields own = pipeline->dataset->part_fields[part];
    const stoker_codec *codec = stk_span_part(span, row, part)->codec;
    const bool is_image =
        own.first == 0 && codec != NULL && (pipeline->plan.any_size || pipeline->plan.crops);
    void *scratch = NULL;
    if (is_any_mask(pipeline, own, codec))
        return decode_mask(maker, own.first, codec, encoded, image, said);
    if (is_image && own.count == 1 && codec->decode_any != NULL)
        return stk_image_row_decode(maker, span, row, codec, encoded, maker->image, image, said);
    if (is_image && own.count > 1 && stk_image_row_has_parts(maker, codec)) {
        const int rc =
            stk_image_row_decode_fields(maker, span, row, codec, encoded, own.count, image, said);
        return rc < 0 ? rc : stk_part_check(pipeline->dataset, part, codec, maker->rows, said);
    }
    int rc = codec == NULL ? 0 : stk_codecs_scratch(&maker->codecs, codec, &scratch, said);
    if (rc == 0)
        rc = stk_part_decode(pipeline->dataset, part, codec, scratch, encoded, maker->rows, said);
    if (own.first == 0)
        *image = stk_image_row_stored(pipeline, maker->rows[0].data);
    else if (is_mask(pipeline, own.first))
        *image = mask_stored(pipeline, own.first, maker->rows[own.first].data);
    return rc;
}

/* ---- sizes ---- */

/* Note the size of a part that is an image or a mask. */
static void note_size(const struct stk_span *span, uint32_t row, uint32_t part,
                      const struct stk_image *image)
{
    const bool is_part = image->eighths != 0;
    if (span->part_sizes != NULL)
        span->part_sizes[(size_t)row * span->part_count + part] =
            is_part ? (stoker_size){ image->whole_height, image->whole_width }
                    : (stoker_size){ image->height, image->width };
}

int stk_field_rows_check_sizes(const struct stk_row_maker *maker, const struct stk_span *span,
                               uint32_t row, uint32_t *part, stoker_error *said)
{
    const stoker_dataset *dataset = maker->pipeline->dataset;
    if (span->part_sizes == NULL)
        return 0;
    const stoker_size *sizes = &span->part_sizes[(size_t)row * span->part_count];
    const stoker_size image = sizes[dataset->fields[0].info.part];
    for (uint32_t i = 0; i < span->part_count; i++) {
        const uint32_t field = dataset->part_fields[i].first;
        if (!is_mask(maker->pipeline, field) ||
            (sizes[i].height == image.height && sizes[i].width == image.width))
            continue;
        *part = i;
        (void)snprintf(said->message, sizeof(said->message),
                       "field \"%s\": a mask of %u x %u pixels, its image has %u x %u",
                       dataset->fields[field].info.name, sizes[i].height, sizes[i].width,
                       image.height, image.width);
        return STOKER_EFORMAT;
    }
    return 0;
}

int stk_field_rows_make(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                        uint32_t part, const stoker_encoded *encoded, uint8_t **record,
                        stoker_error *said)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const struct stk_part_fields own = pipeline->dataset->part_fields[part];
    struct stk_image image = { .pixels = NULL };
    aim(maker, span, row, own, *record);
    int rc = decode(maker, span, row, part, encoded, &image, said);
    if (rc < 0)
        return rc;
    note_size(span, row, part, &image);
    if (*record != NULL && own.first == 0 && is_changed(pipeline, 0) &&
        pipeline->plan.finish == STK_FINISH_TRANSFORM &&
        !stk_image_row_keep(maker, &image, *record + pipeline->field_plan.record_at[0]))
        *record = NULL;
    for (uint32_t i = own.first; i < own.first + own.count; i++) {
        if (*record != NULL && varies(pipeline, i))
            *record_length(pipeline, i, *record) = maker->rows[i].length;
        if (is_mask(pipeline, i) && own.count == 1)
            write_mask(maker, span, row, i, &image);
        else
            write_field(maker, span, row, i, &maker->rows[i], &image);
    }
    return 0;
}

int stk_field_rows_call_make(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                             stoker_error *said)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_dataset *dataset = pipeline->dataset;
    const struct stk_part_fields all = { .first = 0, .count = dataset->info.field_count };
    const uint64_t id = *stk_span_id(span, row);
    stoker_rng rng;
    stoker_rng_init(&rng, pipeline->sampler.seed, span->epoch, id, STK_RNG_OWN(STK_RNG_MAKE));
    aim(maker, span, row, all, NULL);
    stk_error_clear(said);
    int rc = dataset->ops->make(dataset->self, id, maker->rows, &rng, said);
    if (rc != STOKER_INTERRUPTED)
        rc = stk_callback_code(rc, "it", said);
    if (rc != 0)
        return rc;
    const struct stk_image image = stk_image_row_stored(pipeline, maker->rows[0].data);
    for (uint32_t i = 0; i < all.count; i++) {
        if (varies(pipeline, i) && maker->rows[i].length > dataset->fields[i].info.shape[0]) {
            (void)snprintf(said->message, sizeof(said->message),
                           "make(): field \"%s\": length %" PRIu64 ", at most %" PRIu64,
                           dataset->fields[i].info.name, maker->rows[i].length,
                           dataset->fields[i].info.shape[0]);
            return STOKER_EFORMAT;
        }
        write_field(maker, span, row, i, &maker->rows[i], &image);
    }
    return 0;
}

void stk_field_rows_write(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                          uint8_t *record)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    for (uint32_t i = 0; i < pipeline->dataset->info.field_count; i++) {
        if (pipeline->dataset->fields[i].info.part == STOKER_NO_PART)
            continue;
        const stoker_row from = {
            .data = record + pipeline->field_plan.record_at[i],
            .length = varies(pipeline, i) ? *record_length(pipeline, i, record) : 0,
        };
        const struct stk_image image = stk_image_row_cached(pipeline, from.data);
        write_field(maker, span, row, i, &from, &image);
    }
}
