/* schedule.c - see schedule.h. */
#include "loader/pipeline/order/schedule.h"

#include <assert.h>

#include "loader/pipeline/order/length_batches.h"

/* Batches in an epoch with `left` positions left. */
static uint64_t batches_of(const struct stk_schedule *schedule, uint64_t left)
{
    const uint64_t whole = left / schedule->global_batch;
    const bool incomplete = left % schedule->global_batch != 0;
    return schedule->last != STOKER_LAST_DROP && incomplete ? whole + 1 : whole;
}

void stk_schedule_init(struct stk_schedule *schedule, const struct stk_schedule_options *options)
{
    assert(options->batch_size >= 1);
    assert(options->span_rows >= 1);
    assert(options->rank < options->world_size);
    assert(options->first_position <= options->count);
    const bool by_batch = options->deal == STOKER_DEAL_BATCHES;
    *schedule = (struct stk_schedule){
        .count = options->count,
        .batch_size = options->batch_size,
        .stride = by_batch ? 1 : options->world_size,
        .offset = (uint64_t)options->rank * (by_batch ? options->batch_size : 1),
        .global_batch = (uint64_t)options->batch_size * options->world_size,
        .last = options->last,
        .span_rows = options->span_rows,
        .batch_spans = (options->batch_size + options->span_rows - 1) / options->span_rows,
        .share_rows = options->share_rows > 0 ? options->share_rows : options->span_rows,
        .first_epoch = options->first_epoch,
        .first_position = options->first_position,
    };
    schedule->span_shares = (schedule->span_rows + schedule->share_rows - 1) / schedule->share_rows;
    schedule->first_batches = batches_of(schedule, options->count - options->first_position);
    schedule->epoch_batches = batches_of(schedule, options->count);

    schedule->batches = UINT64_MAX;
    if (options->epochs > 0 && options->first_epoch >= options->epochs)
        schedule->batches = schedule->first_batches = 0;
    else if (options->epochs > 0 &&
             __builtin_mul_overflow(options->epochs - options->first_epoch - 1,
                                    schedule->epoch_batches, &schedule->batches))
        schedule->batches = UINT64_MAX; /* longer than any run */
    else if (options->epochs > 0)
        schedule->batches += schedule->first_batches;
}

void stk_schedule_use_lengths(struct stk_schedule *schedule, struct stk_length_batches *lengths)
{
    schedule->lengths = lengths;
    schedule->stride = 1; /* rows of a batch have positions in a row */
    schedule->epoch_batches = 0;
    schedule->first_batches = lengths->first_is_empty ? 0 : 1;
    schedule->batches = atomic_load(&lengths->batches);
}

/* Rows of a batch whose row 0 is at `position`. */
static uint32_t rows_at(const struct stk_schedule *schedule, uint64_t position)
{
    const uint64_t left = position < schedule->count ? schedule->count - position : 0;
    const uint64_t rows = (left + schedule->stride - 1) / schedule->stride;
    return rows < schedule->batch_size ? (uint32_t)rows : schedule->batch_size;
}

struct stk_batch_place stk_schedule_place(const struct stk_schedule *schedule, uint64_t batch)
{
    if (schedule->lengths != NULL)
        return *stk_length_batches_at(schedule->lengths, batch);
    struct stk_batch_place place = { .epoch = schedule->first_epoch, .index = batch };
    uint64_t start = schedule->first_position;
    uint64_t batches = schedule->first_batches;
    if (batch >= schedule->first_batches) {
        uint64_t later = batch - schedule->first_batches;
        batches = schedule->epoch_batches;
        place.epoch += 1 + later / batches;
        place.index = later % batches;
        start = 0;
    }
    place.last = place.index + 1 == batches;

    place.position = start + place.index * schedule->global_batch + schedule->offset;
    const uint32_t rows = rows_at(schedule, place.position);
    place.rows = schedule->last == STOKER_LAST_PAD ? schedule->batch_size
                 : schedule->last == STOKER_LAST_EVEN
                     ? rows_at(schedule, place.position - schedule->offset) /* rank 0's */
                     : rows;
    place.padded = place.rows - rows;
    return place;
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

struct stk_rows stk_schedule_rows(const struct stk_schedule *schedule, uint32_t batch_rows,
                                  uint64_t ticket, uint32_t share, uint32_t shares)
{
    const uint32_t span = (uint32_t)(ticket % schedule->batch_spans) * schedule->span_rows;
    const uint32_t first = span + share * schedule->share_rows;
    const uint32_t end = lesser(
        span + lesser((share + shares) * schedule->share_rows, schedule->span_rows), batch_rows);
    return (struct stk_rows){ .first = first, .count = end > first ? end - first : 0 };
}

uint64_t stk_schedule_position_after(const struct stk_schedule *schedule,
                                     const struct stk_batch_place *place)
{
    if (schedule->lengths != NULL)
        return place->after;
    const uint64_t after = place->position - schedule->offset + schedule->global_batch;
    return after < schedule->count ? after : schedule->count;
}
