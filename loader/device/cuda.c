/* cuda.c - the device that is a GPU.
 *
 *   consumer's stream   ... kernels of batch b ─▶ released ┐
 *                                                          ▼ waits, on the device
 *   our copy stream     ... ──────────────── copy of batch b + buffers ─▶ copied ┐
 *                                                                                ▼ waits
 *   our kernel stream   ...            (only with kernels)       conversion of it ─▶ ready ┐
 *                                                                                          ▼ waits
 *   consumer's stream   ...                                               kernels of batch b + buffers
 *
 * The host waits for none of it. What is current in the caller's thread is the same after each
 * call, and no other GPU than this one is initialized (base/cuda_context).
 */
#include "loader/device/device.h"

#include <stdio.h>

#ifdef STOKER_HAVE_CUDA
#include "loader/device/cuda.h"

/* ---- open and close ---- */

static int find_device(struct stk_gpu *gpu, uint32_t index, char why[STK_DEVICE_WHY_BYTES])
{
    int count = 0;
    const int rc = stk_cuda_count(&gpu->runtime, &count, why, STK_DEVICE_WHY_BYTES);
    if (rc != 0)
        return rc;
    if (index >= (uint32_t)count) {
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "there are %d GPUs", count);
        return STOKER_EDEVICE;
    }
    return stk_gpu_explain(gpu, stk_cuda_card_read(&gpu->runtime, (int)index, &gpu->card),
                           "cudaGetDeviceProperties", why);
}

static int open_context(struct stk_gpu *gpu, char why[STK_DEVICE_WHY_BYTES])
{
    const char *what = NULL;
    const cudaError_t code =
        stk_cuda_context_open(&gpu->context, &gpu->runtime, (int)gpu->device.index, &what);
    return stk_gpu_explain(gpu, code, what, why);
}

static void cuda_close(struct stk_device *device)
{
    struct stk_gpu *gpu = stk_gpu_of(device);
    struct stk_gpu_before before;
    if (gpu->library == NULL && gpu->copies == NULL && gpu->kernels == NULL)
        return;
    const bool entered = stk_gpu_enter(gpu, &before) == 0;
    if (gpu->library != NULL)
        (void)stk_gpu_check(gpu, gpu->runtime.cudaLibraryUnload(gpu->library), "cudaLibraryUnload");
    stk_gpu_destroy_streams(gpu);
    if (entered)
        stk_gpu_leave(gpu, before);
}

static int open_as(const struct stk_device_ops *ops, struct stk_device **out, uint32_t index,
                   char why[STK_DEVICE_WHY_BYTES])
{
    struct stk_gpu *gpu = stk_calloc(1, sizeof(*gpu));
    if (gpu == NULL)
        return STOKER_ENOMEM;
    gpu->device.ops = ops;
    gpu->device.index = index;
    const char *reason = NULL;
    int rc = stk_cuda_runtime_load(&gpu->runtime, &reason);
    if (rc != 0)
        (void)snprintf(why, STK_DEVICE_WHY_BYTES, "%s", reason);
    else
        rc = find_device(gpu, index, why);
    if (rc == 0)
        rc = open_context(gpu, why);
    if (rc == 0 && ops->send != NULL)
        rc = stk_gpu_make_streams(gpu, why);
    if (rc == 0)
        *out = &gpu->device;
    else
        stk_device_close(&gpu->device);
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
    struct stk_gpu *gpu = stk_gpu_of(device);
    struct stk_cuda_card found;
    const cudaError_t code = stk_cuda_card_read(&gpu->runtime, (int)index, &found);
    if (code != cudaSuccess) {
        (void)stk_gpu_words(&gpu->runtime, code);
        return false;
    }
    (void)snprintf(address, STK_BUS_ADDRESS_BYTES, "%04x:%02x:%02x.0",
                   (unsigned)found.pci_domain & 0xFFFFU, (unsigned)found.pci_bus & 0xFFU,
                   (unsigned)found.pci_device & 0xFFU);
    return true;
}

const struct stk_device_ops stk_device_cuda = {
    .name = "cuda",
    .kind = STOKER_DEVICE_CUDA,
    .open = cuda_open,
    .close = cuda_close,
    .bus_address = cuda_bus_address,
    .pin = stk_gpu_pin,
    .unpin = stk_gpu_unpin,
    .alloc = stk_gpu_alloc,
    .free = stk_gpu_free,
    .available = stk_gpu_available,
    .event_create = stk_gpu_event_create,
    .event_destroy = stk_gpu_event_destroy,
    .load = stk_gpu_load,
    .send = stk_gpu_send,
    .wait_on = stk_gpu_wait_on,
    .mark_on = stk_gpu_mark_on,
    .done = stk_gpu_done,
    .wait = stk_gpu_wait,
    .drain = stk_gpu_drain,
};

const struct stk_device_ops stk_device_cuda_host = {
    .name = "cuda-host",
    .kind = STOKER_DEVICE_CUDA_HOST,
    .open = cuda_host_open,
    .close = cuda_close,
    .bus_address = cuda_bus_address,
    .pin = stk_gpu_pin,
    .unpin = stk_gpu_unpin,
    .finish = stk_gpu_finish,
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
