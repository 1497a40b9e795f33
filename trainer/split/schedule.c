/* schedule.c - see schedule.h.
 *
 *   caller's thread   F: first stage's arena, slot s ── value, labels ──▶ flight s ─ post ─▶ ... await ─▶ B
 *   stage's thread                                                        FB ── gradient ──▶ arena, slot s
 *
 * Between post and await a flight and its slot of the first stage's arena are the other thread's. A stage on a
 * device (backend.h, crossing.h) needs no thread, its passes are queued by the caller; how value and gradient cross:
 *
 *   first    second    value                                      gradient
 *   host     host      copied                                     copied
 *   device   host      out to staging, the host waits             copied to staging, in
 *   host     device    copied to staging, in                      out to staging; the host waits when it needs it
 *   device   device    over                                       over; nobody waits
 */
#include "trainer/split/schedule.h"

#include <assert.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/backend/common/operands.h"
#include "trainer/split/stage_thread.h"
#include "trainer/stage/view.h"

enum { SLOTS_MAX = STK_CROSSING_SLOTS };

/* A pass, as the second stage sees it. */
struct flight {
    struct stk_pass pass; /* samples: the seam's value; both lie in staging */
    bool opens;           /* its group */
    struct stk_loss loss;
    int rc;
    stoker_error error;
};

/* Where things lie for one slot. */
struct staging {
    uint8_t *value, *labels, *gradient;
};

struct stk_pipeline {
    stoker_trainer *first, *second;
    struct stk_crossing *crossing[2]; /* of first and second; NULL: its memory is the host's */
    struct stk_stage_thread *thread;  /* NULL: the second stage is on a device */
    struct flight flights[SLOTS_MAX];
    uint8_t *host;   /* [slot] { value, labels, gradient }; page-locked beside one device */
    uint8_t *device; /* the same, of the second stage's device */
    uint32_t sent;
    uint32_t under_way;
};

/* ---- places ---------------------------------------------------------------------- */

static uint64_t most_samples(const stoker_trainer *second)
{
    const uint32_t train = second->train_plan.options.batch;
    const uint32_t evaluation = second->evaluation_plan.options.batch;
    return train > evaluation ? train : evaluation;
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static uint64_t label_bytes(const stoker_trainer *second)
{
    const struct stk_layer *loss = &second->model->layers[second->model->layer_count - 1];
    return loss->kind == STK_MSE ? stk_shape_elements(loss->in) * sizeof(float) : sizeof(int64_t);
}

static uint64_t value_bytes(const stoker_trainer *second)
{
    return aligned(most_samples(second) * second->train_plan.sample_bytes);
}

static uint64_t slot_bytes(const stoker_trainer *second)
{
    return 2 * value_bytes(second) + aligned(most_samples(second) * label_bytes(second));
}

static bool on_device(const stoker_trainer *stage)
{
    return stage->ops->crossing != NULL;
}

void stk_pipeline_bytes(const stoker_trainer *first, const stoker_trainer *second,
                        uint64_t bytes[2])
{
    const uint64_t all = first->slots * slot_bytes(second);
    bytes[0] = !on_device(first) && on_device(second) ? all : 0;
    bytes[1] = all;
}

/* base: host or device of the pipeline. */
static struct staging staging_of(const struct stk_pipeline *pipeline, uint8_t *base, uint32_t slot)
{
    const stoker_trainer *const second = pipeline->second;
    assert(base != NULL);
    struct staging staging = { .value = base + slot * slot_bytes(second) };
    staging.gradient = staging.value + value_bytes(second);
    staging.labels = staging.gradient + value_bytes(second);
    return staging;
}

static uint32_t slot_of(const struct stk_pipeline *pipeline, uint32_t index)
{
    return index % pipeline->first->slots;
}

static void *buffer_at(const struct stk_plan *plan, void *activations, int32_t buffer)
{
    assert(buffer >= 0);
    return (uint8_t *)activations + plan->buffers[buffer].offset;
}

static struct stk_arenas arenas_of_slot(const stoker_trainer *first, uint32_t slot)
{
    struct stk_arenas arenas = first->arenas;
    arenas.activations = (uint8_t *)arenas.activations + slot * first->slot_bytes;
    return arenas;
}

/* The gradient of the seam's value, in the second stage and, where it goes, in the first. */
static void *gradient_from(const struct stk_pipeline *pipeline)
{
    const struct stk_plan *plan = &pipeline->second->train_plan;
    return buffer_at(plan, pipeline->second->arenas.activations, plan->seam_gradient);
}

static void *gradient_to(const struct stk_pipeline *pipeline, uint32_t slot)
{
    const struct stk_plan *plan = &pipeline->first->train_plan;
    return buffer_at(plan, arenas_of_slot(pipeline->first, slot).activations, plan->seam_gradient);
}

static size_t crossing_bytes(const struct stk_pipeline *pipeline, uint32_t count)
{
    return count * pipeline->second->train_plan.sample_bytes;
}

/* ---- the second stage, on its thread ---------------------------------------------- */

/* A stk_stage_work. */
static void work(void *argument, uint32_t index)
{
    struct stk_pipeline *const pipeline = argument;
    const stoker_trainer *const second = pipeline->second;
    const uint32_t slot = slot_of(pipeline, index);
    struct flight *const flight = &pipeline->flights[slot];
    flight->rc = second->ops->run(second->train, &second->arenas, &flight->pass, &flight->loss,
                                  &flight->error);
    if (flight->rc == STOKER_OK)
        memcpy(on_device(pipeline->first) ? staging_of(pipeline, pipeline->host, slot).gradient
                                          : gradient_to(pipeline, slot),
               gradient_from(pipeline), crossing_bytes(pipeline, flight->pass.count));
}

/* ---- the second stage, on a device ------------------------------------------------ */

static int queue_half(const stoker_trainer *stage, struct stk_program *program,
                      const struct stk_arenas *arenas, const struct stk_pass *pass, bool opens,
                      stoker_error *error)
{
    const struct stk_update update = stk_trainer_update_of(stage);
    const struct stk_group_pass group = { .first = opens, .update = &update };
    return stage->ops->step(program, arenas, pass, &group, error);
}

static int queue_second(struct stk_pipeline *pipeline, uint32_t slot, stoker_error *error)
{
    const stoker_trainer *const second = pipeline->second;
    const struct stk_crossing_ops *const ops = second->ops->crossing;
    const struct flight *const flight = &pipeline->flights[slot];
    void *const via = staging_of(pipeline, pipeline->device, slot).gradient;
    const size_t bytes = crossing_bytes(pipeline, flight->pass.count);
    const int rc =
        queue_half(second, second->train, &second->arenas, &flight->pass, flight->opens, error);
    if (rc != STOKER_OK)
        return rc;
    if (on_device(pipeline->first))
        return ops->over(pipeline->crossing[0], pipeline->crossing[1], slot,
                         gradient_to(pipeline, slot), gradient_from(pipeline), via, bytes, error);
    return ops->out(pipeline->crossing[1], slot,
                    staging_of(pipeline, pipeline->host, slot).gradient, gradient_from(pipeline),
                    via, bytes, error);
}

/* ---- the caller's ---------------------------------------------------------------- */

/* A device does it with the pass that opens the group. */
static void clear(const stoker_trainer *stage)
{
    if (stage->ops->clear != NULL)
        stage->ops->clear(stage->backend, stage->arenas.gradients, stage->model->parameter_floats);
}

static void add(struct stk_loss *sum, const struct stk_loss *loss)
{
    sum->loss_sum += loss->loss_sum;
    sum->correct += loss->correct;
    sum->count += loss->count;
}

/* The value of the seam to where the second stage reads it. */
static int cross_value(struct stk_pipeline *pipeline, uint32_t slot, void *from, uint32_t count,
                       stoker_error *error)
{
    const struct stk_crossing_ops *const first = pipeline->first->ops->crossing;
    const struct stk_crossing_ops *const second = pipeline->second->ops->crossing;
    struct stk_crossing *const *const crossing = pipeline->crossing;
    const size_t bytes = crossing_bytes(pipeline, count);
    void *const host = staging_of(pipeline, pipeline->host, slot).value;
    void *const device = second == NULL ? NULL : staging_of(pipeline, pipeline->device, slot).value;
    int rc = STOKER_OK;
    if (first == NULL)
        memcpy(host, from, bytes);
    else if (second == NULL)
        rc = first->out(crossing[0], slot, host, from, NULL, bytes, error);
    else
        rc = second->over(crossing[1], crossing[0], slot, device, from, NULL, bytes, error);
    if (rc == STOKER_OK && first != NULL && second == NULL)
        rc = first->await(crossing[0], slot, error);
    if (rc == STOKER_OK && first == NULL && second != NULL)
        rc = second->in(crossing[1], slot, device, host, bytes, error);
    if (rc == STOKER_OK && second != NULL)
        rc = second->follow(crossing[1], slot, error);
    return rc;
}

/* Labels are copied: the batch may be gone when they are read. */
static void describe_flight(const struct stk_pipeline *pipeline, uint32_t slot,
                            const struct stk_pass *pass, bool opens, struct flight *flight)
{
    const struct staging host = staging_of(pipeline, pipeline->host, slot);
    const bool device = on_device(pipeline->second);
    const uint8_t *const value =
        device ? staging_of(pipeline, pipeline->device, slot).value : host.value;
    memcpy(host.labels, pass->labels, pass->count * label_bytes(pipeline->second));
    flight->pass = *pass;
    flight->pass.samples = (const float *)(const void *)value;
    flight->pass.labels = host.labels;
    flight->pass.on_device = device;
    flight->pass.host_labels = device;
    flight->pass.page_locked = device; /* the crossing's memory is */
    flight->opens = opens;
}

/* The gradient is in the first stage's arena, or its stream waits for that. */
static int await_gradient(struct stk_pipeline *pipeline, uint32_t slot, stoker_error *error)
{
    const struct stk_crossing_ops *const first = pipeline->first->ops->crossing;
    const struct stk_crossing_ops *const second = pipeline->second->ops->crossing;
    const size_t bytes = crossing_bytes(pipeline, pipeline->flights[slot].pass.count);
    void *const host = staging_of(pipeline, pipeline->host, slot).gradient;
    void *const to = gradient_to(pipeline, slot);
    int rc = STOKER_OK;
    if (first != NULL && second == NULL)
        rc = first->in(pipeline->crossing[0], slot, to, host, bytes, error);
    if (rc == STOKER_OK && first != NULL)
        return first->follow(pipeline->crossing[0], slot, error);
    if (second == NULL)
        return rc;
    rc = second->await(pipeline->crossing[1], slot, error);
    if (rc == STOKER_OK)
        memcpy(to, host, bytes);
    return rc;
}

/* Wait for the second stage's thread, if it has one. */
static int join(struct stk_pipeline *pipeline, uint32_t index, struct stk_loss *sum,
                stoker_error *error)
{
    struct flight *const flight = &pipeline->flights[slot_of(pipeline, index)];
    if (pipeline->thread == NULL)
        return STOKER_OK;
    stk_stage_thread_await(pipeline->thread, index);
    if (flight->rc == STOKER_OK)
        add(sum, &flight->loss);
    else if (error != NULL)
        *error = flight->error;
    return flight->rc;
}

/* Half a pass of the first stage. */
static int run_first(struct stk_pipeline *pipeline, struct stk_program *program, uint32_t slot,
                     const struct stk_pass *pass, bool opens, stoker_error *error)
{
    const stoker_trainer *const first = pipeline->first;
    const struct stk_arenas arenas = arenas_of_slot(first, slot);
    struct stk_loss none;
    if (on_device(first))
        return queue_half(first, program, &arenas, pass, opens, error);
    return first->ops->run(program, &arenas, pass, &none, error);
}

/* The oldest under way: its gradient, then the first stage's backward. */
static int end_oldest(struct stk_pipeline *pipeline, struct stk_loss *sum, stoker_error *error)
{
    const uint32_t index = pipeline->sent - pipeline->under_way;
    const uint32_t slot = slot_of(pipeline, index);
    struct stk_pass pass = pipeline->flights[slot].pass;
    pipeline->under_way--;
    int rc = join(pipeline, index, sum, error);
    if (rc == STOKER_OK)
        rc = await_gradient(pipeline, slot, error);
    if (rc != STOKER_OK)
        return rc;
    pass.samples = NULL; /* kept in the arena */
    pass.labels = NULL;
    return run_first(pipeline, pipeline->first->backward, slot, &pass, false, error);
}

/* The first stage's forward, and the second stage is set to work. */
static int send(struct stk_pipeline *pipeline, uint32_t slot, const struct stk_pass *pass,
                bool opens, stoker_error *error)
{
    const struct stk_plan *plan = &pipeline->first->train_plan;
    const struct stk_arenas arenas = arenas_of_slot(pipeline->first, slot);
    struct stk_pass half = *pass;
    half.labels = NULL;
    int rc = run_first(pipeline, pipeline->first->train, slot, &half, opens, error);
    if (rc == STOKER_OK)
        rc = cross_value(pipeline, slot, buffer_at(plan, arenas.activations, plan->output),
                         pass->count, error);
    if (rc != STOKER_OK)
        return rc;
    describe_flight(pipeline, slot, pass, opens, &pipeline->flights[slot]);
    if (pipeline->thread == NULL)
        return queue_second(pipeline, slot, error);
    stk_stage_thread_post(pipeline->thread);
    return STOKER_OK;
}

int stk_pipeline_pass(struct stk_pipeline *pipeline, const struct stk_pass *pass, bool opens,
                      struct stk_loss *sum, stoker_error *error)
{
    assert(pipeline->under_way < pipeline->first->slots);
    assert(!opens || pipeline->under_way == 0);
    int rc = stk_operands_check_labels(&pipeline->second->train_halves[0], pass, error);
    if (rc != STOKER_OK)
        return rc;
    if (opens) {
        clear(pipeline->first);
        clear(pipeline->second);
    }
    rc = send(pipeline, slot_of(pipeline, pipeline->sent), pass, opens, error);
    if (rc != STOKER_OK)
        return rc;
    pipeline->sent++;
    pipeline->under_way++;
    return pipeline->under_way < pipeline->first->slots ? STOKER_OK
                                                        : end_oldest(pipeline, sum, error);
}

int stk_pipeline_drain(struct stk_pipeline *pipeline, struct stk_loss *sum, stoker_error *error)
{
    int rc = STOKER_OK;
    while (pipeline->under_way > 0) {
        const int ended = end_oldest(pipeline, sum, rc == STOKER_OK ? error : NULL);
        rc = rc == STOKER_OK ? ended : rc;
    }
    return rc;
}

static struct stk_arenas evaluation_arenas(const stoker_trainer *stage)
{
    struct stk_arenas arenas = stage->arenas;
    arenas.gradients = NULL;
    if (stage->ema != NULL)
        arenas.parameters = stage->ema;
    return arenas;
}

int stk_pipeline_forward(struct stk_pipeline *pipeline, const struct stk_pass *pass,
                         struct stk_loss *loss, stoker_error *error)
{
    const stoker_trainer *const first = pipeline->first;
    const stoker_trainer *const second = pipeline->second;
    const struct stk_plan *plan = &first->evaluation_plan;
    const struct stk_arenas arenas = evaluation_arenas(first);
    const struct stk_arenas second_arenas = evaluation_arenas(second);
    struct stk_pass half = *pass;
    struct stk_loss none;
    assert(pipeline->under_way == 0);
    int rc = stk_operands_check_labels(&second->evaluation_halves[0], pass, error);
    half.labels = NULL;
    if (rc == STOKER_OK)
        rc = first->ops->run(first->evaluation, &arenas, &half, &none, error);
    if (rc == STOKER_OK)
        rc =
            stk_arena_read(first, pipeline->host, buffer_at(plan, arenas.activations, plan->output),
                           crossing_bytes(pipeline, pass->count), error);
    if (rc != STOKER_OK)
        return rc;
    half.samples = (const float *)(const void *)pipeline->host;
    half.labels = pass->labels;
    return second->ops->run(second->evaluation, &second_arenas, &half, loss, error);
}

/* ---- norms ----------------------------------------------------------------------- */

/* A device's into *norm, and the host's to where the device looks for it; the host waits. */
static int exchange_with_host(const stoker_trainer *stage, const struct stk_norm *host,
                              struct stk_norm *norm, stoker_error *error)
{
    const struct stk_crossing_ops *const ops = stage->ops->crossing;
    int rc = stage->ops->download(stage->backend, norm, ops->own_norm(stage->backend),
                                  STK_NORM_BYTES, error);
    if (rc == STOKER_OK)
        rc = stage->ops->upload(stage->backend, ops->other_norm(stage->backend), host,
                                STK_NORM_BYTES, error);
    return rc;
}

/* Each of two devices gets the other's. */
static int exchange_over(struct stk_pipeline *pipeline, stoker_error *error)
{
    const struct stk_crossing_ops *const ops = pipeline->first->ops->crossing;
    struct stk_backend *const backends[2] = { pipeline->first->backend, pipeline->second->backend };
    int rc = STOKER_OK;
    for (int s = 0; s < 2 && rc == STOKER_OK; s++)
        rc = ops->over(pipeline->crossing[s], pipeline->crossing[1 - s], 0,
                       ops->other_norm(backends[s]), ops->own_norm(backends[1 - s]), NULL,
                       STK_NORM_BYTES, error);
    for (int s = 0; s < 2 && rc == STOKER_OK; s++)
        rc = ops->follow(pipeline->crossing[s], 0, error);
    return rc;
}

static int queue_norm(const stoker_trainer *stage, stoker_error *error)
{
    const struct stk_update update = stk_trainer_update_of(stage);
    return on_device(stage) ? stage->ops->norm(stage->backend, &update, error) : STOKER_OK;
}

int stk_pipeline_norm(struct stk_pipeline *pipeline, double *squared, bool *finite,
                      stoker_error *error)
{
    const stoker_trainer *const stages[2] = { pipeline->first, pipeline->second };
    struct stk_norm norms[2] = { { .finite = 1 }, { .finite = 1 } };
    int rc = STOKER_OK;
    for (int s = 0; s < 2 && rc == STOKER_OK; s++)
        rc = queue_norm(stages[s], error);
    if (rc == STOKER_OK && on_device(stages[0]) && on_device(stages[1]))
        return exchange_over(pipeline, error);
    for (int s = 0; s < 2; s++)
        if (!on_device(stages[s])) {
            bool all = true;
            norms[s].squared =
                stages[s]->ops->norm_squared(stages[s]->backend, stages[s]->arenas.gradients,
                                             stages[s]->model->parameter_floats, &all);
            norms[s].finite = all ? 1 : 0;
        }
    for (int s = 0; s < 2 && rc == STOKER_OK; s++)
        if (on_device(stages[s]))
            rc = exchange_with_host(stages[s], &norms[1 - s], &norms[s], error);
    *squared = norms[0].squared + norms[1].squared;
    *finite = norms[0].finite != 0 && norms[1].finite != 0;
    return rc;
}

/* ---- create and destroy ---------------------------------------------------------- */

/* Page-locked beside one device; beside two it is for evaluations only. */
static struct stk_crossing *locks(const struct stk_pipeline *pipeline,
                                  const struct stk_crossing_ops **ops)
{
    const int s = pipeline->crossing[0] != NULL ? 0 : 1;
    *ops = (s == 0 ? pipeline->first : pipeline->second)->ops->crossing;
    return pipeline->crossing[1 - s] == NULL ? pipeline->crossing[s] : NULL;
}

static int take_staging(struct stk_pipeline *pipeline)
{
    const stoker_trainer *const second = pipeline->second;
    const struct stk_crossing_ops *ops = NULL;
    struct stk_crossing *const locking = locks(pipeline, &ops);
    uint64_t bytes[2];
    stk_pipeline_bytes(pipeline->first, second, bytes);
    pipeline->host = locking == NULL ? stk_calloc(1, (size_t)bytes[1])
                                     : ops->allocate(locking, (size_t)bytes[1]);
    if (on_device(second))
        pipeline->device = second->ops->allocate(second->backend, (size_t)bytes[1]);
    return pipeline->host == NULL || (on_device(second) && pipeline->device == NULL) ? STOKER_ENOMEM
                                                                                     : STOKER_OK;
}

static int make_crossings(struct stk_pipeline *pipeline, stoker_error *error)
{
    stoker_trainer *const stages[2] = { pipeline->first, pipeline->second };
    int rc = STOKER_OK;
    for (int s = 0; s < 2 && rc == STOKER_OK; s++)
        if (on_device(stages[s]))
            rc =
                stages[s]->ops->crossing->create(&pipeline->crossing[s], stages[s]->backend, error);
    return rc;
}

static int make(struct stk_pipeline *pipeline, stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    int rc = make_crossings(pipeline, error);
    if (rc != STOKER_OK)
        return rc;
    rc = take_staging(pipeline);
    if (rc == STOKER_OK && !on_device(pipeline->second))
        rc = stk_stage_thread_create(&pipeline->thread, work, pipeline);
    return rc == STOKER_OK
               ? rc
               : stk_error_set(error, rc, STOKER_STAGE_OPTIONS, &nowhere, "two stages: %s",
                               rc == STOKER_ENOMEM ? "memory" : "a thread");
}

int stk_pipeline_create(struct stk_pipeline **out, stoker_trainer *first, stoker_trainer *second,
                        stoker_error *error)
{
    const struct stk_place nowhere = STK_NOWHERE;
    struct stk_pipeline *pipeline = stk_calloc(1, sizeof(*pipeline));
    if (pipeline == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPTIONS, &nowhere, "two stages");
    assert(first->slots <= SLOTS_MAX);
    pipeline->first = first;
    pipeline->second = second;
    const int rc = make(pipeline, error);
    if (rc == STOKER_OK)
        *out = pipeline;
    else
        stk_pipeline_destroy(&pipeline);
    return rc;
}

void stk_pipeline_destroy(struct stk_pipeline **pipeline)
{
    struct stk_pipeline *const p = *pipeline;
    const struct stk_crossing_ops *ops = NULL;
    if (p == NULL)
        return;
    struct stk_crossing *const locking = locks(p, &ops);
    stk_stage_thread_destroy(&p->thread);
    if (p->host != NULL && locking != NULL)
        ops->release(locking, p->host);
    else
        stk_free(p->host);
    for (int s = 0; s < 2; s++)
        if (p->crossing[s] != NULL)
            (s == 0 ? p->first : p->second)->ops->crossing->destroy(p->crossing[s]);
    if (p->device != NULL)
        p->second->ops->release(p->second->backend, p->device);
    stk_free(p);
    *pipeline = NULL;
}
