/* schedule.h - the order in which passes run through two stages: see the picture in split.h. */
#ifndef STK_TRAINER_SPLIT_SCHEDULE_H
#define STK_TRAINER_SPLIT_SCHEDULE_H

#include "trainer/split/cut.h"

struct stk_split_schedule;

/* The cut and its stages outlive it. STOKER_ENOMEM, ETHREAD. */
int stk_split_schedule_create(struct stk_split_schedule **out, const struct stk_cut *cut,
                              stoker_error *error);
/* Waits for passes under way first. */
void stk_split_schedule_destroy(struct stk_split_schedule **schedule); /* NULL is allowed */

/* Sends a pass; opens: it is the first of its group, whose gradients start at 0. Losses of passes
 * that ended are added to *sum. STOKER_EINVAL: a label out of range; then nothing has changed.
 * STOKER_EDEVICE. */
int stk_split_schedule_pass(struct stk_split_schedule *schedule, const struct stk_pass *pass,
                            bool opens, struct stk_loss *sum, stoker_error *error);
/* Waits for all passes that were sent. STOKER_EDEVICE. */
int stk_split_schedule_drain(struct stk_split_schedule *schedule, struct stk_loss *sum,
                             stoker_error *error);

#endif
