/* device.h - the GPU of a `cuda` back end: its stream, memory and kernels.
 *
 * Everything is queued on one stream, in order, so all operations of a program share scratch.
 * Functions return 0 or STOKER_EDEVICE with CUDA's message, unless stated otherwise. */
#ifndef STK_TRAINER_BACKEND_CUDA_DEVICE_DEVICE_H
#define STK_TRAINER_BACKEND_CUDA_DEVICE_DEVICE_H

#include "loader/base/cuda/cuda_context.h"
#include "loader/base/cuda/cuda_runtime.h"
#include "trainer/backend/backend.h"
#include "trainer/backend/cuda/device/math.h"

enum { STK_CUDA_ALIGNMENT = 256 };

static inline uint64_t stk_cuda_aligned(uint64_t bytes)
{
    return (bytes + STK_CUDA_ALIGNMENT - 1) / STK_CUDA_ALIGNMENT * STK_CUDA_ALIGNMENT;
}

/* Numbers in device memory that carry over from step to step; lives as long as the back end. */
struct stk_cuda_block {
    struct stk_train_state state;
    struct stk_train_metrics training; /* training steps since the last read_state */
    struct stk_train_metrics run;      /* the last run() */
    struct stk_train_metrics forward;  /* forward plans since the last collect_loss */
    struct stk_train_other other;      /* the norm of the peer's gradients */
    uint32_t ticket;                   /* counts the blocks that have finished the norm */
    uint32_t norm_finite[STK_TRAIN_PARTIALS_MAX];
    double norm_sums[STK_TRAIN_PARTIALS_MAX];
};

struct stk_cuda_graphs;
struct stk_cuda_ranks;

/* Programs that are prepared ahead of load: two halves of a training plan, and evaluation. */
enum { STK_CUDA_PREPARED = 3 };

struct stk_backend {
    struct stk_cuda_runtime runtime;
    struct stk_cuda_context context;
    int device;
    cudaStream_t stream;   /* NULL = not created */
    cudaLibrary_t library; /* NULL = not loaded */
    cudaKernel_t *kernels; /* one for each of stk_train_kernels; NULL = not looked up yet */
    struct stk_cuda_math math;
    bool uncaptured;             /* do not capture steps as graphs */
    bool warm;                   /* its clock has risen */
    bool reads_pageable;         /* the GPU reads pageable memory, so copies from it may run late */
    cudaEvent_t idle;            /* the host waits for it; NULL = not created */
    bool copies_pending;         /* the host must not reuse its batch before `copied` */
    cudaEvent_t copied;          /* with reads_pageable: the batch has been copied */
    struct stk_capture captured; /* counts of steps so far */
    struct stk_cuda_graphs *graphs; /* of all programs that have captured; ../graph/capture.h */
    struct stk_cuda_block *block;   /* on the device */
    const struct stk_training *training; /* borrowed; NULL before start_training */
    struct stk_train_rule rule;
    /* Programs whose workspace was reported and that are not loaded yet; NULL = none. */
    struct stk_program *prepared[STK_CUDA_PREPARED];
    uint32_t prepared_count; /* programs put there so far; the next replaces the oldest */
    float *rates;            /* on the device: learning rates */
    uint64_t rate_count;
    struct stk_device_id id;
    struct stk_device_sums *sums; /* over the ranks; borrowed; NULL = this GPU alone */
    cudaStream_t sums_stream;     /* where they are queued; NULL = not created */
    struct stk_cuda_ranks *ranks; /* ../ranks/ranks.h, with sums */
};

/* Open the runtime, the device, its stream and its kernels. *backend is zeroed before; math, block
 * and rates stay so. On success the device is current, and *before was. Call close after a failure,
 * too. */
int stk_cuda_device_open(struct stk_backend *backend, const struct stk_backend_options *options,
                         int *before, stoker_error *error);
void stk_cuda_device_close(struct stk_backend *backend);

/* Return STOKER_OK, or report the failure with CUDA's message. Resets cudaGetLastError, so that the
 * program does not see an error of this library. */
int stk_cuda_check(const struct stk_backend *backend, cudaError_t code, const char *what,
                   stoker_error *error);

/* Make the back end's device current in this thread, and restore the caller's. */
int stk_cuda_enter(const struct stk_backend *backend, int *before, stoker_error *error);
void stk_cuda_leave(const struct stk_backend *backend, int before);

/* Make an event without a time. The host sleeps while it waits for one: it does so only to read
 * what the GPU computed, not in each step, so the few microseconds that a sleep adds cost less than
 * a core that the loader could use. */
int stk_cuda_make_event(const struct stk_backend *backend, cudaEvent_t *out, stoker_error *error);
/* Make a stream that does not synchronize with the legacy default stream. */
int stk_cuda_make_stream(const struct stk_backend *backend, cudaStream_t *out, stoker_error *error);
void stk_cuda_drop_event(const struct stk_backend *backend, cudaEvent_t event);    /* NULL-safe */
void stk_cuda_drop_stream(const struct stk_backend *backend, cudaStream_t stream); /* NULL-safe */

int stk_cuda_record(const struct stk_backend *backend, cudaEvent_t event, cudaStream_t stream,
                    stoker_error *error);
/* What is queued on the stream from now on comes after the event. */
int stk_cuda_wait_for(const struct stk_backend *backend, cudaStream_t stream, cudaEvent_t event,
                      stoker_error *error);

/* Wait for both streams, or, if event is not NULL, for that. With other ranks the wait ends when
 * one of them fails. STOKER_EDEVICE, EPEER. */
int stk_cuda_await(const struct stk_backend *backend, cudaEvent_t event, stoker_error *error);

/* Wait for all that was queued, before freeing memory. If that fails twice the device is lost, and
 * a lost device accesses no memory. */
void stk_cuda_drain(const struct stk_backend *backend);

/* Wait for all that was queued, before using the target of a copy or freeing its source. rc: result
 * of queueing; waits after a failure, too. Returns the first failure. */
int stk_cuda_wait(const struct stk_backend *backend, int rc, stoker_error *error);

/* The same behind copies to pageable memory by stk_cuda_copy_pageable(): those are over already,
 * unless the GPU writes that memory itself. */
int stk_cuda_end_read(const struct stk_backend *backend, int rc, stoker_error *error);

/* Allocate device memory, 256-byte aligned, zeroed by the stream; NULL on failure. The device must
 * be current. */
void *stk_cuda_alloc(struct stk_backend *backend, uint64_t bytes, stoker_error *error);
void stk_cuda_free(struct stk_backend *backend, void *memory); /* NULL-safe */

/* Queue a kernel of the training step with its struct. */
int stk_cuda_launch(struct stk_backend *backend, const struct stk_kernel *kernel,
                    const void *arguments, stoker_error *error);

int stk_cuda_clear(struct stk_backend *backend, void *memory, uint64_t bytes, stoker_error *error);
/* Queue a copy. From pageable memory CUDA promises nothing ("might be synchronous"): if the GPU
 * cannot read it, its bytes are staged before the call returns; if it can (HMM, ATS), `from` must
 * not change until the copy has run. So with pageable memory, wait or call
 * stk_cuda_mark_copies(). */
int stk_cuda_copy(struct stk_backend *backend, void *to, const void *from, uint64_t bytes,
                  enum cudaMemcpyKind kind, stoker_error *error);

/* The same, to or from pageable memory. CUDA may wait for the stream in it: with other ranks that
 * must be able to end, and to the host it is a wait that spins. So then the wait comes first. */
int stk_cuda_copy_pageable(struct stk_backend *backend, void *to, const void *from, uint64_t bytes,
                           enum cudaMemcpyKind kind, stoker_error *error);

/* Mark the end of the copies queued so far, and wait for that mark after queueing more. Both do
 * nothing if CUDA stages such copies. */
int stk_cuda_mark_copies(struct stk_backend *backend, stoker_error *error);
int stk_cuda_wait_copies(struct stk_backend *backend, stoker_error *error);

/* Memory functions of stk_backend_ops, see backend.h. */
void *stk_cuda_allocate(struct stk_backend *backend, size_t bytes);
void stk_cuda_release(struct stk_backend *backend, void *memory);
int stk_cuda_upload(struct stk_backend *backend, void *to, const void *from, size_t bytes,
                    stoker_error *error);
int stk_cuda_download(struct stk_backend *backend, void *to, const void *from, size_t bytes,
                      stoker_error *error);
uint64_t stk_cuda_free_bytes(struct stk_backend *backend);

extern const struct stk_transfer_ops stk_cuda_transfer;

#endif
