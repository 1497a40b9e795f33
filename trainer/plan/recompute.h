/* recompute.h - what a training plan keeps from the forward pass, and what it recomputes.
 *
 *   forward   [ segment 0 ][ segment 1 ][ segment 2 ]
 *   stored                ^            ^      only values that cross a border outlive their segment
 *   backward                             2; recompute 1, its backward; recompute 0, its backward
 *
 * The last segment is not recomputed: its backward pass follows directly.
 */
#ifndef STK_TRAINER_RECOMPUTE_H
#define STK_TRAINER_RECOMPUTE_H

#include "trainer/plan/graph.h"
#include "trainer/plan/plan.h"

struct stk_recompute {
    uint32_t segments;
    uint32_t *first; /* [segments + 1]: first node of each; the last one is graph.count */
    bool *stored;    /* [node]: its value crosses a border and is kept from the first pass */
    bool *remade;    /* [node]: a BatchNorm whose value is recomputed for each backward reader */
    bool *again;     /* [node]: recomputed together with its segment */
};

/* On success the caller calls stk_recompute_free(). STOKER_ENOMEM. */
int stk_recompute_choose(struct stk_recompute *recompute, const struct stk_graph *graph,
                         const struct stk_plan_options *options);
void stk_recompute_free(struct stk_recompute *recompute);

#endif
