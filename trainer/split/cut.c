/* cut.c - see cut.h. */
#include "trainer/split/cut.h"

#include <assert.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

/* ---- sizes and addresses ---------------------------------------------------------- */

static uint64_t most_samples(const struct stk_stage *second)
{
    const uint32_t train = second->train_plan.options.batch;
    const uint32_t evaluation = second->evaluation_plan.options.batch;
    return train > evaluation ? train : evaluation;
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

uint64_t stk_cut_label_bytes(const struct stk_stage *second)
{
    const struct stk_layer *loss = &second->model->layers[second->model->layer_count - 1];
    return loss->kind == STK_MSE ? stk_shape_elements(loss->in) * sizeof(float) : sizeof(int64_t);
}

static uint64_t value_bytes(const struct stk_stage *second)
{
    return aligned(most_samples(second) * second->train_plan.sample_bytes);
}

static uint64_t slot_bytes(const struct stk_stage *second)
{
    return 2 * value_bytes(second) + aligned(most_samples(second) * stk_cut_label_bytes(second));
}

/* Bytes of staging beside each stage. */
static void staging_bytes(const struct stk_stage *first, const struct stk_stage *second,
                          uint64_t bytes[2])
{
    const uint64_t all = first->slots * slot_bytes(second);
    bytes[0] = !stk_on_device(first) && stk_on_device(second) ? all : 0;
    bytes[1] = all;
}

struct stk_staging stk_cut_staging(const struct stk_cut *cut, uint8_t *base, uint32_t slot)
{
    const struct stk_stage *const second = cut->second;
    assert(base != NULL);
    struct stk_staging staging = { .value = base + slot * slot_bytes(second) };
    staging.gradient = staging.value + value_bytes(second);
    staging.labels = staging.gradient + value_bytes(second);
    return staging;
}

static void *buffer_at(const struct stk_plan *plan, void *activations, int32_t buffer)
{
    assert(buffer >= 0);
    return (uint8_t *)activations + plan->buffers[buffer].offset;
}

void *stk_cut_output(const struct stk_plan *plan, const struct stk_arenas *arenas)
{
    return buffer_at(plan, arenas->activations, plan->output);
}

struct stk_arenas stk_cut_arenas(const struct stk_stage *first, uint32_t slot)
{
    struct stk_arenas arenas = first->arenas;
    arenas.activations = (uint8_t *)arenas.activations + slot * first->slot_bytes;
    return arenas;
}

/* The gradient of the value: its source in the second stage, and its destination in the first. */
static void *gradient_from(const struct stk_cut *cut)
{
    const struct stk_plan *plan = &cut->second->train_plan;
    return buffer_at(plan, cut->second->arenas.activations, plan->cut_gradient);
}

static void *gradient_to(const struct stk_cut *cut, uint32_t slot)
{
    const struct stk_plan *plan = &cut->first->train_plan;
    return buffer_at(plan, stk_cut_arenas(cut->first, slot).activations, plan->cut_gradient);
}

size_t stk_cut_bytes_of(const struct stk_cut *cut, uint32_t count)
{
    return count * cut->second->train_plan.sample_bytes;
}

/* ---- copies ------------------------------------------------------------------------ */

int stk_cut_cross_value(const struct stk_cut *cut, uint32_t slot, const void *from, uint32_t count,
                        stoker_error *error)
{
    const struct stk_transfer_ops *const first = stk_transfer_of(cut->first->ops);
    const struct stk_transfer_ops *const second = stk_transfer_of(cut->second->ops);
    struct stk_transfer *const *const transfer = cut->transfer;
    const size_t bytes = stk_cut_bytes_of(cut, count);
    void *const host = stk_cut_staging(cut, cut->host, slot).value;
    void *const device = second == NULL ? NULL : stk_cut_staging(cut, cut->device, slot).value;
    int rc = STOKER_OK;
    if (first == NULL)
        memcpy(host, from, bytes);
    else if (second == NULL)
        rc = first->to_host(transfer[0], slot, host, from, NULL, bytes, error);
    else
        rc = second->from_peer(transfer[1], transfer[0], slot, device, from, NULL, bytes, error);
    if (rc == STOKER_OK && first != NULL && second == NULL)
        rc = first->wait(transfer[0], slot, error);
    if (rc == STOKER_OK && first == NULL && second != NULL)
        rc = second->from_host(transfer[1], slot, device, host, bytes, error);
    if (rc == STOKER_OK && second != NULL)
        rc = second->stream_wait(transfer[1], slot, error);
    return rc;
}

int stk_cut_send_gradient(const struct stk_cut *cut, uint32_t slot, uint32_t count,
                          stoker_error *error)
{
    const struct stk_transfer_ops *const second = stk_transfer_of(cut->second->ops);
    const size_t bytes = stk_cut_bytes_of(cut, count);
    void *const from = gradient_from(cut);
    if (second == NULL) {
        memcpy(stk_on_device(cut->first) ? stk_cut_staging(cut, cut->host, slot).gradient
                                         : gradient_to(cut, slot),
               from, bytes);
        return STOKER_OK;
    }
    void *const via = stk_cut_staging(cut, cut->device, slot).gradient;
    if (stk_on_device(cut->first))
        return second->from_peer(cut->transfer[0], cut->transfer[1], slot, gradient_to(cut, slot),
                                 from, via, bytes, error);
    return second->to_host(cut->transfer[1], slot, stk_cut_staging(cut, cut->host, slot).gradient,
                           from, via, bytes, error);
}

int stk_cut_await_gradient(const struct stk_cut *cut, uint32_t slot, uint32_t count,
                           stoker_error *error)
{
    const struct stk_transfer_ops *const first = stk_transfer_of(cut->first->ops);
    const struct stk_transfer_ops *const second = stk_transfer_of(cut->second->ops);
    const size_t bytes = stk_cut_bytes_of(cut, count);
    void *const host = stk_cut_staging(cut, cut->host, slot).gradient;
    void *const to = gradient_to(cut, slot);
    int rc = STOKER_OK;
    if (first != NULL && second == NULL)
        rc = first->from_host(cut->transfer[0], slot, to, host, bytes, error);
    if (rc == STOKER_OK && first != NULL)
        return first->stream_wait(cut->transfer[0], slot, error);
    if (second == NULL)
        return rc;
    rc = second->wait(cut->transfer[1], slot, error);
    if (rc == STOKER_OK)
        memcpy(to, host, bytes);
    return rc;
}

/* ---- open and close ----------------------------------------------------------------- */

/* Memory is page-locked if exactly one stage is on a device; between two it is for evaluations
 * only. */
static struct stk_transfer *locks(const struct stk_cut *cut, const struct stk_transfer_ops **ops)
{
    const int s = cut->transfer[0] != NULL ? 0 : 1;
    *ops = stk_transfer_of((s == 0 ? cut->first : cut->second)->ops);
    return cut->transfer[1 - s] == NULL ? cut->transfer[s] : NULL;
}

static int take_staging(struct stk_cut *cut)
{
    const struct stk_stage *const second = cut->second;
    const struct stk_transfer_ops *ops = NULL;
    struct stk_transfer *const locking = locks(cut, &ops);
    uint64_t bytes[2];
    staging_bytes(cut->first, second, bytes);
    cut->host = locking == NULL ? stk_calloc(1, (size_t)bytes[1])
                                : ops->allocate(locking, (size_t)bytes[1]);
    if (stk_on_device(second))
        cut->device = second->ops->allocate(second->backend, (size_t)bytes[1]);
    return cut->host == NULL || (stk_on_device(second) && cut->device == NULL) ? STOKER_ENOMEM
                                                                               : STOKER_OK;
}

static int make_transfers(struct stk_cut *cut, stoker_error *error)
{
    struct stk_stage *const stages[2] = { cut->first, cut->second };
    int rc = STOKER_OK;
    for (int s = 0; s < 2 && rc == STOKER_OK; s++)
        if (stk_on_device(stages[s]))
            rc = stages[s]->ops->device->transfer->create(&cut->transfer[s], stages[s]->backend,
                                                          error);
    return rc;
}

static const char *choose_crossing(const struct stk_cut *cut)
{
    if (cut->transfer[0] == NULL || cut->transfer[1] == NULL)
        return NULL;
    return stk_transfer_of(cut->first->ops)->reach(cut->transfer[0], cut->transfer[1])
               ? "directly, by peer access"
               : "through host memory: these devices have no peer access";
}

int stk_cut_open(struct stk_cut *cut, struct stk_stage *first, struct stk_stage *second,
                 stoker_error *error)
{
    uint64_t bytes[2];
    struct stk_stage *const stages[2] = { first, second };
    staging_bytes(first, second, bytes);
    for (int s = 0; s < 2; s++) {
        stages[s]->memory.workspace += bytes[s];
        stages[s]->memory.peak += bytes[s];
    }
    cut->first = first;
    cut->second = second;
    int rc = make_transfers(cut, error);
    if (rc != STOKER_OK)
        return rc;
    cut->crossing = choose_crossing(cut);
    rc = take_staging(cut);
    return rc == STOKER_OK ? rc : stk_refuse_option(error, rc, "two stages: memory");
}

void stk_cut_close(struct stk_cut *cut)
{
    const struct stk_transfer_ops *ops = NULL;
    if (cut->first == NULL)
        return;
    struct stk_transfer *const locking = locks(cut, &ops);
    if (cut->host != NULL && locking != NULL)
        ops->release(locking, cut->host);
    else
        stk_free(cut->host);
    for (int s = 0; s < 2; s++)
        if (cut->transfer[s] != NULL)
            (s == 0 ? cut->first : cut->second)->ops->device->transfer->destroy(cut->transfer[s]);
    if (cut->device != NULL)
        cut->second->ops->release(cut->second->backend, cut->device);
}
