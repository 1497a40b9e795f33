/* state.h - what the stand-in's parts share: the counts, the lies, and the operations. */
#ifndef STK_TESTS_STANDIN_CUDA_STATE_H
#define STK_TESTS_STANDIN_CUDA_STATE_H

#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "standin_cuda.h"

struct standin_state {
    _Atomic int devices;
    _Atomic int no_driver;
    _Atomic uint64_t calls;
    _Atomic uint64_t fail_at; /* the value of calls that fails; 0 = none */
    _Atomic int fail_code;
    _Atomic bool fail_loses;
    _Atomic bool failed;
    _Atomic int lost; /* the error that every call answers from now on; 0 = none */
    _Atomic uint32_t delay_us;
    _Atomic int lie;
    _Atomic uint64_t copies;
    _Atomic uint64_t late_copies;
    _Atomic uint64_t staged;
    _Atomic uint64_t violations;
    _Atomic uint64_t launches;
    _Atomic int64_t live;
    const struct standin_cuda_kernel *kernels; /* the test's: set while nothing runs */
};
extern struct standin_state standin;

/* The calling thread's current device. */
int standin_current(void);

/* ---- memory.c ---- */

cudaError_t standin_memory_alloc(void **out, size_t bytes);
cudaError_t standin_memory_free(void *memory);
cudaError_t standin_pin(void *base, size_t bytes);
cudaError_t standin_unpin(void *base);
bool standin_on_device(const void *memory, size_t bytes, bool *inside); /* *inside: all of it */

/* Count a copy to or from host memory in or out of the page-locked range that holds it. False: it is
 * in none. */
bool standin_pin_use(const void *memory, size_t bytes, int change);

/* ---- stream.c ---- */

enum standin_kind { STANDIN_COPY, STANDIN_MARK, STANDIN_WAIT, STANDIN_CALL, STANDIN_LAUNCH };

struct standin_operation {
    enum standin_kind kind;
    struct standin_operation *next;
    void *to; /* copy: addresses that can be used */
    const void *from;
    size_t bytes;
    void *staged;       /* copy: to be freed, NULL = none */
    const void *pinned; /* copy: the page-locked range in use, NULL = none */
    struct CUevent_st *event;
    struct standin_mark *mark;
    cudaHostFn_t call;
    void *argument;
    const struct standin_cuda_kernel *kernel;
};

cudaError_t standin_stream_create(cudaStream_t *out);
void standin_stream_destroy(cudaStream_t stream);
int standin_stream_device(cudaStream_t stream);
/* Put a copy of the operation at the end. NULL = the current device's default stream. */
void standin_stream_put(cudaStream_t stream, const struct standin_operation *operation);
bool standin_stream_idle(cudaStream_t stream);
void standin_stream_wait_idle(cudaStream_t stream);
bool standin_stream_forgets(cudaStream_t stream);
void standin_streams_end(void); /* the default streams */
void standin_lose(int code);    /* the GPU: no copy touches memory after it */

cudaError_t standin_event_create(cudaEvent_t *out);
void standin_event_destroy(cudaEvent_t event);
int standin_event_device(cudaEvent_t event);
void standin_event_mark(cudaEvent_t event, cudaStream_t stream);
void standin_event_wait_on(cudaEvent_t event, cudaStream_t stream);
bool standin_event_done(cudaEvent_t event);
void standin_event_wait(cudaEvent_t event);

#endif
