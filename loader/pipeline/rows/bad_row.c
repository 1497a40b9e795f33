/* bad_row.c - see bad_row.h. */
#include "loader/pipeline/rows/bad_row.h"

#include <stdio.h>

#include "loader/dataset/part.h"
#include "loader/pipeline/rows/dataset_values.h"
#include "loader/sampler/mix.h"

struct stk_place stk_bad_row_place(const struct stk_row_maker *maker, const struct stk_span *span,
                                   uint32_t row, uint32_t part)
{
    const struct stk_pipeline *pipeline = maker->pipeline;
    const stoker_extent *extent = &stk_span_part(span, row, part)->extent;
    const struct stk_region *rows = &pipeline->cache.rows;
    const bool in_piece = pipeline->first_pieces != NULL &&
                          (uintptr_t)extent->memory - (uintptr_t)rows->base < rows->bytes;
    const bool in_file = extent->memory == NULL || in_piece;
    struct stk_place place = STK_NOWHERE;
    place.sample = *stk_span_id(span, row);
    if (span->part_count == 0) /* all fields come from values() */
        return place;
    if (in_file && extent->path != NULL) {
        place.path = extent->path;
        if (stk_part_is_range(stk_span_part(span, row, part)))
            place.offset = extent->offset;
    } else if (in_file && extent->bytes > 0 && extent->file < pipeline->dataset->info.file_count) {
        place.path = pipeline->files[extent->file].path;
        place.offset = extent->offset;
    }
    return place;
}

static void note_bad_row(const struct stk_row_maker *maker, const struct stk_span *span,
                         uint32_t row, uint32_t part, enum stk_row_state state,
                         const stoker_error *error, const char *what)
{
    struct stk_slot *slot = span->slot;
    const uint32_t at = span->first_row + row;
    if (slot->row_bad[at] == STK_ROW_GOOD) { /* keep the first cause */
        struct stk_failure *failure = &slot->failures[at];
        const char *path = stk_bad_row_place(maker, span, row, part).path;
        *failure = (struct stk_failure){
            .sample = error->sample,
            .offset = error->offset,
            .code = error->code,
            .os_errno = error->os_errno,
            .path = error->path[0] != '\0' ? path : NULL,
            .stage = (uint32_t)error->stage,
        };
        (void)snprintf(failure->detail, sizeof(failure->detail), "%s", what);
        atomic_fetch_add_explicit(&slot->bad_rows, 1U, memory_order_relaxed);
    }
    slot->row_bad[at] = (uint8_t)state;
}

/* Give the row another sample. Returns false if it has had enough, or the substitute cannot be
 * located. */
static bool substitute(struct stk_row_maker *maker, struct stk_span *span, uint32_t row)
{
    struct stk_pipeline *pipeline = maker->pipeline;
    const uint64_t position = span->position + (uint64_t)row * pipeline->schedule.stride;
    if (span->attempts[row] >= STK_SUBSTITUTES_MAX ||
        atomic_load_explicit(&pipeline->slots.stopping, memory_order_relaxed))
        return false;
    uint64_t first = 0;
    uint64_t count = pipeline->sampler.count;
    if (pipeline->sampler.mix != NULL) { /* shares stay as they are */
        const struct stk_mix_source *source =
            stk_mix_source(pipeline->sampler.mix, *stk_span_id(span, row));
        first = source->first_id;
        count = source->sampler.count;
    }
    const uint64_t id = first + stk_bad_samples_substitute(pipeline->sampler.seed, span->epoch,
                                                           position, span->attempts[row]++, count);
    *stk_span_id(span, row) = id;
    if (pipeline->decode.on)
        stk_device_decode_places(&pipeline->decode, span->batch)[span->first_row + row] =
            STK_MADE_ON_HOST;
    stoker_error unused;
    if (span->part_count > 0 &&
        stk_parts_locate(pipeline->dataset, &id, 1, stk_span_part(span, row, 0), &unused) != 0)
        return false;
    return stk_values_write(maker, span, row, 1, &unused) == 0;
}

bool stk_bad_row_settle(struct stk_row_maker *maker, struct stk_span *span, uint32_t row,
                        uint32_t part, const stoker_error *error, const char *what)
{
    switch (maker->pipeline->on_bad) {
    case STOKER_ON_BAD_SUBSTITUTE:
        note_bad_row(maker, span, row, part, STK_ROW_SUBSTITUTED, error, what);
        if (substitute(maker, span, row))
            return true;
        break;
    case STOKER_ON_BAD_SKIP:
        note_bad_row(maker, span, row, part, STK_ROW_SKIPPED, error, what);
        return false;
    case STOKER_ON_BAD_FAIL:
        break;
    }
    stk_bad_row_lose(span, row, error);
    return false;
}

void stk_bad_row_lose(const struct stk_span *span, uint32_t row, const stoker_error *error)
{
    stk_slot_fail(span->slot, span->first_row + row, error);
}
