/* half_weights.c - the weights once more, in 16 bits, for what multiplies them.
 *
 *   parameters ──update──▶ stored        an update writes both
 *   parameters ──narrow──▶ stored        after they were written from outside, and after an evaluation
 *   average    ──narrow──▶ stored        for an evaluation with the moving average
 */
#include "trainer/api/trainer.h"

int stk_trainer_store(stoker_trainer *trainer, const float *weights)
{
    if (trainer->arenas.stored == NULL || trainer->stored_from == weights)
        return STOKER_OK;
    trainer->stored_from = NULL;
    const int rc = trainer->ops->narrow(trainer->backend, trainer->arenas.stored, weights,
                                        trainer->model->parameter_floats,
                                        trainer->settings.backend.storage, &trainer->error);
    if (rc == STOKER_OK)
        trainer->stored_from = weights;
    return rc;
}
