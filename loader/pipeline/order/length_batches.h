/* length_batches.h - batches of a bounded number of values: which samples each holds, planned
 * during the run.
 *
 *   positions of an epoch   | window 0 | window 1 | ...          `window` positions each; the last may have fewer
 *   batches of all ranks    | 0 1 2 3 4 5 | 6 7 8 9 | ...        length_plan.h cuts each window: seed, epoch, window
 *   steps of 4 ranks        | 0 1 2 3 | 4 5 6 7 | 8 9 . . |      rank r takes the r-th batch of each; the last may lack some
 *
 * The batches do not depend on the ranks. A position in this order is a number of samples: window p
 * / `window`, and in it the batch that begins after p % `window` samples; so a resume plans one
 * window to find its place, with any number of ranks.
 *
 * A step is known to be an epoch's last once the next one is planned, so planning is one step
 * ahead.
 *
 *   records  a ring of steps; record b is written before `planned` exceeds b
 *
 * Threads   Any number, once started. A step is planned by the first thread that asks for it, under
 *           `lock`; what is planned is read without it.
 */
#ifndef STK_PIPELINE_LENGTH_BATCHES_H
#define STK_PIPELINE_LENGTH_BATCHES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/dataset/dataset.h"
#include "loader/pipeline/order/length_plan.h"
#include "loader/pipeline/order/schedule.h"
#include "loader/sampler/sampler.h"

/* Steps that may be in use at once: a ring of slots, buffers of a GPU, and those that are planned
 * ahead. */
enum { STK_LENGTH_RECORDS = 2 * STOKER_PREFETCH_MAX + 32 };

struct stk_length_options {
    const stoker_dataset *dataset;
    const struct stk_sampler *sampler;
    uint32_t field; /* its lengths count */
    struct stk_length_rule rule;
    uint32_t window; /* positions, >= 1 */
    uint64_t length; /* positions in an epoch, >= 1 */
    uint32_t rank;
    uint32_t world_size;
    stoker_last last;        /* an epoch's incomplete last step; not PAD */
    uint64_t epochs;         /* 0 = endless */
    uint64_t first_epoch;    /* resume */
    uint64_t first_position; /* resume, 0..length */
};

struct stk_length_batches {
    struct stk_length_options options;
    uint32_t *order;                 /* [window] */
    uint32_t *room;                  /* [window] */
    uint64_t *ids;                   /* [window] samples of the planned window */
    uint64_t *lengths;               /* [window] */
    struct stk_length_cut *cuts;     /* [window] */
    uint64_t *record_ids;            /* [STK_LENGTH_RECORDS x rows_max] */
    struct stk_batch_place *records; /* [STK_LENGTH_RECORDS] this rank's batch of each step */
    bool first_is_empty;             /* the first epoch has no step left; set by start */
    bool has_lock;

    _Atomic uint64_t planned; /* steps; release pairs with acquire in place() */
    _Atomic uint64_t batches; /* steps in all epochs; UINT64_MAX until the last is planned */

    pthread_mutex_t lock;           /* guards all below */
    struct stk_sampler_order epoch; /* the epoch that is being planned */
    uint64_t next_window;
    uint64_t step;     /* next step in the epoch */
    uint64_t position; /* after the batches that were dealt */
    uint32_t cut_count;
    uint32_t next_cut;
    bool staged;        /* the step behind the planned ones is in its record */
    int failed;         /* what ended the planning; 0 = nothing */
    stoker_error error; /* its cause */
};

/* Take memory and plan the first step. `self` must be all zero. Errors: STOKER_ENOMEM,
 * STOKER_EBATCH (an epoch has no complete step), those of lengths and order.
 * stk_length_batches_free() is needed in either case. */
int stk_length_batches_start(struct stk_length_batches *self,
                             const struct stk_length_options *options, stoker_error *error);
void stk_length_batches_free(struct stk_length_batches *self); /* all zero is allowed */

/* Step `batch` of this rank, counted from the loader's first; planned if it is not yet. Steps that
 * are fewer than STK_LENGTH_RECORDS behind the last planned one may be asked for. After the last
 * step, and after a failure: no rows. */
const struct stk_batch_place *stk_length_batches_at(struct stk_length_batches *self,
                                                    uint64_t batch);

/* The samples of that step's rows; NULL with *error filled in if planning it failed. */
const uint64_t *stk_length_batches_ids(struct stk_length_batches *self, uint64_t batch,
                                       stoker_error *error);

/* Let no window be planned until stk_length_batches_let_go(). Returns the first position of *epoch
 * that no planned window has; it may be the epoch's end. */
uint64_t stk_length_batches_hold(struct stk_length_batches *self, uint64_t *epoch);
void stk_length_batches_let_go(struct stk_length_batches *self);

#endif
