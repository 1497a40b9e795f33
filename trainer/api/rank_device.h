/* rank_device.h - which GPU is a rank's: that of its number among the ranks of its node, unless the options name one. */
#ifndef STK_TRAINER_API_RANK_DEVICE_H
#define STK_TRAINER_API_RANK_DEVICE_H

#include "trainer/peers/peers.h"
#include "trainer/stage/settings.h"
#include <stoker/trainer.h>

/* Sets settings->backend.device. peers NULL: what the launcher's variables say. Where each rank sees only its own GPU, that
 * is the first; two ranks that take one are refused when they join. */
void stk_rank_take_device(struct stk_trainer_settings *settings, const struct stk_peers *peers);

/* True if the back end is "auto", and a GPU and the libraries for this model are there: it is opened for a try. */
bool stk_rank_has_gpu(const struct stk_peers *peers, const stoker_model *model,
                      const stoker_trainer_options *options);

#endif
