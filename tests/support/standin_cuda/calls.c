/* calls.c - the functions of the CUDA runtime about memory, and what a test controls. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

#define MEMORY_BYTES (UINT64_C(1) << 34)

enum { PAGE_BYTES = 4096, CAPABILITY = 90 };

struct standin_state standin = { .devices = 1,
                                 .delay_us = 200,
                                 .memory_bytes = MEMORY_BYTES,
                                 .capability = CAPABILITY,
                                 .driver = STANDIN_DRIVER };

static _Thread_local cudaError_t last_error;
static _Thread_local bool own_calls;
static _Thread_local bool looking; /* the last call was a look at work under way */
static _Thread_local struct standin_cuda_host counted;

/* ---- controls ---- */

void standin_cuda_reset(int devices)
{
    standin_streams_end();
    atomic_store(&standin.devices, devices);
    atomic_store(&standin.no_driver, 0);
    atomic_store(&standin.driver, STANDIN_DRIVER);
    atomic_store(&standin.calls, 0U);
    atomic_store(&standin.fail_at, 0U);
    atomic_store(&standin.failed, false);
    atomic_store(&standin.lost, 0);
    atomic_store(&standin.delay_us, 200U);
    atomic_store(&standin.lie, STANDIN_CUDA_HONEST);
    atomic_store(&standin.no_capture, false);
    atomic_store(&standin.reads_pageable, false);
    atomic_store(&standin.launches, 0U);
    atomic_store(&standin.late_copies, 0U);
    atomic_store(&standin.staged, 0U);
    atomic_store(&standin.violations, 0U);
    atomic_store(&standin.strays, 0U);
    atomic_store(&standin.graph_launches, 0U);
    atomic_store(&standin.copies, 0U);
    standin_graph_forget();
    atomic_store(&standin.memory_bytes, MEMORY_BYTES);
    atomic_store(&standin.capability, CAPABILITY);
    atomic_store(&standin.no_contexts, false);
    standin_cuda_peers(true);
    atomic_store(&standin.direct, 0U);
    atomic_store(&standin.through_host, 0U);
    for (int i = 0; i < STANDIN_DEVICES_MAX; i++)
        atomic_store(&standin.initialized[i], false);
    counted = (struct standin_cuda_host){ 0 };
    standin_set_current(0);
    last_error = cudaSuccess;
}

/* One setting each. */
#define SET(name, type, member)                                                                    \
    void standin_cuda_##name(type value)                                                           \
    {                                                                                              \
        atomic_store(&standin.member, value);                                                      \
    }
SET(delay, uint32_t, delay_us)
SET(driver, int, driver)
SET(lie, enum standin_cuda_lie, lie)
SET(memory, uint64_t, memory_bytes)
SET(no_capture, bool, no_capture)
SET(no_contexts, bool, no_contexts)
SET(no_driver, int, no_driver)
SET(reads_pageable, bool, reads_pageable)

/* One count each. */
#define TELL(name, type, member)                                                                   \
    type standin_cuda_##name(void)                                                                 \
    {                                                                                              \
        return atomic_load(&standin.member);                                                       \
    }
TELL(calls, uint64_t, calls)
TELL(copies, uint64_t, copies)
TELL(copies_after_failure, uint64_t, late_copies)
TELL(failed, bool, failed)
TELL(graph_launches, uint64_t, graph_launches)
TELL(launch_priority, int, launch_priority)
TELL(launches, uint64_t, launches)
TELL(live, int64_t, live)
TELL(staged, uint64_t, staged)
TELL(strays, uint64_t, strays)
TELL(violations, uint64_t, violations)

void standin_cuda_capability(int major, int minor)
{
    atomic_store(&standin.capability, 10 * major + minor);
}

void standin_cuda_fail(uint64_t nth, int code, bool lost)
{
    atomic_store(&standin.failed, false);
    atomic_store(&standin.fail_code, code);
    atomic_store(&standin.fail_loses, lost);
    atomic_store(&standin.fail_at, atomic_load(&standin.calls) + nth);
}

void standin_cuda_own_calls(bool own)
{
    own_calls = own;
}

struct standin_cuda_host standin_cuda_host(void)
{
    return counted;
}

/* ---- start and end of every call ---- */

/* Where a call is counted: the test's own calls count elsewhere. */
struct standin_cuda_host *standin_host(void)
{
    static _Thread_local struct standin_cuda_host uncounted;
    return own_calls ? &uncounted : &counted;
}

cudaError_t standin_end(cudaError_t code)
{
    if (code != cudaSuccess && code != cudaErrorNotReady)
        last_error = code;
    return code;
}

bool standin_own_calls(void)
{
    return own_calls;
}

cudaError_t standin_begin(void)
{
    standin_initialize(standin_current());
    return standin_begin_light();
}

cudaError_t standin_begin_light(void)
{
    looking = false;
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

cudaError_t standin_begin_look(void)
{
    return looking ? (cudaError_t)atomic_load(&standin.lost) : standin_begin();
}

cudaError_t standin_end_look(bool done)
{
    looking = !done;
    standin_host()->looks += done ? 0 : 1;
    return standin_end(done ? cudaSuccess : cudaErrorNotReady);
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

/* ---- memory ---- */

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    STANDIN_BEGIN;
    standin_host()->allocations++;
    STANDIN_TRY(standin_unsafe());
    return standin_end(standin_memory_alloc(out, bytes));
}

/* Functions that free do so even if they report an error, which may be one of earlier work. */
static cudaError_t give_back(void *memory, cudaError_t (*free_it)(void *memory))
{
    const cudaError_t refused = standin_begin();
    standin_host()->allocations++;
    const cudaError_t forbidden = standin_unsafe();
    const cudaError_t code = free_it(memory);
    if (refused != cudaSuccess)
        return standin_end(refused);
    return standin_end(forbidden != cudaSuccess ? forbidden : code);
}

cudaError_t cudaFree(void *memory)
{
    return give_back(memory, standin_memory_free);
}

cudaError_t cudaHostRegister(void *base, size_t bytes, unsigned flags)
{
    (void)flags;
    STANDIN_BEGIN;
    standin_host()->allocations++;
    STANDIN_TRY(standin_unsafe());
    return standin_end(standin_pin(base, bytes));
}

cudaError_t cudaHostUnregister(void *base)
{
    return give_back(base, standin_unpin);
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    STANDIN_BEGIN;
    standin_host()->allocations++;
    STANDIN_TRY(standin_unsafe());
    (void)flags;
    void *memory = NULL;
    if (posix_memalign(&memory, PAGE_BYTES, bytes) != 0)
        return standin_end(cudaErrorMemoryAllocation);
    *out = memory;
    return standin_end(standin_pin(memory, bytes));
}

cudaError_t cudaFreeHost(void *memory)
{
    if (memory == NULL)
        return cudaSuccess;
    const cudaError_t code = cudaHostUnregister(memory);
    free(memory);
    return code;
}

/* Check the direction and the addresses; set the addresses that the stream uses. */
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
    if (to_device && !from_device && copy->pinned == NULL &&
        !atomic_load(&standin.reads_pageable)) {
        atomic_fetch_add(&standin.staged, 1U);
        copy->staged = malloc(copy->bytes);
        if (copy->staged == NULL)
            abort();
        copy->from = memcpy(copy->staged, copy->from, copy->bytes);
    }
    return cudaSuccess;
}

/* Nothing is staged for a graph: when it runs, pageable memory may have changed. */
static cudaError_t check_captured_copy(const struct standin_operation *copy, cudaStream_t stream)
{
    bool inside;
    const bool pinned =
        standin_pin_use(copy->to, copy->bytes, 0) || standin_pin_use(copy->from, copy->bytes, 0);
    if (pinned || !standin_capturing(stream) ||
        (standin_on_device(copy->to, copy->bytes, &inside) &&
         standin_on_device(copy->from, copy->bytes, &inside)))
        return cudaSuccess;
    return standin_unsafe_on(stream);
}

static cudaError_t begin_copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                              cudaStream_t stream, bool *pinned)
{
    struct standin_operation copy = {
        .kind = STANDIN_COPY, .to = to, .from = from, .bytes = bytes
    };
    cudaError_t code = check_captured_copy(&copy, stream);
    if (code == cudaSuccess)
        code = place_copy(&copy, kind);
    if (code != cudaSuccess)
        return code;
    *pinned = copy.pinned != NULL;
    return standin_enqueue(stream, &copy);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    if (standin_cuda_failed() && !own_calls)
        atomic_fetch_add(&standin.late_copies, 1U);
    STANDIN_BEGIN;
    bool pinned = false;
    const bool awaited = standin_stream_awaited(stream);
    const cudaError_t code = begin_copy(to, from, bytes, kind, stream, &pinned);
    if (code == cudaSuccess && kind == cudaMemcpyDeviceToHost && !pinned &&
        !atomic_load(&standin.reads_pageable)) {
        standin_host()->copies++;
        standin_host()->spins += awaited ? 0 : 1;
        standin_stream_wait_idle(stream); /* a copy to pageable memory waits */
    }
    return standin_end(code);
}

/* Between the memory of two devices; check each side. */
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream)
{
    STANDIN_BEGIN;
    bool pinned = false;
    if (standin_memory_device(to) != to_device || standin_memory_device(from) != from_device)
        return standin_end(cudaErrorInvalidValue);
    atomic_fetch_add(atomic_load(&standin.accesses[to_device][from_device]) ? &standin.direct
                                                                            : &standin.through_host,
                     1U);
    return standin_end(begin_copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream, &pinned));
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    STANDIN_BEGIN;
    standin_host()->copies++;
    bool pinned = false;
    STANDIN_TRY(standin_unsafe());
    STANDIN_TRY(begin_copy(to, from, bytes, kind, NULL, &pinned));
    standin_stream_wait_idle(NULL);
    return standin_end(cudaSuccess);
}

static cudaError_t begin_fill(void *to, int value, size_t bytes, cudaStream_t stream)
{
    bool inside = false;
    if (!standin_on_device(to, bytes, &inside) || !inside)
        return cudaErrorInvalidValue;
    const struct standin_operation fill = {
        .kind = STANDIN_FILL, .to = standin_cuda_view(to), .bytes = bytes, .value = value
    };
    return standin_enqueue(stream, &fill);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    STANDIN_BEGIN;
    return standin_end(begin_fill(to, value, bytes, stream));
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    STANDIN_BEGIN;
    standin_host()->copies++;
    STANDIN_TRY(standin_unsafe());
    return standin_end(begin_fill(to, value, bytes, NULL));
}

/* ---- kernels ---- */

void standin_cuda_kernels(const struct standin_cuda_kernel *kernels)
{
    standin.kernels = kernels;
}
