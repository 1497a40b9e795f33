/* peers.h - the sync points of a trainer's ranks. With one rank each call does nothing.
 *
 *   create   join ─▶ built? same options? ─▶ rank 0's weights      join.h
 *   step     batch in order? whose samples? ─▶ pass ─▶ statistics of BatchNorm
 *   update   sum of gradients ─▶ finite? ─▶ each rank makes the same update
 *   report   sum of losses
 *
 * GPUs sum gradients and statistics themselves (device_sums.h), within what a pass queues; peers
 * carry the words.
 *
 * Every call waits for all ranks, and returns STOKER_EPEER if one of them cannot continue: the
 * message names it. */
#ifndef STK_TRAINER_API_PEERS_H
#define STK_TRAINER_API_PEERS_H

#include "trainer/api/trainer.h"

/* One pass of all ranks. */
struct stk_pass_share {
    uint64_t before;  /* samples of lower ranks in this pass */
    uint64_t samples; /* sum over all ranks */
    uint32_t passes;  /* ranks with samples */
    uint64_t hash;    /* a hash of how many samples each rank has */
    bool forgets;     /* some rank has destroyed graphs */
};
/* rc: whether this rank's batch can be trained on; an error of any rank is one on all. */
int stk_trainer_reach_pass(stoker_trainer *trainer, int rc, uint32_t count,
                           struct stk_pass_share *out);
/* Prepares what a pass needs of the other ranks, runs it, and moves the running statistics by the
 * batches of all. */
int stk_trainer_run_pass(stoker_trainer *trainer, struct stk_pass *pass,
                         const struct stk_group_pass *group);

/* Gradients become the sums over all ranks, unless each pass has summed them. */
int stk_trainer_sum_gradients(stoker_trainer *trainer, stoker_error *error);
/* *finite: on all ranks. */
int stk_trainer_agree_finite(stoker_trainer *trainer, bool *finite);
/* sync_point: STK_SYNC_REPORT or EVALUATE. came: how this rank's part went, and what is returned if
 * it failed. bad_labels are summed, too. */
int stk_trainer_sum_loss(stoker_trainer *trainer, enum stk_sync_point sync_point, int came,
                         struct stk_loss *loss, uint64_t *bad_labels, stoker_error *error);
/* Before the host waits for sums of several GPUs: every rank has queued its part. */
int stk_trainer_reach_read(stoker_trainer *trainer, stoker_error *error);

/* Returns rc. If it is a failure of this rank's GPU, it is reported to the others at once: they may
 * wait for what it would have summed, and come to no sync point. */
int stk_trainer_report_device(stoker_trainer *trainer, int rc, const stoker_error *error);

/* rc: how this rank's part went, and what is returned if it failed. */
int stk_trainer_reach(stoker_trainer *trainer, enum stk_sync_point sync_point, int rc,
                      stoker_error *error);

/* share_state.c: broadcast rank 0's weights, statistics, optimizer state and progress.
 * STOKER_EPEER, EDEVICE. */
int stk_trainer_share_state(stoker_trainer *trainer, stoker_error *error);
/* Zero the gradients of all ranks except rank 0, which holds the sum. */
int stk_trainer_clear_gradients(stoker_trainer *trainer, stoker_error *error);
int stk_trainer_share_bytes(stoker_trainer *trainer, void *memory, size_t bytes,
                            stoker_error *error);

static inline bool stk_trainer_has_peers(const stoker_trainer *trainer)
{
    return trainer->peers->world_size > 1 || trainer->device_sums != NULL;
}

/* FNV-1a, by which ranks compare what they were given. */
static const uint64_t STK_HASH_START = UINT64_C(0xCBF29CE484222325);

static inline uint64_t stk_hash_add(uint64_t hash, const void *bytes, size_t count)
{
    const uint64_t prime = UINT64_C(0x100000001B3);
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * prime;
    return hash;
}

#endif
