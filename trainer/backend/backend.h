/* backend.h - what runs a plan: `ref` (plain loops), `cpu` (vector loops, oneDNN), `cuda` (a GPU).
 *
 * A back end owns the memory that plans run in, and nothing else: it knows operations,
 * not layers' history. One thread calls it; it may have threads of its own.
 * Reproducible: the same plan, seed and thread count give the same bits.
 *
 * Two ways to train:
 *
 *   the host decides     clear ─▶ run ─▶ ... ─▶ norm_squared ─▶ (step.c) ─▶ update
 *   the device decides   begin, place ─▶ step ─▶ step ─▶ ... ─▶ read
 *                        a step only queues; loss scale, count of updates, learning rates, loss and
 *                        norm live on the device, and are read when somebody wants to know;
 *                        the same with queue ─▶ queue ─▶ collect for forward plans */
#ifndef STK_TRAINER_BACKEND_BACKEND_H
#define STK_TRAINER_BACKEND_BACKEND_H

#include "trainer/backend/common/crossing.h"
#include "trainer/plan/plan.h"
#include "trainer/update/loss_scale.h"
#include "trainer/update/schedule.h"
#include "trainer/update/update.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stoker/error.h>

/* What `cpu` may use: for tests, which hold each against `ref`. */
enum stk_loops {
    STK_LOOPS_BEST,    /* its own vector loops, oneDNN where there are none, else plain ones */
    STK_LOOPS_LIBRARY, /* oneDNN, else plain ones */
    STK_LOOPS_PLAIN
};

struct stk_backend_options {
    uint32_t device; /* `cuda`: which GPU, as CUDA counts */
    bool uncaptured; /* `cuda`: steps are queued operation by operation, never as one graph */
    bool needs_convolutions, needs_linear; /* `cuda`: whether the model has any: their libraries are
                                              opened with the back end */
    uint32_t threads; /* compute threads, the caller's included, at most 256; 0 = as many as CPUs
                         are left to the process. `ref` has one */
    enum stk_loops loops; /* default BEST */
    stoker_dtype storage; /* T of the plans that it will be given; 0 = float32 */
    bool benchmark;       /* choose engines by timing them, see has_engines */
    bool tf32;            /* `cuda`: products of float32 may be rounded to TF32 */
    bool deterministic; /* the same bits from the same input, at whatever cost. Default false, which
                             `ref` and `cpu` take for true */
};

/* Where one plan's data lies: device memory of this back end. */
struct stk_arenas {
    float *parameters; /* model.parameter_floats */
    float *gradients;  /* the same layout; NULL for a forward plan */
    float *statistics; /* model.statistic_floats; may be NULL if that is 0 */
    void *activations; /* plan.activation_bytes */
    void *stored; /* T [model.parameter_floats]: the parameters rounded, for the operations that
                          stk_reads_rounded(); NULL where T is float32 */
};

/* One pass over the operations. */
struct stk_pass {
    const float *samples;  /* [count][h][w][c] */
    const void *labels;    /* int64_t [count], or float [count][outputs]; NULL (forward plans only):
                              the loss operation is left out and *loss is all 0 */
    bool host_labels;      /* labels lie in host memory although samples are on the device */
    bool on_device;        /* samples and labels lie in memory of the back end's device, to be read
                              there when the stream gets to it; else in host memory, to be read before the
                              call returns, or, where that is page-locked, before the stream is done */
    bool page_locked;      /* what lies in host memory is page-locked */
    uint32_t count;        /* samples, 1..plan.options.batch */
    uint64_t first_sample; /* of this pass within the step: > 0 for later micro-batches */
    uint64_t step;         /* keys dropout */
    uint64_t seed;         /* keys dropout */
    float gradient_scale;  /* the loss gradient of each sample is multiplied by it: 1 / samples of
                             the whole step, times the loss scale */
};

/* What the loss operation found. */
struct stk_loss {
    double loss_sum;  /* over the samples, label smoothing included; mse: mean over outputs, summed
                        over samples */
    uint64_t correct; /* largest logit is the label; 0 for mse */
    uint64_t count;
};

/* What does not change while a trainer lives: for back ends whose device decides. */
struct stk_training {
    const struct stk_update_rule *rule;
    const struct stk_schedule *schedule;
    double clip_norm; /* 0 = no limit */
    double ema_decay; /* 0 = none */
    bool dynamic;     /* loss scale */
    bool
        split; /* the gradients are those of half a network: `norm` comes apart from `finish`, which adds
                         the other half's */
};

/* Where such a run stands. */
struct stk_standing {
    uint64_t updates, groups;         /* made; tried */
    struct stk_loss_scale loss_scale; /* read: dynamic is left as it was */
};

/* What it found since it was last read. */
struct stk_findings {
    struct stk_loss loss;
    uint64_t bad_labels; /* samples that added no loss and no gradient */
    float gradient_norm; /* of the last group, before clipping; 0 where none was worked out */
    bool used;           /* the last group's update was made */
};

/* Steps that were recorded and launched, and why not. */
struct stk_capture {
    uint64_t launched, queued; /* steps: as one graph; operation by operation */
    uint64_t refused;          /* kinds of steps that could not be recorded */
    stoker_error reason;       /* of the first of these; code 0 = none */
};

/* One pass within its group. */
struct stk_group_pass {
    bool first, last;                /* of the group */
    uint64_t samples;                /* of the group, this pass included */
    const struct stk_update *update; /* rule, arenas and floats; the rest of it is ignored */
};

struct stk_backend;
struct stk_program; /* a plan made ready for a back end: its primitives */

struct stk_backend_ops {
    const char *name;
    uint32_t storages; /* 1 << stoker_dtype for each T that plans may have */
    bool has_engines;  /* a library's, which can be timed and round factors to TF32:
                           benchmark and tf32. False: nothing may ask for these */
    int (*create)(struct stk_backend **out, const struct stk_backend_options *options,
                  stoker_error *error);
    void (*destroy)(struct stk_backend *backend);
    /* Compute threads in use. */
    uint32_t (*threads)(const struct stk_backend *backend);

    /* 64-byte aligned, zeroed device memory; NULL = none left. */
    void *(*allocate)(struct stk_backend *backend, size_t bytes);
    void (*release)(struct stk_backend *backend, void *memory);

    /* Copies from and to host memory, over when they return, after all that was queued before.
     * NULL, both: arenas lie in host memory and are read and written in place. STOKER_EDEVICE. */
    int (*upload)(struct stk_backend *backend, void *to, const void *from, size_t bytes,
                  stoker_error *error);
    int (*download)(struct stk_backend *backend, void *to, const void *from, size_t bytes,
                    stoker_error *error);

    /* Bytes of memory that are not taken yet, of those that allocate() gives out. NULL: it is host
     * memory. */
    uint64_t (*free_bytes)(struct stk_backend *backend);

    /* Bytes that `load` will take for this plan, exactly (scratch, and its own tables; what a
     * library keeps for itself, such as generated code, is not known and not in it).
     * STOKER_ELIMIT: the plan has an operation that is too large for this back end. */
    int (*workspace_bytes)(struct stk_backend *backend, const struct stk_plan *plan, uint64_t *out,
                           stoker_error *error);
    /* Make a plan ready. plan must outlive the program. On failure nothing is left behind. */
    int (*load)(struct stk_program **out, struct stk_backend *backend, const struct stk_plan *plan,
                stoker_error *error);
    void (*unload)(struct stk_program *program); /* NULL-safe */
    /* Make ready for passes of so many samples, and run the operations once on zeros, so that the first step
     * loads no code. Activations, gradients and statistics are anything afterwards. The host waits for nothing
     * on the device. NULL: there is nothing to be gained. STOKER_EDEVICE, STOKER_ENOMEM. */
    int (*warm)(struct stk_program *program, const struct stk_arenas *arenas, uint32_t count,
                stoker_error *error);
    /* Wait for what was queued, and give back what nothing in outlives a run; the next run takes it again.
     * Returns bytes. NULL: it keeps all. */
    uint64_t (*trim)(struct stk_program *program);
    /* Run all operations and wait; *loss is written on success. Gradients are ADDED to: clear them first.
     * STOKER_EINVAL: a label out of range (the message names the place in the batch); then nothing
     * has changed. STOKER_EDEVICE: the back end's library failed; then anything may have. */
    int (*run)(struct stk_program *program, const struct stk_arenas *arenas,
               const struct stk_pass *pass, struct stk_loss *loss, stoker_error *error);

    /* ---- the host decides; NULL: the device does ---- */

    /* gradients = 0 */
    void (*clear)(struct stk_backend *backend, float *floats, uint64_t count);
    /* Sum of squares of the gradients in a fixed order, and whether all are finite. */
    double (*norm_squared)(struct stk_backend *backend, const float *floats, uint64_t count,
                           bool *finite);
    /* One optimiser step over the whole arena; see update.h. */
    void (*update)(struct stk_backend *backend, const struct stk_update *update);
    /* stored = parameters, rounded to T: after they were written from outside; `update` keeps
     * update->stored by itself. NULL: T is always float32. STOKER_EDEVICE. */
    int (*narrow)(struct stk_backend *backend, void *stored, const float *parameters,
                  uint64_t count, stoker_dtype storage, stoker_error *error);

    /* ---- the device decides; NULL: the host does ---- */

    /* Bytes that begin will take. STOKER_ELIMIT: the schedule is too long. */
    int (*training_bytes)(struct stk_backend *backend, const struct stk_training *training,
                          uint64_t *out, stoker_error *error);
    /* Once, before the first step. What training points to must outlive the back end. */
    int (*begin)(struct stk_backend *backend, const struct stk_training *training,
                 stoker_error *error);
    /* Go on from here: after begin, and after a checkpoint was loaded. */
    int (*place)(struct stk_backend *backend, const struct stk_standing *standing,
                 stoker_error *error);
    /* Queue a pass, and behind a group's last one the update. pass.step and gradient_scale are the
     * device's own; arenas and what update points to are the same each time. The host waits for nothing. STOKER_EDEVICE. */
    int (*step)(struct stk_program *program, const struct stk_arenas *arenas,
                const struct stk_pass *pass, const struct stk_group_pass *group,
                stoker_error *error);
    /* Queue the update of a group that ends early. */
    int (*finish)(struct stk_backend *backend, const struct stk_update *update, uint64_t samples,
                  stoker_error *error);
    /* Queue the norm of the gradients, where clipping or the loss scale ask for it: with training->split. */
    int (*norm)(struct stk_backend *backend, const struct stk_update *update, stoker_error *error);
    const struct stk_crossing_ops *crossing;
    /* Wait for all that was queued and tell; what was found is told once. */
    int (*read)(struct stk_backend *backend, struct stk_standing *standing,
                struct stk_findings *findings, stoker_error *error);
    /* Queue a forward plan. What its loss finds is added up on the device until it is collected; nothing is
     * found where pass->labels is NULL. The host waits for nothing. STOKER_EINVAL: as run(). STOKER_EDEVICE. */
    int (*queue)(struct stk_program *program, const struct stk_arenas *arenas,
                 const struct stk_pass *pass, stoker_error *error);
    /* Wait for all that was queued and tell what forward plans found, once. */
    int (*collect)(struct stk_backend *backend, struct stk_loss *loss, uint64_t *bad_labels,
                   stoker_error *error);
    /* How steps were queued so far: the back end's own. */
    const struct stk_capture *(*capture)(const struct stk_backend *backend);
    /* The stream all is queued on: a cudaStream_t. */
    void *(*stream)(const struct stk_backend *backend);
};

extern const struct stk_backend_ops stk_backend_ref;
extern const struct stk_backend_ops stk_backend_cpu;
extern const struct stk_backend_ops stk_backend_cuda; /* create fails where it was not built in */

/* "ref", "cpu", "cuda"; NULL if unknown. */
const struct stk_backend_ops *stk_backend_find(const char *name);

#endif
