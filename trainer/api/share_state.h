/* share_state.h - all ranks continue from rank 0's state. With one rank each call does nothing. */
#ifndef STK_TRAINER_API_SHARE_STATE_H
#define STK_TRAINER_API_SHARE_STATE_H

#include "trainer/api/trainer.h"

/* Everybody's weights, statistics, state and progress become rank 0's. STOKER_EPEER, EDEVICE. */
int stk_trainer_share_state(stoker_trainer *trainer, stoker_error *error);
/* Sets those of all ranks but 0 to 0, which has the sum of all. */
int stk_trainer_clear_gradients(stoker_trainer *trainer, stoker_error *error);
int stk_trainer_share_bytes(stoker_trainer *trainer, void *memory, size_t bytes,
                            stoker_error *error);

#endif
