/* one_stage.c - the runner of a trainer on one device: runs or queues one pass at a time. */
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/backend/common/watch.h"
#include "trainer/stage/runner.h"

struct one_stage {
    struct stk_runner runner; /* first */
    struct stk_stage *stage;
};

static struct stk_stage *stage_of(struct stk_runner *runner)
{
    return ((struct one_stage *)runner)->stage;
}

static void add_floats(float *restrict sum, const float *restrict part, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        sum[i] += part[i];
}

/* The watch of a pass whose gradients are added to the group's slice by slice. */
struct adding {
    const struct stk_stage *stage;
    const struct stk_pass_watch *watch;
};

static void add_slice(void *context, uint32_t slice)
{
    const struct adding *const adding = context;
    const struct stk_slice *const floats = &adding->watch->slices->slices[slice];
    add_floats(adding->stage->arenas.gradients + floats->first,
               adding->stage->pass_gradients + floats->first, floats->count);
    adding->watch->ready(adding->watch->context, slice);
}

static void poll(void *context)
{
    const struct adding *const adding = context;
    stk_watch_poll(adding->watch);
}

/* Runs a pass whose gradients are summed apart. */
static int run_apart(const struct stk_stage *stage, const struct stk_arenas *arenas,
                     const struct stk_pass *pass, struct stk_loss *loss, stoker_error *error)
{
    struct adding adding = { .stage = stage, .watch = pass->watch };
    struct stk_pass_watch watch = { .ready = add_slice, .poll = poll, .context = &adding };
    struct stk_pass watched = *pass;
    if (pass->watch != NULL) {
        watch.slices = pass->watch->slices;
        watched.watch = &watch;
    }
    const int rc = stage->ops->run(stage->train, arenas, &watched, loss, error);
    if (rc == STOKER_OK && pass->watch == NULL)
        add_floats(stage->arenas.gradients, stage->pass_gradients, stage->model->parameter_floats);
    return rc;
}

/* A later pass of a group is summed by itself if the stage does so. */
static int run_pass(const struct stk_stage *stage, const struct stk_pass *pass, bool opens,
                    struct stk_loss *found, stoker_error *error)
{
    uint32_t reported = 0;
    const uint64_t floats = stage->model->parameter_floats;
    struct stk_arenas arenas = stage->arenas;
    struct stk_loss loss = { 0 };
    const bool apart = !opens && stage->pass_gradients != NULL;
    if (apart)
        arenas.gradients = stage->pass_gradients;
    if (opens || apart)
        stage->ops->clear(stage->backend, arenas.gradients, floats);
    if (pass->count == 0 && pass->sums == NULL) {
        stk_watch_complete(pass->watch, &reported, UINT32_MAX);
        return STOKER_OK;
    }
    const int rc = apart ? run_apart(stage, &arenas, pass, &loss, error)
                         : stage->ops->run(stage->train, &arenas, pass, &loss, error);
    if (rc != STOKER_OK)
        return rc;
    stk_loss_add(found, &loss);
    return STOKER_OK;
}

/* Queues a pass, and after the last of its group the update. */
static int queue(const struct stk_stage *stage, const struct stk_pass *pass,
                 const struct stk_group_pass *group, stoker_error *error)
{
    const struct stk_update update = stk_stage_update_of(stage);
    struct stk_group_pass queued = *group;
    queued.update = &update;
    return stage->ops->device->queue_step(stage->train, &stage->arenas, pass, &queued, error);
}

static int train(struct stk_runner *runner, const struct stk_pass *pass,
                 const struct stk_group_pass *group, struct stk_loss *found, stoker_error *error)
{
    struct stk_stage *const stage = stage_of(runner);
    int rc = stk_stage_refill(stage, error);
    if (rc == STOKER_OK)
        rc = stk_stage_round_weights(stage, stage->arenas.parameters, error);
    if (rc != STOKER_OK)
        return rc;
    return stage->ops->device == NULL ? run_pass(stage, pass, group->first, found, error)
                                      : queue(stage, pass, group, error);
}

/* Nothing is under way between two calls, or the device's stream keeps the order. */
static int drain(struct stk_runner *runner, struct stk_loss *found, stoker_error *error)
{
    (void)runner;
    (void)found;
    (void)error;
    return STOKER_OK;
}

static int norm(struct stk_runner *runner, double *squared, bool *finite, stoker_error *error)
{
    const struct stk_stage *const stage = stage_of(runner);
    (void)error;
    *squared = stage->ops->norm_squared(stage->backend, stage->arenas.gradients,
                                        stage->model->parameter_floats, finite);
    return STOKER_OK;
}

/* The group's last pass has queued it, if there was one, and the sum over the ranks before it. */
static int queue_update(struct stk_runner *runner, uint64_t samples, bool early,
                        stoker_error *error)
{
    const struct stk_stage *const stage = stage_of(runner);
    const struct stk_update update = stk_stage_update_of(stage);
    if (!early)
        return STOKER_OK;
    const int rc = stage->ops->device->sum(stage->backend, stage->arenas.gradients,
                                           stage->model->parameter_floats, error);
    return rc == STOKER_OK
               ? stage->ops->device->queue_update(stage->backend, &update, samples, error)
               : rc;
}

static int forward(struct stk_runner *runner, const struct stk_pass *pass, struct stk_loss *found,
                   stoker_error *error)
{
    struct stk_stage *const stage = stage_of(runner);
    struct stk_loss loss;
    int rc = stk_stage_refill(stage, error);
    const struct stk_arenas arenas = stk_stage_evaluation_arenas(stage);
    if (rc == STOKER_OK)
        rc = stk_stage_round_weights(stage, arenas.parameters, error);
    if (rc != STOKER_OK)
        return rc;
    if (found == NULL && runner->queues_forward)
        return stage->ops->device->queue_forward(stage->evaluation, &arenas, pass, error);
    rc = stage->ops->run(stage->evaluation, &arenas, pass, &loss, error);
    if (rc == STOKER_OK && found != NULL)
        *found = loss;
    return rc;
}

static void destroy(struct stk_runner *runner)
{
    stk_free(runner);
}

static const struct stk_runner_ops ops = { .train = train,
                                           .drain = drain,
                                           .norm = norm,
                                           .queue_update = queue_update,
                                           .forward = forward,
                                           .destroy = destroy };

int stk_one_stage_create(struct stk_runner **out, struct stk_stage *stage, stoker_error *error)
{
    struct one_stage *const one = stk_calloc(1, sizeof(*one));
    if (one == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "a runner");
    one->stage = stage;
    one->runner = (struct stk_runner){ .ops = &ops,
                                       .takes_device_batches = stage->ops->device != NULL,
                                       .queues_forward = stage->ops->device != NULL };
    *out = &one->runner;
    return STOKER_OK;
}
