/* recompute.h - what a training plan keeps from the forward pass, and what it makes again.
 *
 *   forward   [ segment 0 ][ segment 1 ][ segment 2 ]
 *   stored                ^            ^      only what crosses a border outlives its segment
 *   backward                             2, then 1 again and its backward, then 0 again and its
 *
 * The last segment is not made again: its backward pass follows at once.
 */
#ifndef STK_TRAINER_RECOMPUTE_H
#define STK_TRAINER_RECOMPUTE_H

#include "trainer/plan/graph.h"
#include "trainer/plan/plan.h"

struct stk_recompute {
    uint32_t segments;
    uint32_t *first; /* [segments + 1]: first node of each; the last one is graph.count */
    bool *stored;    /* [node]: its value crosses a border and is kept from the first pass */
    bool *remade;    /* [node]: a BatchNorm whose value is applied again for each backward reader */
    bool *again;     /* [node]: recomputed together with its segment */
};

/* STOKER_ENOMEM, or 0: then stk_recompute_free() is the caller's to call. */
int stk_recompute_choose(struct stk_recompute *recompute, const struct stk_graph *graph,
                         const struct stk_plan_options *options);
void stk_recompute_free(struct stk_recompute *recompute);

#endif
