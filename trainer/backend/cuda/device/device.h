/* device.h - the GPU of a `cuda` back end: opened, its stream, memory and kernels.
 *
 * Everything is queued on one stream, in order; so scratch is shared by all operations of a program.
 * Functions return 0 or STOKER_EDEVICE with CUDA's words, unless they say more. */
#ifndef STK_TRAINER_BACKEND_CUDA_DEVICE_DEVICE_H
#define STK_TRAINER_BACKEND_CUDA_DEVICE_DEVICE_H

#include "loader/base/cuda_runtime.h"
#include "trainer/backend/backend.h"
#include "trainer/backend/cuda/device/math.h"

enum { STK_CUDA_ALIGNMENT = 256 };

static inline uint64_t stk_cuda_aligned(uint64_t bytes)
{
    return (bytes + STK_CUDA_ALIGNMENT - 1) / STK_CUDA_ALIGNMENT * STK_CUDA_ALIGNMENT;
}

/* Device memory of the back end, alive as long as it is: numbers that steps leave for each other. */
struct stk_cuda_block {
    struct stk_train_state state;
    struct stk_train_metrics training; /* since the last read */
    struct stk_train_metrics run;      /* of one run() */
    struct stk_train_metrics forward;  /* of queue(), since it was last collected */
    struct stk_train_other other;      /* what another device found of its gradients */
    uint32_t norm_ticket;
    uint32_t norm_finite[STK_TRAIN_PARTIALS_MAX];
    double norm_sums[STK_TRAIN_PARTIALS_MAX];
};

/* Halves of a training plan, and evaluation. */
enum { STK_CUDA_PREPARED = 3 };

struct stk_backend {
    struct stk_cuda_runtime runtime;
    int device;
    cudaStream_t stream;   /* NULL = not made */
    cudaLibrary_t library; /* NULL = not loaded */
    cudaKernel_t *kernels; /* one for each of stk_train_kernels; NULL = not asked for yet */
    struct stk_cuda_math math;
    bool uncaptured;                     /* steps are not recorded */
    bool reads_pageable;                 /* the GPU does: copies from such memory may be late */
    bool copies_pending;                 /* the host may not have its batch back before `taken` */
    cudaEvent_t copied;                  /* with reads_pageable: behind the copy of a batch */
    struct stk_capture captured;         /* steps so far */
    struct stk_cuda_block *block;        /* on the device */
    const struct stk_training *training; /* borrowed; NULL = begin was not called */
    struct stk_train_rule rule;
    struct stk_program
        *prepared[STK_CUDA_PREPARED]; /* asked about, and not loaded yet; NULL = none */
    uint32_t prepared_count;          /* so far, in turn */
    float *rates;                     /* on the device */
    uint64_t rate_count;
};

/* Open the runtime, the device, its stream and kernels: all but math, block and rates of a zeroed struct. On failure
 * what there is must still be closed. The device is current afterwards, *before the caller's. */
int stk_cuda_device_open(struct stk_backend *backend, const struct stk_backend_options *options,
                         int *before, stoker_error *error);
void stk_cuda_device_close(struct stk_backend *backend);

/* The functions of math.device. */
struct stk_cuda_device stk_cuda_math_device(struct stk_backend *backend);

/* STOKER_OK, or the failure in CUDA's words. It is taken away from cudaGetLastError: the program would
 * blame itself. */
int stk_cuda_check(const struct stk_backend *backend, cudaError_t code, const char *what,
                   stoker_error *error);

/* Make the back end's device the thread's current one, and give the caller back his. */
int stk_cuda_enter(const struct stk_backend *backend, int *before, stoker_error *error);
void stk_cuda_leave(const struct stk_backend *backend, int before);

/* Wait for all that was queued, before memory is given back. What fails twice is lost, and a lost device
 * touches nothing any more. */
void stk_cuda_drain(const struct stk_backend *backend);

/* Wait for all that was queued, to use what was copied or to let go of what is copied from. rc: how queueing it
 * went; what is under way is waited for if that failed, too. Returns the first failure. */
int stk_cuda_wait(const struct stk_backend *backend, int rc, stoker_error *error);

/* Device memory, aligned to 256, zeroed by the stream; NULL: error tells. The device is current. */
void *stk_cuda_alloc(struct stk_backend *backend, uint64_t bytes, stoker_error *error);
void stk_cuda_free(struct stk_backend *backend, void *memory); /* NULL-safe */

/* Queue a kernel of the training step with its struct. */
int stk_cuda_launch(struct stk_backend *backend, const struct stk_kernel *kernel,
                    const void *arguments, stoker_error *error);

int stk_cuda_clear(struct stk_backend *backend, void *memory, uint64_t bytes, stoker_error *error);
/* Queue a copy. From pageable memory CUDA promises nothing ("might be synchronous"): where the GPU cannot read
 * it, its bytes are staged before the call returns; where it can (HMM, ATS), `from` must stay as it is until the
 * stream was there. So who gives pageable memory waits, or calls stk_cuda_mark_copies(). */
int stk_cuda_copy(struct stk_backend *backend, void *to, const void *from, uint64_t bytes,
                  enum cudaMemcpyKind kind, stoker_error *error);

/* The copies queued so far read memory that the caller wants back: mark their end, queue what follows, and wait
 * for the mark. Both do nothing where such copies are staged. */
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
