/* backend.h - the interface of the back ends: `ref` (plain loops), `cpu` (threads, oneDNN), `cuda`
 * (a GPU).
 *
 * A back end owns the memory that plans run in, and runs their operations. It knows neither layers
 * nor training history. One thread calls it; it may have threads of its own. `ref` and `cpu` give
 * the same bits for the same plan, seed and thread count.
 *
 * There are two ways to train:
 *
 *   the host decides     clear ─▶ run ─▶ ... ─▶ norm_squared ─▶ (api/step.c) ─▶ update
 *   the device decides   start_training, upload_state ─▶ queue_step ─▶ queue_step ─▶ ... ─▶ read_state
 *
 * If the device decides, a step only queues: loss scale, update count, learning rates, loss and
 * norm live on the device and are read on request. queue_forward and collect_loss do the same for
 * forward plans. */
#ifndef STK_TRAINER_BACKEND_BACKEND_H
#define STK_TRAINER_BACKEND_BACKEND_H

#include "trainer/backend/common/device_sums.h"
#include "trainer/backend/common/transfer.h"
#include "trainer/plan/plan.h"
#include "trainer/plan/slices.h"
#include "trainer/update/loss_scale.h"
#include "trainer/update/schedule.h"
#include "trainer/update/update.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

struct stk_backend_options {
    /* `cuda`: index of the GPU, in CUDA's order */
    uint32_t device;
    /* `cuda`: queue the operations of a step one by one, never as a graph */
    bool uncaptured;
    /* `cuda`: the model has such layers, so that their library is opened by create */
    bool needs_convolutions, needs_linear;
    /* compute threads, the caller's included, 1..256; 0 = the number of CPUs of this process. `ref`
     * has one */
    uint32_t threads;
    /* `cpu`: only plain loops, as in a build without oneDNN on a CPU without AVX2; for tests */
    bool plain;
    stoker_dtype storage; /* T of the plans to run; 0 = float32 */
    bool benchmark;       /* choose engines by timing them; needs has_engines */
    bool tf32;            /* `cuda`: products of float32 may round their factors to TF32 */
    /* the same bits from the same input, even if slower; default false. `ref` and `cpu` always are
     * */
    bool deterministic;
};

/* The arenas that a plan works on: memory of this back end. */
struct stk_arenas {
    float *parameters; /* model.parameter_floats */
    float *gradients;  /* the same layout; NULL for a forward plan */
    float *statistics; /* model.statistic_floats; may be NULL if that is 0 */
    void *activations; /* plan.activation_bytes */
    /* T [model.parameter_floats]: rounded parameters, for the operations that stk_reads_rounded();
     * NULL if T is float32 */
    void *half_weights;
};

/* One pass over the operations. */
struct stk_pass {
    const float *samples; /* [count][h][w][c] */
    /* int64_t [count], or float [count][outputs]. NULL, in forward plans only: skip the loss; *loss
     * is all 0 */
    const void *labels;
    /* The memory of samples and labels. On the device: read when the stream gets there. In host
     * memory: read before the call returns, or, if page-locked, before the stream is done. */
    bool on_device;
    bool host_labels;      /* labels are in host memory although on_device */
    bool page_locked;      /* host memory is page-locked */
    uint32_t count;        /* samples, 1..plan.options.batch */
    uint64_t first_sample; /* position of this pass within the step; > 0 for later micro-batches */
    uint64_t step, seed;   /* key dropout */
    /* Factor of each sample's loss gradient: loss scale / samples of the whole step. */
    float gradient_scale;

    /* ---- several ranks; zero and NULL: this process alone ---- */

    uint64_t samples_of_all; /* samples of this pass on all ranks; > 0 with sums */
    /* Device: a number of the samples of each rank, in their order. Equal on all ranks, and
     * different for different ones. */
    uint64_t shares;
    bool forgets; /* device: on some rank graphs were destroyed since the last pass, so all do so */

    /* ---- several ranks, host memory ---- */

    /* BatchNorm over all ranks: `add` sums doubles over them, in place. One thread calls it, in the
     * order of operations; it keeps its own errors. A pass of 0 samples then still runs. */
    const struct stk_pass_sums *sums;
    /* [model.statistic_floats], as arenas.statistics: BatchNorm writes a batch's mean and unbiased
     * variance here instead of moving the running statistics. */
    double *batch_statistics;
    /* Learns which gradients are complete while the pass still computes others. */
    const struct stk_pass_watch *watch;
};

struct stk_pass_sums {
    void (*add)(void *context, double *values, uint32_t count);
    void *context;
};

/* The thread that calls run() calls both; they keep their own errors. */
struct stk_pass_watch {
    const struct stk_slices *slices; /* those of the plan that runs */
    /* The gradients of a slice are complete, and nothing in this pass touches them any more: once
     * for each, in the order of `slices`; on success for all of them before run() returns. */
    void (*ready)(void *context, uint32_t slice);
    void (*poll)(void *context); /* now and then */
    void *context;
};

/* Results of the loss operation. */
struct stk_loss {
    /* Sum over the samples, label smoothing included; mse: of the mean over the outputs. */
    double loss_sum;
    uint64_t correct; /* samples whose largest logit is the label; 0 for mse */
    uint64_t count;   /* samples */
};

/* What stays the same during training, if the device decides. */
struct stk_training {
    const struct stk_update_rule *rule;
    const struct stk_schedule *schedule;
    double clip_norm; /* 0 = no limit */
    double ema_decay; /* 0 = no moving average */
    bool dynamic;     /* loss scale */
    bool split; /* gradients of half a network: queue_norm first, the update adds the peer's norm */
};

/* The state that a training step changes. */
struct stk_update_state {
    uint64_t updates, groups;         /* made; tried */
    struct stk_loss_scale loss_scale; /* read_state leaves `dynamic` as it is */
};

/* Metrics since they were last read. */
struct stk_step_metrics {
    struct stk_loss loss;
    uint64_t bad_labels; /* samples out of range, which added neither loss nor gradient */
    float gradient_norm; /* norm of the last group, before clipping; 0 if not computed */
    bool used;           /* the last group's update was made */
};

/* Steps that were captured as a CUDA graph, and why not. */
struct stk_capture {
    uint64_t launched, queued; /* steps, as one graph; operation by operation */
    uint64_t refused;          /* kinds of steps that could not be captured */
    stoker_error reason;       /* error of the first refusal; code 0 = none */
};

/* The engines of cuDNN and cuBLASLt. */
struct stk_engines {
    uint64_t graphs;   /* graphs and products whose engine failed and was replaced */
    const char *first; /* what failed first, why, and what runs instead; "" = none */
    const char *lines; /* all engines that run, a line each; "" = none */
};

/* One pass within its group. */
struct stk_group_pass {
    bool first, last;                /* pass of the group */
    uint64_t samples;                /* samples of the group, this pass included */
    const struct stk_update *update; /* rule, arenas and floats; the rest is ignored */
};

struct stk_backend;
struct stk_program; /* a plan prepared for a back end */

/* The operations of a back end whose memory is a device's own and that decides on updates itself.
 * All are required. Those that queue do not wait for the device. Errors are STOKER_EDEVICE unless
 * stated. */
struct stk_device_ops {
    /* ---- memory ---- */

    /* Copy from and to host memory, after all that was queued; return when done. */
    int (*upload)(struct stk_backend *backend, void *to, const void *from, size_t bytes,
                  stoker_error *error);
    int (*download)(struct stk_backend *backend, void *to, const void *from, size_t bytes,
                    stoker_error *error);
    /* Bytes that allocate() can still give. */
    uint64_t (*free_bytes)(struct stk_backend *backend);
    /* Copies between this device and the host or a peer, beside the computation. */
    const struct stk_transfer_ops *transfer;

    /* ---- programs ---- */

    /* true: until the next call, workspace_bytes is asked to compare plans, and runs no engine to
     * learn that it runs. */
    void (*search)(struct stk_backend *backend, bool searching);
    /* Prepare passes of `count` samples and run the operations once on zeros, so that the first
     * step loads no code. Leaves activations, gradients and statistics undefined. STOKER_ENOMEM. */
    int (*warm)(struct stk_program *program, const struct stk_arenas *arenas, uint32_t count,
                stoker_error *error);
    /* Wait for what was queued and free memory that carries no state between runs; the next run
     * allocates it again. Returns the bytes freed. */
    uint64_t (*trim)(struct stk_program *program);
    /* Queue a forward plan. Its loss is summed on the device until collect_loss; not if
     * pass->labels is NULL. STOKER_EINVAL: as run(). */
    int (*queue_forward)(struct stk_program *program, const struct stk_arenas *arenas,
                         const struct stk_pass *pass, stoker_error *error);
    /* Wait for all that was queued; return and reset the sums of the forward plans. */
    int (*collect_loss)(struct stk_backend *backend, struct stk_loss *loss, uint64_t *bad_labels,
                        stoker_error *error);

    /* ---- training ---- */

    /* Bytes that start_training allocates. STOKER_ELIMIT: the schedule is too long. */
    int (*training_bytes)(struct stk_backend *backend, const struct stk_training *training,
                          uint64_t *out, stoker_error *error);
    /* Call once, before the first step. What `training` points to must outlive the back end. */
    int (*start_training)(struct stk_backend *backend, const struct stk_training *training,
                          stoker_error *error);
    /* Continue from this state: after start_training, and after a checkpoint was loaded. */
    int (*upload_state)(struct stk_backend *backend, const struct stk_update_state *state,
                        stoker_error *error);
    /* Wait for all that was queued; return the state, and the metrics since the last call. */
    int (*read_state)(struct stk_backend *backend, struct stk_update_state *state,
                      struct stk_step_metrics *metrics, stoker_error *error);
    /* Queue a pass, followed by the update if it is the last of its group. The device has its own
     * pass.step and gradient_scale. Arenas and what `update` points to must be the same each time.
     * */
    int (*queue_step)(struct stk_program *program, const struct stk_arenas *arenas,
                      const struct stk_pass *pass, const struct stk_group_pass *group,
                      stoker_error *error);
    /* Queue the update of a group that ends early. */
    int (*queue_update)(struct stk_backend *backend, const struct stk_update *update,
                        uint64_t samples, stoker_error *error);
    /* Queue the norm of the gradients if clipping or the loss scale needs it. Only with
     * training->split. */
    int (*queue_norm)(struct stk_backend *backend, const struct stk_update *update,
                      stoker_error *error);

    /* ---- several ranks; see common/device_sums.h ---- */

    /* Make the device current in this thread, while device sums are opened; restore what was
     * before. */
    int (*enter)(const struct stk_backend *backend, int *before, stoker_error *error);
    void (*leave)(const struct stk_backend *backend, int before);
    /* A number that no other GPU has. */
    struct stk_device_id (*identify)(const struct stk_backend *backend);
    /* Call once, before the first step; `sums` must outlive the back end. From then on a pass may
     * have no samples, an update uses the gradients of all ranks, and a wait for the device ends if
     * a rank fails. STOKER_ENOMEM. */
    int (*join)(struct stk_backend *backend, struct stk_device_sums *sums,
                const stoker_model *model, bool sync_batch_norm, stoker_error *error);
    /* Prepare what a pass of `count` samples needs; *forgets: graphs were destroyed since the last
     * call. Between this and queue_step the ranks reach a sync point. STOKER_ENOMEM, ELIMIT. */
    int (*prepare_step)(struct stk_program *program, uint32_t count, bool *forgets,
                        stoker_error *error);
    /* Queue the sum of floats of the device over all ranks; nothing to do if this process is alone.
     * STOKER_EPEER. */
    int (*sum)(struct stk_backend *backend, float *floats, uint64_t count, stoker_error *error);
    /* Everybody's bytes become rank 0's; returns when done. STOKER_EPEER. */
    int (*broadcast)(struct stk_backend *backend, void *memory, uint64_t bytes,
                     stoker_error *error);
    /* Queue setting floats to 0. */
    int (*clear)(struct stk_backend *backend, float *floats, uint64_t count, stoker_error *error);

    /* Counts of captured steps; owned by the back end. */
    const struct stk_capture *(*capture)(const struct stk_backend *backend);
    struct stk_engines (*engines)(const struct stk_backend *backend);
    /* The cudaStream_t that everything is queued on. */
    void *(*stream)(const struct stk_backend *backend);
};

struct stk_backend_ops {
    const char *name;
    uint32_t storages; /* 1 << stoker_dtype for each T that it supports */
    /* True if a library has engines that can be timed and run in TF32; false: refuse benchmark and
     * tf32. */
    bool has_engines;
    const struct stk_device_ops *device; /* NULL: arenas are in host memory, and the host decides */

    int (*create)(struct stk_backend **out, const struct stk_backend_options *options,
                  stoker_error *error);
    void (*destroy)(struct stk_backend *backend);
    /* Number of compute threads. */
    uint32_t (*threads)(const struct stk_backend *backend);

    /* 64-byte aligned, zeroed memory of the back end; NULL: out of memory. */
    void *(*allocate)(struct stk_backend *backend, size_t bytes);
    void (*release)(struct stk_backend *backend, void *memory);

    /* Exact number of bytes that load() allocates for this plan, apart from what a library
     * allocates for itself. STOKER_ELIMIT: an operation is too large for this back end. */
    int (*workspace_bytes)(struct stk_backend *backend, const struct stk_plan *plan, uint64_t *out,
                           stoker_error *error);
    /* Prepare a plan, which must outlive the program. Leaves nothing behind on failure. */
    int (*load)(struct stk_program **out, struct stk_backend *backend, const struct stk_plan *plan,
                stoker_error *error);
    void (*unload)(struct stk_program *program); /* NULL-safe */

    /* Run all operations and wait. Gradients are ADDED to: clear them first. *loss is written on
     * success. STOKER_EINVAL: label out of range, nothing has changed. STOKER_EDEVICE: a library or
     * the device failed; the arenas are undefined. */
    int (*run)(struct stk_program *program, const struct stk_arenas *arenas,
               const struct stk_pass *pass, struct stk_loss *loss, stoker_error *error);

    /* half_weights = parameters, rounded to T, after they were written from outside; an update
     * writes both. NULL if T is always float32. STOKER_EDEVICE. */
    int (*narrow)(struct stk_backend *backend, void *half_weights, const float *parameters,
                  uint64_t count, stoker_dtype storage, stoker_error *error);

    /* ---- NULL if the device decides ---- */

    /* Set gradients to 0. */
    void (*clear)(struct stk_backend *backend, float *floats, uint64_t count);
    /* Return the sum of squares, added in a fixed order; *finite: all values are. */
    double (*norm_squared)(struct stk_backend *backend, const float *floats, uint64_t count,
                           bool *finite);
    /* One optimizer step over the whole arena; see update.h. */
    void (*update)(struct stk_backend *backend, const struct stk_update *update);
};

extern const struct stk_backend_ops stk_backend_ref;
extern const struct stk_backend_ops stk_backend_cpu;
extern const struct stk_backend_ops stk_backend_cuda; /* create fails if it was not built in */

/* Find "ref", "cpu" or "cuda"; NULL if unknown. */
const struct stk_backend_ops *stk_backend_find(const char *name);

/* The copies of a device-resident back end; NULL for others. */
static inline const struct stk_transfer_ops *stk_transfer_of(const struct stk_backend_ops *ops)
{
    return ops->device == NULL ? NULL : ops->device->transfer;
}

#endif
