/* backend.c - the `cuda` back end: a GPU is opened, its memory given out, kernels found by name.
 *
 *   runtime ──▶ device ──▶ stream, kernels ──▶ cuDNN, cuBLASLt as the model needs them ──▶ block
 *
 * The caller's current device is the same after each call. */
#include "trainer/backend/cuda/backend.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loader/base/error.h"
#include "loader/base/memory.h"
#include "trainer/backend/cuda/cublaslt/product.h"
#include "trainer/backend/cuda/cudnn/graph.h"

static const struct stk_place nowhere = STK_NOWHERE;

int stk_cuda_check(const struct stk_backend *backend, cudaError_t code, const char *what,
                   stoker_error *error)
{
    if (code == cudaSuccess)
        return STOKER_OK;
    (void)backend->runtime.cudaGetLastError();
    return stk_error_set(error, STOKER_EDEVICE, STOKER_STAGE_OPTIONS, &nowhere,
                         "cuda:%d: %s: %s (%d)", backend->device, what,
                         backend->runtime.cudaGetErrorString(code), (int)code);
}

/* ---- the current device, which is the caller's -------------------------------------------------- */

int stk_cuda_enter(const struct stk_backend *backend, int *before, stoker_error *error)
{
    const struct stk_cuda_runtime *runtime = &backend->runtime;
    int rc = stk_cuda_check(backend, runtime->cudaGetDevice(before), "cudaGetDevice", error);
    if (rc == STOKER_OK && *before != backend->device)
        rc = stk_cuda_check(backend, runtime->cudaSetDevice(backend->device), "cudaSetDevice",
                            error);
    return rc;
}

/* What was done is done: that the caller's device does not come back is told by his next call. */
void stk_cuda_leave(const struct stk_backend *backend, int before)
{
    if (before != backend->device)
        (void)stk_cuda_check(backend, backend->runtime.cudaSetDevice(before), "cudaSetDevice back",
                             NULL);
}

void stk_cuda_drain(const struct stk_backend *backend)
{
    if (stk_cuda_check(backend, backend->runtime.cudaStreamSynchronize(backend->stream), "drain",
                       NULL) != STOKER_OK)
        (void)stk_cuda_check(backend, backend->runtime.cudaStreamSynchronize(backend->stream),
                             "drain", NULL);
}

int stk_cuda_wait(const struct stk_backend *backend, int rc, stoker_error *error)
{
    if (rc == STOKER_OK)
        rc = stk_cuda_check(backend, backend->runtime.cudaStreamSynchronize(backend->stream),
                            "cudaStreamSynchronize", error);
    if (rc != STOKER_OK)
        stk_cuda_drain(backend);
    return rc;
}

/* ---- memory -------------------------------------------------------------------------------------- */

void *stk_cuda_take(struct stk_backend *backend, uint64_t bytes, stoker_error *error)
{
    void *memory = NULL;
    if (bytes > SIZE_MAX || stk_cuda_check(backend, backend->runtime.cudaMalloc(&memory, bytes),
                                           "cudaMalloc", error) != STOKER_OK)
        return NULL;
    if (stk_cuda_clear(backend, memory, bytes, error) == STOKER_OK)
        return memory;
    stk_cuda_give(backend, memory);
    return NULL;
}

/* Even where its device cannot be made current: freeing needs no more than the address. */
void stk_cuda_give(struct stk_backend *backend, void *memory)
{
    int before;
    if (memory == NULL)
        return;
    const bool entered = stk_cuda_enter(backend, &before, NULL) == STOKER_OK;
    (void)stk_cuda_check(backend, backend->runtime.cudaFree(memory), "cudaFree", NULL);
    if (entered)
        stk_cuda_leave(backend, before);
}

int stk_cuda_clear(struct stk_backend *backend, void *memory, uint64_t bytes, stoker_error *error)
{
    return stk_cuda_check(backend,
                          backend->runtime.cudaMemsetAsync(memory, 0, bytes, backend->stream),
                          "cudaMemsetAsync", error);
}

int stk_cuda_copy(struct stk_backend *backend, void *to, const void *from, uint64_t bytes,
                  enum cudaMemcpyKind kind, stoker_error *error)
{
    return stk_cuda_check(backend,
                          backend->runtime.cudaMemcpyAsync(to, from, bytes, kind, backend->stream),
                          "cudaMemcpyAsync", error);
}

int stk_cuda_borrow(struct stk_backend *backend, stoker_error *error)
{
    if (!backend->reads_pageable)
        return STOKER_OK;
    const int rc =
        stk_cuda_check(backend, backend->runtime.cudaEventRecord(backend->taken, backend->stream),
                       "cudaEventRecord", error);
    if (rc != STOKER_OK)
        stk_cuda_drain(backend);
    backend->borrowing = rc == STOKER_OK;
    return rc;
}

/* What cannot be marked is waited for with all the rest. */
int stk_cuda_give_back(struct stk_backend *backend, stoker_error *error)
{
    if (!backend->borrowing)
        return STOKER_OK;
    backend->borrowing = false;
    const int rc = stk_cuda_check(backend, backend->runtime.cudaEventSynchronize(backend->taken),
                                  "cudaEventSynchronize", error);
    if (rc != STOKER_OK)
        stk_cuda_drain(backend);
    return rc;
}

static void *cuda_allocate(struct stk_backend *backend, size_t bytes)
{
    int before;
    if (stk_cuda_enter(backend, &before, NULL) != STOKER_OK)
        return NULL;
    void *const memory = stk_cuda_take(backend, bytes, NULL);
    stk_cuda_leave(backend, before);
    return memory;
}

static void cuda_release(struct stk_backend *backend, void *memory)
{
    stk_cuda_drain(backend);
    stk_cuda_give(backend, memory);
}

static int copy_and_wait(struct stk_backend *backend, void *to, const void *from, size_t bytes,
                         enum cudaMemcpyKind kind, stoker_error *error)
{
    int before;
    if (bytes == 0)
        return STOKER_OK;
    int rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = stk_cuda_copy(backend, to, from, bytes, kind, error);
    rc = stk_cuda_wait(backend, rc, error);
    stk_cuda_leave(backend, before);
    return rc;
}

static int cuda_upload(struct stk_backend *backend, void *to, const void *from, size_t bytes,
                       stoker_error *error)
{
    return copy_and_wait(backend, to, from, bytes, cudaMemcpyHostToDevice, error);
}

static int cuda_download(struct stk_backend *backend, void *to, const void *from, size_t bytes,
                         stoker_error *error)
{
    return copy_and_wait(backend, to, from, bytes, cudaMemcpyDeviceToHost, error);
}

/* ---- kernels ------------------------------------------------------------------------------------- */

static int find_kernel(struct stk_backend *backend, const struct stk_kernel *kernel,
                       cudaKernel_t *out, stoker_error *error)
{
    cudaKernel_t *const place = &backend->kernels[kernel - stk_train_kernels];
    int rc = STOKER_OK;
    if (*place == NULL)
        rc = stk_cuda_check(
            backend, backend->runtime.cudaLibraryGetKernel(place, backend->library, kernel->name),
            kernel->name, error);
    *out = *place;
    return rc;
}

int stk_cuda_launch(struct stk_backend *backend, const struct stk_kernel *kernel,
                    const void *arguments, stoker_error *error)
{
    cudaKernel_t found = NULL;
    int rc = find_kernel(backend, kernel, &found, error);
    if (rc != STOKER_OK)
        return rc;
    const struct stk_launch_grid grid = kernel->grid(arguments);
    void *parameters[] = { (void *)arguments }; /* CUDA only reads them */
    return stk_cuda_check(backend,
                          backend->runtime.cudaLaunchKernel(
                              (const void *)found, (dim3){ grid.x, grid.y, 1 },
                              (dim3){ STK_LAUNCH_THREADS, 1, 1 }, parameters, 0, backend->stream),
                          kernel->name, error);
}

/* ---- what convolutions and linear layers are handed ------------------------------------------------ */

static int math_launch(void *context, const struct stk_kernel *kernel, const void *arguments,
                       void *stream, stoker_error *error)
{
    struct stk_backend *const backend = context;
    assert(stream == (void *)backend->stream);
    (void)stream;
    return stk_cuda_launch(backend, kernel, arguments, error);
}

static void *math_allocate(void *context, uint64_t bytes)
{
    return stk_cuda_take(context, bytes, NULL);
}

static void math_release(void *context, void *memory)
{
    stk_cuda_drain(context);
    stk_cuda_give(context, memory);
}

enum {
    BENCHMARKED = 8, /* engines that are timed, of those thought best */
    TIMED_RUNS = 5
};

struct stopwatch {
    cudaEvent_t begin, end;
};

static int time_once(struct stk_backend *backend, const struct stopwatch *watch,
                     stk_cuda_enqueue *enqueue, void *work, double *seconds, stoker_error *error)
{
    const struct stk_cuda_runtime *cuda = &backend->runtime;
    float milliseconds = 0;
    int rc = stk_cuda_check(backend, cuda->cudaEventRecord(watch->begin, backend->stream),
                            "cudaEventRecord", error);
    if (rc == STOKER_OK)
        rc = enqueue(work, backend->stream, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_check(backend, cuda->cudaEventRecord(watch->end, backend->stream),
                            "cudaEventRecord", error);
    if (rc == STOKER_OK)
        rc = stk_cuda_check(backend, cuda->cudaEventSynchronize(watch->end), "cudaEventSynchronize",
                            error);
    if (rc == STOKER_OK)
        rc = stk_cuda_check(backend,
                            cuda->cudaEventElapsedTime(&milliseconds, watch->begin, watch->end),
                            "cudaEventElapsedTime", error);
    *seconds = (double)milliseconds / 1e3;
    return rc;
}

/* A warm-up, then the median. */
static int time_runs(struct stk_backend *backend, const struct stopwatch *watch,
                     stk_cuda_enqueue *enqueue, void *work, double *seconds, stoker_error *error)
{
    double sorted[TIMED_RUNS];
    int rc = time_once(backend, watch, enqueue, work, &sorted[0], error);
    for (int i = 0; i < TIMED_RUNS && rc == STOKER_OK; i++) {
        double found = 0;
        rc = time_once(backend, watch, enqueue, work, &found, error);
        int at = i;
        for (; at > 0 && sorted[at - 1] > found; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = found;
    }
    if (rc == STOKER_OK)
        *seconds = sorted[TIMED_RUNS / 2];
    return rc;
}

static int math_time(void *context, stk_cuda_enqueue *enqueue, void *work, double *seconds,
                     stoker_error *error)
{
    struct stk_backend *const backend = context;
    const struct stk_cuda_runtime *cuda = &backend->runtime;
    struct stopwatch watch = { NULL, NULL };
    int rc = stk_cuda_check(backend, cuda->cudaEventCreateWithFlags(&watch.begin, cudaEventDefault),
                            "cudaEventCreate", error);
    if (rc == STOKER_OK)
        rc = stk_cuda_check(backend, cuda->cudaEventCreateWithFlags(&watch.end, cudaEventDefault),
                            "cudaEventCreate", error);
    if (rc == STOKER_OK)
        rc = time_runs(backend, &watch, enqueue, work, seconds, error);
    if (watch.begin != NULL)
        (void)stk_cuda_check(backend, cuda->cudaEventDestroy(watch.begin), "destroy", NULL);
    if (watch.end != NULL)
        (void)stk_cuda_check(backend, cuda->cudaEventDestroy(watch.end), "destroy", NULL);
    return rc;
}

static int open_libraries(struct stk_backend *backend, const struct stk_backend_options *options,
                          stoker_error *error)
{
    struct stk_cuda_math *const math = &backend->math;
    *math = (struct stk_cuda_math){
        .device = { .context = backend,
                    .launch = math_launch,
                    .allocate = math_allocate,
                    .release = math_release,
                    .time = math_time },
        .dtype = options->storage == STOKER_DTYPE_NONE ? STOKER_FLOAT32 : options->storage,
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

/* ---- open and close ------------------------------------------------------------------------------ */

static int find_device(struct stk_backend *backend, stoker_error *error)
{
    int count = 0;
    const int rc = stk_cuda_check(backend, backend->runtime.cudaGetDeviceCount(&count),
                                  "cudaGetDeviceCount", error);
    if (rc != STOKER_OK || backend->device < count)
        return rc;
    return stk_error_set(error, STOKER_EDEVICE, STOKER_STAGE_OPEN, &nowhere,
                         "cuda:%d: there are %d GPUs", backend->device, count);
}

static int read_properties(struct stk_backend *backend, stoker_error *error)
{
    struct cudaDeviceProp properties;
    const int rc = stk_cuda_check(
        backend, backend->runtime.cudaGetDeviceProperties(&properties, backend->device),
        "cudaGetDeviceProperties", error);
    if (rc == STOKER_OK)
        backend->reads_pageable = properties.pageableMemoryAccess != 0;
    return rc;
}

static int load_kernels(struct stk_backend *backend, stoker_error *error)
{
    size_t bytes = 0;
    const void *const image = stk_train_fatbin(&bytes);
    if (image == NULL)
        return stk_error_set(error, STOKER_EDEVICE, STOKER_STAGE_OPEN, &nowhere,
                             "back end cuda: built without nvcc, so that there are no kernels");
    size_t count = 0;
    while (stk_train_kernels[count].name != NULL)
        count++;
    backend->kernels = stk_calloc(count, sizeof(*backend->kernels));
    if (backend->kernels == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN, &nowhere, "back end cuda");
    return stk_cuda_check(backend,
                          backend->runtime.cudaLibraryLoadData(&backend->library, image, NULL, NULL,
                                                               0, NULL, NULL, 0),
                          "cudaLibraryLoadData", error);
}

/* All that needs the device to be current. */
static int set_up(struct stk_backend *backend, const struct stk_backend_options *options,
                  stoker_error *error)
{
    /* Non-blocking: the legacy default stream does not hold it up. */
    int rc = stk_cuda_check(
        backend,
        backend->runtime.cudaStreamCreateWithFlags(&backend->stream, cudaStreamNonBlocking),
        "cudaStreamCreate", error);
    if (rc == STOKER_OK && backend->reads_pageable)
        rc = stk_cuda_check(
            backend,
            backend->runtime.cudaEventCreateWithFlags(&backend->taken, cudaEventDisableTiming),
            "cudaEventCreate", error);
    if (rc == STOKER_OK)
        rc = load_kernels(backend, error);
    if (rc == STOKER_OK)
        rc = open_libraries(backend, options, error);
    if (rc == STOKER_OK && options->benchmark)
        rc = stk_engine_cache_create(&backend->math.cache, error);
    if (rc != STOKER_OK)
        return rc;
    backend->block = stk_cuda_take(backend, sizeof(*backend->block), error);
    return backend->block == NULL ? STOKER_EDEVICE : STOKER_OK;
}

static int open_device(struct stk_backend *backend, const struct stk_backend_options *options,
                       stoker_error *error)
{
    int before;
    backend->device = (int)options->device;
    backend->uncaptured = options->uncaptured;
    const char *why = NULL;
    int rc = stk_cuda_runtime_load(&backend->runtime, &why);
    if (rc != STOKER_OK)
        return stk_error_set(error, rc, STOKER_STAGE_OPEN, &(struct stk_place)STK_NOWHERE,
                             "back end cuda: %s", why);
    rc = find_device(backend, error);
    if (rc == STOKER_OK)
        rc = read_properties(backend, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_enter(backend, &before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = set_up(backend, options, error);
    stk_cuda_leave(backend, before);
    return rc;
}

static void cuda_destroy(struct stk_backend *backend)
{
    const struct stk_cuda_runtime *cuda = &backend->runtime;
    int before = backend->device;
    const bool entered = backend->stream != NULL && stk_cuda_enter(backend, &before, NULL) == 0;
    if (backend->stream != NULL)
        stk_cuda_drain(backend);
    for (int i = 0; i < STK_CUDA_PREPARED; i++)
        stk_cuda_program_unload(backend->prepared[i]);
    stk_cuda_give(backend, backend->rates);
    stk_cuda_give(backend, backend->block);
    stk_engine_cache_destroy(&backend->math.cache);
    stk_cublaslt_close(&backend->math.cublaslt);
    stk_cudnn_close(&backend->math.cudnn);
    if (backend->library != NULL)
        (void)stk_cuda_check(backend, cuda->cudaLibraryUnload(backend->library), "unload", NULL);
    if (backend->taken != NULL)
        (void)stk_cuda_check(backend, cuda->cudaEventDestroy(backend->taken), "destroy", NULL);
    if (backend->stream != NULL)
        (void)stk_cuda_check(backend, cuda->cudaStreamDestroy(backend->stream), "destroy", NULL);
    if (entered)
        stk_cuda_leave(backend, before);
    stk_free(backend->kernels);
    stk_free(backend);
}

static int cuda_create(struct stk_backend **out, const struct stk_backend_options *options,
                       stoker_error *error)
{
    struct stk_backend *backend = stk_calloc(1, sizeof(*backend));
    if (backend == NULL)
        return stk_error_set(error, STOKER_ENOMEM, STOKER_STAGE_OPEN, &nowhere, "back end cuda");
    const int rc = open_device(backend, options, error);
    if (rc != STOKER_OK) {
        cuda_destroy(backend);
        return rc;
    }
    *out = backend;
    return STOKER_OK;
}

/* The caller's, which queues. */
static uint32_t cuda_threads(const struct stk_backend *backend)
{
    (void)backend;
    return 1;
}

static uint64_t cuda_free_bytes(struct stk_backend *backend)
{
    size_t free_bytes = 0;
    size_t all = 0;
    int before;
    if (stk_cuda_enter(backend, &before, NULL) != STOKER_OK)
        return 0;
    if (stk_cuda_check(backend, backend->runtime.cudaMemGetInfo(&free_bytes, &all),
                       "cudaMemGetInfo", NULL) != STOKER_OK)
        free_bytes = 0;
    stk_cuda_leave(backend, before);
    return free_bytes;
}

static const struct stk_capture *cuda_capture(const struct stk_backend *backend)
{
    return &backend->captured;
}

static void *cuda_stream(const struct stk_backend *backend)
{
    return backend->stream;
}

const struct stk_backend_ops stk_backend_cuda = {
    .name = "cuda",
    .storages = 1U << STOKER_FLOAT32 | 1U << STOKER_FLOAT16 | 1U << STOKER_BFLOAT16,
    .has_engines = true,
    .create = cuda_create,
    .destroy = cuda_destroy,
    .threads = cuda_threads,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .free_bytes = cuda_free_bytes,
    .upload = cuda_upload,
    .download = cuda_download,
    .workspace_bytes = stk_cuda_workspace_bytes,
    .load = stk_cuda_program_load,
    .unload = stk_cuda_program_unload,
    .warm = stk_cuda_program_warm,
    .trim = stk_cuda_program_trim,
    .run = stk_cuda_program_run,
    .narrow = stk_cuda_training_narrow,
    .training_bytes = stk_cuda_training_bytes,
    .begin = stk_cuda_training_begin,
    .place = stk_cuda_training_place,
    .step = stk_cuda_program_step,
    .finish = stk_cuda_training_finish,
    .norm = stk_cuda_training_norm,
    .crossing = &stk_cuda_crossing,
    .read = stk_cuda_training_read,
    .queue = stk_cuda_program_queue,
    .collect = stk_cuda_training_collect,
    .capture = cuda_capture,
    .stream = cuda_stream,
};
