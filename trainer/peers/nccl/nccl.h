/* nccl.h - device sums by NCCL: one GPU for each rank, and words beside it over any kind of
 * peers.
 *
 *   join    words: GPUs differ? rank 0's id ─▶ ncclCommInitRankConfig ─▶ words: all there?
 *   failure a call or the communicator fails ─▶ words to all ─▶ every rank aborts its communicator
 *
 * The communicator does not block, so that every wait ends: when another rank says that it has
 * failed, or at the time-out. */
#ifndef STK_TRAINER_PEERS_NCCL_H
#define STK_TRAINER_PEERS_NCCL_H

#include "trainer/backend/common/device_sums.h"
#include "trainer/peers/nccl/functions.h"
#include "trainer/peers/peers.h"

struct stk_nccl_options {
    uint32_t timeout_ms;         /* for the sums of all ranks, > 0 */
    uint32_t device_index;       /* this rank's GPU, for messages */
    struct stk_device_id device; /* this rank's GPU, which is current */
};

/* All ranks. rc: STOKER_OK, or why this rank cannot join, described in *error. words must
 * outlive the sums; *out is set before their last sync point here, so that they can go through it.
 * STOKER_ENOTSUP: no NCCL; STOKER_EINVAL: two ranks have one GPU; STOKER_EMISMATCH: NCCLs of
 * different versions; STOKER_EPEER, ENOMEM. */
int stk_nccl_join(struct stk_device_sums **out, struct stk_peers *words,
                  const struct stk_nccl_options *options, int rc, stoker_error *error);

/* abandon: other ranks may be gone, so what is queued is ended; else it must be done. NULL is
 * allowed. */
void stk_nccl_leave(struct stk_device_sums **sums, bool abandon);

#endif
