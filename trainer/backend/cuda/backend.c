/* backend.c - the `cuda` back end: create, destroy, and the tables of functions. */
#include "trainer/backend/backend.h"

#include "loader/base/error.h"
#include "loader/base/memory/memory.h"
#include "trainer/backend/cuda/cublaslt/product.h"
#include "trainer/backend/cuda/cudnn/graph.h"
#include "trainer/backend/cuda/device/device.h"
#include "trainer/backend/cuda/graph/capture.h"
#include "trainer/backend/cuda/program/program.h"
#include "trainer/backend/cuda/program/training.h"
#include "trainer/backend/cuda/ranks/ranks.h"

enum { BENCHMARKED = 8 }; /* engines to time, of the best guesses */

static int open_libraries(struct stk_backend *backend, const struct stk_backend_options *options,
                          stoker_error *error)
{
    struct stk_cuda_math *const math = &backend->math;
    *math = (struct stk_cuda_math){
        .backend = backend,
        .tries = true,
        .dtype = options->storage == STOKER_DTYPE_NONE ? STOKER_DTYPE_FLOAT32 : options->storage,
        .rules = { .workspace_bytes_max = STK_ENGINE_WORKSPACE_BYTES,
                   .deterministic = options->deterministic,
                   .full_float32 = !options->tf32,
                   .benchmark = options->benchmark ? BENCHMARKED : 0 },
    };
    int rc = STOKER_OK;
    if (options->needs_convolutions)
        rc = stk_cudnn_open(&math->cudnn, &(struct stk_cudnn_options){ 0 }, error);
    if (rc == STOKER_OK && options->needs_linear)
        rc = stk_cublaslt_open(&math->cublaslt, NULL, error);
    return rc;
}

static int open_all(struct stk_backend *backend, const struct stk_backend_options *options,
                    stoker_error *error)
{
    int before;
    int rc = stk_cuda_device_open(backend, options, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = open_libraries(backend, options, error);
    if (rc == STOKER_OK && (options->needs_convolutions || options->needs_linear))
        rc = stk_engine_cache_create(&backend->math.cache, error);
    if (rc == STOKER_OK) {
        backend->block = stk_cuda_alloc(backend, sizeof(*backend->block), error);
        rc = backend->block == NULL ? STOKER_EDEVICE : STOKER_OK;
    }
    stk_cuda_leave(backend, before);
    return rc;
}

static void cuda_destroy(struct stk_backend *backend)
{
    int before = backend->device;
    const bool entered = backend->stream != NULL && stk_cuda_enter(backend, &before, NULL) == 0;
    if (backend->stream != NULL)
        stk_cuda_drain(backend);
    for (int i = 0; i < STK_CUDA_PREPARED; i++)
        stk_cuda_program_unload(backend->prepared[i]);
    stk_cuda_ranks_close(backend);
    stk_cuda_free(backend, backend->rates);
    stk_cuda_free(backend, backend->block);
    stk_engine_cache_destroy(&backend->math.cache);
    stk_cublaslt_close(&backend->math.cublaslt);
    stk_cudnn_close(&backend->math.cudnn);
    stk_cuda_device_close(backend);
    if (entered)
        stk_cuda_leave(backend, before);
    stk_free(backend);
}

static int cuda_create(struct stk_backend **out, const struct stk_backend_options *options,
                       stoker_error *error)
{
    struct stk_backend *backend = stk_calloc(1, sizeof(*backend));
    if (backend == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN,
                             &(struct stk_place)STK_NOWHERE, "back end cuda");
    const int rc = open_all(backend, options, error);
    if (rc != STOKER_OK) {
        cuda_destroy(backend);
        return rc;
    }
    *out = backend;
    return STOKER_OK;
}

/* The caller's thread, which queues. */
static uint32_t cuda_threads(const struct stk_backend *backend)
{
    (void)backend;
    return 1;
}

static const struct stk_capture *cuda_capture(const struct stk_backend *backend)
{
    return &backend->captured;
}

static void cuda_search(struct stk_backend *backend, bool searching)
{
    backend->math.tries = !searching;
}

static struct stk_engines cuda_engines(const struct stk_backend *backend)
{
    if (backend->math.cache == NULL)
        return (struct stk_engines){ .first = "", .lines = "" };
    const struct stk_engine_report *const r = stk_engine_cache_report(backend->math.cache);
    return (struct stk_engines){ r->graphs, r->first, r->lines };
}

static struct stk_device_id cuda_identify(const struct stk_backend *backend)
{
    return backend->id;
}

static int cuda_clear(struct stk_backend *backend, float *floats, uint64_t count,
                      stoker_error *error)
{
    int before;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_cuda_clear(backend, floats, count * sizeof(float), error);
    stk_cuda_leave(backend, before);
    return rc;
}

static void *cuda_stream(const struct stk_backend *backend)
{
    return backend->stream;
}

static int cuda_join(struct stk_backend *backend, struct stk_device_sums *sums,
                     const stoker_model *model, bool sync_batch_norm, stoker_error *error)
{
    sums->drop_captured = stk_cuda_graphs_drop_all;
    sums->owner = backend;
    return stk_cuda_ranks_join(backend, sums, model, sync_batch_norm, error);
}

static const struct stk_device_ops device_ops = {
    .upload = stk_cuda_upload,
    .download = stk_cuda_download,
    .free_bytes = stk_cuda_free_bytes,
    .transfer = &stk_cuda_transfer,
    .search = cuda_search,
    .warm = stk_cuda_program_warm,
    .trim = stk_cuda_program_trim,
    .queue_forward = stk_cuda_program_queue_forward,
    .collect_loss = stk_cuda_training_collect_loss,
    .training_bytes = stk_cuda_training_bytes,
    .start_training = stk_cuda_training_start,
    .upload_state = stk_cuda_training_upload_state,
    .read_state = stk_cuda_training_read_state,
    .queue_step = stk_cuda_program_queue_step,
    .queue_update = stk_cuda_training_queue_update,
    .queue_norm = stk_cuda_training_queue_norm,
    .enter = stk_cuda_enter,
    .leave = stk_cuda_leave,
    .identify = cuda_identify,
    .join = cuda_join,
    .prepare_step = stk_cuda_program_prepare_step,
    .sum = stk_cuda_ranks_sum_floats,
    .broadcast = stk_cuda_ranks_broadcast,
    .clear = cuda_clear,
    .capture = cuda_capture,
    .engines = cuda_engines,
    .stream = cuda_stream,
};

const struct stk_backend_ops stk_backend_cuda = {
    .name = "cuda",
    .storages =
        1U << STOKER_DTYPE_FLOAT32 | 1U << STOKER_DTYPE_FLOAT16 | 1U << STOKER_DTYPE_BFLOAT16,
    .has_engines = true,
    .device = &device_ops,
    .create = cuda_create,
    .destroy = cuda_destroy,
    .threads = cuda_threads,
    .allocate = stk_cuda_allocate,
    .release = stk_cuda_release,
    .workspace_bytes = stk_cuda_workspace_bytes,
    .load = stk_cuda_program_load,
    .unload = stk_cuda_program_unload,
    .run = stk_cuda_program_run,
    .narrow = stk_cuda_training_narrow,
};
