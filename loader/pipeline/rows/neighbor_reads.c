/* neighbor_reads.c - see neighbor_reads.h. */
#include "loader/pipeline/rows/neighbor_reads.h"

#include "loader/base/error.h"
#include "loader/pipeline/reads/fetch.h"
#include "loader/pipeline/rows/cache_fill.h"
#include "loader/pipeline/rows/hook_calls.h"

/* ---- which rows ---- */

/* Where a sample lies: in memory, or in its file. */
static uint64_t offset_in_set(const stoker_extent *extent)
{
    return extent->memory != NULL ? (uint64_t)(uintptr_t)extent->memory : extent->offset;
}

/* Number of rows of the run that starts at a row, at most `most`; 1 = it starts none. Sets the
 * distance between them. */
static uint32_t count_rows(const struct stk_span *span, uint32_t row, uint32_t most, uint64_t *step)
{
    const stoker_part *first = stk_span_part(span, row, 0); /* the only part of each row */
    const stoker_extent *extent = &first->extent;
    const uint64_t *ids = stk_span_id(span, row);
    const uint64_t id = stk_codec_id(first, ids[0]);
    const uint64_t place = offset_in_set(extent);
    if (most < 2 || extent->path != NULL || extent->bytes == 0)
        return 1;
    const uint64_t between =
        offset_in_set(&first[1].extent) - place; /* wraps if they do not follow each other */
    if (between == 0 || between > extent->bytes)
        return 1;
    *step = between;
    uint32_t rows = 1;
    for (; rows < most; rows++) {
        const stoker_part *part = &first[rows];
        const stoker_extent *other = &part->extent;
        if (offset_in_set(other) != place + rows * between || other->bytes != extent->bytes ||
            other->file != extent->file || other->path != NULL ||
            (other->memory == NULL) != (extent->memory == NULL) || part->codec != first->codec ||
            part->tag != first->tag || stk_codec_id(part, ids[rows]) != id + rows)
            break;
    }
    return rows;
}

/* ---- decoding ---- */

/* Returns true if all fields of a run are made by one call, without anything left to do row by
 * row. */
static bool is_decoded_at_once(const struct stk_pipeline *pipeline, const stoker_codec *codec)
{
    const struct stk_part_fields own = pipeline->dataset->part_fields[0];
    if (!pipeline->plan.runs_decode || codec == NULL || (codec->flags & STOKER_CODEC_RUNS) == 0 ||
        codec->verify != NULL || stk_hooks_rows(&pipeline->hooks))
        return false;
    for (uint32_t i = own.first; i < own.first + own.count; i++)
        if (pipeline->dataset->fields[i].info.varies ||
            pipeline->slots.fields.each[i].stride_bytes != pipeline->dataset->fields[i].bytes)
            return false;
    return true;
}

/* Decode a run of rows from bytes in memory. Returns true if all are in the slot. */
static bool decode(struct stk_row_maker *maker, const struct stk_span *span, uint32_t row,
                   const uint8_t *bytes, size_t step, uint32_t rows)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const struct stk_part_fields own = pipeline->dataset->part_fields[0];
    const stoker_part *first = stk_span_part(span, row, 0);
    const stoker_codec *codec = first->codec;
    const stoker_encoded in = { .bytes = bytes,
                                .size = first->extent.bytes,
                                .sample = stk_codec_id(first, *stk_span_id(span, row)),
                                .tag = first->tag };
    const stoker_decoded out = { .struct_size = sizeof(out),
                                 .rows = &maker->rows[own.first],
                                 .field_count = own.count,
                                 .sample_count = rows,
                                 .step = step };
    stoker_error ignored; /* each row reports its own */
    void *scratch;
    for (uint32_t i = own.first; i < own.first + own.count; i++)
        maker->rows[i] = (stoker_row){
            .data = stk_slot_field_row(&pipeline->slots.fields.each[i], span->slot->images,
                                       span->first_row + row),
            .bytes_max = pipeline->dataset->fields[i].bytes,
        };
    return stk_codecs_scratch(&maker->codecs, codec, false, &scratch, &ignored) == 0 &&
           codec->decode(codec->self, scratch, &in, &out, &ignored) == 0;
}

/* ---- reading ---- */

/* Returns the first row's place if the rows are delivered as they lie there: they are read
 * straight to the slot. */
static uint8_t *place_of_rows(const struct stk_pipeline *pipeline, const struct stk_span *span,
                              uint32_t row, uint64_t step)
{
    const struct stk_part_plan *plan = &pipeline->field_plan.parts[0];
    const struct stk_slot_field *field = &pipeline->slots.fields.each[plan->own.first];
    return stk_part_is_as_stored(plan, stk_span_part(span, row, 0)) && step == plan->raw_bytes &&
                   field->stride_bytes == step
               ? stk_slot_field_row(field, span->slot->images, span->first_row + row)
               : NULL;
}

static bool may_be_read(const struct stk_row_maker *maker, const stoker_extent *extent)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    return maker->may_read && maker->lane == NULL && extent->bytes <= pipeline->encoded_bytes_max &&
           extent->bytes <= STK_RUN_BYTES_MAX / 2 &&
           extent->file < pipeline->dataset->info.file_count;
}

/* The rows are about to be read: nothing of them is cached. */
static void expect_rows(const struct stk_span *span, uint32_t row, uint32_t rows)
{
    for (uint32_t i = row; i < row + rows; i++) {
        span->records[i] = NULL;
        span->parts_left[i] = 1;
    }
}

static enum stk_run_step order_run(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                                   struct stk_read_order *order)
{
    const stoker_extent *extent = &stk_span_part(span, row, 0)->extent;
    const uint64_t step = order->run_step;
    const uint64_t most = (STK_RUN_BYTES_MAX - extent->bytes) / step + 1;
    const uint32_t rows = order->run_rows < most ? order->run_rows : (uint32_t)most;
    *order = (struct stk_read_order){
        .span = span,
        .row = row,
        .to = place_of_rows(maker->pipeline, span, row, step),
        .offset = extent->offset,
        .bytes = (uint32_t)((rows - 1) * step + extent->bytes),
        .run_rows = rows,
        .run_step = (uint32_t)step,
    };
    expect_rows(span, row, rows);
    return STK_RUN_READ;
}

/* ---- a run ---- */

enum stk_run_step stk_run_begin(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                                struct stk_read_order *order)
{
    const stoker_part *sample = stk_span_part(span, row, 0);
    const stoker_extent *extent = &sample->extent;
    const bool at_once = is_decoded_at_once(maker->pipeline, sample->codec);
    const bool possible = extent->memory != NULL ? at_once : may_be_read(maker, extent);
    uint64_t step;
    const uint32_t rows = possible ? count_rows(span, row, span->rows - row, &step) : 1;
    if (rows == 1)
        return STK_RUN_NONE;
    order->run_rows = rows;
    order->run_step = (uint32_t)step; /* at most the bytes of a part */
    if (extent->memory == NULL)
        return order_run(maker, span, row, order);
    return decode(maker, span, row, extent->memory, step, rows) ? STK_RUN_DONE : STK_RUN_ALONE;
}

enum stk_run_step stk_run_take(struct stk_row_maker *maker, const struct stk_completion *done)
{
    struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_part *sample = stk_span_part(done->span, done->row, 0);
    if (done->code < 0)
        return done->alone_may_work ? STK_RUN_ALONE : STK_RUN_NONE;
    if (!is_decoded_at_once(pipeline, sample->codec))
        return STK_RUN_NONE;
    stk_pipeline_note_unchecked(pipeline, sample->codec);
    return decode(maker, done->span, done->row, done->bytes, done->run_step, done->run_rows)
               ? STK_RUN_DONE
               : STK_RUN_NONE;
}

struct stk_completion stk_run_row(const struct stk_completion *done, uint32_t i)
{
    const stoker_extent *extent = &stk_span_part(done->span, done->row + i, 0)->extent;
    struct stk_completion one = *done;
    one.row += i;
    one.run_rows = 1;
    one.size = (uint32_t)extent->bytes;
    one.bytes = done->bytes + (size_t)i * done->run_step;
    if (done->code < 0)
        one.offset = extent->offset;
    return one;
}
