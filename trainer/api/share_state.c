/* share_state.c - broadcasts rank 0's state, from which all ranks continue. With one rank each
 * call does nothing. */
#include <string.h>

#include "trainer/api/peers.h"

int stk_trainer_share_bytes(stoker_trainer *trainer, void *memory, size_t bytes,
                            stoker_error *error)
{
    if (!stk_trainer_has_peers(trainer) || bytes == 0)
        return STOKER_OK;
    return trainer->peers->ops->broadcast(trainer->peers, memory, bytes, error);
}

/* memory: an arena. */
static int share_arena(stoker_trainer *trainer, void *memory, uint64_t bytes, stoker_error *error)
{
    const struct stk_stage *const stage = trainer->stage[0];
    if (memory == NULL || bytes == 0)
        return STOKER_OK;
    return trainer->device_sums != NULL
               ? stage->ops->device->broadcast(stage->backend, memory, bytes, error)
               : stk_trainer_share_bytes(trainer, memory, bytes, error);
}

/* Of a group under way rank 0 has the gradients. */
int stk_trainer_clear_gradients(stoker_trainer *trainer, stoker_error *error)
{
    const struct stk_stage *const stage = trainer->stage[0];
    const uint64_t floats = trainer->model->parameter_floats;
    if (trainer->peers->rank == 0 || stage->arenas.gradients == NULL)
        return STOKER_OK;
    if (trainer->device_sums != NULL)
        return stage->ops->device->clear(stage->backend, stage->arenas.gradients, floats, error);
    memset(stage->arenas.gradients, 0, floats * sizeof(float));
    return STOKER_OK;
}

static int share_state(stoker_trainer *trainer, stoker_error *error)
{
    struct stk_stage *const stage = trainer->stage[0];
    const size_t bytes = trainer->model->parameter_floats * sizeof(float);
    const size_t tracked = (trainer->model->statistic_count / 2 + 1) * sizeof(uint64_t);
    if (!stk_trainer_has_peers(trainer))
        return STOKER_OK;
    const struct {
        void *memory;
        size_t bytes;
    } parts[] = { { stage->arenas.parameters, bytes },
                  { stage->arenas.statistics, trainer->model->statistic_floats * sizeof(float) },
                  { stage->state[0], bytes },
                  { stage->state[1], bytes },
                  { stage->state[2], bytes },
                  { stage->ema, bytes } };
    _Static_assert(STK_STATE_ARENAS_MAX == 3, "each one is shared");
    int rc = STOKER_OK;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && rc == STOKER_OK; i++)
        rc = share_arena(trainer, parts[i].memory, parts[i].bytes, error);
    if (rc == STOKER_OK)
        rc = stk_trainer_share_bytes(trainer, &trainer->progress, sizeof(trainer->progress), error);
    if (rc == STOKER_OK)
        rc = stk_trainer_share_bytes(trainer, trainer->batches_before, tracked, error);
    stage->half_weights_from = NULL;
    if (rc == STOKER_OK)
        rc = stk_trainer_clear_gradients(trainer, error);
    if (rc == STOKER_OK && trainer->device_sums != NULL)
        rc = stk_trainer_upload_state(trainer, error);
    return rc;
}

int stk_trainer_share_state(stoker_trainer *trainer, stoker_error *error)
{
    return stk_trainer_report_device(trainer, share_state(trainer, error), error);
}
