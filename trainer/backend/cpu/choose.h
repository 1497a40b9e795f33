/* choose.h - from the operations of a plan to the steps of the cpu back end. */
#ifndef STK_TRAINER_BACKEND_CPU_CHOOSE_H
#define STK_TRAINER_BACKEND_CPU_CHOOSE_H

#include "trainer/backend/cpu/step.h"

/* Choose how a step runs, and what memory it needs; plain: only the loops of `ref`. STOKER_ENOMEM. */
int stk_cpu_choose(struct stk_cpu_step *step, const struct stk_plan *plan, const struct stk_op *op,
                   uint32_t threads, bool plain);

/* barriers.c: set barrier_before of all steps of a plan. */
void stk_cpu_place_barriers(struct stk_cpu_step *steps, const struct stk_plan *plan);

#endif
