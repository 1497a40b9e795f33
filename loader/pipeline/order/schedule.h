/* schedule.h - computes which samples a batch and a span hold: arithmetic, no state.
 *
 *   ticket ──▶ (batch, span) ──▶ (epoch, position of each row) ──▶ sampler ──▶ sample id
 *
 *   batches    0 .. n0-1 | n0 .. n0+n-1 | ...        counted over all epochs
 *   epochs     first     | first + 1    | ...        a resumed first epoch may be shorter
 *
 * A global batch is the next batch_size * w positions, which w ranks divide among them. Of batch b
 * of an epoch that starts at position s, row i of rank r is position
 *
 *   s + b * batch_size * w + offset + i * stride        offset         stride      batch_size 3, w 2: ranks of positions
 *   STOKER_DEAL_POSITIONS                               r              w           0 1 0 1 0 1 | 0 1 0 1 0 1
 *   STOKER_DEAL_BATCHES                                 r * batch_size 1           0 0 0 1 1 1 | 0 0 0 1 1 1
 *
 * So the union over ranks is each position once, and a global batch holds the same samples for any
 * w that divides it. With BATCHES the ranks' batches are those that one rank takes one after the
 * other. With PAD and EVEN the positions continue past the last one, and the sampler counts them
 * from 0 again.
 */
#ifndef STK_PIPELINE_SCHEDULE_H
#define STK_PIPELINE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

struct stk_length_batches;

struct stk_schedule {
    uint64_t count;        /* samples in the data set */
    uint32_t batch_size;   /* rows per batch and rank */
    uint32_t stride;       /* positions from a row to the next */
    uint64_t offset;       /* positions from a global batch's first to row 0 of this rank's batch */
    uint64_t global_batch; /* positions of all ranks' batches together */
    stoker_last last;
    uint32_t span_rows;   /* rows per ticket */
    uint32_t batch_spans; /* tickets per batch, also if it is incomplete */
    uint32_t share_rows;  /* fewest rows of a ticket that a worker takes at once */
    uint32_t span_shares; /* shares per ticket */
    uint64_t first_epoch;
    uint64_t first_position; /* where the first epoch starts, 0 unless resumed */
    uint64_t first_batches;  /* batches in the first epoch */
    uint64_t epoch_batches;  /* batches in every later epoch */
    /* In all epochs; UINT64_MAX = endless, or not known yet. */
    uint64_t batches;
    /* Batches of a bounded number of values, planned during the run: it says what each holds,
     * epoch_batches is 0, and first_batches 0 or 1. NULL = all batches have batch_size rows. Not
     * owned. */
    struct stk_length_batches *lengths;
};

/* The position of one batch. */
struct stk_batch_place {
    uint64_t epoch;
    uint64_t index;    /* in its epoch, as far as this loader runs it */
    uint64_t position; /* in the epoch, of row 0; row i is i * stride further */
    uint32_t rows;     /* 0..batch_size */
    uint32_t padded;   /* the last rows of them: their positions are past the epoch's end */
    bool last;         /* in its epoch */
    /* Batches of a bounded number of values only, else 0: the position in the epoch after this
     * batch and those of the other ranks beside it; */
    uint64_t after;
    uint64_t values; /* lengths of its samples together */
    uint64_t room;   /* values that they take, padded */
};

struct stk_schedule_options {
    uint64_t count;
    uint32_t batch_size;
    uint32_t rank;
    uint32_t world_size;
    stoker_deal deal;
    stoker_last last;
    uint32_t span_rows;
    uint32_t share_rows;     /* 1..span_rows; 0 = span_rows */
    uint64_t epochs;         /* 0 = endless */
    uint64_t first_epoch;    /* resume */
    uint64_t first_position; /* resume, 0..count */
};

/* The caller has checked the options. */
void stk_schedule_init(struct stk_schedule *schedule, const struct stk_schedule_options *options);

/* Let `lengths`, which is started and outlives the schedule, say what batches hold. */
void stk_schedule_use_lengths(struct stk_schedule *schedule, struct stk_length_batches *lengths);

struct stk_batch_place stk_schedule_place(const struct stk_schedule *schedule, uint64_t batch);

/* Rows of a batch. */
struct stk_rows {
    uint32_t first;
    uint32_t count; /* 0 = past the last row */
};

/* The rows of shares share..share + shares - 1 of a ticket, in its batch of batch_rows rows. */
struct stk_rows stk_schedule_rows(const struct stk_schedule *schedule, uint32_t batch_rows,
                                  uint64_t ticket, uint32_t share, uint32_t shares);

/* The position after the batch at `place`: where a resume starts. */
uint64_t stk_schedule_position_after(const struct stk_schedule *schedule,
                                     const struct stk_batch_place *place);

#endif
