/* budget.h - which recomputation, and which batch, fit into so many bytes: worked out from
 * plans, without running one. */
#ifndef STK_TRAINER_BUDGET_H
#define STK_TRAINER_BUDGET_H

#include "trainer/plan/plan.h"

/* Bytes that everything takes with this plan: its arena, the workspace of the back end, parameters,
 * whatever else the caller counts. 0 or an error, which ends the search. */
typedef int stk_bytes_of(void *context, const struct stk_plan *plan, uint64_t *bytes,
                         stoker_error *error);

struct stk_budget {
    uint64_t limit_bytes; /* UINT64_MAX = none */
    stk_bytes_of *bytes_of;
    void *context;
};

/* Add as little recomputation to options as makes them fit: as they are, then
 * recompute_batch_norm, then 2, 4, 8, ... checkpoint segments with it. On success options and *bytes (what is taken then; may be NULL) are written.
 * STOKER_ELIMIT: nothing fits; *bytes is the least that was seen and the message tells it.
 * STOKER_EINVAL, ENOMEM, or what bytes_of returned. */
int stk_budget_fit(struct stk_plan_options *options, const stoker_model *model,
                   const struct stk_budget *budget, uint64_t *bytes, stoker_error *error);

/* Set options->batch to the largest in 1..batch_max that fits with the recomputation asked for;
 * where not even one sample fits, with what stk_budget_fit adds for that. Errors as there. */
int stk_budget_largest_batch(struct stk_plan_options *options, const stoker_model *model,
                             const struct stk_budget *budget, uint32_t batch_max, uint64_t *bytes,
                             stoker_error *error);

#endif
