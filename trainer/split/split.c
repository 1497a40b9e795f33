/* split.c - see split.h. */
#include "trainer/split/split.h"

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/backend/common/operands.h"
#include "trainer/split/schedule.h"
#include "trainer/stage/view.h"

struct split {
    struct stk_runner runner; /* first */
    struct stk_stage *stages[2];
    struct stk_cut cut;
    struct stk_split_schedule *schedule;
};

/* Refills what was trimmed, and rounds the weights for this pass. */
static int prepare(const struct split *split, bool averages, stoker_error *error)
{
    int rc = STOKER_OK;
    for (int s = 0; s < 2 && rc == STOKER_OK; s++)
        rc = stk_stage_refill(split->stages[s], error);
    for (int s = 0; s < 2 && rc == STOKER_OK; s++) {
        struct stk_stage *const stage = split->stages[s];
        rc = stk_stage_round_weights(
            stage, averages && stage->ema != NULL ? stage->ema : stage->arenas.parameters, error);
    }
    return rc;
}

static int train(struct stk_runner *runner, const struct stk_pass *pass,
                 const struct stk_group_pass *group, struct stk_loss *found, stoker_error *error)
{
    struct split *const split = (struct split *)runner;
    const int rc = prepare(split, false, error);
    return rc == STOKER_OK
               ? stk_split_schedule_pass(split->schedule, pass, group->first, found, error)
               : rc;
}

static int drain(struct stk_runner *runner, struct stk_loss *found, stoker_error *error)
{
    return stk_split_schedule_drain(((struct split *)runner)->schedule, found, error);
}

static int norm(struct stk_runner *runner, double *squared, bool *finite, stoker_error *error)
{
    return stk_cut_norm(&((struct split *)runner)->cut, squared, finite, error);
}

/* Both devices decide the same, from the norm of both halves. */
static int queue_update(struct stk_runner *runner, uint64_t samples, bool early,
                        stoker_error *error)
{
    struct split *const split = (struct split *)runner;
    const struct stk_training *const training = &split->stages[0]->training;
    double unused;
    bool finite;
    int rc = STOKER_OK;
    (void)early; /* no pass queues the update */
    if (training->clip_norm > 0 || training->dynamic)
        rc = stk_cut_norm(&split->cut, &unused, &finite, error);
    for (int s = 0; s < 2 && rc == STOKER_OK; s++) {
        const struct stk_stage *const stage = split->stages[s];
        const struct stk_update update = stk_stage_update_of(stage);
        rc = stage->ops->device->queue_update(stage->backend, &update, samples, error);
    }
    return rc;
}

/* Runs the evaluation plan of the first stage, copies its value to host memory, and runs the
 * second's. */
static int run_both(struct split *split, const struct stk_pass *pass, struct stk_loss *loss,
                    stoker_error *error)
{
    const struct stk_stage *const first = split->stages[0];
    const struct stk_stage *const second = split->stages[1];
    const struct stk_arenas arenas = stk_stage_evaluation_arenas(first);
    const struct stk_arenas second_arenas = stk_stage_evaluation_arenas(second);
    struct stk_pass half = *pass;
    struct stk_loss none;
    int rc = stk_operands_check_labels(&second->evaluation_halves[0], pass, error);
    half.labels = NULL;
    if (rc == STOKER_OK)
        rc = first->ops->run(first->evaluation, &arenas, &half, &none, error);
    if (rc == STOKER_OK)
        rc =
            stk_arena_read(first, split->cut.host, stk_cut_output(&first->evaluation_plan, &arenas),
                           stk_cut_bytes_of(&split->cut, pass->count), error);
    if (rc != STOKER_OK)
        return rc;
    half.samples = (const float *)(const void *)split->cut.host;
    half.labels = pass->labels;
    return second->ops->run(second->evaluation, &second_arenas, &half, loss, error);
}

static int forward(struct stk_runner *runner, const struct stk_pass *pass, struct stk_loss *found,
                   stoker_error *error)
{
    struct split *const split = (struct split *)runner;
    struct stk_loss unused;
    const int rc = prepare(split, true, error);
    return rc == STOKER_OK ? run_both(split, pass, found == NULL ? &unused : found, error) : rc;
}

static void destroy(struct stk_runner *runner)
{
    struct split *const split = (struct split *)runner;
    stk_split_schedule_destroy(&split->schedule);
    stk_cut_close(&split->cut);
    stk_free(split);
}

static const struct stk_runner_ops ops = { .train = train,
                                           .drain = drain,
                                           .norm = norm,
                                           .queue_update = queue_update,
                                           .forward = forward,
                                           .destroy = destroy };

int stk_split_create(struct stk_runner **out, struct stk_stage *first, struct stk_stage *second,
                     stoker_error *error)
{
    struct split *const split = stk_calloc(1, sizeof(*split));
    if (split == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "two stages");
    split->runner = (struct stk_runner){ .ops = &ops };
    split->stages[0] = first;
    split->stages[1] = second;
    int rc = stk_cut_open(&split->cut, first, second, error);
    split->runner.crossing = split->cut.crossing;
    if (rc == STOKER_OK)
        rc = stk_split_schedule_create(&split->schedule, &split->cut, error);
    if (rc != STOKER_OK) {
        destroy(&split->runner);
        return rc;
    }
    *out = &split->runner;
    return STOKER_OK;
}
