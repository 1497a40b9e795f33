/* schedule.h - passes on their way through two stages: see the picture in split.h. */
#ifndef STK_TRAINER_SPLIT_SCHEDULE_H
#define STK_TRAINER_SPLIT_SCHEDULE_H

#include "trainer/api/trainer.h"

struct stk_pipeline;

/* Bytes that it will take beside each stage; both are settled. */
void stk_pipeline_bytes(const stoker_trainer *first, const stoker_trainer *second,
                        uint64_t bytes[2]);

/* Both stages are furnished and outlive it. STOKER_ENOMEM, ETHREAD. */
int stk_pipeline_create(struct stk_pipeline **out, stoker_trainer *first, stoker_trainer *second,
                        stoker_error *error);
/* Passes under way come to their end first. */
void stk_pipeline_destroy(struct stk_pipeline **pipeline); /* NULL is allowed */

/* Send a pass; opens: it is the first of its group, whose gradients begin at 0. Losses of passes that came to
 * their end are added to *sum. STOKER_EINVAL: a label that is none; then nothing has changed. STOKER_EDEVICE. */
int stk_pipeline_pass(struct stk_pipeline *pipeline, const struct stk_pass *pass, bool opens,
                      struct stk_loss *sum, stoker_error *error);
/* Wait for those that were sent. STOKER_EDEVICE. */
int stk_pipeline_drain(struct stk_pipeline *pipeline, struct stk_loss *sum, stoker_error *error);
/* The norm of the gradients of both stages, which are drained: to the host where one of them is its, and to each
 * device, of the other half's. *squared and *finite are written where one is the host's. STOKER_EDEVICE. */
int stk_pipeline_norm(struct stk_pipeline *pipeline, double *squared, bool *finite,
                      stoker_error *error);
/* The evaluation plans, one behind the other; nothing is under way. */
int stk_pipeline_forward(struct stk_pipeline *pipeline, const struct stk_pass *pass,
                         struct stk_loss *loss, stoker_error *error);

#endif
