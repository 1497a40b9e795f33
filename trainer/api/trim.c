/* trim.c - memory that holds nothing from step to step is given back on request, and taken again.
 *
 *   trim     activations │ gradients, between two groups │ workspaces, recordings ──▶ the device
 *   refill   ──▶ activations │ gradients            before the next step, evaluation or load
 *            ──▶ workspaces                         by the back end, before it runs
 *
 * Weights, state, averages and statistics stay; so do counts and losses that were not read yet. */
#include "trainer/split/split.h"

/* Give an arena back. Returns its bytes. */
static uint64_t give(stoker_trainer *trainer, void *memory, uint64_t bytes)
{
    if (memory == NULL)
        return 0;
    trainer->ops->release(trainer->backend, memory);
    return bytes;
}

static uint64_t trim_program(const stoker_trainer *trainer, struct stk_program *program)
{
    return trainer->ops->trim == NULL ? 0 : trainer->ops->trim(program);
}

static uint64_t trim_stage(stoker_trainer *trainer, bool between_groups)
{
    struct stk_arenas *const arenas = &trainer->arenas;
    uint64_t bytes =
        trim_program(trainer, trainer->train) + trim_program(trainer, trainer->evaluation);
    if (trainer->backward != NULL)
        bytes += trim_program(trainer, trainer->backward);
    bytes += give(trainer, arenas->activations, trainer->memory.activations);
    arenas->activations = NULL;
    if (between_groups) {
        bytes += give(trainer, arenas->gradients, trainer->memory.gradients);
        arenas->gradients = NULL;
    }
    return bytes;
}

uint64_t stoker_trainer_trim(stoker_trainer *trainer)
{
    uint64_t bytes = 0;
    if (trainer == NULL || stk_split_drain(trainer, &trainer->error) != STOKER_OK)
        return 0;
    const struct stk_stages stages = stk_stages_of(trainer);
    for (uint32_t s = 0; s < stages.count; s++)
        bytes += trim_stage(stages.stage[s], trainer->progress.group_passes == 0);
    return bytes;
}

static int refill_stage(stoker_trainer *trainer, stoker_error *error)
{
    struct stk_arenas *const arenas = &trainer->arenas;
    int rc = STOKER_OK;
    if (arenas->activations == NULL)
        rc = stk_trainer_take(trainer, &arenas->activations, trainer->memory.activations,
                              "activations", error);
    if (rc == STOKER_OK && arenas->gradients == NULL)
        rc = stk_trainer_take(trainer, &arenas->gradients, trainer->memory.gradients, "gradients",
                              error);
    return rc;
}

int stk_trainer_refill(stoker_trainer *trainer, stoker_error *error)
{
    const struct stk_stages stages = stk_stages_of(trainer);
    int rc = STOKER_OK;
    for (uint32_t s = 0; s < stages.count && rc == STOKER_OK; s++)
        rc = refill_stage(stages.stage[s], error);
    return rc;
}
