/* claim.c - see claim.h. */
#include "loader/pipeline/work/claim.h"

#include <string.h>

#include "loader/base/memory/memory.h"
#include "loader/pipeline/order/length_batches.h"

/* Number of spans. With whole tickets: one started and one claimed ahead. If workers take shares of
 * tickets, the reads in flight belong to more spans, each with room for a few shares. */
enum { WHOLE_SPANS = 2, SPANS_MAX = 64 };

/* ---- memory ---- */

/* Rows of a span that takes shares of tickets. */
static uint32_t small_span_rows(const struct stk_pipeline *pipeline)
{
    const struct stk_schedule *schedule = &pipeline->schedule;
    const uint32_t shares =
        pipeline->read_depth / ((SPANS_MAX - WHOLE_SPANS) * schedule->share_rows) + 1;
    return shares < schedule->span_shares ? shares * schedule->share_rows : schedule->span_rows;
}

static uint32_t span_count(const struct stk_pipeline *pipeline)
{
    const uint32_t spans = pipeline->read_depth / small_span_rows(pipeline) + WHOLE_SPANS;
    return spans < SPANS_MAX ? spans : SPANS_MAX;
}

static uint32_t span_capacity(const struct stk_pipeline *pipeline, uint32_t index)
{
    return index < WHOLE_SPANS ? pipeline->schedule.span_rows : small_span_rows(pipeline);
}

static size_t count_rows(const struct stk_claimer *claimer)
{
    size_t rows = 0;
    for (uint32_t i = 0; i < claimer->span_count; i++)
        rows += span_capacity(claimer->pipeline, i);
    return rows;
}

/* Lists of addresses in a span, each with room for its rows and for the first rows of the next
 * span. */
static size_t source_lists(const struct stk_claimer *claimer)
{
    return claimer->pipeline->part_count > 0 ? claimer->pipeline->part_count : 1;
}

/* Give each span its share of the arrays. */
static void share_out_rows(struct stk_claimer *claimer)
{
    const uint32_t part_count = claimer->pipeline->part_count;
    size_t rows = 0;
    for (uint32_t i = 0; i < claimer->span_count; i++) {
        struct stk_span *span = &claimer->spans[i];
        span->capacity = span_capacity(claimer->pipeline, i);
        span->part_count = part_count;
        span->sources =
            claimer->sources + source_lists(claimer) * (rows + (size_t)i * STK_AHEAD_ROWS_MAX);
        span->samples = claimer->samples + rows * part_count;
        span->attempts = claimer->attempts + rows;
        span->parts_left = claimer->parts_left + rows;
        span->part_sizes =
            claimer->part_sizes == NULL ? NULL : claimer->part_sizes + rows * part_count;
        span->sizes = claimer->sizes == NULL ? NULL : claimer->sizes + rows;
        span->records = claimer->records + rows;
        rows += span->capacity;
    }
}

int stk_claimer_init(struct stk_claimer *claimer, struct stk_pipeline *pipeline,
                     const struct stk_ledger_entry *ledger, uint32_t worker)
{
    const uint64_t tickets = (uint64_t)pipeline->slots.slot_count * pipeline->schedule.batch_spans;
    *claimer = (struct stk_claimer){
        .pipeline = pipeline,
        .ledger = ledger,
        .worker = worker,
        .looks_ahead =
            !pipeline->plan.threads || tickets > 2 * (uint64_t)pipeline->slots.workers + 1,
        .span_count = span_count(pipeline),
    };
    claimer->spans = stk_calloc(claimer->span_count, sizeof(claimer->spans[0]));
    const size_t rows = claimer->row_count = count_rows(claimer);
    const size_t sources = rows + (size_t)claimer->span_count * STK_AHEAD_ROWS_MAX;
    claimer->sources = stk_calloc(source_lists(claimer) * sources, sizeof(claimer->sources[0]));
    claimer->samples = stk_calloc(rows * pipeline->part_count + 1, sizeof(claimer->samples[0]));
    claimer->attempts = stk_calloc(rows, sizeof(claimer->attempts[0]));
    claimer->parts_left = stk_calloc(rows, sizeof(claimer->parts_left[0]));
    if (stk_hooks_rows(&pipeline->hooks))
        claimer->sizes = stk_calloc(rows, sizeof(claimer->sizes[0]));
    if (stk_hooks_rows(&pipeline->hooks) && claimer->sizes == NULL)
        return STOKER_ENOMEM;
    if (pipeline->field_plan.masks_differ)
        claimer->part_sizes =
            stk_calloc(rows * pipeline->part_count, sizeof(claimer->part_sizes[0]));
    if (pipeline->field_plan.masks_differ && claimer->part_sizes == NULL)
        return STOKER_ENOMEM;
    if (stk_sampler_open(&pipeline->sampler, &claimer->order) != 0)
        return STOKER_ENOMEM;
    claimer->records = stk_calloc(rows, sizeof(claimer->records[0]));
    if (claimer->spans == NULL || claimer->sources == NULL || claimer->samples == NULL ||
        claimer->attempts == NULL || claimer->parts_left == NULL || claimer->records == NULL)
        return STOKER_ENOMEM;
    share_out_rows(claimer);
    return 0;
}

void stk_claimer_destroy(struct stk_claimer *claimer)
{
    stk_free(claimer->spans);
    stk_free(claimer->sources);
    stk_free(claimer->samples);
    stk_free(claimer->attempts);
    stk_free(claimer->parts_left);
    stk_free(claimer->sizes);
    stk_free(claimer->part_sizes);
    stk_free(claimer->records);
    if (claimer->pipeline != NULL)
        stk_sampler_close(&claimer->pipeline->sampler, &claimer->order);
    *claimer = (struct stk_claimer){ 0 };
}

/* ---- pieces of tickets ---- */

static struct stk_span *free_span(struct stk_claimer *claimer)
{
    for (uint32_t i = 0; i < claimer->span_count; i++)
        if (!claimer->spans[i].active)
            return &claimer->spans[i];
    return NULL;
}

/* Number of shares of a ticket to take, if the span has room for them. */
static uint32_t shares_wanted(struct stk_claimer *claimer, const struct stk_span *span)
{
    const struct stk_schedule *schedule = &claimer->pipeline->schedule;
    const struct stk_ledger_entry *ledger = claimer->ledger;
    if (schedule->span_shares == 1)
        return 1;
    const uint32_t shares =
        stk_pace_step(&claimer->pace, stk_ledger_read(&ledger->rows), stk_ledger_busy_ns(ledger),
                      schedule->share_rows, schedule->span_shares);
    if (span->capacity == schedule->span_rows)
        return shares;
    const uint32_t most = span->capacity / schedule->share_rows;
    return shares < most ? shares : most;
}

struct stk_span *stk_claim_piece(struct stk_claimer *claimer, uint64_t last_batch,
                                 struct stk_piece *piece)
{
    struct stk_span *span = free_span(claimer);
    if (span == NULL || stk_slots_claim(&claimer->pipeline->slots, claimer->worker, last_batch,
                                        shares_wanted(claimer, span), piece) != STK_CLAIM_OK)
        return NULL;
    return span;
}

static int enter_epoch(struct stk_claimer *claimer, uint64_t epoch, stoker_error *error)
{
    if (claimer->has_order && claimer->order.epoch == epoch)
        return 0;
    const int rc = stk_sampler_enter(&claimer->pipeline->sampler, epoch, &claimer->order, error);
    claimer->has_order = rc == 0;
    return rc;
}

/* The rows of a planned batch. The slots learn how many batches there are, once that is known. */
static int claim_planned(struct stk_pipeline *pipeline, const struct stk_span *span,
                         stoker_error *error)
{
    struct stk_length_batches *lengths = pipeline->schedule.lengths;
    const uint64_t *ids = stk_length_batches_ids(lengths, span->batch, error);
    if (ids == NULL)
        return error->code;
    const uint64_t batches = atomic_load_explicit(&lengths->batches, memory_order_relaxed);
    if (batches != UINT64_MAX)
        atomic_store(&pipeline->slots.batches, batches);
    if (span->rows > 0)
        memcpy(stk_span_id(span, 0), ids + span->first_row, span->rows * sizeof(ids[0]));
    return 0;
}

int stk_claim_rows(struct stk_claimer *claimer, struct stk_span *span,
                   const struct stk_piece *piece, stoker_error *error)
{
    struct stk_pipeline *pipeline = claimer->pipeline;
    const struct stk_schedule *schedule = &pipeline->schedule;
    span->batch = piece->ticket / schedule->batch_spans;
    const struct stk_batch_place place = stk_schedule_place(schedule, span->batch);
    const struct stk_rows taken =
        stk_schedule_rows(schedule, place.rows, piece->ticket, piece->share, piece->shares);

    span->active = true;
    span->ticket_shares = piece->shares;
    span->first_row = taken.first;
    span->slot = stk_slots_of(&pipeline->slots, span->batch);
    span->epoch = place.epoch;
    span->position = place.position + (uint64_t)span->first_row * schedule->stride;
    span->rows = taken.count;
    span->started = 0;
    span->left = span->rows;
    if (pipeline->on_bad == STOKER_ON_BAD_SUBSTITUTE)
        memset(span->attempts, 0, span->rows);

    if (schedule->lengths != NULL)
        return claim_planned(pipeline, span, error);
    const int rc = enter_epoch(claimer, span->epoch, error);
    return rc < 0 ? rc
                  : stk_sampler_ids(&pipeline->sampler, &claimer->order, span->position,
                                    schedule->stride, span->rows, stk_span_id(span, 0), error);
}

bool stk_claim_end(struct stk_claimer *claimer, struct stk_span *span)
{
    span->active = false;
    claimer->pace.gathers = span->resident;
    return stk_slots_count_down(&claimer->pipeline->slots, span->batch, span->ticket_shares);
}
