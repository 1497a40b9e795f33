/* budget.c - see budget.h. */
#include "trainer/plan/budget.h"

#include <inttypes.h>

#include "loader/base/error.h"

/* Bytes taken with these options. */
static int measure(const struct stk_plan_options *options, const stoker_model *model,
                   const struct stk_budget *budget, uint64_t *bytes, stoker_error *error)
{
    struct stk_plan plan;
    int rc = stk_plan_make(&plan, model, options, error);
    if (rc != STOKER_OK)
        return rc;
    rc = budget->bytes_of(budget->context, &plan, bytes, error);
    stk_plan_free(&plan);
    return rc;
}

/* Adds the next recomputation; returns false if there is no more. */
static bool add_recomputation(struct stk_plan_options *options, const stoker_model *model)
{
    if (!options->recompute_batch_norm) {
        options->recompute_batch_norm = true;
        return true;
    }
    options->checkpoint_segments =
        options->checkpoint_segments < 2 ? 2 : 2 * options->checkpoint_segments;
    return options->checkpoint_segments < 2 * model->layer_count;
}

int stk_budget_fit(struct stk_plan_options *options, const stoker_model *model,
                   const struct stk_budget *budget, uint64_t *bytes, stoker_error *error)
{
    struct stk_plan_options tried = *options;
    uint64_t least_bytes = UINT64_MAX;
    do {
        uint64_t taken_bytes;
        int rc = measure(&tried, model, budget, &taken_bytes, error);
        if (rc != STOKER_OK)
            return rc;
        if (taken_bytes < least_bytes)
            least_bytes = taken_bytes;
        if (taken_bytes <= budget->limit_bytes) {
            *options = tried;
            if (bytes != NULL)
                *bytes = taken_bytes;
            return STOKER_OK;
        }
    } while (tried.train && add_recomputation(&tried, model));

    if (bytes != NULL)
        *bytes = least_bytes;
    return stk_refuse_option(error, STOKER_ELIMIT,
                             "a batch of %" PRIu32 " takes at least %" PRIu64 " bytes, and %" PRIu64
                             " are allowed",
                             options->batch, least_bytes, budget->limit_bytes);
}

/* Larger batches take more, so the limit is found by bisection. 1 sample is known to fit, and
 * takes *bytes. */
static int bisect(struct stk_plan_options *options, const stoker_model *model,
                  const struct stk_budget *budget, uint32_t batch_max, uint64_t *bytes,
                  stoker_error *error)
{
    struct stk_plan_options tried = *options;
    uint32_t fits = 1;
    uint32_t too_large = batch_max + 1;
    while (too_large - fits > 1) {
        uint64_t taken_bytes;
        /* Try the largest first: it often fits. */
        tried.batch = too_large > batch_max ? batch_max : fits + (too_large - fits) / 2;
        stoker_error cause;
        int rc = measure(&tried, model, budget, &taken_bytes, &cause);
        if (rc != STOKER_OK && rc != STOKER_ELIMIT) {
            if (error != NULL)
                *error = cause;
            return rc;
        }
        if (rc == STOKER_OK && taken_bytes <= budget->limit_bytes) {
            fits = tried.batch;
            *bytes = taken_bytes;
        } else {
            too_large = tried.batch;
        }
    }
    options->batch = fits;
    return STOKER_OK;
}

int stk_budget_largest_batch(struct stk_plan_options *options, const stoker_model *model,
                             const struct stk_budget *budget, uint32_t batch_max, uint64_t *bytes,
                             stoker_error *error)
{
    if (batch_max < 1 || batch_max > STK_BATCH_MAX)
        return stk_refuse_option(error, STOKER_EINVAL,
                                 "batches of at most %" PRIu32 ": 1 to %d are allowed", batch_max,
                                 STK_BATCH_MAX);
    struct stk_plan_options found = *options;
    uint64_t taken_bytes = 0;
    found.batch = 1;
    int rc = stk_budget_fit(&found, model, budget, &taken_bytes, error);
    if (rc == STOKER_OK)
        rc = bisect(&found, model, budget, batch_max, &taken_bytes, error);
    if (rc == STOKER_OK)
        *options = found;
    if (bytes != NULL && (rc == STOKER_OK || rc == STOKER_ELIMIT))
        *bytes = taken_bytes;
    return rc;
}
