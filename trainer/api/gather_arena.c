/* gather_arena.c - see gather_arena.h. */
#include "trainer/api/gather_arena.h"

static float *arena_of(const struct stk_stage *stage, enum stk_arena which)
{
    switch (which) {
    case STK_ARENA_PARAMETERS:
        return stage->arenas.parameters;
    case STK_ARENA_GRADIENTS:
        return stage->arenas.gradients;
    case STK_ARENA_STATISTICS:
        return stage->arenas.statistics;
    case STK_ARENA_EMA:
        return stage->ema;
    default:
        return stage->state[which - STK_ARENA_STATE];
    }
}

static size_t bytes_of(const stoker_model *model, enum stk_arena which)
{
    return sizeof(float) *
           (which == STK_ARENA_STATISTICS ? model->statistic_floats : model->parameter_floats);
}

int stk_gather_blank(struct stk_view *out, const stoker_trainer *trainer, enum stk_arena which,
                     stoker_error *error)
{
    const size_t bytes = bytes_of(trainer->model, which);
    const struct stk_stage *const first = trainer->stage[0];
    if (trainer->stage_count == 1)
        return stk_view_blank(out, first, arena_of(first, which), bytes, error);
    *out = (struct stk_view){ .bytes = bytes };
    return stk_view_take(out, error);
}

int stk_gather_read(struct stk_view *out, const stoker_trainer *trainer, enum stk_arena which,
                    stoker_error *error)
{
    const struct stk_stage *const first = trainer->stage[0];
    if (trainer->stage_count == 1)
        return stk_view_read(out, first, arena_of(first, which), bytes_of(first->model, which),
                             error);
    size_t done = 0;
    int rc = stk_gather_blank(out, trainer, which, error);
    for (uint32_t s = 0; s < trainer->stage_count && rc == STOKER_OK; s++) {
        const struct stk_stage *stage = trainer->stage[s];
        const size_t bytes = bytes_of(stage->model, which);
        if (bytes > 0)
            rc = stk_arena_read(stage, (char *)out->floats + done, arena_of(stage, which), bytes,
                                error);
        done += bytes;
    }
    if (rc != STOKER_OK)
        stk_view_close(out);
    return rc;
}

int stk_gather_write(stoker_trainer *trainer, enum stk_arena which, const void *from,
                     stoker_error *error)
{
    size_t done = 0;
    int rc = STOKER_OK;
    for (uint32_t s = 0; s < trainer->stage_count && rc == STOKER_OK; s++) {
        struct stk_stage *stage = trainer->stage[s];
        const size_t bytes = bytes_of(stage->model, which);
        if (bytes > 0)
            rc = stk_arena_write(stage, arena_of(stage, which), (const char *)from + done, bytes,
                                 error);
        done += bytes;
    }
    return rc;
}

int stk_gather_store(const struct stk_view *view, stoker_trainer *trainer, enum stk_arena which,
                     stoker_error *error)
{
    return view->copied ? stk_gather_write(trainer, which, view->floats, error) : STOKER_OK;
}
