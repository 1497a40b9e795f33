/* claim.h - which rows a worker makes next: shares of a ticket whose slot is free, and the ids of
 * its samples.
 *
 *   slots, claim_affinity ──▶ piece of a ticket ──schedule──▶ batch, rows, position ──sampler──▶ ids
 *
 * A claimer belongs to one worker.
 */
#ifndef STK_PIPELINE_CLAIM_H
#define STK_PIPELINE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/pipeline/plan/pipeline.h"
#include "loader/pipeline/report/ledger.h"
#include "loader/pipeline/slots/span.h"
#include "loader/pipeline/work/pace.h"

struct stk_claimer {
    struct stk_pipeline *pipeline;
    const struct stk_ledger_entry *ledger; /* its worker's: the time that rows take */
    uint32_t worker;                       /* its number */
    bool looks_ahead;                      /* enough slots to claim a ticket ahead */
    struct stk_span *spans;
    uint32_t span_count;
    size_t row_count;               /* most rows that are claimed at once, over all spans */
    const void **sources;           /* for all spans */
    stoker_part *samples;           /* for all spans */
    uint8_t *attempts;              /* for all spans */
    uint8_t *parts_left;            /* for all spans */
    stoker_size *part_sizes;        /* the same; NULL unless masks differ in size */
    stoker_size *sizes;             /* for all spans; NULL without a row hook */
    uint8_t **records;              /* for all spans */
    struct stk_pace pace;           /* shares of a ticket that it takes next */
    struct stk_sampler_order order; /* keys of the epoch it last worked in */
    bool has_order;
};

/* Allocate the memory of the spans. Returns 0 or STOKER_ENOMEM; destroy either way. */
int stk_claimer_init(struct stk_claimer *claimer, struct stk_pipeline *pipeline,
                     const struct stk_ledger_entry *ledger, uint32_t worker);
void stk_claimer_destroy(struct stk_claimer *claimer); /* all zero is allowed */

/* Take a piece of a ticket whose batch is at most last_batch, into a span that is free. Returns
 * NULL if there is none, or no span is free. */
struct stk_span *stk_claim_piece(struct stk_claimer *claimer, uint64_t last_batch,
                                 struct stk_piece *piece);

/* Fill in the span: its rows, and their samples' ids, which go to the slot. Returns 0, or an error
 * of the caller's own order, and *error is filled in. */
int stk_claim_rows(struct stk_claimer *claimer, struct stk_span *span,
                   const struct stk_piece *piece, stoker_error *error);

/* The span's rows are complete: it is free, and its piece is counted. Returns true if it was the
 * last piece of its batch, which the caller publishes. */
bool stk_claim_end(struct stk_claimer *claimer, struct stk_span *span);

#endif
