/* budget.h - chooses recomputation and batch size to fit a memory budget, from plans alone. */
#ifndef STK_TRAINER_BUDGET_H
#define STK_TRAINER_BUDGET_H

#include "trainer/plan/plan.h"

/* Computes all bytes taken with this plan: its arena, the workspace of the back end, parameters,
 * and what else the caller counts. An error ends the search. */
typedef int stk_bytes_of(void *context, const struct stk_plan *plan, uint64_t *bytes,
                         stoker_error *error);

struct stk_budget {
    uint64_t limit_bytes; /* UINT64_MAX = none */
    stk_bytes_of *bytes_of;
    void *context;
};

/* Adds as little recomputation to options as makes the plan fit: none, then recompute_batch_norm,
 * then 2, 4, 8, ... checkpoint segments as well. On success options and *bytes (taken then; may be
 * NULL) are written. STOKER_ELIMIT: nothing fits; *bytes and the message have the smallest size
 * seen. STOKER_EINVAL, ENOMEM, or the error of bytes_of. */
int stk_budget_fit(struct stk_plan_options *options, const stoker_model *model,
                   const struct stk_budget *budget, uint64_t *bytes, stoker_error *error);

/* Sets options->batch to the largest in 1..batch_max that fits with the given recomputation; if not
 * even one sample fits, with the recomputation that stk_budget_fit adds for it. Errors as there. */
int stk_budget_largest_batch(struct stk_plan_options *options, const stoker_model *model,
                             const struct stk_budget *budget, uint32_t batch_max, uint64_t *bytes,
                             stoker_error *error);

#endif
