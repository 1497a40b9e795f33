/* field_rows.c - see field_rows.h. */
#include "loader/pipeline/rows/field_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/rng.h"
#include "loader/dataset/part.h"
#include "loader/pipeline/rows/cache_fill.h"
#include "loader/pipeline/rows/image_row.h"

static uint8_t *slot_row(const struct stk_pipeline *pipeline, const struct stk_span *span,
                         uint32_t row, uint32_t field)
{
    return stk_slot_field_row(&pipeline->slots.fields.each[field], span->slot->images,
                              span->first_row + row);
}

/* The length of a field that varies, before its row in a record. */
static uint64_t *record_length(uint8_t *at)
{
    return (uint64_t *)(void *)at - 1;
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

static void copy_used(const struct stk_pipeline *pipeline, uint32_t field, uint8_t *to,
                      const stoker_row *from)
{
    const size_t bytes = used_bytes(pipeline, field, from->length);
    if (bytes > 0 && from->data != to) /* an empty row may have no data */
        memcpy(to, from->data, bytes);
}

/* The worker's memory for a mask before its geometry. */
static uint8_t *mask_memory(const struct stk_row_maker *maker, uint32_t field)
{
    const stoker_dataset *dataset = maker->pipeline->dataset;
    uint8_t *at = maker->masks;
    for (uint32_t i = 0; i < field; i++)
        if (stk_field_is_mask(&maker->pipeline->field_plan, i))
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

/* Write a field from its decoded row, which may be the row of the slot already. image: what lies
 * there, of field 0. */
static void write_field(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                        uint32_t field, const stoker_row *from, const struct stk_image *image)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    if (is_changed(pipeline, field)) { /* then it does not vary */
        stk_image_row_write(maker, span, row, image);
        return;
    }
    if (stk_field_is_mask(&pipeline->field_plan, field)) {
        const struct stk_image mask = mask_stored(pipeline, field, from->data);
        write_mask(maker, span, row, field, &mask);
        return;
    }
    const struct stk_slot_field *place = &pipeline->slots.fields.each[field];
    uint8_t *to = slot_row(pipeline, span, row, field);
    if (varies(pipeline, field))
        stk_slot_field_lengths(place, span->slot->lengths)[span->first_row + row] = from->length;
    copy_used(pipeline, field, to, from);
}

/* ---- decode ---- */

/* Where the fields of a part, or of a made sample, are decoded to. */
static void set_field_targets(struct stk_row_maker *maker, const struct stk_span *span,
                              uint32_t row, struct stk_part_fields own, uint8_t *record)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    for (uint32_t i = own.first; i < own.first + own.count; i++) {
        uint8_t *to = slot_row(pipeline, span, row, i);
        if (record != NULL && !(i == 0 && pipeline->plan.cached == STK_CACHED_RESIZED))
            to = record + pipeline->field_plan.record_at[i];
        else if (is_changed(pipeline, i))
            to = maker->image;
        else if (stk_field_is_mask(&pipeline->field_plan, i))
            to = mask_memory(maker, i);
        maker->rows[i] =
            (stoker_row){ .data = to, .bytes_max = pipeline->dataset->fields[i].bytes };
    }
}

/* Returns true if the first field of a part is an image or mask that is decoded in its own size. */
static bool is_in_own_size(const struct stk_pipeline *pipeline, struct stk_part_fields own,
                           const stoker_codec *codec)
{
    if ((codec->flags & STOKER_CODEC_ANY_SIZE) == 0)
        return false;
    if (own.first == 0)
        return pipeline->plan.any_size || (pipeline->plan.crops && codec->probe != NULL);
    return pipeline->field_plan.masks_differ && own.count == 1 &&
           stk_field_is_mask(&pipeline->field_plan, own.first);
}

/* The worker's memory for an image is free: each part is written before the next one is decoded. */
static int decode_mask(struct stk_row_maker *maker, const struct stk_part_ref *ref, uint32_t field,
                       struct stk_image *mask, stoker_error *said)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_encoded encoded = stk_ref_encoded(ref);
    struct stk_image_decoding decoding = {
        .bytes_max = pipeline->image_bytes_max,
        .channels = pipeline->field_plan.masks[field].pixel_bytes,
    };
    maker->rows[field].data = maker->image;
    const int rc = stk_codecs_decode_image(&maker->codecs, stk_ref_part(ref)->codec, &encoded,
                                           &maker->rows[field], 1, &decoding, said);
    *mask = (struct stk_image){ .pixels = maker->image,
                                .height = decoding.got.height,
                                .width = decoding.got.width };
    return rc;
}

/* What lies in the row of a part's first field, if that is an image or mask which is changed on
 * its way. */
static struct stk_image image_of(const struct stk_row_maker *maker, uint32_t first)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    return stk_field_is_mask(&pipeline->field_plan, first)
               ? mask_stored(pipeline, first, maker->rows[first].data)
               : stk_image_row_stored(pipeline, maker->rows[0].data);
}

/* Decode a part to maker->rows, and an image or mask of another size to *image. */
static int decode(struct stk_row_maker *maker, const struct stk_part_ref *ref,
                  struct stk_part_fields own, struct stk_image *image, stoker_error *said)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_codec *codec = stk_ref_part(ref)->codec;
    int rc;
    if (is_in_own_size(pipeline, own, codec)) {
        rc = own.first == 0 ? stk_image_row_decode(maker, ref, own.count, image, said)
                            : decode_mask(maker, ref, own.first, image, said);
        return rc < 0 ? rc : stk_part_check(pipeline->dataset, ref->part, codec, maker->rows, said);
    }
    const stoker_encoded encoded = stk_ref_encoded(ref);
    void *scratch;
    rc = stk_codecs_scratch(&maker->codecs, codec, false, &scratch, said);
    if (rc == 0)
        rc = stk_part_decode(pipeline->dataset, ref->part, codec, scratch, &encoded, maker->rows,
                             said);
    *image = image_of(maker, own.first);
    return rc;
}

/* ---- sizes ---- */

/* Note the size of a part that is an image or a mask. */
static void note_size(const struct stk_part_ref *ref, const struct stk_image *image)
{
    const struct stk_span *span = ref->span;
    const bool is_part = image->eighths != 0;
    span->part_sizes[(size_t)ref->row * span->part_count + ref->part] =
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
        if (!stk_field_is_mask(&maker->pipeline->field_plan, field) ||
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

/* ---- a part's bytes ---- */

/* Bring a part's fields into the decoded record. Returns false if the image does not fit there. */
static bool keep_part_fields(struct stk_row_maker *maker, struct stk_part_fields own,
                             uint8_t *record, struct stk_image *image)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    for (uint32_t i = own.first; i < own.first + own.count; i++) {
        const stoker_row *from = &maker->rows[i];
        uint8_t *to = record + pipeline->field_plan.record_at[i];
        if (i == 0 && pipeline->plan.finish == STK_FINISH_TRANSFORM) {
            if (!stk_image_row_keep(maker, image, to))
                return false;
            continue;
        }
        if (varies(pipeline, i))
            *record_length(to) = from->length;
        copy_used(pipeline, i, to, from);
    }
    return true;
}

int stk_field_rows_make(struct stk_row_maker *maker, const struct stk_part_ref *ref,
                        stoker_error *said)
{
    struct stk_pipeline *pipeline = maker->pipeline;
    struct stk_span *span = ref->span;
    const struct stk_part_fields own = pipeline->field_plan.parts[ref->part].own;
    const stoker_codec *codec = stk_ref_part(ref)->codec;
    uint8_t *record = pipeline->plan.cached == STK_CACHED_ENCODED ? NULL : span->records[ref->row];
    struct stk_image image;
    int rc;
    if (codec == NULL || (stk_part_is_row(stk_ref_part(ref)) && own.count == 1)) {
        rc = stk_part_raw(pipeline->dataset, ref->part, ref->bytes, ref->size, maker->rows, said);
        image = image_of(maker, own.first);
    } else {
        set_field_targets(maker, span, ref->row, own, record);
        rc = decode(maker, ref, own, &image, said);
    }
    if (rc < 0)
        return rc;
    if (span->part_sizes != NULL)
        note_size(ref, &image);
    if (record != NULL && !keep_part_fields(maker, own, record, &image))
        stk_cache_fill_cancel(pipeline, span, ref->row);
    for (uint32_t i = own.first; i < own.first + own.count; i++)
        if (own.count == 1 && stk_field_is_mask(&pipeline->field_plan, i))
            write_mask(maker, span, ref->row, i, &image);
        else
            write_field(maker, span, ref->row, i, &maker->rows[i], &image);
    return 0;
}

/* ---- rows that are there already ---- */

int stk_field_rows_call_make(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                             stoker_error *said)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_dataset *dataset = pipeline->dataset;
    const struct stk_part_fields all = { .first = 0, .count = dataset->info.field_count };
    const uint64_t id = *stk_span_id(span, row);
    stoker_rng rng;
    stoker_rng_init(&rng, pipeline->sampler.seed, span->epoch, id, STK_RNG_OWN(STK_RNG_MAKE));
    set_field_targets(maker, span, row, all, NULL);
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
                          uint32_t field, const uint8_t *from)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    uint8_t *at = (uint8_t *)from; /* only read */
    if (is_changed(pipeline, field)) {
        const struct stk_image image = stk_image_row_cached(pipeline, at);
        stk_image_row_write(maker, span, row, &image);
        return;
    }
    const stoker_row decoded = { .data = at,
                                 .length = varies(pipeline, field) ? *record_length(at) : 0 };
    write_field(maker, span, row, field, &decoded, NULL);
}
