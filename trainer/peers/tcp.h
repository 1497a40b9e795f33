/* tcp.h - ranks that are processes which torchrun has started: they meet and agree over TCP, without MPI.
 *
 * Only words: arrays are summed by NCCL, or by MPI. */
#ifndef STK_TRAINER_PEERS_TCP_H
#define STK_TRAINER_PEERS_TCP_H

#include <stoker/ranks.h>

#include "trainer/peers/peers.h"

/* Waits for all ranks, which meet at rank 0's host:
 *
 *   MASTER_ADDR                  its name or address, IPv4 or IPv6
 *   MASTER_PORT                  this port, or the first free one of the STK_TCP_PORTS - 1 behind it
 *   TORCHELASTIC_USE_AGENT_STORE "True": torchrun itself listens at MASTER_PORT, so only those behind it
 *   STOKER_PORT                  this port alone, in place of these
 *   TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT   keep runs apart
 *
 * ranks: rank, world_size, and local_world_size = world_size if all are of this node; one rank needs no variables. The
 * peers' all_reduce() refuses: STOKER_ENOTSUP.
 * STOKER_EINVAL names the variable; STOKER_ENOMEM; STOKER_ENOFILE: rank 0 needs a file for each rank; STOKER_EPEER:
 * ranks are missing, two have one number, or the port is another program's. */
int stk_tcp_join(struct stk_peers **out, const stoker_ranks *ranks,
                 const struct stk_peers_options *options, stoker_error *error);

#endif
