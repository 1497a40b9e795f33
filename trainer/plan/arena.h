/* arena.h - the lives of buffers, and their offsets in the arena. */
#ifndef STK_TRAINER_ARENA_H
#define STK_TRAINER_ARENA_H

#include "trainer/plan/plan.h"

/* lives.c: sets sizes for plan.options.batch, first_op and last_op from the operations, and
 * plan.live_bytes_max. STOKER_ENOMEM; STOKER_ELIMIT: 2^62 bytes or more. */
int stk_lives_find(struct stk_plan *plan);

/* arena.c: sets offsets and plan.activation_bytes. STOKER_ENOMEM. */
int stk_arena_place(struct stk_plan *plan);

#endif
