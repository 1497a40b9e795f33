/* pipeline.c - see pipeline.h.
 *
 *   caller's thread   F: first stage's arena, slot s ── value, labels ──▶ flight s ─ post ─▶ ... await ─▶ B
 *   stage's thread                                                        FB ── gradient ──▶ arena, slot s
 *
 * Between post and await a flight and its slot of the first stage's arena are the other thread's. */
#include "trainer/pipeline.h"

#include <assert.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/backend/operands.h"
#include "trainer/stage_thread.h"

enum { SLOTS_MAX = 2 };

/* A pass, as the second stage sees it. */
struct flight {
    struct stk_pass pass; /* samples: the seam's value; both lie in staging */
    struct stk_loss loss;
    int rc;
    stoker_error error;
};

struct stk_pipeline {
    stoker_trainer *first, *second;
    struct stk_stage_thread *thread;
    struct flight flights[SLOTS_MAX];
    uint8_t *staging; /* of the second stage: [slot] { value, labels } */
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

static uint64_t flight_bytes(const stoker_trainer *second)
{
    return value_bytes(second) + aligned(most_samples(second) * label_bytes(second));
}

uint64_t stk_pipeline_bytes(const stoker_trainer *first, const stoker_trainer *second)
{
    return first->slots * flight_bytes(second);
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

/* ---- the second stage's thread --------------------------------------------------- */

static void hand_back(const struct stk_pipeline *pipeline, uint32_t slot, uint32_t count)
{
    const struct stk_plan *from = &pipeline->second->train_plan;
    const struct stk_plan *to = &pipeline->first->train_plan;
    const struct stk_arenas arenas = arenas_of_slot(pipeline->first, slot);
    memcpy(buffer_at(to, arenas.activations, to->seam_gradient),
           buffer_at(from, pipeline->second->arenas.activations, from->seam_gradient),
           count * from->buffers[from->seam_gradient].bytes_per_sample);
}

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
        hand_back(pipeline, slot, flight->pass.count);
}

/* ---- the caller's ---------------------------------------------------------------- */

static void clear(const stoker_trainer *stage)
{
    stage->ops->clear(stage->backend, stage->arenas.gradients, stage->model->parameter_floats);
}

static void add(struct stk_loss *sum, const struct stk_loss *loss)
{
    sum->loss_sum += loss->loss_sum;
    sum->correct += loss->correct;
    sum->count += loss->count;
}

/* Into the flight: the value of the seam and the labels. */
static void hand_over(const struct stk_pipeline *pipeline, struct flight *flight, uint32_t slot,
                      const struct stk_pass *pass, const struct stk_plan *plan, void *activations)
{
    const stoker_trainer *const second = pipeline->second;
    uint8_t *const value = pipeline->staging + slot * flight_bytes(second);
    uint8_t *const labels = value + value_bytes(second);
    memcpy(value, buffer_at(plan, activations, plan->output),
           pass->count * second->train_plan.sample_bytes);
    flight->pass = *pass;
    flight->pass.samples = (const float *)(const void *)value;
    if (pass->labels == NULL)
        return;
    memcpy(labels, pass->labels, pass->count * label_bytes(second));
    flight->pass.labels = labels;
}

/* The oldest under way: wait for it, then the first stage's backward. */
static int end_oldest(struct stk_pipeline *pipeline, struct stk_loss *sum, stoker_error *error)
{
    const stoker_trainer *const first = pipeline->first;
    const uint32_t index = pipeline->sent - pipeline->under_way;
    const uint32_t slot = slot_of(pipeline, index);
    struct flight *const flight = &pipeline->flights[slot];
    const struct stk_arenas arenas = arenas_of_slot(first, slot);
    struct stk_pass pass = flight->pass;
    struct stk_loss none;
    stk_stage_thread_await(pipeline->thread, index);
    pipeline->under_way--;
    if (flight->rc != STOKER_OK) {
        if (error != NULL)
            *error = flight->error;
        return flight->rc;
    }
    add(sum, &flight->loss);
    pass.samples = NULL; /* kept in the arena */
    pass.labels = NULL;
    return first->ops->run(first->backward, &arenas, &pass, &none, error);
}

static int forward_first(const struct stk_pipeline *pipeline, struct stk_program *program,
                         const struct stk_arenas *arenas, const struct stk_pass *pass,
                         stoker_error *error)
{
    struct stk_pass half = *pass;
    struct stk_loss none;
    half.labels = NULL;
    return pipeline->first->ops->run(program, arenas, &half, &none, error);
}

int stk_pipeline_pass(struct stk_pipeline *pipeline, const struct stk_pass *pass, bool opens,
                      struct stk_loss *sum, stoker_error *error)
{
    stoker_trainer *const first = pipeline->first;
    const uint32_t slot = slot_of(pipeline, pipeline->sent);
    const struct stk_arenas arenas = arenas_of_slot(first, slot);
    assert(pipeline->under_way < first->slots);
    assert(!opens || pipeline->under_way == 0);
    int rc = stk_operands_check_labels(&pipeline->second->train_plan, pass, error);
    if (rc == STOKER_OK && opens) {
        clear(first);
        clear(pipeline->second);
    }
    if (rc == STOKER_OK)
        rc = forward_first(pipeline, first->train, &arenas, pass, error);
    if (rc != STOKER_OK)
        return rc;
    hand_over(pipeline, &pipeline->flights[slot], slot, pass, &first->train_plan,
              arenas.activations);
    stk_stage_thread_post(pipeline->thread);
    pipeline->sent++;
    pipeline->under_way++;
    return pipeline->under_way < first->slots ? STOKER_OK : end_oldest(pipeline, sum, error);
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
    struct stk_arenas arenas = evaluation_arenas(first);
    struct flight flight;
    assert(pipeline->under_way == 0);
    int rc = stk_operands_check_labels(&second->evaluation_plan, pass, error);
    if (rc == STOKER_OK)
        rc = forward_first(pipeline, first->evaluation, &arenas, pass, error);
    if (rc != STOKER_OK)
        return rc;
    hand_over(pipeline, &flight, 0, pass, &first->evaluation_plan, arenas.activations);
    arenas = evaluation_arenas(second);
    return second->ops->run(second->evaluation, &arenas, &flight.pass, loss, error);
}

/* ---- create and destroy ---------------------------------------------------------- */

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
    pipeline->staging =
        second->ops->allocate(second->backend, (size_t)stk_pipeline_bytes(first, second));
    int rc = pipeline->staging == NULL ? STOKER_ENOMEM
                                       : stk_stage_thread_create(&pipeline->thread, work, pipeline);
    if (rc != STOKER_OK) {
        stk_pipeline_destroy(&pipeline);
        return stk_error_set(error, rc, STOKER_STAGE_OPTIONS, &nowhere, "two stages: %s",
                             rc == STOKER_ENOMEM ? "memory" : "a thread");
    }
    *out = pipeline;
    return STOKER_OK;
}

void stk_pipeline_destroy(struct stk_pipeline **pipeline)
{
    struct stk_pipeline *const p = *pipeline;
    if (p == NULL)
        return;
    stk_stage_thread_destroy(&p->thread);
    if (p->staging != NULL)
        p->second->ops->release(p->second->backend, p->staging);
    stk_free(p);
    *pipeline = NULL;
}
