/* ranks.c - see ranks.h. */
#include "trainer/backend/cuda/ranks/ranks.h"

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

/* ---- joining --------------------------------------------------------------------- */

static int make_streams(struct stk_backend *backend, struct stk_cuda_ranks *ranks,
                        stoker_error *error)
{
    int rc = stk_cuda_make_stream(backend, &backend->sums_stream, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_make_event(backend, &ranks->forked, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_make_event(backend, &ranks->joined, error);
    return rc;
}

static uint64_t widest_batch_norm(const stoker_model *model)
{
    uint64_t channels = 0;
    for (uint32_t i = 0; i < model->layer_count; i++)
        if (model->layers[i].kind == STK_BATCH_NORM && model->layers[i].in.c > channels)
            channels = model->layers[i].in.c;
    return channels;
}

static int fill_momenta(struct stk_backend *backend, const stoker_model *model, stoker_error *error)
{
    struct stk_cuda_ranks *const ranks = backend->ranks;
    const uint64_t bytes = model->statistic_floats * sizeof(float);
    float *const momenta = stk_calloc(model->statistic_floats, sizeof(*momenta));
    if (momenta == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "statistics");
    for (uint32_t i = 0; i < model->statistic_count; i++) {
        const struct stk_parameter *const statistic = &model->statistics[i];
        for (uint64_t at = 0; at < statistic->elements; at++)
            momenta[statistic->offset + at] = model->layers[statistic->layer].momentum;
    }
    int rc = stk_cuda_copy(backend, ranks->momenta, momenta, bytes, cudaMemcpyHostToDevice, error);
    rc = stk_cuda_wait(backend, rc, error);
    stk_free(momenta);
    return rc;
}

/* None if the network has no BatchNorm. */
static int take_statistics(struct stk_backend *backend, const stoker_model *model,
                           stoker_error *error)
{
    struct stk_cuda_ranks *const ranks = backend->ranks;
    const uint64_t bytes = model->statistic_floats * sizeof(float);
    ranks->statistic_floats = model->statistic_floats;
    if (bytes == 0)
        return STOKER_OK;
    ranks->found = stk_cuda_alloc(backend, bytes, error);
    ranks->momenta = ranks->found == NULL ? NULL : stk_cuda_alloc(backend, bytes, error);
    if (ranks->momenta == NULL)
        return STOKER_EDEVICE;
    if (ranks->sync_batch_norm)
        ranks->sums_of_layer =
            stk_cuda_alloc(backend, 2 * widest_batch_norm(model) * sizeof(double), error);
    else
        ranks->gathered = stk_cuda_alloc(backend, bytes * backend->sums->ranks, error);
    if (ranks->sums_of_layer == NULL && ranks->gathered == NULL)
        return STOKER_EDEVICE;
    return fill_momenta(backend, model, error);
}

int stk_cuda_ranks_join(struct stk_backend *backend, struct stk_device_sums *sums,
                        const stoker_model *model, bool sync_batch_norm, stoker_error *error)
{
    int before;
    struct stk_cuda_ranks *const ranks = stk_calloc(1, sizeof(*ranks));
    if (ranks == NULL)
        return stk_refuse_option(error, STOKER_ENOMEM, "ranks");
    ranks->sync_batch_norm = sync_batch_norm;
    backend->ranks = ranks;
    backend->sums = sums;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = make_streams(backend, ranks, error);
    if (rc == STOKER_OK)
        rc = take_statistics(backend, model, error);
    stk_cuda_leave(backend, before);
    return rc;
}

void stk_cuda_ranks_close(struct stk_backend *backend)
{
    struct stk_cuda_ranks *const ranks = backend->ranks;
    if (ranks == NULL)
        return;
    stk_cuda_drop_stream(backend, backend->sums_stream);
    backend->sums_stream = NULL;
    stk_cuda_drop_event(backend, ranks->forked);
    stk_cuda_drop_event(backend, ranks->joined);
    stk_cuda_free(backend, ranks->found);
    stk_cuda_free(backend, ranks->gathered);
    stk_cuda_free(backend, ranks->momenta);
    stk_cuda_free(backend, ranks->sums_of_layer);
    stk_free(ranks);
    backend->ranks = NULL;
    backend->sums->drop_captured = NULL;
    backend->sums = NULL;
}

/* ---- two streams ----------------------------------------------------------------- */

/* The second stream waits for all that is queued on the first. */
static int fork_stream(const struct stk_backend *backend, stoker_error *error)
{
    struct stk_cuda_ranks *const ranks = backend->ranks;
    int rc = stk_cuda_record(backend, ranks->forked, backend->stream, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_wait_for(backend, backend->sums_stream, ranks->forked, error);
    ranks->behind = ranks->behind || rc == STOKER_OK;
    return rc;
}

int stk_cuda_ranks_wait(struct stk_backend *backend, stoker_error *error)
{
    struct stk_cuda_ranks *const ranks = backend->ranks;
    if (!ranks->behind)
        return STOKER_OK;
    ranks->behind = false;
    const int rc = stk_cuda_record(backend, ranks->joined, backend->sums_stream, error);
    return rc == STOKER_OK ? stk_cuda_wait_for(backend, backend->stream, ranks->joined, error) : rc;
}

int stk_cuda_ranks_sum(struct stk_backend *backend, void *numbers, uint64_t count,
                       stoker_dtype dtype, stoker_error *error)
{
    const int rc = fork_stream(backend, error);
    return rc != STOKER_OK ? rc
                           : backend->sums->ops->all_reduce(backend->sums, numbers, count, dtype,
                                                            backend->sums_stream, error);
}

/* ---- a pass ---------------------------------------------------------------------- */

/* A rank without samples finds NaN, which no statistic moves by. */
int stk_cuda_ranks_begin_pass(struct stk_backend *backend, const float *statistics, uint32_t count,
                              stoker_error *error)
{
    struct stk_cuda_ranks *const ranks = backend->ranks;
    const uint64_t bytes = ranks->statistic_floats * sizeof(float);
    ranks->statistics = statistics;
    if (bytes == 0)
        return STOKER_OK;
    if (ranks->sync_batch_norm)
        return stk_cuda_copy(backend, ranks->found, statistics, bytes, cudaMemcpyDeviceToDevice,
                             error);
    return stk_cuda_check(
        backend,
        backend->runtime.cudaMemsetAsync(ranks->found, count > 0 ? 0 : 255, bytes, backend->stream),
        "cudaMemsetAsync", error);
}

int stk_cuda_ranks_end_pass(struct stk_backend *backend, float *statistics, stoker_error *error)
{
    struct stk_cuda_ranks *const ranks = backend->ranks;
    const struct stk_train_move_statistics move = { .running = statistics,
                                                    .found = ranks->gathered,
                                                    .momenta = ranks->momenta,
                                                    .count = ranks->statistic_floats,
                                                    .ranks = backend->sums->ranks };
    if (ranks->statistic_floats == 0 || ranks->sync_batch_norm)
        return STOKER_OK;
    int rc = fork_stream(backend, error);
    if (rc == STOKER_OK)
        rc = backend->sums->ops->all_gather(backend->sums, ranks->found, ranks->gathered,
                                            ranks->statistic_floats, backend->sums_stream, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_ranks_wait(backend, error);
    return rc == STOKER_OK
               ? stk_cuda_launch(backend, stk_train_kernel_named("stk_train_move_statistics"),
                                 &move, error)
               : rc;
}

/* ---- between passes -------------------------------------------------------------- */

int stk_cuda_ranks_sum_floats(struct stk_backend *backend, float *floats, uint64_t count,
                              stoker_error *error)
{
    int before;
    if (backend->ranks == NULL)
        return STOKER_OK;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_cuda_ranks_sum(backend, floats, count, STOKER_DTYPE_FLOAT32, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_ranks_wait(backend, error);
    stk_cuda_leave(backend, before);
    return rc;
}

int stk_cuda_ranks_broadcast(struct stk_backend *backend, void *memory, uint64_t bytes,
                             stoker_error *error)
{
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = fork_stream(backend, error);
    if (rc == STOKER_OK)
        rc = backend->sums->ops->broadcast(backend->sums, memory, bytes, backend->sums_stream,
                                           error);
    if (rc == STOKER_OK)
        rc = stk_cuda_ranks_wait(backend, error);
    rc = stk_cuda_wait(backend, rc, error);
    stk_cuda_leave(backend, before);
    return rc;
}
