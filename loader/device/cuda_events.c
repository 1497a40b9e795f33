/* cuda_events.c - events of a GPU, and the host waiting for them. */
#include "loader/device/cuda.h"

#include <time.h>

#include "loader/base/clock.h"
#include "loader/base/cpu/thread.h"

enum {
    SPIN_NS = 30000,   /* a sleep and its end cost as much */
    SPIN_TURNS = 32,   /* between two looks, which take a lock of the driver; about 1 us */
    NAP_NS_MIN = 5000, /* between two looks at first, */
    NAP_NS_MAX = 50000 /* and in the end */
};

/* Blocking: cudaEventSynchronize() sleeps. By default it spins, or keeps yielding. */
void *stk_gpu_event_create(struct stk_device *device, char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    cudaEvent_t event = NULL;
    struct stk_gpu_before before;
    if (stk_gpu_enter_or_explain(gpu, &before, why) < 0)
        return NULL;
    const cudaError_t code = gpu->runtime.cudaEventCreateWithFlags(
        &event, cudaEventDisableTiming | cudaEventBlockingSync);
    stk_gpu_leave(gpu, before);
    return stk_gpu_explain(gpu, code, "cudaEventCreate", why) == 0 ? event : NULL;
}

/* Destroyed with this GPU current if that can be done, else anyway. */
void stk_gpu_event_destroy(struct stk_device *device, void *event)
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    struct stk_gpu_before before;
    const bool entered = stk_gpu_enter(gpu, &before) == 0;
    (void)stk_gpu_check(gpu, gpu->runtime.cudaEventDestroy(event), "cudaEventDestroy");
    if (entered)
        stk_gpu_leave(gpu, before);
}

/* As done(), for the current GPU. */
static int query(struct stk_gpu *gpu, cudaEvent_t event)
{
    const cudaError_t code = gpu->runtime.cudaEventQuery(event);
    if (code == cudaErrorNotReady) {
        (void)gpu->runtime.cudaGetLastError(); /* not an error, but recorded as one */
        return 0;
    }
    const int rc = stk_gpu_check(gpu, code, "cudaEventQuery");
    return rc < 0 ? rc : 1;
}

int stk_gpu_done(struct stk_device *device, void *event)
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    struct stk_gpu_before before;
    int rc = stk_gpu_enter(gpu, &before);
    if (rc < 0)
        return rc;
    rc = query(gpu, event);
    stk_gpu_leave(gpu, before);
    return rc;
}

static void nap(uint64_t nap_ns)
{
    (void)nanosleep(&(struct timespec){ .tv_nsec = (long)nap_ns }, NULL);
}

/* As done(): spins for SPIN_NS, but not past the deadline. */
static int spin(struct stk_gpu *gpu, cudaEvent_t event, uint64_t deadline_ns)
{
    const uint64_t now_ns = stk_now_ns();
    const uint64_t end_ns = deadline_ns - now_ns > SPIN_NS ? now_ns + SPIN_NS : deadline_ns;
    int rc;
    while ((rc = query(gpu, event)) == 0 && stk_now_ns() < end_ns)
        for (int turn = 0; turn < SPIN_TURNS; turn++)
            stk_spin_pause();
    return rc;
}

/* As done(). CUDA has no wait with a limit: look now and then. */
static int look_until(struct stk_gpu *gpu, cudaEvent_t event, uint64_t deadline_ns)
{
    uint64_t nap_ns = NAP_NS_MIN;
    uint64_t now_ns;
    int rc;
    while ((rc = query(gpu, event)) == 0 && (now_ns = stk_now_ns()) < deadline_ns) {
        nap(deadline_ns - now_ns < nap_ns ? deadline_ns - now_ns : nap_ns);
        nap_ns = nap_ns < NAP_NS_MAX / 2 ? 2 * nap_ns : NAP_NS_MAX;
    }
    return rc;
}

static int wait_until(struct stk_gpu *gpu, cudaEvent_t event, uint64_t deadline_ns, bool spare_core)
{
    if (spare_core && stk_now_ns() < deadline_ns) {
        const int rc = spin(gpu, event, deadline_ns);
        if (rc != 0)
            return rc;
    }
    if (deadline_ns != UINT64_MAX)
        return look_until(gpu, event, deadline_ns);
    const int rc =
        stk_gpu_check(gpu, gpu->runtime.cudaEventSynchronize(event), "cudaEventSynchronize");
    return rc < 0 ? rc : 1;
}

int stk_gpu_wait(struct stk_device *device, void *event, uint64_t deadline_ns, bool spare_core)
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    struct stk_gpu_before before;
    int rc = stk_gpu_enter(gpu, &before);
    if (rc < 0)
        return rc;
    rc = wait_until(gpu, event, deadline_ns, spare_core);
    stk_gpu_leave(gpu, before);
    return rc;
}
