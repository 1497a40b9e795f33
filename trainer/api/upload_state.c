/* upload_state.c - writes to devices which update comes next: after create, after a checkpoint was read, and as rank 0 says. */
#include "trainer/api/options.h"
#include "trainer/api/peers.h"

int stk_trainer_upload_state(stoker_trainer *trainer, stoker_error *error)
{
    const struct stk_progress *const progress = &trainer->progress;
    const struct stk_update_state state = { .updates = progress->updates,
                                            .groups = progress->groups,
                                            .loss_scale = progress->loss_scale };
    int rc = STOKER_OK;
    trainer->unread = (struct stk_unread){ 0 };
    for (uint32_t s = 0; s < trainer->stage_count && rc == STOKER_OK; s++)
        if (trainer->stage[s]->ops->device != NULL)
            rc = trainer->stage[s]->ops->device->upload_state(trainer->stage[s]->backend, &state,
                                                              error);
    return rc;
}
