/* rendezvous.h - processes that share no MPI exchange one word each, so that NCCL can
 * connect them.
 *
 *   rank r   connect ─▶ hello: run, rank, world size, word ─┬─▶ the words of all ranks
 *   rank 0   listen  ─▶ a hello of every other rank        ─┘     or why this rank is refused
 *
 * One exchange, then every connection is closed. The network must be trusted, as with NCCL
 * itself: a run id keeps other runs away, not an attacker. */
#ifndef STK_TRAINER_PEERS_NCCL_RENDEZVOUS_H
#define STK_TRAINER_PEERS_NCCL_RENDEZVOUS_H

#include <stoker/ranks.h>

#include "trainer/peers/peers.h"

/* Exchange words. Rank 0 listens at
 *
 *   MASTER_ADDR    its host or address, IPv4 or IPv6; 127.0.0.1 if all ranks are on this node
 *   STOKER_PORT    the port; default MASTER_PORT + 1, since torchrun listens at MASTER_PORT itself
 *
 * and refuses ranks whose TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT, SLURM_JOB_ID or
 * SLURM_STEP_ID differs from its own. all: world_size words. STOKER_EINVAL names a variable;
 * STOKER_EPEER: ranks are missing, after timeout_ms, or refused; STOKER_ENOMEM. */
int stk_nccl_rendezvous(const stoker_ranks *ranks, uint32_t timeout_ms, const struct stk_word *mine,
                        struct stk_word *all, stoker_error *error);

#endif
