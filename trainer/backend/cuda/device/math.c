/* math.c - run and time engines that may fail (math.h). */
#include "trainer/backend/cuda/device/device.h"

#include "loader/base/clock.h"
#include "loader/base/error.h"

/* A kernel that cannot be launched leaves the context as it was. After one that faults (an illegal
 * address, say) every call of this process fails. A second time, since one look may report what is
 * over. */
static bool is_lost(struct stk_backend *backend)
{
    (void)backend->runtime.cudaGetLastError();
    const bool failed = stk_cuda_await(backend, NULL, NULL) != STOKER_OK;
    return failed && stk_cuda_await(backend, NULL, NULL) != STOKER_OK;
}

/* The code of a failed run, with its cause in *error. */
static int judge(struct stk_backend *backend, stoker_error *error)
{
    if (!is_lost(backend))
        return STOKER_ENOTSUP;
    if (error != NULL) {
        const stoker_error cause = *error;
        (void)stk_refuse_option(error, STOKER_EDEVICE, "cuda:%d is lost, it failed with: %s",
                                backend->device, cause.message);
    }
    return STOKER_EDEVICE;
}

int stk_cuda_run_once(struct stk_backend *backend, stk_cuda_enqueue *enqueue, void *work,
                      stoker_error *error)
{
    int rc = enqueue(work, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_await(backend, NULL, error);
    return rc == STOKER_OK ? rc : judge(backend, error);
}

enum { TIMED_RUNS = 5, WARM_NS = 500000000 };

struct stopwatch {
    cudaEvent_t begin, end;
};

static int time_once(struct stk_backend *backend, const struct stopwatch *watch,
                     stk_cuda_enqueue *enqueue, void *work, double *seconds, stoker_error *error)
{
    const struct stk_cuda_runtime *cuda = &backend->runtime;
    float milliseconds = 0;
    int rc = stk_cuda_record(backend, watch->begin, backend->stream, error);
    if (rc == STOKER_OK)
        rc = enqueue(work, error);
    if (rc == STOKER_OK)
        rc = stk_cuda_record(backend, watch->end, backend->stream, error);
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

/* A warm-up, then the median. The first one lasts: an idle GPU's clock is a fraction of a busy
 * one's, and engines that are timed while it rises would lose against those after them. */
static int find_median(struct stk_backend *backend, const struct stopwatch *watch,
                       stk_cuda_enqueue *enqueue, void *work, double *seconds, stoker_error *error)
{
    double sorted[TIMED_RUNS];
    const uint64_t until_ns = stk_now_ns() + (backend->warm ? 0 : WARM_NS);
    int rc;
    do
        rc = time_once(backend, watch, enqueue, work, &sorted[0], error);
    while (rc == STOKER_OK && stk_now_ns() < until_ns);
    backend->warm = true;
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

int stk_cuda_time_runs(struct stk_backend *backend, stk_cuda_enqueue *enqueue, void *work,
                       double *seconds, stoker_error *error)
{
    const struct stk_cuda_runtime *cuda = &backend->runtime;
    struct stopwatch watch = { NULL, NULL };
    int rc =
        stk_cuda_check(backend, cuda->cudaEventCreateWithFlags(&watch.begin, cudaEventBlockingSync),
                       "cudaEventCreate", error);
    if (rc == STOKER_OK)
        rc = stk_cuda_check(backend,
                            cuda->cudaEventCreateWithFlags(&watch.end, cudaEventBlockingSync),
                            "cudaEventCreate", error);
    if (rc == STOKER_OK && find_median(backend, &watch, enqueue, work, seconds, error) != STOKER_OK)
        rc = judge(backend, error);
    stk_cuda_drop_event(backend, watch.begin);
    stk_cuda_drop_event(backend, watch.end);
    return rc;
}
