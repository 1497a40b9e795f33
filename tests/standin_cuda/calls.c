/* calls.c - the functions of the CUDA runtime that the stand-in has, and what a test controls. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

struct standin_state standin = { .devices = 1, .delay_us = 200 };

static _Thread_local int current_device;
static _Thread_local cudaError_t last_error;
static _Thread_local bool own_calls;

int standin_current(void)
{
    return current_device;
}

/* ---- controls ---- */

void standin_cuda_reset(int devices)
{
    standin_streams_end();
    atomic_store(&standin.devices, devices);
    atomic_store(&standin.no_driver, 0);
    atomic_store(&standin.calls, 0U);
    atomic_store(&standin.fail_at, 0U);
    atomic_store(&standin.failed, false);
    atomic_store(&standin.lost, 0);
    atomic_store(&standin.delay_us, 200U);
    atomic_store(&standin.lie, STANDIN_CUDA_HONEST);
    atomic_store(&standin.copies, 0U);
    atomic_store(&standin.launches, 0U);
    atomic_store(&standin.late_copies, 0U);
    atomic_store(&standin.staged, 0U);
    atomic_store(&standin.violations, 0U);
    current_device = 0;
    last_error = cudaSuccess;
}

void standin_cuda_no_driver(int code)
{
    atomic_store(&standin.no_driver, code);
}

void standin_cuda_fail(uint64_t nth, int code, bool lost)
{
    atomic_store(&standin.failed, false);
    atomic_store(&standin.fail_code, code);
    atomic_store(&standin.fail_loses, lost);
    atomic_store(&standin.fail_at, atomic_load(&standin.calls) + nth);
}

bool standin_cuda_failed(void)
{
    return atomic_load(&standin.failed);
}

void standin_cuda_own_calls(bool own)
{
    own_calls = own;
}

void standin_cuda_delay(uint32_t most_us)
{
    atomic_store(&standin.delay_us, most_us);
}

void standin_cuda_lie(enum standin_cuda_lie lie)
{
    atomic_store(&standin.lie, (int)lie);
}

uint64_t standin_cuda_calls(void)
{
    return atomic_load(&standin.calls);
}

uint64_t standin_cuda_copies(void)
{
    return atomic_load(&standin.copies);
}

uint64_t standin_cuda_copies_after_failure(void)
{
    return atomic_load(&standin.late_copies);
}

uint64_t standin_cuda_staged(void)
{
    return atomic_load(&standin.staged);
}

uint64_t standin_cuda_violations(void)
{
    return atomic_load(&standin.violations);
}

int64_t standin_cuda_live(void)
{
    return atomic_load(&standin.live);
}

/* ---- what every call begins and ends with ---- */

static cudaError_t end(cudaError_t code)
{
    if (code != cudaSuccess && code != cudaErrorNotReady)
        last_error = code;
    return code;
}

/* Count the call; what it answers if it is to fail. */
static cudaError_t begin(void)
{
    if (own_calls)
        return cudaSuccess;
    const uint64_t call = atomic_fetch_add(&standin.calls, 1U) + 1;
    const int lost = atomic_load(&standin.lost);
    if (lost != 0)
        return (cudaError_t)lost;
    if (call != atomic_load(&standin.fail_at))
        return cudaSuccess;
    atomic_store(&standin.failed, true);
    const int code = atomic_load(&standin.fail_code);
    if (atomic_load(&standin.fail_loses))
        standin_lose(code);
    return (cudaError_t)code;
}

#define BEGIN                                                                                      \
    do {                                                                                           \
        const cudaError_t refused = begin();                                                       \
        if (refused != cudaSuccess)                                                                \
            return end(refused);                                                                   \
    } while (0)

/* ---- devices and errors ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    BEGIN;
    const int no_driver = atomic_load(&standin.no_driver);
    *count = atomic_load(&standin.devices);
    if (no_driver != 0)
        return end((cudaError_t)no_driver);
    return end(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *device)
{
    BEGIN;
    *device = current_device;
    return end(cudaSuccess);
}

cudaError_t cudaSetDevice(int device)
{
    BEGIN;
    if (device < 0 || device >= atomic_load(&standin.devices))
        return end(cudaErrorInvalidDevice);
    current_device = device;
    return end(cudaSuccess);
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t code = last_error;
    last_error = cudaSuccess;
    return code;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

const char *cudaGetErrorString(cudaError_t code)
{
    switch (code) {
    case cudaSuccess:
        return "no error";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorIllegalAddress:
        return "an illegal memory access was encountered";
    case cudaErrorInvalidValue:
        return "invalid argument";
    default:
        return "unknown error";
    }
}

/* ---- memory ---- */

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    BEGIN;
    return end(standin_memory_alloc(out, bytes));
}

/* What gives back does so even when it reports an error, which may be that of earlier work. */
cudaError_t cudaFree(void *memory)
{
    const cudaError_t refused = begin();
    const cudaError_t code = standin_memory_free(memory);
    return end(refused != cudaSuccess ? refused : code);
}

cudaError_t cudaHostRegister(void *base, size_t bytes, unsigned flags)
{
    (void)flags;
    BEGIN;
    return end(standin_pin(base, bytes));
}

cudaError_t cudaHostUnregister(void *base)
{
    const cudaError_t refused = begin();
    const cudaError_t code = standin_unpin(base);
    return end(refused != cudaSuccess ? refused : code);
}

/* Check the direction and where the bytes lie; set what the stream is to use. */
static cudaError_t place_copy(struct standin_operation *copy, enum cudaMemcpyKind kind)
{
    bool to_inside;
    bool from_inside;
    const bool to_device = standin_on_device(copy->to, copy->bytes, &to_inside);
    const bool from_device = standin_on_device(copy->from, copy->bytes, &from_inside);
    const bool wants_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool wants_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind != cudaMemcpyDefault && (to_device != wants_to || from_device != wants_from))
        return cudaErrorInvalidMemcpyDirection;
    if ((to_device && !to_inside) || (from_device && !from_inside))
        return cudaErrorInvalidValue;
    const void *host = to_device ? copy->from : copy->to;
    if (to_device != from_device && standin_pin_use(host, copy->bytes, 1))
        copy->pinned = host;
    if (to_device)
        copy->to = standin_cuda_view(copy->to);
    if (from_device)
        copy->from = standin_cuda_view(copy->from);
    if (to_device && !from_device && copy->pinned == NULL) {
        atomic_fetch_add(&standin.staged, 1U);
        copy->staged = malloc(copy->bytes);
        if (copy->staged == NULL)
            abort();
        copy->from = memcpy(copy->staged, copy->from, copy->bytes);
    }
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    if (standin_cuda_failed() && !own_calls)
        atomic_fetch_add(&standin.late_copies, 1U);
    BEGIN;
    struct standin_operation copy = {
        .kind = STANDIN_COPY, .to = to, .from = from, .bytes = bytes
    };
    const cudaError_t code = place_copy(&copy, kind);
    if (code != cudaSuccess)
        return end(code);
    atomic_fetch_add(&standin.copies, 1U);
    standin_stream_put(stream, &copy);
    if (kind == cudaMemcpyDeviceToHost && copy.pinned == NULL)
        standin_stream_wait_idle(stream); /* to pageable memory the call waits */
    return end(cudaSuccess);
}

/* ---- streams ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    (void)flags;
    BEGIN;
    return end(standin_stream_create(out));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    const cudaError_t refused = begin();
    standin_stream_destroy(stream);
    return end(refused);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    BEGIN;
    return end(standin_stream_idle(stream) ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    BEGIN;
    standin_stream_wait_idle(stream);
    return end(cudaSuccess);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    BEGIN;
    if (!standin_stream_forgets(stream))
        standin_event_wait_on(event, stream);
    return end(cudaSuccess);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void *argument)
{
    BEGIN;
    const struct standin_operation operation = { .kind = STANDIN_CALL,
                                                 .call = call,
                                                 .argument = argument };
    standin_stream_put(stream, &operation);
    return end(cudaSuccess);
}

/* ---- kernels ---- */

void standin_cuda_kernels(const struct standin_cuda_kernel *kernels)
{
    standin.kernels = kernels;
}

uint64_t standin_cuda_launches(void)
{
    return atomic_load(&standin.launches);
}

struct CUlib_st {
    const void *code;
};

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, enum cudaJitOption *jit,
                                void **jit_values, unsigned jit_count,
                                enum cudaLibraryOption *options, void **option_values,
                                unsigned option_count)
{
    (void)jit;
    (void)jit_values;
    (void)jit_count;
    (void)options;
    (void)option_values;
    (void)option_count;
    BEGIN;
    if (code == NULL)
        return end(cudaErrorInvalidValue);
    *library = malloc(sizeof(**library));
    if (*library == NULL)
        abort();
    (*library)->code = code;
    atomic_fetch_add(&standin.live, 1);
    return end(cudaSuccess);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    const cudaError_t refused = begin();
    free(library);
    atomic_fetch_sub(&standin.live, 1);
    return end(refused);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t library, const char *name)
{
    (void)library;
    BEGIN;
    const struct standin_cuda_kernel *kernel = standin.kernels;
    while (kernel != NULL && kernel->name != NULL && strcmp(kernel->name, name) != 0)
        kernel++;
    if (kernel == NULL || kernel->name == NULL)
        return end(cudaErrorSymbolNotFound);
    *out = (cudaKernel_t)(uintptr_t)kernel;
    return end(cudaSuccess);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t stream)
{
    (void)shared_bytes;
    BEGIN;
    const struct standin_cuda_kernel *kernel = function;
    if (current_device != standin_stream_device(stream))
        return end(cudaErrorInvalidResourceHandle);
    if (grid.x == 0 || grid.y == 0 || grid.y > 65535 || grid.z != 1 || block.x == 0 ||
        block.x > 1024)
        return end(cudaErrorInvalidConfiguration);
    struct standin_operation operation = { .kind = STANDIN_LAUNCH, .kernel = kernel };
    operation.argument = malloc(kernel->argument_bytes);
    if (operation.argument == NULL)
        abort();
    memcpy(operation.argument, arguments[0], kernel->argument_bytes);
    atomic_fetch_add(&standin.launches, 1U);
    standin_stream_put(stream, &operation);
    return end(cudaSuccess);
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    (void)flags;
    BEGIN;
    return end(standin_event_create(out));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    const cudaError_t refused = begin();
    standin_event_destroy(event);
    return end(refused);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    BEGIN;
    if (standin_event_device(event) != standin_stream_device(stream))
        return end(cudaErrorInvalidResourceHandle);
    standin_event_mark(event, stream);
    return end(cudaSuccess);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    BEGIN;
    if (atomic_load_explicit(&standin.lie, memory_order_relaxed) == STANDIN_CUDA_SAYS_DONE)
        return end(cudaSuccess);
    return end(standin_event_done(event) ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    BEGIN;
    standin_event_wait(event);
    return end(cudaSuccess);
}
