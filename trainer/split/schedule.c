/* schedule.c - see schedule.h.
 *
 *   caller's thread   F: first stage's arena, slot s ── value, labels ──▶ flight s ─ post ─▶ ... await ─▶ B
 *   stage's thread                                                        FB ── gradient ──▶ arena, slot s
 *
 * Between post and await a flight and its slot of the first stage's arena belong to the other
 * thread. A second stage on a device needs no thread: the caller queues its passes. */
#include "trainer/split/schedule.h"

#include <assert.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/backend/common/operands.h"
#include "trainer/split/stage_thread.h"
#include "trainer/stage/runner.h"

enum { SLOTS_MAX = STK_TRANSFER_SLOTS };

/* A pass, as the second stage sees it. */
struct flight {
    struct stk_pass pass; /* samples: the cut's value; samples and labels lie in staging */
    bool opens;           /* it is the first of its group */
    struct stk_loss loss;
    int rc;
    stoker_error error;
};

struct stk_split_schedule {
    const struct stk_cut *cut;
    struct stk_stage_thread *thread; /* NULL: the second stage is on a device */
    struct flight flights[SLOTS_MAX];
    uint32_t sent;
    uint32_t under_way;
};

static uint32_t slot_of(const struct stk_split_schedule *schedule, uint32_t index)
{
    return index % schedule->cut->first->slots;
}

/* ---- the second stage, on its thread ---------------------------------------------- */

/* A stk_stage_work. */
static void work(void *argument, uint32_t index)
{
    struct stk_split_schedule *const schedule = argument;
    const struct stk_stage *const second = schedule->cut->second;
    const uint32_t slot = slot_of(schedule, index);
    struct flight *const flight = &schedule->flights[slot];
    flight->rc = second->ops->run(second->train, &second->arenas, &flight->pass, &flight->loss,
                                  &flight->error);
    if (flight->rc == STOKER_OK)
        flight->rc = stk_cut_send_gradient(schedule->cut, slot, flight->pass.count, &flight->error);
}

/* ---- the second stage, on a device ------------------------------------------------ */

static int queue_half(const struct stk_stage *stage, struct stk_program *program,
                      const struct stk_arenas *arenas, const struct stk_pass *pass, bool opens,
                      stoker_error *error)
{
    const struct stk_update update = stk_stage_update_of(stage);
    const struct stk_group_pass group = { .first = opens, .update = &update };
    return stage->ops->device->queue_step(program, arenas, pass, &group, error);
}

static int queue_second(struct stk_split_schedule *schedule, uint32_t slot, stoker_error *error)
{
    const struct stk_stage *const second = schedule->cut->second;
    const struct flight *const flight = &schedule->flights[slot];
    const int rc =
        queue_half(second, second->train, &second->arenas, &flight->pass, flight->opens, error);
    return rc == STOKER_OK ? stk_cut_send_gradient(schedule->cut, slot, flight->pass.count, error)
                           : rc;
}

/* ---- the caller's thread ----------------------------------------------------------- */

/* A device clears with the pass that opens the group. */
static void clear_gradients(const struct stk_stage *stage)
{
    if (stage->ops->clear != NULL)
        stage->ops->clear(stage->backend, stage->arenas.gradients, stage->model->parameter_floats);
}

/* Labels are copied: the batch may be gone when they are read. */
static void describe_flight(const struct stk_split_schedule *schedule, uint32_t slot,
                            const struct stk_pass *pass, bool opens, struct flight *flight)
{
    const struct stk_cut *const cut = schedule->cut;
    const struct stk_staging host = stk_cut_staging(cut, cut->host, slot);
    const bool device = stk_on_device(cut->second);
    const uint8_t *const value =
        device ? stk_cut_staging(cut, cut->device, slot).value : host.value;
    memcpy(host.labels, pass->labels, pass->count * stk_cut_label_bytes(cut->second));
    flight->pass = *pass;
    flight->pass.samples = (const float *)(const void *)value;
    flight->pass.labels = host.labels;
    flight->pass.on_device = device;
    flight->pass.host_labels = device;
    flight->pass.page_locked = device; /* the transfer's memory is */
    flight->opens = opens;
}

/* Waits for the second stage's thread, if it has one. */
static int join(struct stk_split_schedule *schedule, uint32_t index, struct stk_loss *sum,
                stoker_error *error)
{
    struct flight *const flight = &schedule->flights[slot_of(schedule, index)];
    if (schedule->thread == NULL)
        return STOKER_OK;
    stk_stage_thread_await(schedule->thread, index);
    if (flight->rc == STOKER_OK)
        stk_loss_add(sum, &flight->loss);
    else if (error != NULL)
        *error = flight->error;
    return flight->rc;
}

/* Runs or queues half a pass of the first stage. */
static int run_first(struct stk_split_schedule *schedule, struct stk_program *program,
                     uint32_t slot, const struct stk_pass *pass, bool opens, stoker_error *error)
{
    const struct stk_stage *const first = schedule->cut->first;
    const struct stk_arenas arenas = stk_cut_arenas(first, slot);
    struct stk_loss none;
    if (stk_on_device(first))
        return queue_half(first, program, &arenas, pass, opens, error);
    return first->ops->run(program, &arenas, pass, &none, error);
}

/* Ends the oldest pass under way: its gradient, then the first stage's backward. */
static int end_oldest(struct stk_split_schedule *schedule, struct stk_loss *sum,
                      stoker_error *error)
{
    const uint32_t index = schedule->sent - schedule->under_way;
    const uint32_t slot = slot_of(schedule, index);
    struct stk_pass pass = schedule->flights[slot].pass;
    schedule->under_way--;
    int rc = join(schedule, index, sum, error);
    if (rc == STOKER_OK)
        rc = stk_cut_await_gradient(schedule->cut, slot, pass.count, error);
    if (rc != STOKER_OK)
        return rc;
    pass.samples = NULL; /* kept in the arena */
    pass.labels = NULL;
    return run_first(schedule, schedule->cut->first->backward, slot, &pass, false, error);
}

/* Runs the first stage's forward, then starts the second stage. */
static int send(struct stk_split_schedule *schedule, uint32_t slot, const struct stk_pass *pass,
                bool opens, stoker_error *error)
{
    const struct stk_arenas arenas = stk_cut_arenas(schedule->cut->first, slot);
    struct stk_pass half = *pass;
    half.labels = NULL;
    int rc = run_first(schedule, schedule->cut->first->train, slot, &half, opens, error);
    if (rc == STOKER_OK)
        rc = stk_cut_cross_value(schedule->cut, slot,
                                 stk_cut_output(&schedule->cut->first->train_plan, &arenas),
                                 pass->count, error);
    if (rc != STOKER_OK)
        return rc;
    describe_flight(schedule, slot, pass, opens, &schedule->flights[slot]);
    if (schedule->thread == NULL)
        return queue_second(schedule, slot, error);
    stk_stage_thread_post(schedule->thread);
    return STOKER_OK;
}

int stk_split_schedule_pass(struct stk_split_schedule *schedule, const struct stk_pass *pass,
                            bool opens, struct stk_loss *sum, stoker_error *error)
{
    assert(schedule->under_way < schedule->cut->first->slots);
    assert(!opens || schedule->under_way == 0);
    int rc = stk_operands_check_labels(&schedule->cut->second->train_halves[0], pass, error);
    if (rc != STOKER_OK)
        return rc;
    if (opens) {
        clear_gradients(schedule->cut->first);
        clear_gradients(schedule->cut->second);
    }
    rc = send(schedule, slot_of(schedule, schedule->sent), pass, opens, error);
    if (rc != STOKER_OK)
        return rc;
    schedule->sent++;
    schedule->under_way++;
    return schedule->under_way < schedule->cut->first->slots ? STOKER_OK
                                                             : end_oldest(schedule, sum, error);
}

int stk_split_schedule_drain(struct stk_split_schedule *schedule, struct stk_loss *sum,
                             stoker_error *error)
{
    int rc = STOKER_OK;
    while (schedule->under_way > 0) {
        const int ended = end_oldest(schedule, sum, rc == STOKER_OK ? error : NULL);
        rc = rc == STOKER_OK ? ended : rc;
    }
    return rc;
}

/* ---- create and destroy ---------------------------------------------------------- */

int stk_split_schedule_create(struct stk_split_schedule **out, const struct stk_cut *cut,
                              stoker_error *error)
{
    struct stk_split_schedule *schedule = stk_calloc(1, sizeof(*schedule));
    if (schedule == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "two stages");
    assert(cut->first->slots <= SLOTS_MAX);
    schedule->cut = cut;
    const int rc = stk_on_device(cut->second)
                       ? STOKER_OK
                       : stk_stage_thread_create(&schedule->thread, work, schedule);
    if (rc == STOKER_OK) {
        *out = schedule;
        return STOKER_OK;
    }
    stk_free(schedule);
    return stk_refuse_option(error, rc, "two stages: %s",
                             rc == STOKER_ENOMEM ? "memory" : "a thread");
}

void stk_split_schedule_destroy(struct stk_split_schedule **schedule)
{
    if (*schedule == NULL)
        return;
    stk_stage_thread_destroy(&(*schedule)->thread);
    stk_free(*schedule);
    *schedule = NULL;
}
