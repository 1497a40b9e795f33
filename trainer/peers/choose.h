/* choose.h - which ranks a trainer joins. */
#ifndef STK_TRAINER_PEERS_CHOOSE_H
#define STK_TRAINER_PEERS_CHOOSE_H

#include <stoker/ranks.h>
#include <stoker/trainer.h>

#include "trainer/peers/peers.h"

/* Wait for all ranks, if there are others. *out = NULL: a launcher has started several, but no
 * MPI is there, so only NCCL can connect them; *ranks has their places. STOKER_ENOTSUP: no MPI;
 * STOKER_EINVAL: the launcher's variables; STOKER_EPEER, ENOMEM. */
int stk_peers_join(struct stk_peers **out, stoker_ranks *ranks, stoker_peers kind,
                   const struct stk_peers_options *options, stoker_error *error);

#endif
