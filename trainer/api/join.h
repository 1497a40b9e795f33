/* join.h - joins a trainer to the ranks of its run, and leaves them; peers.h has the calls between.
 * Every call waits for all ranks, and returns STOKER_EPEER if one of them cannot continue: the
 * message names it. */
#ifndef STK_TRAINER_API_JOIN_H
#define STK_TRAINER_API_JOIN_H

#include "trainer/api/trainer.h"

/* Joins the ranks that the options ask for. STOKER_ENOTSUP, EPEER, ENOMEM. */
int stk_trainer_join(stoker_trainer *trainer, const stoker_trainer_options *options,
                     stoker_error *error);
/* What precedes stk_trainer_join() has failed: the others need not wait for this rank. */
void stk_trainer_stay_away(const stoker_trainer_options *options, int rc,
                           const stoker_error *error);
/* Checks that settings suit several ranks, and chooses the back end that they leave open.
 * STOKER_EINVAL, ENOTSUP. */
int stk_trainer_check_peers(stoker_trainer *trainer, stoker_error *error);
/* rc: how this rank's create went; returned if it failed. STOKER_EMISMATCH: another model or other
 * options than rank 0. */
int stk_trainer_reach_created(stoker_trainer *trainer, int rc, stoker_error *error);

/* GPUs find each other. All ranks have built their trainers. STOKER_ENOTSUP, EINVAL, EMISMATCH,
 * EPEER, ENOMEM. */
int stk_trainer_join_devices(stoker_trainer *trainer, stoker_error *error);
/* Ends the trainer's part in the run; what other ranks still sum with a GPU of this one fails. The
 * stages are closed. */
void stk_trainer_leave(stoker_trainer *trainer);

/* devices.c: set settings->backend.device to the GPU with the rank's number on its node, unless the
 * options name one. peers NULL: the rank of the launcher's variables. If each rank sees only its
 * own GPU, that is the first. */
void stk_rank_take_device(struct stk_trainer_settings *settings, const struct stk_peers *peers);

/* devices.c: open a GPU for a try. Returns true if the back end is "auto" and a GPU and the
 * libraries for this model work. */
bool stk_rank_has_gpu(const struct stk_peers *peers, const stoker_model *model,
                      const stoker_trainer_options *options);

#endif
