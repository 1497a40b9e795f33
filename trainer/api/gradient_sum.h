/* gradient_sum.h - the sum of gradients over all ranks, slice by slice, beside the pass that
 * completes them.
 *
 *   last pass of a group   slice 0 complete ──▶ slice 1 complete ──▶ ... ──▶ end of the pass
 *   other ranks                └─▶ sum of slice 0 ─▶ sum of slice 1 ─▶ ...      └─▶ wait for the rest
 *
 * Every rank begins the same slices in the same order, since all run the same plan. */
#ifndef STK_TRAINER_API_GRADIENT_SUM_H
#define STK_TRAINER_API_GRADIENT_SUM_H

#include "trainer/backend/backend.h"
#include "trainer/peers/peers.h"

struct stk_gradient_sum {
    struct stk_peers *peers; /* borrowed */
    float *gradients;        /* the arena of the pass */
    struct stk_slices slices;
    struct stk_pass_watch watch;
    uint32_t complete, begun; /* slices of this group */
    int rc;                   /* the first error, which is in `error` */
    stoker_error error;
};

/* One rank needs none, and *sum stays all zero. STOKER_ENOMEM. */
int stk_gradient_sum_open(struct stk_gradient_sum *sum, struct stk_peers *peers,
                          const struct stk_plan *plan, stoker_error *error);
void stk_gradient_sum_close(struct stk_gradient_sum *sum); /* all zero is allowed */

/* For the last pass of a group, which writes to `gradients`. */
const struct stk_pass_watch *stk_gradient_sum_watch(struct stk_gradient_sum *sum, float *gradients);
/* Begins what no pass has reported, and waits until all slices of `gradients` are sums over all
 * ranks. Also without a watched pass. STOKER_EPEER. */
int stk_gradient_sum_finish(struct stk_gradient_sum *sum, float *gradients, stoker_error *error);

#endif
