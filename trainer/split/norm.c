/* norm.c - the norm of the gradients of both stages: see cut.h. */
#include "trainer/split/cut.h"

/* Reads a device's norm into *norm, and writes the host's to where the device looks for it; the
 * host waits. */
static int exchange_with_host(const struct stk_stage *stage, const struct stk_norm *host,
                              struct stk_norm *norm, stoker_error *error)
{
    const struct stk_transfer_ops *const ops = stk_transfer_of(stage->ops);
    int rc = stage->ops->device->download(stage->backend, norm, ops->local_norm(stage->backend),
                                          STK_NORM_BYTES, error);
    if (rc == STOKER_OK)
        rc = stage->ops->device->upload(stage->backend, ops->peer_norm(stage->backend), host,
                                        STK_NORM_BYTES, error);
    return rc;
}

/* Gives each of two devices the other's norm. */
static int exchange_over(const struct stk_cut *cut, stoker_error *error)
{
    const struct stk_transfer_ops *const ops = stk_transfer_of(cut->first->ops);
    struct stk_backend *const backends[2] = { cut->first->backend, cut->second->backend };
    int rc = STOKER_OK;
    for (int s = 0; s < 2 && rc == STOKER_OK; s++)
        rc = ops->from_peer(cut->transfer[s], cut->transfer[1 - s], 0, ops->peer_norm(backends[s]),
                            ops->local_norm(backends[1 - s]), NULL, STK_NORM_BYTES, error);
    for (int s = 0; s < 2 && rc == STOKER_OK; s++)
        rc = ops->stream_wait(cut->transfer[s], 0, error);
    return rc;
}

static int queue_norm(const struct stk_stage *stage, stoker_error *error)
{
    const struct stk_update update = stk_stage_update_of(stage);
    return stk_on_device(stage) ? stage->ops->device->queue_norm(stage->backend, &update, error)
                                : STOKER_OK;
}

int stk_cut_norm(const struct stk_cut *cut, double *squared, bool *finite, stoker_error *error)
{
    const struct stk_stage *const stages[2] = { cut->first, cut->second };
    struct stk_norm norms[2] = { { .finite = 1 }, { .finite = 1 } };
    int rc = STOKER_OK;
    for (int s = 0; s < 2 && rc == STOKER_OK; s++)
        rc = queue_norm(stages[s], error);
    if (rc == STOKER_OK && stk_on_device(stages[0]) && stk_on_device(stages[1]))
        return exchange_over(cut, error);
    for (int s = 0; s < 2; s++)
        if (!stk_on_device(stages[s])) {
            bool all = true;
            norms[s].squared =
                stages[s]->ops->norm_squared(stages[s]->backend, stages[s]->arenas.gradients,
                                             stages[s]->model->parameter_floats, &all);
            norms[s].finite = all ? 1 : 0;
        }
    for (int s = 0; s < 2 && rc == STOKER_OK; s++)
        if (stk_on_device(stages[s]))
            rc = exchange_with_host(stages[s], &norms[1 - s], &norms[s], error);
    *squared = norms[0].squared + norms[1].squared;
    *finite = norms[0].finite != 0 && norms[1].finite != 0;
    return rc;
}
