/* cuda.c - the device that is a GPU.
 *
 *   consumer's stream   ... kernels of batch b ─▶ released ┐
 *                                                          ▼ waits, on the device
 *   our copy stream     ... ──────────────── copy of batch b + buffers ─▶ copied ┐
 *                                                                                ▼ waits
 *   consumer's stream   ...                                     kernels of batch b + buffers
 *
 * The host waits for none of it. The caller's current device is the same after each call.
 */
#include "loader/device/device.h"

#include <stdio.h>
#include <time.h>

#ifdef STOKER_HAVE_CUDA
#include "loader/base/clock.h"
#include "loader/base/cuda_runtime.h"
#include "loader/base/thread.h"

enum { DRAIN_POLL_NS = 50000 };

struct cuda {
    struct stk_device device; /* first: the part that others see */
    struct stk_cuda_runtime runtime;
    cudaStream_t stream;   /* the copies', in order; NULL = not made */
    cudaLibrary_t library; /* NULL = no kernels loaded */
};

static struct cuda *cuda_of(struct stk_device *device)
{
    return (struct cuda *)device;
}

/* The error in words. It is removed from cudaGetLastError: the program would take it for its own. */
static const char *words(const struct stk_cuda_runtime *runtime, cudaError_t code)
{
    (void)runtime->cudaGetLastError();
    return runtime->cudaGetErrorString(code);
}

/* 0, or the device has failed. */
static int check(struct cuda *cuda, cudaError_t code, const char *what)
{
    if (code == cudaSuccess)
        return 0;
    return stk_device_fail(&cuda->device, "cuda:%u: %s: %s (%d)", (unsigned)cuda->device.index,
                           what, words(&cuda->runtime, code), (int)code);
}

/* ---- the current device, which is the caller's ---- */

static int enter(struct cuda *cuda, int *before)
{
    int rc = check(cuda, cuda->runtime.cudaGetDevice(before), "cudaGetDevice");
    if (rc == 0 && *before != (int)cuda->device.index)
        rc = check(cuda, cuda->runtime.cudaSetDevice((int)cuda->device.index), "cudaSetDevice");
    return rc;
}

static void leave(struct cuda *cuda, int before)
{
    if (before != (int)cuda->device.index)
        (void)check(cuda, cuda->runtime.cudaSetDevice(before), "cudaSetDevice back");
}

/* ---- open and close ---- */

static int find_device(struct cuda *cuda, uint32_t index, char why[STK_DEVICE_WHY_BYTES])
{
    int count = 0;
    const cudaError_t code = cuda->runtime.cudaGetDeviceCount(&count);
    if (code != cudaSuccess)
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s (%d)", words(&cuda->runtime, code),
                       (int)code);
    else if (count <= 0)
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "the CUDA runtime sees no GPU");
    else if (index >= (uint32_t)count)
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "there are %d GPUs", count);
    else
        return 0;
    return STOKER_EDEVICE;
}

static int make_stream(struct cuda *cuda, char why[STK_DEVICE_WHY_BYTES])
{
    int before;
    int rc = enter(cuda, &before);
    if (rc == 0) { /* non-blocking: the legacy default stream does not hold our copies up */
        rc = check(cuda,
                   cuda->runtime.cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking),
                   "cudaStreamCreate");
        leave(cuda, before);
    }
    const char *failure = stk_device_failure(&cuda->device);
    if (failure != NULL)
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", failure);
    return failure != NULL ? STOKER_EDEVICE : rc;
}

static void cuda_close(struct stk_device *device)
{
    struct cuda *cuda = cuda_of(device);
    if (cuda->library != NULL)
        (void)check(cuda, cuda->runtime.cudaLibraryUnload(cuda->library), "cudaLibraryUnload");
    if (cuda->stream != NULL)
        (void)check(cuda, cuda->runtime.cudaStreamDestroy(cuda->stream), "cudaStreamDestroy");
}

static int open_as(const struct stk_device_ops *ops, struct stk_device **out, uint32_t index,
                   char why[STK_DEVICE_WHY_BYTES])
{
    struct cuda *cuda = stk_calloc(1, sizeof(*cuda));
    if (cuda == NULL)
        return STOKER_ENOMEM;
    cuda->device.ops = ops;
    cuda->device.index = index;
    const char *reason = NULL;
    int rc = stk_cuda_runtime_load(&cuda->runtime, &reason);
    if (rc != 0)
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", reason);
    else
        rc = find_device(cuda, index, why);
    if (rc == 0 && ops->send != NULL)
        rc = make_stream(cuda, why);
    if (rc == 0)
        *out = &cuda->device;
    else
        stk_device_close(&cuda->device);
    return rc;
}

static int cuda_open(struct stk_device **out, uint32_t index, char why[STK_DEVICE_WHY_BYTES])
{
    return open_as(&stk_device_cuda, out, index, why);
}

static int cuda_host_open(struct stk_device **out, uint32_t index, char why[STK_DEVICE_WHY_BYTES])
{
    return open_as(&stk_device_cuda_host, out, index, why);
}

/* A GPU's function is 0. */
static bool cuda_bus_address(struct stk_device *device, uint32_t index,
                             char address[STK_BUS_ADDRESS_BYTES])
{
    struct cuda *cuda = cuda_of(device);
    struct cudaDeviceProp found;
    const cudaError_t code = cuda->runtime.cudaGetDeviceProperties(&found, (int)index);
    if (code != cudaSuccess) {
        (void)words(&cuda->runtime, code);
        return false;
    }
    (void)snprintf(address, STK_BUS_ADDRESS_BYTES, "%04x:%02x:%02x.0",
                   (unsigned)found.pciDomainID & 0xFFFFU, (unsigned)found.pciBusID & 0xFFU,
                   (unsigned)found.pciDeviceID & 0xFFU);
    return true;
}

/* ---- memory ---- */

/* Portable: page-locked for every GPU, so that several loaders and the program may use it. This device is made
 * current for the call, which would otherwise initialise whichever device is current. */
static int cuda_pin(struct stk_device *device, struct stk_region *region,
                    char why[STK_DEVICE_WHY_BYTES])
{
    struct cuda *cuda = cuda_of(device);
    int before;
    if (enter(cuda, &before) < 0) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", stk_device_failure(device));
        return STOKER_EDEVICE;
    }
    const cudaError_t code =
        cuda->runtime.cudaHostRegister(region->base, region->bytes, cudaHostRegisterPortable);
    leave(cuda, before);
    if (code != cudaSuccess) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "cudaHostRegister of %zu bytes: %s (%d)",
                       region->bytes, words(&cuda->runtime, code), (int)code);
        return STOKER_EPIN;
    }
    region->locked = true;
    return 0;
}

static void cuda_unpin(struct stk_device *device, struct stk_region *region)
{
    struct cuda *cuda = cuda_of(device);
    int before;
    const bool entered = enter(cuda, &before) == 0;
    (void)check(cuda, cuda->runtime.cudaHostUnregister(region->base), "cudaHostUnregister");
    if (entered)
        leave(cuda, before);
    region->locked = false;
}

static void *cuda_alloc(struct stk_device *device, size_t bytes, char why[STK_DEVICE_WHY_BYTES])
{
    struct cuda *cuda = cuda_of(device);
    void *memory = NULL;
    int before;
    if (enter(cuda, &before) < 0) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", stk_device_failure(device));
        return NULL;
    }
    const cudaError_t code = cuda->runtime.cudaMalloc(&memory, bytes);
    leave(cuda, before);
    if (code == cudaSuccess)
        return memory;
    (void)snprintf(why, STK_DEVICE_WHY_BYTES, "cudaMalloc of %zu bytes: %s (%d)", bytes,
                   words(&cuda->runtime, code), (int)code);
    return NULL;
}

static int cuda_available(struct stk_device *device, uint64_t *bytes,
                          char why[STK_DEVICE_WHY_BYTES])
{
    struct cuda *cuda = cuda_of(device);
    size_t available = 0, all = 0;
    int before;
    if (enter(cuda, &before) < 0) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", stk_device_failure(device));
        return STOKER_EDEVICE;
    }
    const cudaError_t code = cuda->runtime.cudaMemGetInfo(&available, &all);
    leave(cuda, before);
    *bytes = available;
    if (code == cudaSuccess)
        return 0;
    (void)snprintf(why, STK_DEVICE_WHY_BYTES, "cudaMemGetInfo: %s (%d)",
                   words(&cuda->runtime, code), (int)code);
    return STOKER_EDEVICE;
}

static void cuda_free(struct stk_device *device, void *memory)
{
    struct cuda *cuda = cuda_of(device);
    int before; /* freed on this device if that can be made current, else anyway */
    const bool entered = enter(cuda, &before) == 0;
    (void)check(cuda, cuda->runtime.cudaFree(memory), "cudaFree");
    if (entered)
        leave(cuda, before);
}

/* ---- events and copies ---- */

static void *cuda_event_create(struct stk_device *device, char why[STK_DEVICE_WHY_BYTES])
{
    struct cuda *cuda = cuda_of(device);
    cudaEvent_t event = NULL;
    int before;
    if (enter(cuda, &before) < 0) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", stk_device_failure(device));
        return NULL;
    }
    const cudaError_t code = cuda->runtime.cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    leave(cuda, before);
    if (code == cudaSuccess)
        return event;
    (void)snprintf(why, STK_DEVICE_WHY_BYTES, "cudaEventCreate: %s (%d)",
                   words(&cuda->runtime, code), (int)code);
    return NULL;
}

static void cuda_event_destroy(struct stk_device *device, void *event)
{
    struct cuda *cuda = cuda_of(device);
    (void)check(cuda, cuda->runtime.cudaEventDestroy(event), "cudaEventDestroy");
}

/* ---- kernels ---- */

static int cuda_load(struct stk_device *device, const void *image, const char *name, void **kernel,
                     char why[STK_DEVICE_WHY_BYTES])
{
    struct cuda *cuda = cuda_of(device);
    const struct stk_cuda_runtime *runtime = &cuda->runtime;
    const char *what = "cudaLibraryLoadData";
    cudaKernel_t found = NULL;
    int before;
    if (enter(cuda, &before) < 0) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", stk_device_failure(device));
        return STOKER_EDEVICE;
    }
    cudaError_t code = cudaSuccess;
    if (cuda->library == NULL)
        code = runtime->cudaLibraryLoadData(&cuda->library, image, NULL, NULL, 0, NULL, NULL, 0);
    if (code == cudaSuccess) {
        what = "cudaLibraryGetKernel";
        code = runtime->cudaLibraryGetKernel(&found, cuda->library, name);
    }
    leave(cuda, before);
    *kernel = found;
    if (code == cudaSuccess)
        return 0;
    (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s of %s: %s (%d)", what, name, words(runtime, code),
                   (int)code);
    return STOKER_EDEVICE;
}

static int launch(struct cuda *cuda, const struct stk_device_launch *launched)
{
    void *arguments[] = { (void *)launched->arguments };
    const dim3 grid = { launched->grid_x, launched->grid_y, 1 };
    const dim3 block = { launched->block_threads, 1, 1 };
    return check(
        cuda,
        cuda->runtime.cudaLaunchKernel(launched->kernel, grid, block, arguments, 0, cuda->stream),
        "cudaLaunchKernel");
}

static int cuda_send(struct stk_device *device, const struct stk_send *send)
{
    struct cuda *cuda = cuda_of(device);
    const struct stk_cuda_runtime *runtime = &cuda->runtime;
    if (stk_device_failure(device) != NULL)
        return STOKER_EDEVICE;
    int before;
    int rc = enter(cuda, &before);
    if (rc < 0)
        return rc;
    if (send->after != NULL)
        rc = check(cuda, runtime->cudaStreamWaitEvent(cuda->stream, send->after, 0),
                   "cudaStreamWaitEvent");
    for (uint32_t i = 0; rc == 0 && i < send->piece_count; i++)
        rc = check(cuda,
                   runtime->cudaMemcpyAsync(send->pieces[i].to, send->pieces[i].from,
                                            send->pieces[i].bytes, cudaMemcpyHostToDevice,
                                            cuda->stream),
                   "cudaMemcpyAsync to the device");
    for (uint32_t i = 0; rc == 0 && i < send->launch_count; i++)
        rc = launch(cuda, &send->launches[i]);
    if (rc == 0)
        rc = check(cuda, runtime->cudaEventRecord(send->done, cuda->stream), "cudaEventRecord");
    leave(cuda, before);
    return rc;
}

static int cuda_wait_on(struct stk_device *device, void *event, void *stream)
{
    struct cuda *cuda = cuda_of(device);
    int before; /* the default stream is that of the current device */
    int rc = enter(cuda, &before);
    if (rc < 0)
        return rc;
    rc = check(cuda, cuda->runtime.cudaStreamWaitEvent(stream, event, 0),
               "cudaStreamWaitEvent of the consumer's stream");
    leave(cuda, before);
    return rc;
}

static int record_on(struct cuda *cuda, cudaEvent_t event, cudaStream_t stream)
{
    int before;
    int rc = enter(cuda, &before);
    if (rc < 0)
        return rc;
    rc = check(cuda, cuda->runtime.cudaEventRecord(event, stream),
               "cudaEventRecord on the consumer's stream");
    leave(cuda, before);
    return rc;
}

/* If the event cannot be marked, the host waits: the memory must not be reused while the stream uses it. */
static int cuda_mark_on(struct stk_device *device, void *event, void *stream)
{
    struct cuda *cuda = cuda_of(device);
    const int rc = record_on(cuda, event, stream);
    if (rc < 0)
        (void)cuda->runtime.cudaStreamSynchronize(stream);
    return rc;
}

static int cuda_finish(struct stk_device *device, void *stream)
{
    struct cuda *cuda = cuda_of(device);
    int before;
    int rc = enter(cuda, &before);
    if (rc < 0)
        return rc;
    rc = check(cuda, cuda->runtime.cudaStreamSynchronize(stream),
               "cudaStreamSynchronize of the consumer's stream");
    leave(cuda, before);
    return rc;
}

static int cuda_done(struct stk_device *device, void *event)
{
    struct cuda *cuda = cuda_of(device);
    const cudaError_t code = cuda->runtime.cudaEventQuery(event);
    if (code == cudaErrorNotReady) {
        (void)cuda->runtime.cudaGetLastError(); /* not an error, but recorded as one */
        return 0;
    }
    const int rc = check(cuda, code, "cudaEventQuery");
    return rc < 0 ? rc : 1;
}

static int cuda_wait(struct stk_device *device, void *event, uint64_t deadline_ns)
{
    struct cuda *cuda = cuda_of(device);
    if (deadline_ns == UINT64_MAX) {
        const int rc =
            check(cuda, cuda->runtime.cudaEventSynchronize(event), "cudaEventSynchronize");
        return rc < 0 ? rc : 1;
    }
    int rc;
    while ((rc = cuda_done(device, event)) == 0 && stk_now_ns() < deadline_ns)
        stk_spin_pause();
    return rc;
}

/* Only a query can find out, without waiting forever, if copies are still in flight. A device that answers
 * twice with an error is lost, and a lost device touches no memory. */
static bool cuda_drain(struct stk_device *device, uint64_t deadline_ns)
{
    struct cuda *cuda = cuda_of(device);
    cudaError_t code;
    while ((code = cuda->runtime.cudaStreamQuery(cuda->stream)) == cudaErrorNotReady) {
        (void)cuda->runtime.cudaGetLastError();
        if (stk_now_ns() >= deadline_ns)
            return false;
        nanosleep(&(struct timespec){ .tv_nsec = DRAIN_POLL_NS }, NULL);
    }
    if (check(cuda, code, "cudaStreamQuery") < 0)
        (void)check(cuda, cuda->runtime.cudaStreamSynchronize(cuda->stream),
                    "cudaStreamSynchronize");
    return true;
}

const struct stk_device_ops stk_device_cuda = {
    .name = "cuda",
    .kind = STOKER_DEVICE_CUDA,
    .open = cuda_open,
    .close = cuda_close,
    .bus_address = cuda_bus_address,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .available = cuda_available,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .load = cuda_load,
    .send = cuda_send,
    .wait_on = cuda_wait_on,
    .mark_on = cuda_mark_on,
    .done = cuda_done,
    .wait = cuda_wait,
    .drain = cuda_drain,
};

const struct stk_device_ops stk_device_cuda_host = {
    .name = "cuda-host",
    .kind = STOKER_DEVICE_CUDA_HOST,
    .open = cuda_host_open,
    .close = cuda_close,
    .bus_address = cuda_bus_address,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .finish = cuda_finish,
};

#else

static int no_cuda_open(struct stk_device **out, uint32_t index, char why[STK_DEVICE_WHY_BYTES])
{
    (void)out;
    (void)index;
    (void)snprintf(why, STK_DEVICE_WHY_BYTES, "libstoker was built without CUDA");
    return STOKER_EDEVICE;
}

const struct stk_device_ops stk_device_cuda = { .name = "cuda",
                                                .kind = STOKER_DEVICE_CUDA,
                                                .open = no_cuda_open };
const struct stk_device_ops stk_device_cuda_host = { .name = "cuda-host",
                                                     .kind = STOKER_DEVICE_CUDA_HOST,
                                                     .open = no_cuda_open };
#endif
