/* trim.c - gives memory that carries no state between steps back to the device; it is taken again when needed.
 *
 *   trim     activations │ gradients, between two groups │ workspaces, recordings ──▶ the device
 *   refill   ──▶ activations │ gradients            before the next step, evaluation or load
 *            ──▶ workspaces                         by the back end, before it runs
 *
 * Weights, state, averages and statistics stay; so do counts and losses that were not read yet. */
#include "trainer/api/trainer.h"

uint64_t stoker_trainer_trim(stoker_trainer *trainer)
{
    uint64_t bytes = 0;
    if (trainer == NULL || stk_trainer_drain(trainer, &trainer->error) != STOKER_OK)
        return 0;
    for (uint32_t s = 0; s < trainer->stage_count; s++)
        bytes += stk_stage_trim(trainer->stage[s], trainer->progress.group_passes == 0 &&
                                                       !trainer->peers->holds_arrays);
    return bytes;
}
