/* backend.h - the inside of the `cuda` back end, for the files that make it up.
 *
 *   backend.c             the device: opened, its memory, kernels by name, the vtable
 *   program/program.c     a plan made ready: convolutions and linear layers for a count, scratch
 *   program/set.c         its operations made for a count, and queued
 *   program/operation.c   one operation of a plan ─▶ kernels on the stream
 *   program/training.c    what lives on the device from step to step: loss scale, rates, metrics, update
 *   device/crossing.c     copies between this device and another, or the host
 *   graph/capture.c       a step recorded once and launched as one graph
 *
 * Everything is queued on one stream, in order; so scratch is shared by all operations of a program.
 * Functions return 0 or STOKER_EDEVICE with CUDA's words, unless they say more. */
#ifndef STK_TRAINER_BACKEND_CUDA_BACKEND_H
#define STK_TRAINER_BACKEND_CUDA_BACKEND_H

#include "loader/base/cuda_runtime.h"
#include "trainer/backend/backend.h"
#include "trainer/backend/common/operands.h"
#include "trainer/backend/cuda/program/math.h"

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
    bool borrowing;                      /* the host may not have its batch back before `taken` */
    cudaEvent_t taken;                   /* with reads_pageable: behind the copy of a batch */
    struct stk_capture captured;         /* steps so far */
    struct stk_cuda_block *block;        /* on the device */
    const struct stk_training *training; /* borrowed; NULL = begin was not called */
    struct stk_train_rule rule;
    struct stk_program
        *prepared[STK_CUDA_PREPARED]; /* asked about, and not loaded yet; NULL = none */
    uint32_t kept;                    /* so far, in turn */
    float *rates;                     /* on the device */
    uint64_t rate_count;
};

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
void *stk_cuda_take(struct stk_backend *backend, uint64_t bytes, stoker_error *error);
void stk_cuda_give(struct stk_backend *backend, void *memory); /* NULL-safe */

/* Queue a kernel of the training step with its struct. */
int stk_cuda_launch(struct stk_backend *backend, const struct stk_kernel *kernel,
                    const void *arguments, stoker_error *error);

int stk_cuda_clear(struct stk_backend *backend, void *memory, uint64_t bytes, stoker_error *error);
/* Queue a copy. From pageable memory CUDA promises nothing ("might be synchronous"): where the GPU cannot read
 * it, its bytes are staged before the call returns; where it can (HMM, ATS), `from` must stay as it is until the
 * stream was there. So who gives pageable memory waits, or calls stk_cuda_borrow(). */
int stk_cuda_copy(struct stk_backend *backend, void *to, const void *from, uint64_t bytes,
                  enum cudaMemcpyKind kind, stoker_error *error);

/* The copies queued so far read memory that the caller wants back: mark their end, queue what follows, and wait
 * for the mark. Both do nothing where such copies are staged. */
int stk_cuda_borrow(struct stk_backend *backend, stoker_error *error);
int stk_cuda_give_back(struct stk_backend *backend, stoker_error *error);

/* ---- operation.c: one operation ---------------------------------------------------------- */

/* What operations may write to beside their operands; each finds it as the last one left it, and only
 * tickets are 0 before and after. */
struct stk_cuda_scratch {
    void *workspace; /* as many bytes as the largest operation asks for */
    uint32_t *tickets;
};

/* What the losses and dropout are given beside their operands. */
struct stk_cuda_pass {
    struct stk_train_metrics *metrics;
    const struct stk_train_state *state; /* NULL: loss scale and step are those of the pass */
    float gradient_factor;
    uint64_t step; /* of dropout, added to the state's */
};

/* Bytes of workspace and words of tickets that an operation on `count` samples takes; convolutions and
 * linear layers are not asked here. */
uint64_t stk_cuda_operation_workspace(const struct stk_plan *plan, const struct stk_op *op,
                                      uint32_t count);
uint32_t stk_cuda_operation_tickets(const struct stk_plan *plan, const struct stk_op *op);

/* Queue an operation that is neither a convolution nor a linear layer. */
int stk_cuda_operation(struct stk_backend *backend, const struct stk_operands *operands,
                       const struct stk_cuda_scratch *scratch, const struct stk_cuda_pass *pass,
                       stoker_error *error);

/* ---- capture.c: a step as one graph ------------------------------------------------------- */

enum { STK_CUDA_RECORDINGS = 8 };

/* What two steps must have in common to be one graph. */
struct stk_cuda_key {
    const void *activations;
    uint32_t count;
    bool first, last;            /* of its group */
    uint64_t samples;            /* of the group; 0 but in its last pass */
    uint64_t first_sample, seed; /* of dropout; 0 where there is none */
};

struct stk_cuda_recording {
    struct stk_cuda_key key;
    uint64_t used;         /* when it was last asked for; 0 = empty */
    cudaGraphExec_t graph; /* NULL = not recorded */
    bool refused;          /* it cannot be */
};

/* All zero is empty. */
struct stk_cuda_recordings {
    struct stk_cuda_recording recording[STK_CUDA_RECORDINGS];
    uint64_t tick;
};

/* Puts a step on the stream. */
typedef int stk_cuda_queue(void *context, stoker_error *error);

/* Queue a step, from its recording if there is one. The device is current. */
int stk_cuda_recordings_run(struct stk_backend *backend, struct stk_cuda_recordings *recordings,
                            const struct stk_cuda_key *key, stk_cuda_queue *queue, void *context,
                            stoker_error *error);
/* Forget those for so many samples; 0 = all. */
void stk_cuda_recordings_drop(struct stk_backend *backend, struct stk_cuda_recordings *recordings,
                              uint32_t count);

/* ---- program.c: all operations of a pass ------------------------------------------------- */

int stk_cuda_workspace_bytes(struct stk_backend *backend, const struct stk_plan *plan,
                             uint64_t *out, stoker_error *error);
int stk_cuda_program_load(struct stk_program **out, struct stk_backend *backend,
                          const struct stk_plan *plan, stoker_error *error);
void stk_cuda_program_unload(struct stk_program *program);
int stk_cuda_program_warm(struct stk_program *program, const struct stk_arenas *arenas,
                          uint32_t count, stoker_error *error);
uint64_t stk_cuda_program_trim(struct stk_program *program);
int stk_cuda_program_run(struct stk_program *program, const struct stk_arenas *arenas,
                         const struct stk_pass *pass, struct stk_loss *loss, stoker_error *error);
int stk_cuda_program_queue(struct stk_program *program, const struct stk_arenas *arenas,
                           const struct stk_pass *pass, stoker_error *error);
int stk_cuda_program_step(struct stk_program *program, const struct stk_arenas *arenas,
                          const struct stk_pass *pass, const struct stk_group_pass *group,
                          stoker_error *error);

/* ---- training.c: from step to step -------------------------------------------------------- */

int stk_cuda_training_bytes(struct stk_backend *backend, const struct stk_training *training,
                            uint64_t *out, stoker_error *error);
int stk_cuda_training_begin(struct stk_backend *backend, const struct stk_training *training,
                            stoker_error *error);
int stk_cuda_training_place(struct stk_backend *backend, const struct stk_standing *standing,
                            stoker_error *error);
int stk_cuda_training_read(struct stk_backend *backend, struct stk_standing *standing,
                           struct stk_findings *findings, stoker_error *error);
int stk_cuda_training_collect(struct stk_backend *backend, struct stk_loss *loss,
                              uint64_t *bad_labels, stoker_error *error);
/* Queue the norm alone: with training->split, before an update. */
int stk_cuda_training_norm(struct stk_backend *backend, const struct stk_update *update,
                           stoker_error *error);
/* Queue norm, factors and update. The device is current. */
int stk_cuda_training_update(struct stk_backend *backend, const struct stk_update *update,
                             uint64_t samples, stoker_error *error);
/* Queue stored = parameters, rounded. */
int stk_cuda_training_narrow(struct stk_backend *backend, void *stored, const float *parameters,
                             uint64_t count, stoker_dtype storage, stoker_error *error);
int stk_cuda_training_finish(struct stk_backend *backend, const struct stk_update *update,
                             uint64_t samples, stoker_error *error);

/* ---- crossing.c: copies to and from what lies beside ------------------------------------------ */

extern const struct stk_crossing_ops stk_cuda_crossing;

#endif
