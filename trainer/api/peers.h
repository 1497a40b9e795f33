/* peers.h - where the ranks of a trainer meet. With one rank each call does nothing.
 *
 *   create   join ─▶ built? same options? ─▶ rank 0's weights
 *   step     batch in order? whose samples? ─▶ pass ─▶ statistics of BatchNorm
 *   update   sum of gradients ─▶ finite? ─▶ each rank makes the same update
 *   report   sum of losses
 *
 * GPUs sum gradients and statistics themselves (device_sums.h), within what a pass queues; peers carry the words.
 *
 * Every call waits for all ranks, and returns STOKER_EPEER if one of them cannot continue: the message names it. */
#ifndef STK_TRAINER_API_PEERS_H
#define STK_TRAINER_API_PEERS_H

#include "trainer/api/trainer.h"

/* Joins the ranks that the options ask for. STOKER_ENOTSUP, EPEER, ENOMEM. */
int stk_trainer_join(stoker_trainer *trainer, const stoker_trainer_options *options,
                     stoker_error *error);
/* What precedes stk_trainer_join() has failed: the others need not wait for this rank. */
void stk_trainer_stay_away(const stoker_trainer_options *options, int rc,
                           const stoker_error *error);
/* Checks that settings suit several ranks, and chooses the back end that they leave open. STOKER_EINVAL, ENOTSUP. */
int stk_trainer_check_peers(stoker_trainer *trainer, stoker_error *error);
/* rc: how this rank's create went; returned if it failed. STOKER_EMISMATCH: another model or other options than rank 0. */
int stk_trainer_meet_created(stoker_trainer *trainer, int rc, stoker_error *error);

/* GPUs find each other. All ranks have built their trainers. STOKER_ENOTSUP, EINVAL, EMISMATCH, EPEER, ENOMEM. */
int stk_trainer_join_devices(stoker_trainer *trainer, stoker_error *error);
/* Ends the trainer's part in the run; what other ranks still sum with a GPU of this one fails. The stages are closed. */
void stk_trainer_leave(stoker_trainer *trainer);

/* One pass of all ranks. */
struct stk_pass_share {
    uint64_t before;  /* samples of lower ranks in this pass */
    uint64_t samples; /* sum over all ranks */
    uint32_t passes;  /* ranks with samples */
    uint64_t hash;    /* a hash of how many samples each rank has */
    bool forgets;     /* some rank has destroyed graphs */
};
/* rc: whether this rank's batch can be trained on; an error of any rank is one on all. */
int stk_trainer_meet_pass(stoker_trainer *trainer, int rc, uint32_t count,
                          struct stk_pass_share *out);
/* Prepares what a pass needs of the other ranks, runs it, and moves the running statistics by the batches of all. */
int stk_trainer_run_pass(stoker_trainer *trainer, struct stk_pass *pass,
                         const struct stk_group_pass *group);

/* Gradients become the sums over all ranks, unless each pass has summed them. */
int stk_trainer_sum_gradients(stoker_trainer *trainer, stoker_error *error);
/* *finite: on all ranks. */
int stk_trainer_agree_finite(stoker_trainer *trainer, bool *finite);
/* meeting: STK_MEET_REPORT or EVALUATE. came: how this rank's part went, and what is returned if it failed. bad_labels are
 * summed, too. */
int stk_trainer_sum_loss(stoker_trainer *trainer, enum stk_meeting meeting, int came,
                         struct stk_loss *loss, uint64_t *bad_labels, stoker_error *error);
/* Before the host waits for sums of several GPUs: every rank has queued its part. */
int stk_trainer_meet_to_read(stoker_trainer *trainer, stoker_error *error);

/* Returns rc. If it is a failure of this rank's GPU, it is reported to the others at once: they may wait for what it would have summed,
 * and come to no meeting. */
int stk_trainer_report_device(stoker_trainer *trainer, int rc, const stoker_error *error);

/* rc: how this rank's part went, and what is returned if it failed. */
int stk_trainer_meet(stoker_trainer *trainer, enum stk_meeting meeting, int rc,
                     stoker_error *error);
/* Everybody's weights, statistics, state and progress become rank 0's. */
int stk_trainer_share_state(stoker_trainer *trainer, stoker_error *error);
/* Sets those of all ranks but 0 to 0, which has the sum of all. */
int stk_trainer_clear_gradients(stoker_trainer *trainer, stoker_error *error);
int stk_trainer_share_bytes(stoker_trainer *trainer, void *memory, size_t bytes,
                            stoker_error *error);

static inline bool stk_trainer_has_peers(const stoker_trainer *trainer)
{
    return trainer->peers->world_size > 1 || trainer->device_sums != NULL;
}

#endif
