/* memory.c - memory of the device, and copies to and from the host. */
#include "trainer/backend/cuda/device/device.h"

void *stk_cuda_alloc(struct stk_backend *backend, uint64_t bytes, stoker_error *error)
{
    void *memory = NULL;
    if (bytes > SIZE_MAX || stk_cuda_check(backend, backend->runtime.cudaMalloc(&memory, bytes),
                                           "cudaMalloc", error) != STOKER_OK)
        return NULL;
    if (stk_cuda_clear(backend, memory, bytes, error) == STOKER_OK)
        return memory;
    stk_cuda_free(backend, memory);
    return NULL;
}

/* Even if the device cannot be made current: cudaFree needs only the address. */
void stk_cuda_free(struct stk_backend *backend, void *memory)
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

int stk_cuda_copy_pageable(struct stk_backend *backend, void *to, const void *from, uint64_t bytes,
                           enum cudaMemcpyKind kind, stoker_error *error)
{
    const bool waits =
        backend->sums != NULL || (kind == cudaMemcpyDeviceToHost && !backend->reads_pageable);
    const int rc = waits ? stk_cuda_await(backend, NULL, error) : STOKER_OK;
    return rc == STOKER_OK ? stk_cuda_copy(backend, to, from, bytes, kind, error) : rc;
}

int stk_cuda_mark_copies(struct stk_backend *backend, stoker_error *error)
{
    if (!backend->reads_pageable)
        return STOKER_OK;
    const int rc = stk_cuda_record(backend, backend->copied, backend->stream, error);
    if (rc != STOKER_OK)
        stk_cuda_drain(backend);
    backend->copies_pending = rc == STOKER_OK;
    return rc;
}

/* If waiting for the mark fails, wait for everything. */
int stk_cuda_wait_copies(struct stk_backend *backend, stoker_error *error)
{
    if (!backend->copies_pending)
        return STOKER_OK;
    backend->copies_pending = false;
    const int rc = stk_cuda_await(backend, backend->copied, error);
    if (rc != STOKER_OK)
        stk_cuda_drain(backend);
    return rc;
}

void *stk_cuda_allocate(struct stk_backend *backend, size_t bytes)
{
    int before;
    if (stk_cuda_enter(backend, &before, NULL) != STOKER_OK)
        return NULL;
    void *const memory = stk_cuda_alloc(backend, bytes, NULL);
    stk_cuda_leave(backend, before);
    return memory;
}

/* With the device current if that can be done, else anyway. */
void stk_cuda_release(struct stk_backend *backend, void *memory)
{
    int before;
    const bool entered = stk_cuda_enter(backend, &before, NULL) == STOKER_OK;
    stk_cuda_drain(backend);
    stk_cuda_free(backend, memory);
    if (entered)
        stk_cuda_leave(backend, before);
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
    rc = stk_cuda_copy_pageable(backend, to, from, bytes, kind, error);
    rc = stk_cuda_wait(backend, rc, error); /* the host memory may be page-locked */
    stk_cuda_leave(backend, before);
    return rc;
}

int stk_cuda_upload(struct stk_backend *backend, void *to, const void *from, size_t bytes,
                    stoker_error *error)
{
    return copy_and_wait(backend, to, from, bytes, cudaMemcpyHostToDevice, error);
}

int stk_cuda_download(struct stk_backend *backend, void *to, const void *from, size_t bytes,
                      stoker_error *error)
{
    return copy_and_wait(backend, to, from, bytes, cudaMemcpyDeviceToHost, error);
}

uint64_t stk_cuda_free_bytes(struct stk_backend *backend)
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
