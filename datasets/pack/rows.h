/* rows.h - samples of one array and a label: through the loader and the encoder, all of them or a part.
 *
 *   alone     loader ──▶ batch ──▶ encoder ──▶ target
 *   a rank    loader ──▶ batch ──▶ encoder ──▶ part;    parts ──▶ batches ──▶ target
 */
#ifndef PACK_ROWS_H
#define PACK_ROWS_H

#include "datasets/pack/divide.h"
#include "datasets/pack/encoder.h"
#include "datasets/pack/target.h"

/* Create a loader of the plan's source, in its order. `place`: of these samples only; NULL = all. `resume`: NULL = from the
 * start. */
bool pack_rows_loader(stoker_loader **out, const struct pack_plan *plan, uint32_t batch_size,
                      const struct pack_part_place *place, const stoker_state *resume,
                      struct pack_failure *failure);

/* The state of such a loader of all samples before it has read any. */
bool pack_rows_begin(stoker_state *begin, const struct pack_plan *plan, uint32_t batch_size,
                     struct pack_failure *failure);

/* Encode the rows of a batch into samples[0..batch->count). Their bytes may lie in the batch. */
bool pack_rows_encode(const struct pack_plan *plan, struct pack_encoder *encoder,
                      struct pack_sample *samples, const stoker_batch *batch,
                      struct pack_failure *failure);

/* Print a line for each sample that the loader left out. */
void pack_rows_report_bad(const stoker_loader *loader);

/* What a rank needs; the caller's. */
struct pack_rows {
    const struct pack_plan *plan;
    struct pack_encoder *encoder;
    struct pack_sample *samples; /* one batch */
    uint32_t batch_size;
    const struct pack_target *target;
    void *into;
    stoker_state begin; /* the loader's, before the first sample */
};

/* Pack together with the other ranks; the target is open, and `start` is what it said. Then finish and tally. */
bool pack_rows_divide(struct pack_rows *rows, const struct pack_start *start,
                      struct pack_tally *tally, struct pack_failure *failure);

#endif
