/* choose.h - which ranks a trainer joins. */
#ifndef STK_TRAINER_PEERS_CHOOSE_H
#define STK_TRAINER_PEERS_CHOOSE_H

#include <stoker/trainer.h>

#include "trainer/peers/peers.h"

/* Waits for all ranks, if there are others. STOKER_ENOTSUP: no MPI, or the launcher brings none; STOKER_EINVAL: the
 * launcher's variables; STOKER_EPEER, ENOMEM. */
int stk_peers_join(struct stk_peers **out, stoker_peers kind,
                   const struct stk_peers_options *options, stoker_error *error);

#endif
