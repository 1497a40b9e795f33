/* device.c - open a GPU, make it current, wait for it; find its kernels by name. */
#include "trainer/backend/cuda/device/device.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "loader/base/clock.h"
#include "loader/base/cuda/cuda_card.h"
#include "loader/base/error.h"
#include "loader/base/memory/memory.h"

enum { WHY_BYTES = 192 };

static const struct stk_place nowhere = STK_NOWHERE;

int stk_cuda_check(const struct stk_backend *backend, cudaError_t code, const char *what,
                   stoker_error *error)
{
    if (code == cudaSuccess)
        return STOKER_OK;
    (void)backend->runtime.cudaGetLastError();
    return stk_refuse_option(error, STOKER_EDEVICE, "cuda:%d: %s: %s (%d)", backend->device, what,
                             backend->runtime.cudaGetErrorString(code), (int)code);
}

/* ---- the current device -------------------------------------------------- */

int stk_cuda_enter(const struct stk_backend *backend, int *before, stoker_error *error)
{
    const char *what = NULL;
    const cudaError_t code = stk_cuda_context_enter(&backend->context, before, &what);
    return stk_cuda_check(backend, code, what, error);
}

/* A failure to restore the caller's device is ignored; its next CUDA call fails, too. */
void stk_cuda_leave(const struct stk_backend *backend, int before)
{
    const char *what = NULL;
    const cudaError_t code = stk_cuda_context_leave(&backend->context, before, &what);
    (void)stk_cuda_check(backend, code, what, NULL);
}

int stk_cuda_make_event(const struct stk_backend *backend, cudaEvent_t *out, stoker_error *error)
{
    return stk_cuda_check(backend,
                          backend->runtime.cudaEventCreateWithFlags(out, cudaEventDisableTiming |
                                                                             cudaEventBlockingSync),
                          "cudaEventCreate", error);
}

int stk_cuda_make_stream(const struct stk_backend *backend, cudaStream_t *out, stoker_error *error)
{
    return stk_cuda_check(backend,
                          backend->runtime.cudaStreamCreateWithFlags(out, cudaStreamNonBlocking),
                          "cudaStreamCreate", error);
}

void stk_cuda_drop_event(const struct stk_backend *backend, cudaEvent_t event)
{
    if (event != NULL)
        (void)stk_cuda_check(backend, backend->runtime.cudaEventDestroy(event), "destroy", NULL);
}

void stk_cuda_drop_stream(const struct stk_backend *backend, cudaStream_t stream)
{
    if (stream != NULL)
        (void)stk_cuda_check(backend, backend->runtime.cudaStreamDestroy(stream), "destroy", NULL);
}

int stk_cuda_record(const struct stk_backend *backend, cudaEvent_t event, cudaStream_t stream,
                    stoker_error *error)
{
    return stk_cuda_check(backend, backend->runtime.cudaEventRecord(event, stream),
                          "cudaEventRecord", error);
}

int stk_cuda_wait_for(const struct stk_backend *backend, cudaStream_t stream, cudaEvent_t event,
                      stoker_error *error)
{
    return stk_cuda_check(backend, backend->runtime.cudaStreamWaitEvent(stream, event, 0),
                          "cudaStreamWaitEvent", error);
}

/* ---- waiting ------------------------------------------------------------- */

static void relax(uint32_t turn)
{
    enum { YIELDS = 200, SLEEP_NS = 20000 };
    if (turn < YIELDS)
        (void)sched_yield();
    else
        (void)nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
}

/* cudaErrorNotReady: not done yet. */
static cudaError_t look(const struct stk_backend *backend, cudaEvent_t event)
{
    const struct stk_cuda_runtime *const cuda = &backend->runtime;
    if (event != NULL)
        return cuda->cudaEventQuery(event);
    const cudaError_t code = cuda->cudaStreamQuery(backend->stream);
    return code != cudaSuccess || backend->sums_stream == NULL
               ? code
               : cuda->cudaStreamQuery(backend->sums_stream);
}

/* A sum of all ranks does not end if one of them is gone. */
static int await_with_ranks(const struct stk_backend *backend, cudaEvent_t event,
                            stoker_error *error)
{
    const uint64_t begin_ns = stk_now_ns();
    for (uint32_t turn = 0;; turn += turn < UINT32_MAX ? 1 : 0) {
        const cudaError_t code = look(backend, event);
        if (code != cudaErrorNotReady && code != cudaSuccess)
            return stk_cuda_check(backend, code, "cudaStreamQuery", error);
        /* After the end as well: a sum that has failed does nothing. */
        const int rc = backend->sums->ops->poll(backend->sums, stk_now_ns() - begin_ns, error);
        if (rc != STOKER_OK || code == cudaSuccess)
            return rc;
        relax(turn);
    }
}

/* cudaStreamSynchronize() spins, so the host waits for an event that blocks. */
static int await_stream(const struct stk_backend *backend, stoker_error *error)
{
    const int rc = stk_cuda_record(backend, backend->idle, backend->stream, error);
    return rc != STOKER_OK
               ? rc
               : stk_cuda_check(backend, backend->runtime.cudaEventSynchronize(backend->idle),
                                "waiting for the GPU", error);
}

int stk_cuda_await(const struct stk_backend *backend, cudaEvent_t event, stoker_error *error)
{
    if (backend->sums != NULL)
        return await_with_ranks(backend, event, error);
    if (event != NULL)
        return stk_cuda_check(backend, backend->runtime.cudaEventSynchronize(event),
                              "cudaEventSynchronize", error);
    if (backend->idle != NULL)
        return await_stream(backend, error);
    return stk_cuda_check(backend, backend->runtime.cudaStreamSynchronize(backend->stream),
                          "cudaStreamSynchronize", error);
}

/* A second time, since one look may fail while the streams work. After a rank's failure sums have
 * ended, so the last wait is short. */
void stk_cuda_drain(const struct stk_backend *backend)
{
    const struct stk_cuda_runtime *const cuda = &backend->runtime;
    if (stk_cuda_await(backend, NULL, NULL) == STOKER_OK)
        return;
    if (backend->sums != NULL && stk_cuda_await(backend, NULL, NULL) == STOKER_OK)
        return;
    if (backend->sums_stream != NULL)
        (void)stk_cuda_check(backend, cuda->cudaStreamSynchronize(backend->sums_stream), "drain",
                             NULL);
    (void)stk_cuda_check(backend, cuda->cudaStreamSynchronize(backend->stream), "drain", NULL);
}

int stk_cuda_wait(const struct stk_backend *backend, int rc, stoker_error *error)
{
    if (rc == STOKER_OK)
        rc = stk_cuda_await(backend, NULL, error);
    if (rc != STOKER_OK)
        stk_cuda_drain(backend);
    return rc;
}

int stk_cuda_end_read(const struct stk_backend *backend, int rc, stoker_error *error)
{
    if (rc != STOKER_OK || backend->reads_pageable)
        return stk_cuda_wait(backend, rc, error);
    return STOKER_OK;
}

/* ---- kernels --------------------------------------------------------------------------------- */

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
    return stk_cuda_check(
        backend,
        stk_cuda_launch_kernel(&backend->runtime, (const void *)found, (dim3){ grid.x, grid.y, 1 },
                               (dim3){ STK_LAUNCH_THREADS, 1, 1 }, parameters, backend->stream),
        kernel->name, error);
}

/* ---- open and close -------------------------------------------------------------------------- */

static int find_device(struct stk_backend *backend, stoker_error *error)
{
    int count = 0;
    char why[WHY_BYTES];
    const int rc = stk_cuda_count(&backend->runtime, &count, why, sizeof(why));
    if (rc != STOKER_OK)
        return stk_error_set(error, rc, STOKER_STAGE_OPEN, &nowhere, "cuda:%d: %s", backend->device,
                             why);
    if (backend->device < count)
        return STOKER_OK;
    return stk_error_set(error, STOKER_EDEVICE, STOKER_STAGE_OPEN, &nowhere,
                         "cuda:%d: out of range, there are %d GPUs", backend->device, count);
}

/* cuDNN has no engine for most convolutions in bfloat16 on GPUs before compute capability 8.0
 * (tests/golden/cudnn_plans.tsv). The rule is the same for networks without convolutions. */
static int check_type(const struct stk_backend *backend, const struct stk_cuda_card *card,
                      stoker_dtype storage, stoker_error *error)
{
    enum { BFLOAT16_MAJOR_MIN = 8 };
    if (storage != STOKER_DTYPE_BFLOAT16 || card->major >= BFLOAT16_MAJOR_MIN)
        return STOKER_OK;
    return stk_error_set(error, STOKER_ENOTSUP, STOKER_STAGE_OPEN, &nowhere,
                         "precision bfloat16: cuda:%d (%s) has compute capability %d.%d, and "
                         "bfloat16 needs 8.0; float16 runs there",
                         backend->device, card->name, card->major, card->minor);
}

/* The driver looks for code that fits the GPU when a kernel is first launched: too late for another
 * back end to be chosen. */
static int check_card(const struct stk_backend *backend, const struct stk_cuda_card *card,
                      stoker_error *error)
{
    const struct stk_fatbin_targets targets = stk_train_targets();
    char why[WHY_BYTES];
    if (targets.toolkit == 0 ||
        stk_cuda_card_runs(card, targets.toolkit, targets.cards, why, sizeof(why)))
        return STOKER_OK;
    return stk_error_set(error, STOKER_EDEVICE, STOKER_STAGE_OPEN, &nowhere, "cuda:%d: %s",
                         backend->device, why);
}

static int read_card(struct stk_backend *backend, stoker_dtype storage, stoker_error *error)
{
    struct stk_cuda_card card;
    const int rc =
        stk_cuda_check(backend, stk_cuda_card_read(&backend->runtime, backend->device, &card),
                       "cudaGetDeviceProperties", error);
    if (rc != STOKER_OK)
        return rc;
    backend->reads_pageable = card.reads_pageable;
    _Static_assert(sizeof(card.id) == sizeof(backend->id), "16 bytes");
    memcpy(&backend->id, card.id, sizeof(backend->id));
    const int type_rc = check_type(backend, &card, storage, error);
    return type_rc != STOKER_OK ? type_rc : check_card(backend, &card, error);
}

static int open_context(struct stk_backend *backend, stoker_error *error)
{
    const char *what = NULL;
    const cudaError_t code =
        stk_cuda_context_open(&backend->context, &backend->runtime, backend->device, &what);
    return stk_cuda_check(backend, code, what, error);
}

static int load_kernels(struct stk_backend *backend, stoker_error *error)
{
    size_t bytes = 0;
    const void *const image = stk_train_fatbin(&bytes);
    if (image == NULL)
        return stk_error_set(error, STOKER_EDEVICE, STOKER_STAGE_OPEN, &nowhere,
                             "back end cuda: built without nvcc, so there are no kernels");
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

/* What needs the device to be current. */
static int set_up(struct stk_backend *backend, stoker_error *error)
{
    int rc = stk_cuda_make_stream(backend, &backend->stream, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_make_event(backend, &backend->idle, error);
    if (rc == STOKER_OK && backend->reads_pageable)
        rc = stk_cuda_make_event(backend, &backend->copied, error);
    if (rc == STOKER_OK)
        rc = load_kernels(backend, error);
    return rc;
}

int stk_cuda_device_open(struct stk_backend *backend, const struct stk_backend_options *options,
                         int *before, stoker_error *error)
{
    backend->device = (int)options->device;
    backend->uncaptured = options->uncaptured;
    const char *why = NULL;
    int rc = stk_cuda_runtime_load(&backend->runtime, &why);
    if (rc != STOKER_OK)
        return stk_error_set(error, rc, STOKER_STAGE_OPEN, &(struct stk_place)STK_NOWHERE,
                             "back end cuda: %s", why);
    rc = find_device(backend, error);
    if (rc == STOKER_OK)
        rc = read_card(backend, options->storage, error);
    if (rc == STOKER_OK)
        rc = open_context(backend, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_enter(backend, before, error);
    if (rc != STOKER_OK)
        return rc;
    rc = set_up(backend, error);
    if (rc != STOKER_OK)
        stk_cuda_leave(backend, *before);
    return rc;
}

void stk_cuda_device_close(struct stk_backend *backend)
{
    if (backend->library != NULL)
        (void)stk_cuda_check(backend, backend->runtime.cudaLibraryUnload(backend->library),
                             "unload", NULL);
    stk_cuda_drop_event(backend, backend->idle);
    stk_cuda_drop_event(backend, backend->copied);
    stk_cuda_drop_stream(backend, backend->stream);
    stk_free(backend->kernels);
}
