/* fusion.h - which operations of a plan can go into the graphs of the convolutions beside them.
 *
 *   CONV y ─▶ BATCH_NORM x=y          the convolution makes the sums as it writes y          `statistics`
 *   BATCH_NORM+ReLU y ─▶ CONV x=y     the convolution works out y as it reads, from BatchNorm's own x: y
 *                                     is written by nobody                                   `applies`
 *   ... ─▶ CONV_BACKWARD_WEIGHTS x=y  the same
 *   BATCH_NORM_BACKWARD x, dy ─▶ dx   one graph, which makes the sign of y again from x      `graph`
 *
 * A pure function of the plan: what cuDNN has engines for is found out by making them, and what it has none
 * for is taken back by stk_cuda_fusion_withdraw(). 16-bit storage for what is around convolutions: in
 * float32 the variance as a difference of sums would lose more than the type does. */
#ifndef STK_TRAINER_BACKEND_CUDA_PROGRAM_FUSION_H
#define STK_TRAINER_BACKEND_CUDA_PROGRAM_FUSION_H

#include "trainer/backend/backend.h"

enum { STK_NO_OP = -1 };

/* One operation's part. */
struct stk_cuda_fusion {
    bool statistics; /* CONV_FORWARD: makes the sums for the next operation, a BATCH_NORM_FORWARD */
    int32_t
        applies; /* CONV_FORWARD, CONV_BACKWARD_WEIGHTS: the BATCH_NORM_FORWARD or _APPLY whose y it
                        works out by itself; STK_NO_OP = it reads its x as it is */
    bool
        unwritten; /* BATCH_NORM_FORWARD, _APPLY: nobody reads y. BATCH_NORM_BACKWARD: y is not there */
    bool graph; /* BATCH_NORM_BACKWARD: by cuDNN */
};

/* Fill fusions[plan->op_count]. `graph` with STK_FUSION_ALL only: cuDNN compiles all of those. */
void stk_cuda_fusion_find(struct stk_cuda_fusion *fusions, const struct stk_plan *plan,
                          enum stk_fusion how);

/* Nothing applies that BatchNorm after all: it writes y, which the others read. */
void stk_cuda_fusion_withdraw(struct stk_cuda_fusion *fusions, const struct stk_plan *plan,
                              uint32_t norm);

#endif
