/* choose.h - which ranks a trainer joins. */
#ifndef STK_TRAINER_PEERS_CHOOSE_H
#define STK_TRAINER_PEERS_CHOOSE_H

#include <stoker/trainer.h>

#include "trainer/peers/peers.h"

/* Waits for all ranks, if there are others. Those of torchrun meet over TCP, and cannot sum arrays in host memory
 * (peers->words_only). STOKER_ENOTSUP: no MPI; STOKER_EINVAL: the launcher's variables; STOKER_EPEER, ENOMEM, ENOFILE. */
int stk_peers_join(struct stk_peers **out, stoker_peers kind,
                   const struct stk_peers_options *options, stoker_error *error);

#endif
